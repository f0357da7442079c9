package io.github.kafkalite.junit;

import java.time.Duration;
import java.time.Instant;
import java.util.Map;

/**
 * The clock of a broker, which sessions, transactions, retention, expiry and timestamps go by.
 *
 * <p>Clients have clocks of their own: records that are to be new after an advance carry
 * {@link #now()} as their timestamp.
 */
public final class BrokerClock {

    private static final String PATH = "/api/v1/control/clock";

    private final ControlPort port;

    BrokerClock(ControlPort port) {
        this.port = port;
    }

    /** What time it is for the broker. */
    public Instant now() {
        return Instant.ofEpochMilli(Json.number(port.get(PATH).get("now_ms")));
    }

    /** Lets time pass; when this returns, what was due in it has been done. */
    public void advance(Duration time) {
        change("advance_s", time.toMillis() / 1_000.0);
    }

    /** Stands still until {@link #resume()}: clients are served, and nothing expires. */
    public void freeze() {
        change("freeze", true);
    }

    /** Goes on after {@link #freeze()}. */
    public void resume() {
        change("resume", true);
    }

    /** Sets the wall clock; no deadline moves. */
    public void set(Instant at) {
        change("set", at.toString());
    }

    /** Makes so many seconds pass in one. */
    public void rate(double rate) {
        change("rate", rate);
    }

    /** Makes it the machine's clock again. */
    public void reset() {
        change("reset", true);
    }

    private void change(String name, Object value) {
        port.post(PATH, Map.of(name, value));
    }
}
