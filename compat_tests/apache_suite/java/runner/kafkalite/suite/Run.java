package kafkalite.suite;

import static org.junit.platform.engine.discovery.DiscoverySelectors.selectClass;
import static org.junit.platform.engine.discovery.DiscoverySelectors.selectMethod;

import com.fasterxml.jackson.databind.ObjectMapper;
import java.io.PrintStream;
import java.util.LinkedHashMap;
import java.util.Map;
import java.util.concurrent.ConcurrentHashMap;
import java.util.regex.Pattern;
import org.junit.platform.engine.TestExecutionResult;
import org.junit.platform.launcher.LauncherDiscoveryRequest;
import org.junit.platform.launcher.TestExecutionListener;
import org.junit.platform.launcher.TestIdentifier;
import org.junit.platform.launcher.core.LauncherDiscoveryRequestBuilder;
import org.junit.platform.launcher.core.LauncherFactory;

/**
 * Runs the tests of classes, given as `package.Class` or `package.Class#method`; prints a line of
 * JSON for each test, and where a class begins and ends, on the real standard output. What the tests
 * print goes to standard error.
 */
public final class Run implements TestExecutionListener {
    private static final Pattern CLASS = Pattern.compile("\\[class:([^\\]]+)\\]");
    /** Exit code that no test gives by ending the machine. */
    private static final int ALL_RUN = 42;
    private final PrintStream out;
    private final Map<String, Long> starts = new ConcurrentHashMap<>();
    private final ObjectMapper json = new ObjectMapper();

    private Run(PrintStream out) {
        this.out = out;
    }

    public static void main(String[] names) {
        PrintStream out = System.out;
        System.setOut(System.err);
        LauncherDiscoveryRequestBuilder request = LauncherDiscoveryRequestBuilder.request();
        Run run = new Run(out);
        for (String name : names) {
            // JUnit would run none of them if it could not load one.
            try {
                Class.forName(name.split("#")[0]).getMethods();
            } catch (ClassNotFoundException | LinkageError error) {
                String id = "[class:" + name + "]";
                run.report(name, id, "all", "skipped", "cannot be loaded: " + error);
                run.report(name, id, "all", "ended", "");
                continue;
            }
            request.selectors(name.contains("#") ? selectMethod(name) : selectClass(name));
        }
        request.configurationParameter("junit.jupiter.extensions.autodetection.enabled", "true");
        request.configurationParameter("junit.jupiter.execution.timeout.default",
            System.getProperty("suite.timeout", "180 s"));
        LauncherDiscoveryRequest built = request.build();
        LauncherFactory.create().execute(built, run);
        out.flush();
        // Threads that a test left behind keep no machine alive.
        Runtime.getRuntime().halt(ALL_RUN);
    }

    @Override
    public void executionStarted(TestIdentifier test) {
        if (test.isTest()) {
            NotApplicable.forget();
        }
        starts.put(test.getUniqueId(), System.nanoTime());
        if (isClass(test)) {
            System.err.println("--- " + test.getUniqueId());
            report(test, "begun", "");
        }
    }

    private static boolean isClass(TestIdentifier test) {
        return test.getUniqueIdObject().getLastSegment().getType().equals("class");
    }

    @Override
    public void executionSkipped(TestIdentifier test, String reason) {
        if (!reason.equals(Conditions.AGAIN)) {
            report(test, "skipped", reason);
            if (isClass(test)) {
                report(test, "ended", "");
            }
        }
    }

    @Override
    public void executionFinished(TestIdentifier test, TestExecutionResult result) {
        String message = result.getThrowable().map(Run::describe).orElse("");
        switch (result.getStatus()) {
            case SUCCESSFUL -> {
                if (test.isTest()) {
                    report(test, "passed", "");
                }
            }
            case ABORTED -> report(test, "skipped", message);
            case FAILED -> {
                String reason = NotApplicable.first();
                if (reason == null && result.getThrowable().get() instanceof LinkageError) {
                    reason = "cannot be loaded: " + result.getThrowable().get();
                }
                report(test, reason == null ? "failed" : "skipped", reason == null ? message : reason);
            }
        }
        if (isClass(test)) {
            report(test, "ended", "");
        }
    }

    private static String describe(Throwable thrown) {
        if (thrown instanceof NotApplicable) {
            return thrown.getMessage();
        }
        StringBuilder text = new StringBuilder();
        for (Throwable cause = thrown; cause != null; cause = cause.getCause()) {
            text.append(text.isEmpty() ? "" : " <- ").append(cause);
        }
        for (StackTraceElement frame : thrown.getStackTrace()) {
            if (frame.getFileName() != null && frame.getFileName().matches(".*Tests?\\.(java|scala)")) {
                text.append(" (").append(frame.getFileName()).append(':');
                text.append(frame.getLineNumber()).append(')');
                break;
            }
        }
        return text.toString();
    }

    private void report(TestIdentifier test, String status, String message) {
        String type = CLASS.matcher(test.getUniqueId()).results().findFirst()
            .map(found -> found.group(1)).orElse("");
        report(type, test.getUniqueId(), test.getDisplayName(), status, message);
    }

    private void report(String type, String id, String name, String status, String message) {
        Map<String, Object> line = new LinkedHashMap<>();
        line.put("class", type);
        line.put("id", id);
        line.put("name", name);
        line.put("status", status);
        long start = starts.getOrDefault(id, System.nanoTime());
        line.put("seconds", (System.nanoTime() - start) / 10_000_000 / 100.0);
        line.put("message", message.length() > 5000 ? message.substring(0, 5000) : message);
        synchronized (out) {
            try {
                out.println(json.writeValueAsString(line));
                out.flush();
            } catch (java.io.IOException error) {
                throw new IllegalStateException(error);
            }
        }
    }
}
