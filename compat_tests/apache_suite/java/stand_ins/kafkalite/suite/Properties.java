package kafkalite.suite;

import java.io.File;
import java.util.HashMap;
import java.util.List;
import java.util.Map;
import java.util.Set;
import java.util.TreeMap;
import java.util.stream.Collectors;
import java.util.stream.Stream;
import kafka.server.KafkaConfig;
import org.apache.kafka.common.config.types.Password;
import org.apache.kafka.common.security.auth.SecurityProtocol;
import org.apache.kafka.common.test.JaasModule;
import org.apache.kafka.common.test.JaasUtils;
import org.apache.kafka.common.test.TestKitNode;
import org.apache.kafka.common.test.TestKitNodes;

/** What a test sets for its brokers, as Kafka's config object and as settings of kafkalite. */
public final class Properties {
    public static final String ADMIN_LOGIN = String.format(
        "org.apache.kafka.common.security.plain.PlainLoginModule required "
            + "username=\"%s\" password=\"%s\";",
        JaasUtils.KAFKA_PLAIN_ADMIN, JaasUtils.KAFKA_PLAIN_ADMIN_PASSWORD);
    private static final String AUTHORIZER =
        "org.apache.kafka.metadata.authorizer.StandardAuthorizer";
    /** Their values name classes of Java that a broker loads. */
    private static final Set<String> CLASSES = Set.of(
        "alter.config.policy.class.name", "authorizer.class.name", "client.quota.callback.class",
        "create.topic.policy.class.name", "group.consumer.assignors", "group.share.assignors",
        "group.streams.assignors", "metric.reporters", "principal.builder.class",
        "remote.log.storage.manager.class.name", "replica.selector.class");
    private static final Set<String> KNOWN_CLASSES = Set.of(
        AUTHORIZER,
        "org.apache.kafka.coordinator.group.assignor.RangeAssignor",
        "org.apache.kafka.coordinator.group.assignor.UniformAssignor",
        "org.apache.kafka.common.replica.RackAwareReplicaSelector", "range", "uniform", "simple",
        "");

    private static final Set<String> OF_KRAFT = Set.of(
        "controller.listener.names", "controller.quorum.voters", "metadata.log.dir", "process.roles",
        "server.max.startup.time.ms");

    private final TestKitNodes nodes;
    private final Map<String, Object> given;
    private final boolean hasLogins;

    public Properties(TestKitNodes nodes, Map<String, Object> given) {
        this.nodes = nodes;
        this.given = given;
        hasLogins = nodes.brokerListenerProtocol() == SecurityProtocol.SASL_PLAINTEXT;
    }

    /** The object that tests read, and which refuses what Kafka refuses. */
    public KafkaConfig configOf(int id) {
        Map<String, Object> all = ofTest(id);
        TestKitNode broker = nodes.brokerNodes().get(id);
        TestKitNode controller = nodes.controllerNodes().get(id);
        String ofBroker = nodes.brokerListenerName().value();
        String ofController = nodes.controllerListenerName().value();
        String roles = Stream.of(broker == null ? null : "broker",
            controller == null ? null : "controller").filter(role -> role != null)
            .collect(Collectors.joining(","));
        all.put("process.roles", roles);
        all.put("node.id", Integer.toString(id));
        all.put("log.dirs", broker == null
            ? controller.metadataDirectory() : String.join(",", broker.logDataDirectories()));
        all.putIfAbsent("listener.security.protocol.map", ofBroker + ":"
            + nodes.brokerListenerProtocol().name + "," + ofController + ":"
            + nodes.controllerListenerProtocol().name);
        all.putIfAbsent("listeners", Stream.of(broker == null ? null : ofBroker,
            controller == null ? null : ofController).filter(name -> name != null)
            .map(name -> name + "://localhost:0").collect(Collectors.joining(",")));
        all.putIfAbsent("inter.broker.listener.name", ofBroker);
        all.putIfAbsent("controller.listener.names", ofController);
        all.put("controller.quorum.voters", nodes.controllerNodes().keySet().stream()
            .map(voter -> voter + "@localhost:1").collect(Collectors.joining(",")));
        all.putIfAbsent("log.cleaner.dedupe.buffer.size", "2097152");
        return new KafkaConfig(all, false);
    }

    /** Where a broker listens. */
    public Listeners listenersOf(KafkaConfig config) {
        Map<String, Object> all = ofTest(config.nodeId());
        String name = nodes.brokerListenerName().value();
        return new Listeners(text(all.getOrDefault("listeners", name + "://localhost:0")),
            text(all.getOrDefault("listener.security.protocol.map",
                name + ":" + nodes.brokerListenerProtocol().name)));
    }

    /** What the process gets: the test's properties, and where it listens. */
    public Map<String, String> settingsOf(Broker broker) {
        return settings(ofTest(broker.id), broker, nodes.clusterId());
    }

    /** Properties of Kafka as settings of kafkalite. */
    static Map<String, String> settings(Map<String, ?> given, Broker broker, String clusterId) {
        Map<String, String> all = new TreeMap<>();
        given.forEach((name, value) -> all.put(name, text(value)));
        for (String name : CLASSES) {
            for (String value : all.getOrDefault(name, "").split(",")) {
                if (!KNOWN_CLASSES.contains(value.trim())) {
                    throw new NotApplicable("loads a class of Java into the broker: " + name);
                }
            }
        }
        if (all.getOrDefault("sasl.enabled.mechanisms", "").contains("GSSAPI")) {
            throw new NotApplicable("logs in by Kerberos, which kafkalite does not have");
        }
        if (all.getOrDefault("remote.log.storage.system.enable", "").equals("true")) {
            throw new NotApplicable("has tiered storage, which kafkalite does not have");
        }
        if (all.getOrDefault("group.share.persister.class.name", "none").isEmpty()) {
            // A test that keeps no state of share groups has too few brokers for that of the default.
            all.putIfAbsent("share.coordinator.state.topic.replication.factor", "1");
            all.putIfAbsent("share.coordinator.state.topic.min.isr", "1");
            all.putIfAbsent("share.coordinator.state.topic.num.partitions", "1");
        }
        for (String name : OF_KRAFT) {
            all.remove(name);
        }
        broker.listeners.into(all, broker.config);
        all.put("log.dirs", String.join(",", broker.config.logDirs()));
        all.put("node.id", Integer.toString(broker.id));
        all.put("kafkalite.cluster.id", clusterId);
        all.put("kafkalite.profile", "kafka");
        return all;
    }

    /** The file of logins that clients of a test may look at. */
    public static void writeLogins() throws Exception {
        File file = JaasUtils.writeJaasContextsToFile(Set.of(new JaasUtils.JaasSection(
            JaasUtils.KAFKA_SERVER_CONTEXT_NAME, List.of(JaasModule.plainLoginModule(
                JaasUtils.KAFKA_PLAIN_ADMIN, JaasUtils.KAFKA_PLAIN_ADMIN_PASSWORD, true,
                users())))));
        file.deleteOnExit();
        JaasUtils.refreshJavaLoginConfigParam(file);
    }

    private static Map<String, String> users() {
        return Map.of(JaasUtils.KAFKA_PLAIN_USER1, JaasUtils.KAFKA_PLAIN_USER1_PASSWORD,
            JaasUtils.KAFKA_PLAIN_ADMIN, JaasUtils.KAFKA_PLAIN_ADMIN_PASSWORD);
    }

    private Map<String, Object> ofTest(int id) {
        Map<String, Object> all = new HashMap<>(given);
        if (hasLogins) {
            all.putIfAbsent("sasl.enabled.mechanisms", "PLAIN");
            all.putIfAbsent("sasl.mechanism.inter.broker.protocol", "PLAIN");
            all.putIfAbsent("authorizer.class.name", AUTHORIZER);
            all.putIfAbsent("allow.everyone.if.no.acl.found", "false");
            // What is asked by the internal listener is asked without a login.
            all.putIfAbsent("super.users",
                "User:" + JaasUtils.KAFKA_PLAIN_ADMIN + ";User:ANONYMOUS");
            String known = users().entrySet().stream()
                .map(user -> "user_" + user.getKey() + "=\"" + user.getValue() + "\"")
                .collect(Collectors.joining(" "));
            all.putIfAbsent("listener.name."
                    + nodes.brokerListenerName().value().toLowerCase(java.util.Locale.ROOT)
                    + ".plain.sasl.jaas.config",
                ADMIN_LOGIN.replace(";", " " + known + ";"));
        }
        // A broker of kafkalite is its own controller.
        nodes.controllerNodes().values().forEach(node -> all.putAll(node.propertyOverrides()));
        if (nodes.brokerNodes().containsKey(id)) {
            all.putAll(nodes.brokerNodes().get(id).propertyOverrides());
        }
        return all;
    }

    private static String text(Object value) {
        if (value instanceof Password password) {
            return password.value();
        }
        if (value instanceof List<?> list) {
            return list.stream().map(Object::toString).collect(Collectors.joining(","));
        }
        return String.valueOf(value);
    }
}
