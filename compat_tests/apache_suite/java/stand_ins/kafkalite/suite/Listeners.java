package kafkalite.suite;

import java.util.LinkedHashMap;
import java.util.Map;
import java.util.stream.Collectors;
import kafka.server.KafkaConfig;
import org.apache.kafka.common.network.ListenerName;
import org.apache.kafka.common.security.auth.SecurityProtocol;

/** Where a broker listens: as its settings say, at free ports, and once more for the suite. */
public final class Listeners {
    /** Plain; for what a test asks the broker's object, and mostly for the other brokers. */
    public static final String INTERNAL = "SUITE";
    public final int internalPort = Ports.free();
    private final Map<String, Integer> ports = new LinkedHashMap<>();
    private final String protocols;

    /** As the settings `listeners` and `listener.security.protocol.map` of Kafka. */
    public Listeners(String listeners, String protocols) {
        this.protocols = protocols;
        for (String listener : listeners.split(",")) {
            String name = listener.trim().split("://")[0];
            int port = Integer.parseInt(listener.substring(listener.lastIndexOf(':') + 1).trim());
            if (!name.equals("CONTROLLER")) {
                ports.put(name, port == 0 ? Ports.free() : port);
            }
        }
    }

    /** The port of a listener; the test is none of ours if it is another's. */
    public int port(ListenerName listener) {
        for (Map.Entry<String, Integer> entry : ports.entrySet()) {
            if (ListenerName.normalised(entry.getKey()).equals(listener)) {
                return entry.getValue();
            }
        }
        throw new NotApplicable("connects to the listener " + listener.value());
    }

    /** Put the settings in the place of the test's; brokers use their own listener if it is plain. */
    public void into(Map<String, String> settings, KafkaConfig config) {
        String all = ports.entrySet().stream()
            .map(entry -> entry.getKey() + "://localhost:" + entry.getValue() + ",")
            .collect(Collectors.joining()) + INTERNAL + "://127.0.0.1:" + internalPort;
        settings.put("listeners", all);
        settings.put("advertised.listeners", all);
        settings.put("listener.security.protocol.map", protocols + "," + INTERNAL + ":PLAINTEXT");
        settings.put("inter.broker.listener.name",
            config.interBrokerSecurityProtocol() == SecurityProtocol.PLAINTEXT
                ? config.interBrokerListenerName().value() : INTERNAL);
        settings.remove("security.inter.broker.protocol");
        settings.remove("controller.listener.names");
    }
}
