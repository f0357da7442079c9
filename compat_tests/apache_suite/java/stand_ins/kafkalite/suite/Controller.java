package kafkalite.suite;

import java.io.IOException;
import java.util.Collection;
import java.util.HashMap;
import java.util.Map;
import java.util.concurrent.CompletableFuture;
import kafka.server.ControllerServer;
import kafka.server.KafkaConfig;
import kafka.raft.KafkaRaftManager;
import org.apache.kafka.common.Uuid;
import org.apache.kafka.common.protocol.Errors;
import org.apache.kafka.controller.ResultOrError;
import org.apache.kafka.raft.LogOffsetMetadata;
import org.apache.kafka.raft.RaftLog;
import org.mockito.stubbing.Answer;
import scala.Option;

/** There is none; tests go through the list of them, and wait for what they have written. */
public final class Controller {
    private Controller() {
    }

    /** The object of Kafka's class that tests take for a controller. */
    public static ControllerServer of(
        String clusterId, KafkaConfig config, Collection<Broker> brokers
    ) {
        return Doubles.of(ControllerServer.class, methods(clusterId, config, brokers));
    }

    static Map<String, Answer<?>> methods(
        String clusterId, KafkaConfig config, Collection<Broker> brokers
    ) {
        return Map.of(
            "config", call -> config,
            "clusterId", call -> clusterId,
            "controller", call -> controller(brokers),
            "startup", call -> null,
            "shutdown", call -> null,
            "socketServerFirstBoundPortFuture", call -> CompletableFuture.completedFuture(1),
            "authorizerPlugin", call -> Option.empty(),
            "raftManager", call -> Doubles.of(KafkaRaftManager.class,
                Map.of("raftLog", log -> Doubles.of(RaftLog.class,
                    Map.of("endOffset", end ->
                        new LogOffsetMetadata(0L))))));
    }

    /** Knows which topics there are, asked of a broker. */
    private static org.apache.kafka.controller.Controller controller(Collection<Broker> brokers) {
        return Doubles.of(org.apache.kafka.controller.Controller.class, Map.of(
            "findAllTopicIds", call -> CompletableFuture.completedFuture(topicIds(brokers)),
            "findTopicIds", call -> {
                Map<String, Uuid> known = topicIds(brokers);
                Map<String, ResultOrError<Uuid>> found = new HashMap<>();
                for (Object name : (Collection<?>) call.getArgument(1)) {
                    found.put((String) name, known.containsKey(name)
                        ? new ResultOrError<>(known.get(name))
                        : new ResultOrError<>(Errors.UNKNOWN_TOPIC_OR_PARTITION, null));
                }
                return CompletableFuture.completedFuture(found);
            }));
    }

    private static Map<String, Uuid> topicIds(Collection<Broker> brokers) throws IOException {
        return brokers.stream().filter(broker -> broker.isRunning).findFirst().orElseThrow()
            .metadata.topicIds();
    }
}
