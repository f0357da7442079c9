package io.github.kafkalite.junit;

import java.time.Duration;
import java.util.Map;

/** A rule of a broker, as it was when it was last asked for. */
public final class Fault {

    private final ControlPort port;
    private final String path;
    private Map<String, Object> said;

    Fault(ControlPort port, String path, Map<String, Object> said) {
        this.port = port;
        this.path = path + "/" + said.get("id");
        this.said = said;
    }

    /** How often it fired, asked now. */
    public long hits() {
        said = port.get(path);
        return lastHits();
    }

    /** Returns when it fired so many times; waits for ten seconds. */
    public void waitForHits(int hits) {
        waitForHits(hits, Duration.ofSeconds(10));
    }

    /**
     * Returns when it fired so many times.
     *
     * @throws KafkaliteException if it did not in time, with how often it did.
     */
    public void waitForHits(int hits, Duration timeout) {
        said = port.get(path + "?wait_hits=" + hits + "&timeout_s=" + timeout.toMillis() / 1_000.0);
    }

    /** Removes it. */
    public void remove() {
        said = port.delete(path);
    }

    long lastHits() {
        return Json.number(said.get("hits"));
    }

    @Override
    public String toString() {
        return said.get("id") + " (" + said.get("rule") + "), hits " + lastHits();
    }
}
