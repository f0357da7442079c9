package kafkalite.suite;

import static org.mockito.Mockito.mock;
import static org.mockito.Mockito.withSettings;

import java.util.Map;
import org.mockito.invocation.InvocationOnMock;
import org.mockito.stubbing.Answer;

/** Objects in the place of parts of Apache Kafka's broker: what they do not know ends the test. */
public final class Doubles {
    private static final Map<String, Answer<?>> NONE = Map.of();

    private Doubles() {
    }

    /** A stand-in that has these methods, by name. */
    public static <T> T of(Class<T> type, Map<String, Answer<?>> methods) {
        Answer<Object> answer = call -> answer(type, methods, call);
        return mock(type, withSettings().stubOnly().defaultAnswer(answer));
    }

    /** A stand-in that has nothing: the test asks for it, and perhaps not for more. */
    public static <T> T of(Class<T> type) {
        return of(type, NONE);
    }

    /** The answer of such a stand-in to any call. */
    static Object answer(
        Class<?> type, Map<String, Answer<?>> methods, InvocationOnMock call
    ) throws Throwable {
        String name = call.getMethod().getName();
        Answer<?> known = methods.get(name);
        if (known != null) {
            return known.answer(call);
        }
        return switch (name) {
            case "toString" -> "stand-in for " + type.getSimpleName();
            case "hashCode" -> System.identityHashCode(call.getMock());
            case "equals" -> call.getMock() == call.getArgument(0);
            default -> throw new NotApplicable(
                "looks into the broker: " + type.getSimpleName() + "." + name);
        };
    }
}
