package org.apache.kafka.common.test;

import java.io.File;
import java.nio.file.Files;
import java.nio.file.Path;
import java.util.HashMap;
import java.util.Map;
import java.util.Set;
import java.util.TreeMap;
import java.util.concurrent.ExecutionException;
import java.util.stream.Collectors;
import kafka.raft.KafkaRaftManager;
import kafka.server.BrokerServer;
import kafka.server.ControllerServer;
import kafka.server.KafkaConfig;
import kafkalite.suite.Broker;
import kafkalite.suite.Cluster;
import kafkalite.suite.Controller;
import kafkalite.suite.Features;
import kafkalite.suite.Listeners;
import kafkalite.suite.NotApplicable;
import kafkalite.suite.Properties;
import org.apache.kafka.clients.CommonClientConfigs;
import org.apache.kafka.clients.admin.Admin;
import org.apache.kafka.clients.admin.AdminClientConfig;
import org.apache.kafka.common.Uuid;
import org.apache.kafka.common.config.SaslConfigs;
import org.apache.kafka.common.network.ListenerName;
import org.apache.kafka.common.security.auth.SecurityProtocol;
import org.apache.kafka.common.utils.Utils;

import org.apache.kafka.server.common.ApiMessageAndVersion;

/** In the place of Kafka's class of this name: its brokers are processes of kafkalite. */
public class KafkaClusterTestKit implements AutoCloseable {
    private final TestKitNodes nodes;
    private final boolean deleteOnClose;
    private final MockFaultHandler fatal = new MockFaultHandler("fatalFaultHandler");
    private final MockFaultHandler nonFatal = new MockFaultHandler("nonFatalFaultHandler");
    private final Map<Integer, Broker> brokers = new TreeMap<>();
    private final Map<Integer, ControllerServer> controllers = new TreeMap<>();
    private final Cluster cluster;

    public static class Builder {
        private final TestKitNodes nodes;
        private final Map<String, Object> properties = new HashMap<>();
        private boolean deleteOnClose = true;

        public Builder(TestKitNodes nodes) {
            this.nodes = nodes;
        }

        public Builder setConfigProp(String key, Object value) {
            properties.put(key, value);
            return this;
        }

        public Builder setStandalone(boolean standalone) {
            return this;
        }

        public Builder setInitialVoterSet(Map<Integer, Uuid> initialVoterSet) {
            throw new NotApplicable("chooses the voters of a KRaft quorum");
        }

        public Builder setDeleteOnClose(boolean deleteOnClose) {
            this.deleteOnClose = deleteOnClose;
            return this;
        }

        public KafkaClusterTestKit build() throws Exception {
            return new KafkaClusterTestKit(nodes, properties, deleteOnClose);
        }
    }

    private KafkaClusterTestKit(TestKitNodes nodes, Map<String, Object> given, boolean deleteOnClose)
        throws Exception {
        this.nodes = nodes;
        this.deleteOnClose = deleteOnClose;
        Properties properties = new Properties(nodes, given);
        cluster = new Cluster(nodes.brokerNodes().size() == 1);
        for (TestKitNode node : nodes.brokerNodes().values()) {
            for (String directory : node.logDataDirectories()) {
                Files.createDirectories(Path.of(directory));
            }
            KafkaConfig config = properties.configOf(node.id());
            Listeners listeners = properties.listenersOf(config);
            Broker broker = new Broker(cluster, nodes.clusterId(), config, listeners);
            brokers.put(node.id(), broker);
            cluster.add(node.id(), properties.settingsOf(broker));
        }
        for (TestKitNode node : nodes.controllerNodes().values()) {
            controllers.put(node.id(),
                Controller.of(nodes.clusterId(), properties.configOf(node.id()), brokers.values()));
        }
        if (nodes.brokerListenerProtocol() == SecurityProtocol.SASL_PLAINTEXT) {
            Properties.writeLogins();
        }
    }

    public void format() {
    }

    public void startup() throws ExecutionException, InterruptedException {
        cluster.start(brokers.values());
        Features.apply(this, nodes.bootstrapMetadata());
    }

    public void waitForReadyBrokers() throws ExecutionException, InterruptedException {
        Set<Integer> alive = running().map(broker -> broker.id).collect(Collectors.toSet());
        TestUtils.waitForCondition(
            () -> running().allMatch(broker -> broker.metadata.brokerIds().containsAll(alive)),
            "the brokers do not know each other");
    }

    private java.util.stream.Stream<Broker> running() {
        return brokers.values().stream().filter(broker -> broker.isRunning);
    }

    public Admin admin() {
        return admin(Map.of(), false);
    }

    public Admin admin(Map<String, Object> configs) {
        return admin(configs, false);
    }

    public Admin admin(Map<String, Object> configs, boolean usingBootstrapControllers) {
        Map<String, Object> all = new HashMap<>(configs);
        if (usingBootstrapControllers) {
            all.put(AdminClientConfig.BOOTSTRAP_CONTROLLERS_CONFIG, bootstrapControllers());
        }
        all.putIfAbsent(CommonClientConfigs.BOOTSTRAP_SERVERS_CONFIG, bootstrapServers());
        all.putIfAbsent(
            CommonClientConfigs.SECURITY_PROTOCOL_CONFIG, nodes.brokerListenerProtocol().name);
        if (nodes.brokerListenerProtocol() == SecurityProtocol.SASL_PLAINTEXT) {
            all.putIfAbsent(SaslConfigs.SASL_MECHANISM, "PLAIN");
            all.putIfAbsent(SaslConfigs.SASL_JAAS_CONFIG, Properties.ADMIN_LOGIN);
        }
        return Admin.create(all);
    }

    public String bootstrapServers() {
        return brokers.values().stream().map(broker -> "localhost:" + broker.listeners.port(
                ListenerName.normalised(nodes.brokerListenerName().value())))
            .collect(Collectors.joining(","));
    }

    public String bootstrapControllers() {
        throw new NotApplicable("asks a KRaft controller");
    }

    public Map<Integer, ControllerServer> controllers() {
        return controllers;
    }

    public org.apache.kafka.controller.Controller waitForActiveController() {
        throw new NotApplicable("looks into a KRaft controller");
    }

    public Map<Integer, BrokerServer> brokers() {
        Map<Integer, BrokerServer> found = new TreeMap<>();
        brokers.forEach((id, broker) -> found.put(id, broker.server));
        return found;
    }

    public Map<Integer, KafkaRaftManager<ApiMessageAndVersion>> raftManagers() {
        throw new NotApplicable("looks into KRaft");
    }

    public TestKitNodes nodes() {
        return nodes;
    }

    public MockFaultHandler fatalFaultHandler() {
        return fatal;
    }

    public MockFaultHandler nonFatalFaultHandler() {
        return nonFatal;
    }

    @Override
    public void close() throws Exception {
        cluster.close();
        if (deleteOnClose) {
            Utils.delete(new File(nodes.baseDirectory()));
        }
    }
}
