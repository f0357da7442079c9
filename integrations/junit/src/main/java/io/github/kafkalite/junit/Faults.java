package io.github.kafkalite.junit;

import java.util.ArrayList;
import java.util.LinkedHashMap;
import java.util.List;
import java.util.Map;

/**
 * Rules that make a broker fail on purpose.
 *
 * <pre>{@code
 * Fault lost = faults.on("OffsetCommit").group("billing").loseReply().once();
 * ...
 * lost.waitForHits(1);
 * }</pre>
 */
public final class Faults {

    private static final String PATH = "/api/v1/control/faults";

    private final ControlPort port;

    Faults(ControlPort port) {
        this.port = port;
    }

    /** Begins a rule about requests of an API, by the name that Kafka's protocol has for it. */
    public Rule on(String api) {
        return new Rule(this).with("api", api);
    }

    /** Adds a rule by the names of the HTTP API: {@code Map.of("api", "Fetch", "delay_s", 2)}. */
    public Fault add(Map<String, ?> rule) {
        return new Fault(port, PATH, port.post(PATH, rule));
    }

    /** The rules there are. */
    public List<Fault> rules() {
        return faults(port.get(PATH).get("faults"));
    }

    /** Removes all rules, also those about the disk, and returns them as they were. */
    public List<Fault> clear() {
        return faults(port.delete(PATH).get("removed"));
    }

    private List<Fault> faults(Object list) {
        List<Fault> found = new ArrayList<>();
        for (Object each : Json.list(list)) {
            found.add(new Fault(port, PATH, Json.object(each)));
        }
        return found;
    }

    /** A rule that is being described; what says when it fires is the last word, and adds it. */
    public static final class Rule {

        private final Faults faults;
        private final Map<String, Object> said = new LinkedHashMap<>();

        private Rule(Faults faults) {
            this.faults = faults;
        }

        /** Says anything else that the HTTP API knows. */
        public Rule with(String name, Object value) {
            said.put(name, value);
            return this;
        }

        /** Only about this topic; {@code *} stands for any characters. */
        public Rule topic(String name) {
            return with("topic", name);
        }

        /** Only about this partition. */
        public Rule partition(int index) {
            return with("partition", index);
        }

        /** Only about this group. */
        public Rule group(String id) {
            return with("group", id);
        }

        /** Only about this transactional id. */
        public Rule transactionalId(String id) {
            return with("transactional_id", id);
        }

        /** Only of clients with this {@code client.id}. */
        public Rule clientId(String id) {
            return with("client_id", id);
        }

        /** Answers an error by Kafka's name for it; the request was not applied. */
        public Rule error(String name) {
            return with("error", name);
        }

        /** Answers an error although the request was applied. */
        public Rule errorAfterwards(String name) {
            return with("error", name).with("applied", true);
        }

        /** Applies the request and closes the connection in the place of an answer. */
        public Rule loseReply() {
            return with("lose_reply", true);
        }

        /** Closes the connection; the request was not applied. */
        public Rule disconnect() {
            return with("disconnect", true);
        }

        /** Answers nothing any more on this connection. */
        public Rule blackhole() {
            return with("blackhole", true);
        }

        /** Answers late, by so many seconds. */
        public Rule delay(double seconds) {
            return with("delay_s", seconds);
        }

        /** The first time only. */
        public Fault once() {
            return with("once", true).add();
        }

        /** The first so many times. */
        public Fault times(int count) {
            return with("times", count).add();
        }

        /** Only the time with this number, from 1. */
        public Fault onCall(int number) {
            return with("on_call", number).add();
        }

        /** Each time with a number that this divides. */
        public Fault every(int count) {
            return with("every", count).add();
        }

        /** Each time, until it is removed. */
        public Fault always() {
            return add();
        }

        /** By chance, the same for the same seed. */
        public Fault withProbability(double probability, long seed) {
            return with("probability", probability).with("seed", seed).add();
        }

        private Fault add() {
            return faults.add(said);
        }
    }
}
