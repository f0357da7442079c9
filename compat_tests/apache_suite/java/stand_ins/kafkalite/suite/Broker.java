package kafkalite.suite;

import java.io.File;
import java.util.List;
import java.util.Map;
import kafka.log.LogManager;
import kafka.server.BrokerServer;
import kafka.server.KafkaApis;
import kafka.server.KafkaConfig;
import kafka.server.ReplicaManager;
import kafka.server.SharedServer;
import org.apache.kafka.common.TopicPartition;
import org.apache.kafka.common.network.ListenerName;
import org.apache.kafka.common.test.KafkaClusterTestKit;
import org.apache.kafka.common.test.TestKitNodes;
import org.apache.kafka.image.loader.MetadataLoader;
import org.apache.kafka.metadata.BrokerState;
import org.apache.kafka.storage.internals.log.UnifiedLog;
import org.mockito.stubbing.Answer;
import scala.Option;
import scala.jdk.javaapi.CollectionConverters;

/** One broker process, and the object of Kafka's class that tests take for the broker. */
public final class Broker {
    public final int id;
    /** For clients. */
    public final int port = Ports.free();
    /** For the other brokers, and for what a test asks the broker's object; never encrypted. */
    public final int internalPort = Ports.free();
    public final BrokerServer server;
    public final MetadataView metadata = new MetadataView(internalPort);
    public final KafkaConfig config;
    public volatile boolean isRunning;

    public Broker(KafkaClusterTestKit kit, int id, TestKitNodes nodes, KafkaConfig config) {
        this.id = id;
        this.config = config;
        ListenerName listener = ListenerName.normalised(nodes.brokerListenerName().value());
        Answer<?> stop = call -> {
            kit.stopBroker(id);
            return null;
        };
        Map<String, Answer<?>> known = new java.util.HashMap<>();
        known.put("config", call -> config);
        known.put("clusterId", call -> nodes.clusterId());
        known.put("isShutdown", call -> !isRunning);
        known.put("shutdown", stop);
        known.put("awaitShutdown", call -> null);
        known.put("startup", call -> {
            kit.startBrokers(List.of(id));
            return null;
        });
        known.put("brokerState",
            call -> isRunning ? BrokerState.RUNNING : BrokerState.NOT_RUNNING);
        known.put("boundPort", call -> boundPort(listener, call.getArgument(0)));
        known.put("socketServer", call -> Doubles.of(kafka.network.SocketServer.class,
            Map.of("boundPort", port -> boundPort(listener, port.getArgument(0)))));
        known.put("authorizerPlugin", call -> Option.empty());
        known.put("metadataCache", call -> metadata.asCache());
        known.put("logManager", call -> logManager());
        known.put("replicaManager", call -> Doubles.of(ReplicaManager.class,
            Map.of("onlinePartition", tp -> onDisk(kafka.cluster.Partition.class, tp.getArgument(0)))));
        known.put("dataPlaneRequestProcessor", call -> Doubles.of(KafkaApis.class,
            Map.of("isConsumerGroupProtocolEnabled", enabled -> true)));
        known.put("sharedServer", call -> Doubles.of(SharedServer.class,
            Map.of("loader", loader -> Doubles.of(MetadataLoader.class,
                Map.of("lastAppliedOffset", offset -> 0L)))));
        server = Doubles.of(BrokerServer.class, known);
    }

    private int boundPort(ListenerName own, ListenerName asked) {
        if (!asked.equals(own)) {
            throw new NotApplicable("connects to the listener " + asked.value());
        }
        return port;
    }

    private LogManager logManager() {
        return Doubles.of(LogManager.class, Map.of(
            "getLog", tp -> onDisk(UnifiedLog.class, tp.getArgument(0)),
            "liveLogDirs", call -> CollectionConverters.asScala(
                config.logDirs().stream().map(File::new).toList()).toSeq()));
    }

    private <T> Option<T> onDisk(Class<T> type, TopicPartition partition) {
        boolean found = config.logDirs().stream()
            .anyMatch(directory -> new File(directory, partition.toString()).exists());
        return found ? Option.apply(Doubles.of(type)) : Option.empty();
    }
}
