package kafkalite.suite;

import java.util.ArrayList;
import java.util.IdentityHashMap;
import java.util.List;
import java.util.Map;
import java.util.function.Function;
import kafka.server.BrokerServer;
import kafka.server.ControllerServer;
import kafka.server.KafkaConfig;
import kafka.server.SharedServer;
import org.apache.kafka.metadata.properties.MetaPropertiesEnsemble;
import org.junit.jupiter.api.extension.AfterAllCallback;
import org.junit.jupiter.api.extension.AfterEachCallback;
import org.junit.jupiter.api.extension.BeforeAllCallback;
import org.junit.jupiter.api.extension.ExtensionContext;
import org.mockito.MockSettings;
import org.mockito.MockedConstruction;
import org.mockito.Mockito;
import org.mockito.stubbing.Answer;

/**
 * For tests over `kafka.server.QuorumTestHarness`, which makes its controller and brokers itself:
 * where it makes them, stand-ins are made. Brokers of any test end with its class.
 */
public final class CoreHarness implements BeforeAllCallback, AfterAllCallback, AfterEachCallback {
    private static final Map<Object, List<?>> SHARED = new IdentityHashMap<>();
    private static final List<Broker> BROKERS = new ArrayList<>();
    private static Cluster cluster;
    private final List<MockedConstruction<?>> replaced = new ArrayList<>();

    @Override
    public void beforeAll(ExtensionContext context) {
        if (!isCore(context) || !replaced.isEmpty()) {
            return;
        }
        replaced.add(Mockito.mockConstruction(SharedServer.class,
            made -> Mockito.withSettings().defaultAnswer(call -> switch (call.getMethod().getName()) {
                case "stopForBroker", "stopForController" -> null;
                default -> Doubles.answer(SharedServer.class, Map.of(), call);
            }), (mock, made) -> SHARED.put(mock, made.arguments())));
        replaced.add(replace(ControllerServer.class, (config, clusterId) -> {
            cluster = new Cluster(false);
            BROKERS.clear();
            return Controller.methods(clusterId, config, BROKERS);
        }));
        replaced.add(replace(BrokerServer.class, CoreHarness::broker));
    }

    @Override
    public void afterEach(ExtensionContext context) {
        if (cluster != null) {
            cluster.close();
            cluster = null;
            SHARED.clear();
        }
    }

    @Override
    public void afterAll(ExtensionContext context) {
        if (context.getRequiredTestClass().getEnclosingClass() == null) {
            replaced.forEach(MockedConstruction::close);
            replaced.clear();
            Cluster.closeAll();
        }
    }

    private interface Methods {
        Map<String, Answer<?>> of(KafkaConfig config, String clusterId);
    }

    private static Map<String, Answer<?>> broker(KafkaConfig config, String clusterId) {
        Map<String, Object> given = config.originals();
        Listeners listeners = new Listeners(String.valueOf(given.get("listeners")),
            String.valueOf(given.get("listener.security.protocol.map")));
        Broker broker = new Broker(cluster, clusterId, config, listeners);
        BROKERS.add(broker);
        cluster.add(broker.id, Properties.settings(given, broker, clusterId));
        return broker.methods;
    }

    private static <T> MockedConstruction<T> replace(Class<T> type, Methods methods) {
        Map<Object, Map<String, Answer<?>>> made = new IdentityHashMap<>();
        Function<MockedConstruction.Context, MockSettings> settings = making -> {
            // Mockito asks more than once for the settings of one object.
            Map<String, Answer<?>> known = made.computeIfAbsent(making.arguments().get(0), key -> {
                List<?> shared = SHARED.get(key);
                return methods.of((KafkaConfig) shared.get(0),
                    ((MetaPropertiesEnsemble) shared.get(1)).clusterId().orElseThrow());
            });
            return Mockito.withSettings().stubOnly()
                .defaultAnswer(call -> Doubles.answer(type, known, call));
        };
        return Mockito.mockConstruction(type, settings, (mock, making) -> { });
    }

    private static boolean isCore(ExtensionContext context) {
        for (Class<?> type = context.getRequiredTestClass(); type != null;
                type = type.getSuperclass()) {
            if (type.getName().equals("kafka.server.QuorumTestHarness")) {
                return true;
            }
        }
        return false;
    }
}
