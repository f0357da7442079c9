package kafkalite.suite;

import java.io.File;
import java.io.IOException;
import java.util.List;
import java.util.Map;
import kafka.cluster.Partition;
import kafka.log.LogManager;
import kafka.server.BrokerServer;
import kafka.server.KafkaApis;
import kafka.server.KafkaConfig;
import kafka.server.ReplicaManager;
import kafka.server.SharedServer;
import org.apache.kafka.common.TopicPartition;
import org.apache.kafka.coordinator.group.GroupCoordinator;
import org.apache.kafka.image.loader.MetadataLoader;
import org.apache.kafka.metadata.BrokerState;
import org.apache.kafka.storage.internals.log.UnifiedLog;
import org.mockito.stubbing.Answer;
import scala.Option;
import scala.jdk.javaapi.CollectionConverters;

/** One broker process, and the object of Kafka's class that tests take for the broker. */
public final class Broker {
    private static final java.util.Properties OFFSETS_TOPIC = new java.util.Properties();

    static {
        OFFSETS_TOPIC.putAll(Map.of("cleanup.policy", "compact",
            "compression.type", "producer", "segment.bytes", "104857600"));
    }

    public final int id;
    public final BrokerServer server;
    public final Listeners listeners;
    public final MetadataView metadata;
    public final KafkaConfig config;
    /** What the object of Kafka's class can do, by name. */
    public final Map<String, Answer<?>> methods;
    public volatile boolean isRunning;

    public Broker(Cluster cluster, String clusterId, KafkaConfig config, Listeners listeners) {
        id = config.nodeId();
        this.config = config;
        this.listeners = listeners;
        metadata = new MetadataView(listeners.internalPort);
        methods = methods(cluster, clusterId);
        server = Doubles.of(BrokerServer.class, methods);
    }

    private Map<String, Answer<?>> methods(Cluster cluster, String clusterId) {
        Map<String, Answer<?>> known = new java.util.HashMap<>();
        known.put("config", call -> config);
        known.put("clusterId", call -> clusterId);
        known.put("isShutdown", call -> !isRunning);
        known.put("shutdown", call -> {
            cluster.stop(this);
            return null;
        });
        known.put("awaitShutdown", call -> null);
        known.put("startup", call -> {
            cluster.start(List.of(this));
            return null;
        });
        // As of Kafka's lifecycle manager, which never gets further than that.
        known.put("brokerState",
            call -> isRunning ? BrokerState.RUNNING : BrokerState.SHUTTING_DOWN);
        known.put("boundPort", call -> listeners.port(call.getArgument(0)));
        known.put("socketServer", call -> Doubles.of(kafka.network.SocketServer.class,
            Map.of("boundPort", port -> listeners.port(port.getArgument(0)))));
        known.put("authorizerPlugin", call -> Option.empty());
        known.put("metadataCache", call -> metadata.asCache());
        known.put("logManager", call -> logManager());
        known.put("replicaManager", call -> Doubles.of(ReplicaManager.class, Map.of(
            "logManager", manager -> logManager(),
            "localLog", tp -> log(tp.getArgument(0)),
            "onlinePartition", tp -> partition(tp.getArgument(0)))));
        known.put("dataPlaneRequestProcessor", call -> Doubles.of(KafkaApis.class, Map.of(
            "isConsumerGroupProtocolEnabled", enabled -> true,
            "metadataCache", cache -> metadata.asCache())));
        known.put("groupCoordinator", call -> Doubles.of(GroupCoordinator.class,
            Map.of("groupMetadataTopicConfigs", configs -> OFFSETS_TOPIC)));
        known.put("sharedServer", call -> Doubles.of(SharedServer.class,
            Map.of("loader", loader -> Doubles.of(MetadataLoader.class,
                Map.of("lastAppliedOffset", offset -> 0L)))));
        return known;
    }

    private LogManager logManager() {
        return Doubles.of(LogManager.class, Map.of(
            "getLog", tp -> log(tp.getArgument(0)),
            "getLog$default$2", call -> false,
            "liveLogDirs", call -> CollectionConverters.asScala(
                config.logDirs().stream().map(File::new).toList()).toSeq()));
    }

    private Option<UnifiedLog> log(TopicPartition partition) {
        return !isOnDisk(partition) ? Option.empty() : Option.apply(Doubles.of(UnifiedLog.class,
            Map.of("logStartOffset", call -> metadata.offset(partition, -2),
                "highWatermark", call -> metadata.offset(partition, -1),
                "logEndOffset", call -> metadata.offset(partition, -1))));
    }

    private Option<Partition> partition(TopicPartition partition) {
        return !isOnDisk(partition) ? Option.empty() : Option.apply(Doubles.of(Partition.class, Map.of(
            "leaderIdIfLocal", call -> isLedHere(partition) ? Option.apply(id) : Option.empty(),
            "leaderLogIfLocal", call -> isLedHere(partition) ? log(partition) : Option.empty())));
    }

    private boolean isLedHere(TopicPartition partition) throws IOException {
        return metadata.leaderOf(partition) == id;
    }

    private boolean isOnDisk(TopicPartition partition) {
        return config.logDirs().stream()
            .anyMatch(directory -> new File(directory, partition.toString()).exists());
    }
}
