package kafkalite.suite;

import java.util.Collection;
import java.util.List;
import java.util.Map;
import java.util.Set;
import java.util.concurrent.ConcurrentHashMap;

/** The broker processes of one cluster. */
public final class Cluster {
    private static final Set<Cluster> OPEN = ConcurrentHashMap.newKeySet();
    private final Brokers brokers = Brokers.instance();
    private final int number;

    /** A lone broker does without a ZooKeeper; others may come later only where there is one. */
    public Cluster(boolean isLone) {
        number = brokers.ask(Map.of("do", "create", "zookeeper", !isLone)).get("cluster").asInt();
        OPEN.add(this);
    }

    /** Prepare a broker. */
    public void add(int id, Map<String, String> settings) {
        brokers.ask(Map.of("do", "add", "cluster", number, "broker", id, "settings", settings));
    }

    /** Start brokers and return when all of them serve clients. */
    public void start(Collection<Broker> chosen) {
        brokers.ask(Map.of("do", "start", "cluster", number,
            "brokers", chosen.stream().map(broker -> broker.id).toList()));
        chosen.forEach(broker -> broker.isRunning = true);
    }

    /** Stop one in order; nothing if it does not run. */
    public void stop(Broker broker) {
        if (broker.isRunning) {
            broker.isRunning = false;
            brokers.ask(Map.of("do", "stop", "cluster", number, "brokers", List.of(broker.id)));
        }
    }

    /** End what the tests of a class have left behind. */
    static void closeAll() {
        OPEN.forEach(Cluster::close);
    }

    /** End all brokers at once. */
    public void close() {
        OPEN.remove(this);
        brokers.ask(Map.of("do", "close", "cluster", number));
    }
}
