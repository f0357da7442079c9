package io.github.kafkalite.junit;

import java.io.BufferedReader;
import java.io.IOException;
import java.net.URI;
import java.nio.charset.StandardCharsets;
import java.nio.file.Files;
import java.nio.file.Path;
import java.util.ArrayDeque;
import java.util.ArrayList;
import java.util.Deque;
import java.util.List;
import java.util.concurrent.CompletableFuture;
import java.util.concurrent.TimeUnit;
import java.util.concurrent.TimeoutException;
import java.util.regex.Matcher;
import java.util.regex.Pattern;

/** {@code kafkalite serve} as a process, which ends with this JVM, however that ends. */
final class BrokerProcess {

    private static final Pattern READY =
            Pattern.compile("kafkalite ready: bootstrap=(\\S+) .*?http=(\\S+) .*");
    private static final int START_TIMEOUT_S = 60;
    private static final int LINES_MAX = 50;

    private final Process process;
    private final Deque<String> lastLines = new ArrayDeque<>();
    private final CompletableFuture<Matcher> ready = new CompletableFuture<>();

    private BrokerProcess(Process process) {
        this.process = process;
    }

    static BrokerProcess start(List<String> settings) {
        List<String> command = new ArrayList<>(command());
        command.addAll(
                List.of(
                        "serve", "--profile", "test", "--listen", "127.0.0.1:0",
                        "--http", "127.0.0.1:0", "--until-stdin-ends"));
        for (String setting : settings) {
            command.addAll(List.of("--set", setting));
        }
        ProcessBuilder builder = new ProcessBuilder(command).redirectErrorStream(true);
        builder.environment().keySet().removeIf(name -> name.startsWith("KAFKA_"));
        BrokerProcess started;
        try {
            started = new BrokerProcess(builder.start());
        } catch (IOException error) {
            throw new KafkaliteException(
                    String.join(" ", command) + " cannot be run: `pip install kafkalite`, or say by the "
                            + "system property kafkalite.command or KAFKALITE_COMMAND how it is run",
                    error);
        }
        Thread reader = new Thread(started::read, "kafkalite-output");
        reader.setDaemon(true);
        reader.start();
        try {
            started.ready.get(START_TIMEOUT_S, TimeUnit.SECONDS);
        } catch (TimeoutException error) {
            started.stop();
            throw new KafkaliteException("kafkalite is not ready:\n" + started.tail());
        } catch (Exception error) {
            throw new KafkaliteException("kafkalite did not start:\n" + started.tail(), error);
        }
        return started;
    }

    String bootstrap() {
        return ready.join().group(1);
    }

    URI http() {
        return URI.create(ready.join().group(2));
    }

    void stop() {
        process.destroy();
        try {
            if (!process.waitFor(10, TimeUnit.SECONDS)) {
                process.destroyForcibly();
            }
        } catch (InterruptedException interrupted) {
            process.destroyForcibly();
            Thread.currentThread().interrupt();
        }
    }

    /** Returns a system property, else a variable of the environment, else null. */
    static String setting(String property, String variable) {
        String value = System.getProperty(property, System.getenv(variable));
        return value == null || value.isBlank() ? null : value;
    }

    private static List<String> command() {
        String said = setting("kafkalite.command", "KAFKALITE_COMMAND");
        if (said != null) {
            return List.of(said.trim().split("\\s+"));
        }
        String path = System.getenv().getOrDefault("PATH", "");
        for (String folder : path.split(java.io.File.pathSeparator)) {
            if (Files.isExecutable(Path.of(folder, "kafkalite"))) {
                return List.of("kafkalite");
            }
        }
        return List.of("python3", "-m", "kafkalite");
    }

    /** Reads to the end, for a process waits whose output nobody reads. */
    private void read() {
        try (BufferedReader lines = process.inputReader(StandardCharsets.UTF_8)) {
            for (String line = lines.readLine(); line != null; line = lines.readLine()) {
                keep(line);
                Matcher found = READY.matcher(line);
                if (found.matches()) {
                    ready.complete(found);
                }
            }
        } catch (IOException error) {
            keep(error.toString());
        }
        ready.completeExceptionally(new IllegalStateException("it ended"));
    }

    private synchronized void keep(String line) {
        lastLines.add(line);
        if (lastLines.size() > LINES_MAX) {
            lastLines.remove();
        }
    }

    private synchronized String tail() {
        return String.join("\n", lastLines);
    }
}
