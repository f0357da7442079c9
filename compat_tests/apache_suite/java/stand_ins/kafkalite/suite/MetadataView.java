package kafkalite.suite;

import java.io.DataInputStream;
import java.io.IOException;
import java.io.OutputStream;
import java.net.Socket;
import java.nio.ByteBuffer;
import java.util.List;
import java.util.Map;
import java.util.Optional;
import java.util.stream.Collectors;
import org.apache.kafka.common.TopicPartition;
import org.apache.kafka.common.Uuid;
import org.apache.kafka.common.message.ListOffsetsRequestData;
import org.apache.kafka.common.message.ListOffsetsRequestData.ListOffsetsPartition;
import org.apache.kafka.common.message.ListOffsetsRequestData.ListOffsetsTopic;
import org.apache.kafka.common.protocol.ApiKeys;
import org.apache.kafka.common.protocol.ApiMessage;
import org.apache.kafka.common.protocol.Errors;
import org.apache.kafka.common.requests.AbstractResponse;
import org.apache.kafka.common.requests.ListOffsetsResponse;
import org.apache.kafka.common.requests.MetadataRequest;
import org.apache.kafka.common.requests.MetadataResponse;
import org.apache.kafka.common.requests.RequestHeader;
import org.apache.kafka.common.requests.RequestUtils;
import org.apache.kafka.metadata.LeaderAndIsr;
import org.apache.kafka.metadata.LeaderRecoveryState;
import org.apache.kafka.metadata.KRaftMetadataCache;

/** What one broker knows of the cluster, asked by Metadata requests to its internal listener. */
public final class MetadataView {
    private final int port;

    public MetadataView(int port) {
        this.port = port;
    }

    /** A stand-in for the broker's cache. */
    public KRaftMetadataCache asCache() {
        return Doubles.of(KRaftMetadataCache.class, Map.of(
            "numPartitions", call -> topic(call.getArgument(0)).map(t -> t.partitionMetadata().size()),
            "contains", call -> call.getArgument(0) instanceof String name
                && topic(name).isPresent(),
            "getTopicId", call -> topic(call.getArgument(0))
                .map(MetadataResponse.TopicMetadata::topicId).orElse(Uuid.ZERO_UUID),
            "hasAliveBroker", call -> brokerIds().contains((Integer) call.getArgument(0)),
            "getLeaderAndIsr", call -> leaderAndIsr(call.getArgument(0), call.getArgument(1))));
    }

    /** Ids of the brokers that are alive, none if this one does not answer. */
    public List<Integer> brokerIds() {
        try {
            return ask(MetadataRequest.Builder.forTopicNames(List.of(), false))
                .brokers().stream().map(node -> node.id()).toList();
        } catch (IOException away) {
            return List.of();
        }
    }

    /** Id of a partition's leader, -1 if it has none. */
    public int leaderOf(TopicPartition partition) throws IOException {
        return leaderAndIsr(partition.topic(), partition.partition())
            .map(LeaderAndIsr::leader).orElse(-1);
    }

    private Optional<LeaderAndIsr> leaderAndIsr(String topic, int partition) throws IOException {
        return topic(topic).stream().flatMap(t -> t.partitionMetadata().stream())
            .filter(p -> p.partition() == partition).findFirst()
            .map(p -> new LeaderAndIsr(p.leaderId.orElse(-1), p.leaderEpoch.orElse(0),
                p.inSyncReplicaIds, LeaderRecoveryState.RECOVERED, 0));
    }

    /** All topics and their IDs. */
    public Map<String, Uuid> topicIds() throws IOException {
        return ask(MetadataRequest.Builder.allTopics()).topicMetadata().stream().collect(
            Collectors.toMap(topic -> topic.topic(), topic -> topic.topicId()));
    }

    private Optional<MetadataResponse.TopicMetadata> topic(String name) throws IOException {
        return ask(MetadataRequest.Builder.forTopicNames(List.of(name), false)).topicMetadata()
            .stream().filter(topic -> topic.error() == Errors.NONE).findFirst();
    }

    /** An offset of a partition that this broker leads: -2 for its first record, -1 for its end. */
    public long offset(TopicPartition partition, long timestamp) throws IOException {
        ListOffsetsRequestData data = new ListOffsetsRequestData().setReplicaId(-1).setTopics(
            List.of(new ListOffsetsTopic().setName(partition.topic()).setPartitions(List.of(
                new ListOffsetsPartition().setPartitionIndex(partition.partition())
                    .setTimestamp(timestamp)))));
        ListOffsetsResponse answer =
            (ListOffsetsResponse) ask(ApiKeys.LIST_OFFSETS, data, (short) 7);
        var found = answer.topics().get(0).partitions().get(0);
        if (found.errorCode() != 0) {
            throw new NotApplicable("looks into the broker: a log that it does not lead");
        }
        return found.offset();
    }

    private MetadataResponse ask(MetadataRequest.Builder builder) throws IOException {
        short version = 12;
        return (MetadataResponse) ask(ApiKeys.METADATA, builder.build(version).data(), version);
    }

    private AbstractResponse ask(ApiKeys api, ApiMessage data, short version) throws IOException {
        RequestHeader header = new RequestHeader(api, version, "apache-suite", 1);
        ByteBuffer request =
            RequestUtils.serialize(header.data(), header.headerVersion(), data, version);
        try (Socket socket = new Socket("127.0.0.1", port)) {
            socket.setSoTimeout(10_000);
            OutputStream out = socket.getOutputStream();
            out.write(ByteBuffer.allocate(4).putInt(request.remaining()).array());
            byte[] bytes = new byte[request.remaining()];
            request.get(bytes);
            out.write(bytes);
            DataInputStream in = new DataInputStream(socket.getInputStream());
            byte[] answer = in.readNBytes(in.readInt());
            return AbstractResponse.parseResponse(ByteBuffer.wrap(answer), header);
        }
    }
}
