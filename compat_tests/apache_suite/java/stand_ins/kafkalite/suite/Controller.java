package kafkalite.suite;

import java.util.Map;
import java.util.concurrent.CompletableFuture;
import kafka.server.ControllerServer;
import kafka.server.KafkaConfig;
import org.apache.kafka.raft.LogOffsetMetadata;
import kafka.raft.KafkaRaftManager;
import org.apache.kafka.raft.RaftLog;
import org.mockito.stubbing.Answer;
import scala.Option;

/** There is none; tests go through the list of them, and wait for what they have written. */
public final class Controller {
    private Controller() {
    }

    /** The object of Kafka's class that tests take for a controller. */
    public static ControllerServer of(String clusterId, KafkaConfig config) {
        return Doubles.of(ControllerServer.class, methods(clusterId, config));
    }

    static Map<String, Answer<?>> methods(String clusterId, KafkaConfig config) {
        return Map.of(
            "config", call -> config,
            "clusterId", call -> clusterId,
            "startup", call -> null,
            "shutdown", call -> null,
            "socketServerFirstBoundPortFuture", call -> CompletableFuture.completedFuture(1),
            "authorizerPlugin", call -> Option.empty(),
            "raftManager", call -> Doubles.of(KafkaRaftManager.class,
                Map.of("raftLog", log -> Doubles.of(RaftLog.class,
                    Map.of("endOffset", end ->
                        new LogOffsetMetadata(0L))))));
    }
}
