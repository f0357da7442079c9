package io.github.kafkalite.junit;

import java.net.URI;
import java.time.Duration;
import java.util.ArrayList;
import java.util.List;
import java.util.Map;

/**
 * A kafkalite broker that a test uses: one that it started as a process, or one that runs already.
 *
 * <p>It is started by {@code kafkalite}, or by what the system property {@code kafkalite.command} or
 * the variable {@code KAFKALITE_COMMAND} says. Where {@code kafkalite.http} or {@code KAFKALITE_HTTP}
 * has the address of a broker's HTTP port, such as that of a service of a CI system, it is used.
 */
public final class KafkaliteBroker implements AutoCloseable {

    private static final Duration PATIENCE = Duration.ofSeconds(10);

    private final String bootstrapServers;
    private final ControlPort port;
    private final BrokerProcess process;

    private KafkaliteBroker(String bootstrapServers, ControlPort port, BrokerProcess process) {
        this.bootstrapServers = bootstrapServers;
        this.port = port;
        this.process = process;
    }

    /** Starts a broker with settings by Kafka's names ({@code "num.partitions=3"}). */
    public static KafkaliteBroker start(String... settings) {
        BrokerProcess process = BrokerProcess.start(List.of(settings));
        return new KafkaliteBroker(process.bootstrap(), new ControlPort(process.http()), process);
    }

    /**
     * Uses a broker that runs.
     *
     * @param http address of its HTTP port, with {@code ?token=...} if it wants one.
     */
    public static KafkaliteBroker attach(URI http) {
        ControlPort port = new ControlPort(http);
        Map<String, Object> cluster = port.get("/api/v1/cluster");
        return new KafkaliteBroker((String) cluster.get("bootstrap"), port, null);
    }

    static KafkaliteBroker attachOrStart(List<String> settings) {
        String http = BrokerProcess.setting("kafkalite.http", "KAFKALITE_HTTP");
        if (http == null) {
            return start(settings.toArray(String[]::new));
        }
        if (!settings.isEmpty()) {
            throw new IllegalStateException(
                    "the broker at " + http + " runs already: it cannot be given " + settings);
        }
        return attach(URI.create(http));
    }

    /** Ends the process that was started; a broker that ran before runs on. */
    @Override
    public void close() {
        if (process != null) {
            process.stop();
        }
    }

    /** {@code HOST:PORT}, for {@code bootstrap.servers} of any client. */
    public String bootstrapServers() {
        return bootstrapServers;
    }

    /** Address of its HTTP port: the console for a browser, and what {@link #attach} takes. */
    public URI http() {
        return port.address();
    }

    /** Rules that make the broker fail. */
    public Faults faults() {
        return new Faults(port);
    }

    /** The broker's clock. */
    public BrokerClock clock() {
        return new BrokerClock(port);
    }

    /** Deletes all topics, groups and faults; the clock is that of the machine again. */
    public void reset() {
        port.post("/api/v1/control/reset", Map.of());
    }

    /** Makes a topic; when this returns, any client can use it. */
    public void createTopic(String name, int partitions) {
        createTopic(name, partitions, Map.of());
    }

    /** Makes a topic with settings of its own, such as {@code retention.ms}. */
    public void createTopic(String name, int partitions, Map<String, String> settings) {
        port.post(
                "/api/v1/topics",
                Map.of("name", name, "partitions", partitions, "configs", settings));
    }

    /** Names of all topics but internal ones. */
    public List<String> topics() {
        List<String> names = new ArrayList<>();
        for (Object topic : Json.list(port.get("/api/v1/topics").get("topics"))) {
            names.add((String) Json.object(topic).get("name"));
        }
        return names;
    }

    /** How many records (and markers of transactions) all partitions of a topic hold now. */
    public long recordCount(String topic) {
        return Json.number(port.get("/api/v1/topics/" + ControlPort.encode(topic)).get("records"));
    }

    /** Returns when a group is stable with so many members; its consumers have their partitions. */
    public void waitForGroup(String group, int members) {
        port.get(
                "/health/ready?group=" + ControlPort.encode(group)
                        + "&members=" + members + "&timeout=" + PATIENCE.toMillis());
    }

    /**
     * Returns when a group has committed everything that a topic holds.
     *
     * @throws IllegalStateException if it has not after ten seconds, with what it lacks.
     */
    public void waitForCommits(String group, String topic) {
        long end = System.nanoTime() + PATIENCE.toNanos();
        long missing = lag(group, topic);
        while (missing > 0) {
            if (System.nanoTime() > end) {
                throw new IllegalStateException(
                        "group " + group + " is " + missing + " records behind in " + topic);
            }
            pause();
            missing = lag(group, topic);
        }
    }

    /** How many records of a topic a group has not committed; all of them if it never did. */
    public long lag(String group, String topic) {
        Map<String, Long> committed = port.committed(group, topic);
        long lag = 0;
        String path = "/api/v1/topics/" + ControlPort.encode(topic) + "/partitions";
        for (Object partition : Json.list(port.get(path).get("partitions"))) {
            Map<String, Object> said = Json.object(partition);
            long start = Json.number(said.get("start"));
            long reached = committed.getOrDefault(String.valueOf(said.get("partition")), start);
            lag += Math.max(0, Json.number(said.get("high_watermark")) - Math.max(reached, start));
        }
        return lag;
    }

    private static void pause() {
        try {
            Thread.sleep(20);
        } catch (InterruptedException interrupted) {
            Thread.currentThread().interrupt();
            throw new IllegalStateException("interrupted", interrupted);
        }
    }

    @Override
    public String toString() {
        return "kafkalite at " + bootstrapServers;
    }
}
