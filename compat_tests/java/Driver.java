import com.fasterxml.jackson.databind.JsonNode;
import com.fasterxml.jackson.databind.ObjectMapper;
import com.fasterxml.jackson.databind.node.ArrayNode;
import com.fasterxml.jackson.databind.node.ObjectNode;
import java.io.BufferedReader;
import java.io.FileDescriptor;
import java.io.FileOutputStream;
import java.io.IOException;
import java.io.InputStreamReader;
import java.io.PrintStream;
import java.nio.charset.StandardCharsets;
import java.time.Duration;
import java.util.ArrayList;
import java.util.Base64;
import java.util.Collection;
import java.util.HashMap;
import java.util.HashSet;
import java.util.Iterator;
import java.util.LinkedHashSet;
import java.util.List;
import java.util.Map;
import java.util.Optional;
import java.util.Properties;
import java.util.Set;
import java.util.concurrent.CompletableFuture;
import java.util.concurrent.ConcurrentHashMap;
import java.util.concurrent.ConcurrentLinkedQueue;
import java.util.concurrent.ExecutionException;
import java.util.concurrent.Future;
import java.util.concurrent.TimeUnit;
import org.apache.kafka.clients.admin.*;
import org.apache.kafka.clients.consumer.*;
import org.apache.kafka.clients.producer.*;
import org.apache.kafka.common.Node;
import org.apache.kafka.common.TopicPartition;
import org.apache.kafka.common.TopicPartitionInfo;
import org.apache.kafka.common.config.ConfigResource;
import org.apache.kafka.common.header.Header;
import org.apache.kafka.common.header.internals.RecordHeader;
import org.apache.kafka.common.protocol.Errors;
import org.apache.kafka.common.record.TimestampType;
import org.apache.kafka.common.serialization.ByteArrayDeserializer;
import org.apache.kafka.common.serialization.ByteArraySerializer;
import org.apache.kafka.common.utils.AppInfoParser;

/** Driver of Apache's Java client: one method an operation of DRIVERS.md; same source for 3.9 and 4.x. */
public final class Driver {
    private static final ObjectMapper JSON = new ObjectMapper();
    private static final PrintStream OUT = new PrintStream(new FileOutputStream(FileDescriptor.out), false, StandardCharsets.UTF_8);

    private final String bootstrap;
    private final Map<String, Member> members = new ConcurrentHashMap<>();
    private final Transactions transactions;
    private Admin admin;

    private Driver(String bootstrap) {
        this.bootstrap = bootstrap;
        transactions = new Transactions(bootstrap);
    }

    public static void main(String[] args) throws Exception {
        Driver driver = new Driver(args[0]);
        BufferedReader in = new BufferedReader(new InputStreamReader(System.in, StandardCharsets.UTF_8));
        for (String line = in.readLine(); line != null; line = in.readLine()) {
            JsonNode request = JSON.readTree(line);
            ObjectNode reply = JSON.createObjectNode();
            reply.put("id", request.get("id").asInt());
            try {
                reply.set("ok", driver.handle(request.get("op").asText(), request));
            } catch (Throwable failure) {
                reply.set("error", error(failure));
            }
            send(reply);
        }
        for (Member member : driver.members.values()) {
            member.close();
        }
        System.exit(0);
    }

    private static void send(ObjectNode message) {
        synchronized (OUT) {
            OUT.println(message.toString());
            OUT.flush();
        }
    }

    static ObjectNode error(Throwable failure) {
        Throwable cause = failure instanceof ExecutionException && failure.getCause() != null ? failure.getCause() : failure;
        Errors error = Errors.forException(cause);
        ObjectNode node = JSON.createObjectNode();
        if (error == Errors.UNKNOWN_SERVER_ERROR) {
            boolean timeout = cause instanceof org.apache.kafka.common.errors.TimeoutException;
            node.put("code", timeout ? "TIMEOUT" : cause.getClass().getSimpleName());
            cause.printStackTrace();
        } else {
            node.put("code", error.name());
        }
        node.put("message", String.valueOf(cause.getMessage()));
        return node;
    }

    private ObjectNode handle(String op, JsonNode request) throws Exception {
        switch (op) {
            case "info": return JSON.createObjectNode().put("version", AppInfoParser.getVersion());
            case "produce": return produce(request);
            case "consume": return consume(request);
            case "member_open": return memberOpen(request);
            case "member_commit": return memberCommit(request);
            case "member_close": members.remove(request.get("member").asText()).close(); return JSON.createObjectNode();
            case "create_topic": return createTopic(request);
            case "delete_topic": return done(admin().deleteTopics(List.of(text(request, "topic"))).all());
            case "list_topics": return JSON.createObjectNode().set("topics", JSON.valueToTree(get(admin().listTopics().names())));
            case "describe_topic": return describeTopic(text(request, "topic"));
            case "create_partitions": return createPartitions(request);
            case "describe_configs": return describeConfigs(request);
            case "alter_configs": return alterConfigs(request);
            case "list_groups": return listGroups();
            case "describe_group": return describeGroup(text(request, "group"));
            case "delete_group": return done(admin().deleteConsumerGroups(List.of(text(request, "group"))).all());
            case "group_offsets": return groupOffsets(text(request, "group"));
            case "alter_group_offsets": return alterGroupOffsets(request);
            case "delete_group_offsets": return deleteGroupOffsets(request);
            case "delete_records": return deleteRecords(request);
            case "list_offsets": return listOffsets(request);
            case "describe_cluster": return describeCluster();
            case "describe_producers": return describeProducers(request);
            case "describe_log_dirs": return describeLogDirs(request);
            default: return transactions.handle(op, request);
        }
    }

    // Values.

    private static String text(JsonNode node, String name) {
        JsonNode value = node.get(name);
        return value == null || value.isNull() ? null : value.asText();
    }

    private static String text(JsonNode node, String name, String otherwise) {
        String value = text(node, name);
        return value == null ? otherwise : value;
    }

    private static int number(JsonNode node, String name, int otherwise) {
        JsonNode value = node.get(name);
        return value == null || value.isNull() ? otherwise : value.asInt();
    }

    private static byte[] bytes(JsonNode value) {
        return value == null || value.isNull() ? null : Base64.getDecoder().decode(value.asText());
    }

    private static String base64(byte[] value) {
        return value == null ? null : Base64.getEncoder().encodeToString(value);
    }

    private static Iterable<Map.Entry<String, JsonNode>> fields(JsonNode node) {
        List<Map.Entry<String, JsonNode>> entries = new ArrayList<>();
        if (node != null && !node.isNull()) {
            Iterator<String> names = node.fieldNames();
            while (names.hasNext()) {
                String name = names.next();
                entries.add(Map.entry(name, node.get(name)));
            }
        }
        return entries;
    }

    private static <T> T get(Future<T> future) throws Exception {
        return future.get(30, TimeUnit.SECONDS);
    }

    private static ObjectNode done(Future<?> future) throws Exception {
        get(future);
        return JSON.createObjectNode();
    }

    private static ArrayNode pairs(Collection<TopicPartition> partitions) {
        ArrayNode array = JSON.createArrayNode();
        for (TopicPartition partition : partitions) {
            array.addArray().add(partition.topic()).add(partition.partition());
        }
        return array;
    }

    private static Map<TopicPartition, Long> offsets(JsonNode byTopic) {
        Map<TopicPartition, Long> offsets = new HashMap<>();
        for (Map.Entry<String, JsonNode> topic : fields(byTopic)) {
            for (Map.Entry<String, JsonNode> partition : fields(topic.getValue())) {
                offsets.put(new TopicPartition(topic.getKey(), Integer.parseInt(partition.getKey())), partition.getValue().asLong());
            }
        }
        return offsets;
    }

    static ObjectNode record(ConsumerRecord<byte[], byte[]> record) {
        ObjectNode node = JSON.createObjectNode();
        node.put("topic", record.topic()).put("partition", record.partition()).put("offset", record.offset());
        node.put("timestamp", record.timestamp());
        TimestampType type = record.timestampType();
        node.put("timestamp_type", type == TimestampType.CREATE_TIME ? "create" : type == TimestampType.LOG_APPEND_TIME ? "append" : null);
        node.put("key", base64(record.key())).put("value", base64(record.value()));
        ArrayNode headers = node.putArray("headers");
        for (Header header : record.headers()) {
            headers.addArray().add(header.key()).add(base64(header.value()));
        }
        return node;
    }

    /** Settings for a broker that wants TLS and a login; see DRIVERS.md. */
    static Properties security() {
        Properties config = new Properties();
        String text = System.getenv("KAFKALITE_COMPAT_SECURITY");
        if (text == null) {
            return config;
        }
        try {
            for (Map.Entry<String, JsonNode> field : JSON.readTree(text).get("java").properties()) {
                config.put(field.getKey(), field.getValue().asText());
            }
        } catch (IOException error) {
            throw new IllegalArgumentException(error);
        }
        String tokens = config.getProperty("sasl.oauthbearer.token.endpoint.url");
        if (tokens != null) {
            System.setProperty("org.apache.kafka.sasl.oauthbearer.allowed.urls", tokens);
        }
        return config;
    }

    private Properties base() {
        Properties config = security();
        config.put("bootstrap.servers", bootstrap);
        if (System.getenv("KAFKALITE_COMPAT_CLIENT_ID") != null) {
            config.put("client.id", System.getenv("KAFKALITE_COMPAT_CLIENT_ID"));
        }
        return config;
    }

    private Admin admin() {
        if (admin == null) {
            admin = Admin.create(base());
        }
        return admin;
    }

    // Records.

    private ObjectNode produce(JsonNode request) throws Exception {
        Properties config = base();
        config.put("acks", text(request, "acks", "all"));
        config.put("compression.type", text(request, "codec", "none"));
        config.put("enable.idempotence", request.has("idempotence") && request.get("idempotence").asBoolean());
        config.put("linger.ms", 20);
        config.put("max.request.size", number(request, "max_request_bytes", 1048576));
        config.put("max.block.ms", 20000);
        config.put("delivery.timeout.ms", 30000);
        config.put("request.timeout.ms", number(request, "request_timeout_ms", 20000));
        ArrayNode results = JSON.createArrayNode();
        try (Producer<byte[], byte[]> producer = new KafkaProducer<>(config, new ByteArraySerializer(), new ByteArraySerializer())) {
            List<Future<RecordMetadata>> sent = new ArrayList<>();
            for (JsonNode record : request.get("records")) {
                List<Header> headers = new ArrayList<>();
                if (record.has("headers")) {
                    for (JsonNode header : record.get("headers")) {
                        headers.add(new RecordHeader(header.get(0).asText(), bytes(header.get(1))));
                    }
                }
                Integer partition = record.hasNonNull("partition") ? (Integer) record.get("partition").asInt() : null;
                Long timestamp = record.hasNonNull("timestamp") ? (Long) record.get("timestamp").asLong() : null;
                try {
                    sent.add(producer.send(new ProducerRecord<>(
                        text(request, "topic"), partition, timestamp, bytes(record.get("key")), bytes(record.get("value")), headers)));
                } catch (RuntimeException refused) {
                    sent.add(CompletableFuture.failedFuture(refused));
                }
            }
            producer.flush();
            for (Future<RecordMetadata> future : sent) {
                try {
                    RecordMetadata metadata = get(future);
                    results.addObject().put("partition", metadata.partition()).put("offset", metadata.offset());
                } catch (ExecutionException failure) {
                    results.addObject().set("error", error(failure));
                }
            }
        }
        return JSON.createObjectNode().set("results", results);
    }

    private Properties consumerConfig(JsonNode request) {
        Properties config = base();
        config.put("auto.offset.reset", text(request, "reset", "earliest"));
        config.put("fetch.max.wait.ms", 100);
        if (request.hasNonNull("max_partition_bytes")) {
            config.put("max.partition.fetch.bytes", request.get("max_partition_bytes").asInt());
            config.put("fetch.max.bytes", request.get("max_partition_bytes").asInt());
        }
        if (request.hasNonNull("request_timeout_ms")) {
            config.put("request.timeout.ms", request.get("request_timeout_ms").asInt());
        }
        if (request.hasNonNull("rack")) {
            config.put("client.rack", text(request, "rack"));
        }
        return config;
    }

    private ObjectNode consume(JsonNode request) throws Exception {
        String topic = text(request, "topic");
        Properties config = consumerConfig(request);
        config.put("enable.auto.commit", false);
        ArrayNode records = JSON.createArrayNode();
        int count = request.get("count").asInt();
        try (Consumer<byte[], byte[]> consumer = new KafkaConsumer<>(config, new ByteArrayDeserializer(), new ByteArrayDeserializer())) {
            Map<TopicPartition, JsonNode> starts = new HashMap<>();
            for (Map.Entry<String, JsonNode> start : fields(request.get("starts"))) {
                starts.put(new TopicPartition(topic, Integer.parseInt(start.getKey())), start.getValue());
            }
            consumer.assign(starts.keySet());
            for (Map.Entry<TopicPartition, JsonNode> start : starts.entrySet()) {
                JsonNode where = start.getValue();
                if (where.isObject()) {
                    long timestamp = where.get("timestamp").asLong();
                    OffsetAndTimestamp found = consumer.offsetsForTimes(Map.of(start.getKey(), timestamp)).get(start.getKey());
                    consumer.seek(start.getKey(), found.offset());
                } else if (where.isTextual()) {
                    consumer.seekToBeginning(List.of(start.getKey()));
                } else {
                    consumer.seek(start.getKey(), where.asLong());
                }
            }
            long deadline = System.nanoTime() + 1_000_000L * number(request, "timeout_ms", 20000);
            while (records.size() < count) {
                if (System.nanoTime() > deadline) {
                    throw new org.apache.kafka.common.errors.TimeoutException(records.size() + " of " + count + " records");
                }
                for (ConsumerRecord<byte[], byte[]> record : consumer.poll(Duration.ofMillis(100))) {
                    if (records.size() < count) {
                        records.add(record(record));
                    }
                }
            }
        }
        return JSON.createObjectNode().set("records", records);
    }

    // Group members.

    private ObjectNode memberOpen(JsonNode request) {
        Properties config = consumerConfig(request);
        String name = text(request, "member");
        config.put("client.id", name);
        config.put("group.id", text(request, "group"));
        if (request.hasNonNull("instance_id")) {
            config.put("group.instance.id", text(request, "instance_id"));
        }
        Map<String, String> assignors = Map.of(
            "range", RangeAssignor.class.getName(),
            "roundrobin", RoundRobinAssignor.class.getName(),
            "cooperative-sticky", CooperativeStickyAssignor.class.getName());
        config.put("partition.assignment.strategy", assignors.get(text(request, "assignor", "range")));
        config.put("enable.auto.commit", request.has("auto_commit") && request.get("auto_commit").asBoolean());
        config.put("session.timeout.ms", number(request, "session_timeout_ms", 10000));
        config.put("heartbeat.interval.ms", 200);
        if (text(request, "protocol", "classic").equals("consumer")) {
            config.put("group.protocol", "consumer");
            // The broker's to say; the client refuses them.
            List.of("partition.assignment.strategy", "session.timeout.ms", "heartbeat.interval.ms").forEach(config::remove);
        }
        List<String> topics = new ArrayList<>();
        request.get("topics").forEach(topic -> topics.add(topic.asText()));
        members.put(name, new Member(name, config, topics));
        return JSON.createObjectNode();
    }

    private ObjectNode memberCommit(JsonNode request) throws Exception {
        Map<TopicPartition, OffsetAndMetadata> asked = new HashMap<>();
        String metadata = text(request, "metadata", "");
        offsets(request.get("offsets")).forEach((partition, offset) -> asked.put(partition, new OffsetAndMetadata(offset, metadata)));
        Commit commit = new Commit(asked, new CompletableFuture<>());
        members.get(text(request, "member")).commits.add(commit);
        return done(commit.done);
    }

    private record Commit(Map<TopicPartition, OffsetAndMetadata> offsets, CompletableFuture<Void> done) { }

    /** A consumer that one thread polls; commits are handed to that thread. */
    private static final class Member implements Runnable, ConsumerRebalanceListener {
        private final String name;
        private final KafkaConsumer<byte[], byte[]> consumer;
        private final Set<TopicPartition> assignment = new LinkedHashSet<>();
        private final ConcurrentLinkedQueue<Commit> commits = new ConcurrentLinkedQueue<>();
        private final Thread thread;
        private volatile boolean stopping;

        private Member(String name, Properties config, List<String> topics) {
            this.name = name;
            consumer = new KafkaConsumer<>(config, new ByteArrayDeserializer(), new ByteArrayDeserializer());
            consumer.subscribe(topics, this);
            thread = new Thread(this, name);
            thread.start();
        }

        @Override
        public void run() {
            try {
                while (!stopping) {
                    ConsumerRecords<byte[], byte[]> polled = consumer.poll(Duration.ofMillis(50));
                    if (!polled.isEmpty()) {
                        ObjectNode event = event("records");
                        ArrayNode records = event.putArray("records");
                        polled.forEach(record -> records.add(record(record)));
                        send(event);
                    }
                    for (Commit commit = commits.poll(); commit != null; commit = commits.poll()) {
                        try {
                            consumer.commitSync(commit.offsets);
                            commit.done.complete(null);
                        } catch (RuntimeException failure) {
                            commit.done.completeExceptionally(failure);
                        }
                    }
                }
            } catch (RuntimeException failure) {
                send(event("failed").setAll(error(failure)));
            } finally {
                consumer.close(Duration.ofSeconds(10));
            }
        }

        private ObjectNode event(String kind) {
            return JSON.createObjectNode().put("event", kind).put("member", name);
        }

        private void changed(String kind, Collection<TopicPartition> partitions) {
            ObjectNode event = event(kind);
            event.set("partitions", pairs(partitions));
            event.set("assignment", pairs(assignment));
            send(event);
        }

        @Override
        public void onPartitionsAssigned(Collection<TopicPartition> partitions) {
            assignment.addAll(partitions);
            changed("assigned", partitions);
        }

        @Override
        public void onPartitionsRevoked(Collection<TopicPartition> partitions) {
            assignment.removeAll(new HashSet<>(partitions));
            changed("revoked", partitions);
        }

        private void close() throws InterruptedException {
            stopping = true;
            thread.join();
        }
    }

    // Administration.

    private ObjectNode createTopic(JsonNode request) throws Exception {
        NewTopic topic = new NewTopic(text(request, "topic"), number(request, "partitions", 1), (short) number(request, "replication_factor", 1));
        Map<String, String> configs = new HashMap<>();
        for (Map.Entry<String, JsonNode> config : fields(request.get("configs"))) {
            configs.put(config.getKey(), config.getValue().asText());
        }
        return done(admin().createTopics(List.of(topic.configs(configs))).all());
    }

    private ObjectNode describeTopic(String topic) throws Exception {
        ObjectNode partitions = JSON.createObjectNode();
        for (TopicPartitionInfo info : get(admin().describeTopics(List.of(topic)).allTopicNames()).get(topic).partitions()) {
            ObjectNode node = partitions.putObject(String.valueOf(info.partition()));
            node.put("leader", info.leader().id());
            ArrayNode replicas = node.putArray("replicas");
            info.replicas().forEach(replica -> replicas.add(replica.id()));
            ArrayNode isr = node.putArray("isr");
            info.isr().forEach(replica -> isr.add(replica.id()));
        }
        return JSON.createObjectNode().set("partitions", partitions);
    }

    private ObjectNode createPartitions(JsonNode request) throws Exception {
        NewPartitions wanted = NewPartitions.increaseTo(request.get("total").asInt());
        return done(admin().createPartitions(Map.of(text(request, "topic"), wanted)).all());
    }

    private ObjectNode describeConfigs(JsonNode request) throws Exception {
        ConfigResource.Type type = ConfigResource.Type.valueOf(text(request, "kind").toUpperCase());
        ConfigResource resource = new ConfigResource(type, text(request, "name"));
        ObjectNode configs = JSON.createObjectNode();
        DescribeConfigsOptions options = new DescribeConfigsOptions().includeSynonyms(true).includeDocumentation(true);
        get(admin().describeConfigs(List.of(resource), options).all()).get(resource).entries()
            .forEach(entry -> configs.put(entry.name(), entry.value()));
        return JSON.createObjectNode().set("configs", configs);
    }

    private ObjectNode alterConfigs(JsonNode request) throws Exception {
        List<AlterConfigOp> operations = new ArrayList<>();
        for (Map.Entry<String, JsonNode> config : fields(request.get("configs"))) {
            operations.add(new AlterConfigOp(new ConfigEntry(config.getKey(), config.getValue().asText()), AlterConfigOp.OpType.SET));
        }
        ConfigResource resource = new ConfigResource(ConfigResource.Type.TOPIC, text(request, "topic"));
        return done(admin().incrementalAlterConfigs(Map.of(resource, operations)).all());
    }

    private ObjectNode listGroups() throws Exception {
        ArrayNode groups = JSON.createArrayNode();
        get(admin().listConsumerGroups().all()).forEach(group -> groups.add(group.groupId()));
        return JSON.createObjectNode().set("groups", groups);
    }

    private ObjectNode describeGroup(String group) throws Exception {
        ConsumerGroupDescription found = get(admin().describeConsumerGroups(List.of(group)).all()).get(group);
        ObjectNode node = JSON.createObjectNode();
        node.put("state", found.state().toString()).put("protocol", found.partitionAssignor());
        ArrayNode array = node.putArray("members");
        for (MemberDescription member : found.members()) {
            ObjectNode described = array.addObject().put("client_id", member.clientId());
            described.put("instance_id", member.groupInstanceId().orElse(null));
            described.set("partitions", pairs(member.assignment().topicPartitions()));
        }
        return node;
    }

    private ObjectNode groupOffsets(String group) throws Exception {
        ObjectNode byTopic = JSON.createObjectNode();
        get(admin().listConsumerGroupOffsets(group).partitionsToOffsetAndMetadata()).forEach((partition, committed) -> {
            if (committed != null) {
                byTopic.withObject("/" + partition.topic().replace("~", "~0").replace("/", "~1"))
                    .putObject(String.valueOf(partition.partition()))
                    .put("offset", committed.offset()).put("metadata", committed.metadata());
            }
        });
        return JSON.createObjectNode().set("offsets", byTopic);
    }

    private ObjectNode alterGroupOffsets(JsonNode request) throws Exception {
        Map<TopicPartition, OffsetAndMetadata> asked = new HashMap<>();
        offsets(request.get("offsets")).forEach((partition, offset) -> asked.put(partition, new OffsetAndMetadata(offset)));
        return done(admin().alterConsumerGroupOffsets(text(request, "group"), asked).all());
    }

    private ObjectNode deleteGroupOffsets(JsonNode request) throws Exception {
        Set<TopicPartition> partitions = new HashSet<>();
        request.get("partitions").forEach(index -> partitions.add(new TopicPartition(text(request, "topic"), index.asInt())));
        return done(admin().deleteConsumerGroupOffsets(text(request, "group"), partitions).all());
    }

    private ObjectNode deleteRecords(JsonNode request) throws Exception {
        Map<TopicPartition, RecordsToDelete> asked = new HashMap<>();
        for (Map.Entry<String, JsonNode> offset : fields(request.get("offsets"))) {
            asked.put(new TopicPartition(text(request, "topic"), Integer.parseInt(offset.getKey())),
                RecordsToDelete.beforeOffset(offset.getValue().asLong()));
        }
        ObjectNode marks = JSON.createObjectNode();
        for (var entry : admin().deleteRecords(asked).lowWatermarks().entrySet()) {
            marks.put(String.valueOf(entry.getKey().partition()), get(entry.getValue()).lowWatermark());
        }
        return JSON.createObjectNode().set("low_watermarks", marks);
    }

    private ObjectNode listOffsets(JsonNode request) throws Exception {
        Map<TopicPartition, OffsetSpec> asked = new HashMap<>();
        for (Map.Entry<String, JsonNode> at : fields(request.get("at"))) {
            OffsetSpec spec;
            switch (at.getValue().asText()) {
                case "earliest": spec = OffsetSpec.earliest(); break;
                case "latest": spec = OffsetSpec.latest(); break;
                case "max_timestamp": spec = OffsetSpec.maxTimestamp(); break;
                default: spec = OffsetSpec.forTimestamp(at.getValue().asLong());
            }
            asked.put(new TopicPartition(text(request, "topic"), Integer.parseInt(at.getKey())), spec);
        }
        ObjectNode found = JSON.createObjectNode();
        get(admin().listOffsets(asked).all()).forEach((partition, result) ->
            found.put(String.valueOf(partition.partition()), result.offset()));
        return JSON.createObjectNode().set("offsets", found);
    }

    private ObjectNode describeCluster() throws Exception {
        DescribeClusterResult cluster = admin().describeCluster();
        ObjectNode node = JSON.createObjectNode();
        node.put("cluster_id", get(cluster.clusterId())).put("controller", get(cluster.controller()).id());
        ArrayNode brokers = node.putArray("brokers");
        for (Node broker : get(cluster.nodes())) {
            brokers.addObject().put("id", broker.id()).put("host", broker.host()).put("port", broker.port());
        }
        return node;
    }

    private ObjectNode describeProducers(JsonNode request) throws Exception {
        TopicPartition partition = new TopicPartition(text(request, "topic"), request.get("partition").asInt());
        ArrayNode producers = JSON.createArrayNode();
        for (ProducerState state : get(admin().describeProducers(List.of(partition)).all()).get(partition).activeProducers()) {
            producers.addObject().put("producer_id", state.producerId()).put("epoch", state.producerEpoch())
                .put("last_sequence", state.lastSequence());
        }
        return JSON.createObjectNode().set("producers", producers);
    }

    private ObjectNode describeLogDirs(JsonNode request) throws Exception {
        ObjectNode sizes = JSON.createObjectNode();
        for (var dirs : get(admin().describeLogDirs(List.of(request.get("broker").asInt())).allDescriptions()).values()) {
            for (LogDirDescription dir : dirs.values()) {
                dir.replicaInfos().forEach((partition, info) -> {
                    if (partition.topic().equals(text(request, "topic"))) {
                        sizes.put(String.valueOf(partition.partition()), info.size());
                    }
                });
            }
        }
        return JSON.createObjectNode().set("sizes", sizes);
    }
}
