package kafkalite.suite;

import org.opentest4j.TestAbortedException;

/** A test asks for something that only a broker inside its Java machine can give. */
public final class NotApplicable extends TestAbortedException {
    private static volatile String first;

    public NotApplicable(String reason) {
        super(reason);
        if (first == null) {
            first = reason;
        }
    }

    /** The first since {@link #forget}: a test may catch the exception and fail later. */
    static String first() {
        return first;
    }

    static void forget() {
        first = null;
    }
}
