package kafkalite.suite;

import java.util.Map;
import kafka.server.ControllerServer;
import kafka.server.KafkaConfig;
import org.apache.kafka.common.test.TestKitNodes;
import kafka.raft.KafkaRaftManager;
import org.apache.kafka.raft.RaftLog;
import org.apache.kafka.server.common.OffsetAndEpoch;
import scala.Option;

/** There is none; tests go through the list of them, and wait for what they have written. */
public final class Controller {
    public final ControllerServer server;

    public Controller(TestKitNodes nodes, KafkaConfig config) {
        server = Doubles.of(ControllerServer.class, Map.of(
            "config", call -> config,
            "clusterId", call -> nodes.clusterId(),
            "authorizerPlugin", call -> Option.empty(),
            "raftManager", call -> Doubles.of(KafkaRaftManager.class,
                Map.of("raftLog", log -> Doubles.of(RaftLog.class,
                    Map.of("endOffset", end ->
                        new org.apache.kafka.raft.LogOffsetMetadata(0L)))))));
    }
}
