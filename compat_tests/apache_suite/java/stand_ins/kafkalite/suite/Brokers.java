package kafkalite.suite;

import com.fasterxml.jackson.databind.JsonNode;
import com.fasterxml.jackson.databind.ObjectMapper;
import java.io.BufferedReader;
import java.io.IOException;
import java.io.InputStreamReader;
import java.io.Writer;
import java.nio.charset.StandardCharsets;
import java.util.Collection;
import java.util.Map;

/** Broker processes, started and stopped by `python -m compat_tests.apache_suite.brokers`. */
public final class Brokers {
    private static final ObjectMapper JSON = new ObjectMapper();
    private static Brokers instance;
    private final Writer input;
    private final BufferedReader output;

    private Brokers() throws IOException {
        String command = System.getProperty("suite.brokers.command");
        Process process = new ProcessBuilder(command.split(" "))
            .redirectError(ProcessBuilder.Redirect.INHERIT).start();
        input = process.outputWriter(StandardCharsets.UTF_8);
        output = new BufferedReader(
            new InputStreamReader(process.getInputStream(), StandardCharsets.UTF_8));
    }

    /** One program serves all clusters of this Java machine, and ends with it. */
    public static synchronized Brokers instance() {
        try {
            if (instance == null) {
                instance = new Brokers();
            }
            return instance;
        } catch (IOException error) {
            throw new IllegalStateException(error);
        }
    }

    /** Prepare brokers, given as settings by id; returns the cluster's number. */
    public int create(Map<Integer, Map<String, String>> settings) {
        return ask(Map.of("do", "create", "brokers", settings)).get("cluster").asInt();
    }

    /** Start brokers and return when all of them serve clients. */
    public void start(int cluster, Collection<Integer> ids) {
        ask(Map.of("do", "start", "cluster", cluster, "brokers", ids));
    }

    /** Stop brokers by SIGTERM, one after another. */
    public void stop(int cluster, Collection<Integer> ids) {
        ask(Map.of("do", "stop", "cluster", cluster, "brokers", ids));
    }

    /** End all brokers of a cluster at once. */
    public void close(int cluster) {
        ask(Map.of("do", "close", "cluster", cluster));
    }

    private synchronized JsonNode ask(Map<String, Object> request) {
        try {
            input.write(JSON.writeValueAsString(request) + "\n");
            input.flush();
            String line = output.readLine();
            if (line == null) {
                throw new IllegalStateException("the program that keeps the brokers has ended");
            }
            JsonNode answer = JSON.readTree(line);
            if (answer.has("error")) {
                throw new RuntimeException(answer.get("error").asText());
            }
            return answer;
        } catch (IOException error) {
            throw new IllegalStateException(error);
        }
    }
}
