package kafkalite.suite;

import com.fasterxml.jackson.databind.JsonNode;
import com.fasterxml.jackson.databind.ObjectMapper;
import java.io.BufferedReader;
import java.io.IOException;
import java.io.InputStreamReader;
import java.io.Writer;
import java.nio.charset.StandardCharsets;
import java.util.Map;

/** Broker processes, started and stopped by `python -m compat_tests.apache_suite.brokers`. */
final class Brokers {
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
    static synchronized Brokers instance() {
        try {
            if (instance == null) {
                instance = new Brokers();
            }
            return instance;
        } catch (IOException error) {
            throw new IllegalStateException(error);
        }
    }

    /** Send a command; a refusal is thrown. */
    synchronized JsonNode ask(Map<String, Object> request) {
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
