package kafkalite.suite;

import java.io.IOException;
import java.nio.file.Files;
import java.nio.file.Path;
import java.util.HashMap;
import java.util.Map;
import java.util.concurrent.ConcurrentHashMap;
import java.util.regex.Matcher;
import java.util.regex.Pattern;
import org.junit.jupiter.api.extension.ConditionEvaluationResult;
import org.junit.jupiter.api.extension.ExecutionCondition;
import org.junit.jupiter.api.extension.ExtensionContext;

/**
 * Leaves out methods that cannot be run, and the second of two runs that differ in where Kafka's
 * controller is: in the broker's process or in its own.
 */
public final class Conditions implements ExecutionCondition {
    static final String AGAIN = "again";
    private static final Pattern KIND = Pattern.compile("Type=Raft-(\\w+)");
    private static final Map<String, String> REASONS = reasons();
    private final Map<String, String> kinds = new ConcurrentHashMap<>();

    @Override
    public ConditionEvaluationResult evaluateExecutionCondition(ExtensionContext context) {
        if (!Boolean.getBoolean("suite.kafkalite") || context.getTestMethod().isEmpty()) {
            return ConditionEvaluationResult.enabled("");
        }
        String method = context.getRequiredTestClass().getName() + "#"
            + context.getRequiredTestMethod().getName();
        String reason = REASONS.get(method);
        if (reason != null) {
            return ConditionEvaluationResult.disabled(reason);
        }
        Matcher kind = KIND.matcher(context.getDisplayName());
        if (kind.find()) {
            String run = method + context.getDisplayName().substring(kind.end());
            if (!kinds.computeIfAbsent(run, key -> kind.group(1)).equals(kind.group(1))) {
                return ConditionEvaluationResult.disabled(AGAIN);
            }
        }
        return ConditionEvaluationResult.enabled("");
    }

    private static Map<String, String> reasons() {
        Map<String, String> found = new HashMap<>();
        String file = System.getProperty("suite.not.applicable");
        if (file != null) {
            try {
                for (String line : Files.readAllLines(Path.of(file))) {
                    int tab = line.indexOf('\t');
                    found.put(line.substring(0, tab), line.substring(tab + 1));
                }
            } catch (IOException error) {
                throw new IllegalStateException(error);
            }
        }
        return found;
    }
}
