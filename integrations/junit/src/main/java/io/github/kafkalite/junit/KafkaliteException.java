package io.github.kafkalite.junit;

/** The broker refused something, or could not be started; the message says why. */
public final class KafkaliteException extends RuntimeException {

    private static final long serialVersionUID = 1L;

    KafkaliteException(String message) {
        super(message);
    }

    KafkaliteException(String message, Throwable cause) {
        super(message, cause);
    }
}
