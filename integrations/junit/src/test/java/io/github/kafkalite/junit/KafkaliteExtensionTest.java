package io.github.kafkalite.junit;

import static org.junit.jupiter.api.Assertions.assertEquals;
import static org.junit.jupiter.api.Assertions.assertFalse;
import static org.junit.jupiter.api.Assertions.assertThrows;
import static org.junit.jupiter.api.Assertions.assertTrue;
import static org.junit.platform.testkit.engine.EngineTestKit.engine;

import java.net.URI;
import java.time.Duration;
import java.time.Instant;
import java.util.List;
import java.util.Map;
import org.junit.jupiter.api.Nested;
import org.junit.jupiter.api.Test;
import org.junit.platform.engine.discovery.DiscoverySelectors;

/** What the extension itself promises. */
@Kafkalite(
        topics = "made",
        partitions = 3,
        settings = "num.partitions=2",
        bootstrapServersProperties = "own.bootstrap.servers")
class KafkaliteExtensionTest {

    @Test
    void topicsAreMadeAndSettingsAreTheBrokers(KafkaliteBroker kafka) {
        assertTrue(kafka.topics().contains("made"));
        assertEquals(0, kafka.recordCount("made"));
        assertEquals(System.getProperty("own.bootstrap.servers"), kafka.bootstrapServers());
        kafka.createTopic("other", 1, Map.of("retention.ms", "1000"));
        kafka.reset();
        assertEquals(List.of(), kafka.topics());
        kafka.createTopic("made", 3);
    }

    @Test
    void theClockIsTurned(BrokerClock clock) {
        Instant before = clock.now();
        clock.advance(Duration.ofHours(1));
        assertFalse(clock.now().isBefore(before.plusSeconds(3600)));
        clock.freeze();
        assertEquals(clock.now(), clock.now());
        clock.resume();
        clock.rate(1);
        clock.set(Instant.parse("2030-01-01T00:00:00Z"));
        assertEquals("2030-01-01", clock.now().toString().substring(0, 10));
    }

    @Test
    void whatTheBrokerRefusesIsToldInItsWords(KafkaliteBroker kafka, Faults faults) {
        var misspelt =
                assertThrows(KafkaliteException.class, () -> faults.on("Prduce").disconnect().once());
        assertTrue(misspelt.getMessage().contains("no API named"), misspelt.getMessage());
        Fault never = faults.on("Produce").topic("a \"quoted\" name").delay(0.5).always();
        assertEquals(1, faults.rules().size());
        var late = assertThrows(KafkaliteException.class, () -> never.waitForHits(1, Duration.ZERO));
        assertTrue(late.getMessage().contains("0 of 1"), late.getMessage());
        never.remove();
        assertTrue(faults.clear().isEmpty());
        assertEquals(0, kafka.lag("nobody", "made"));
    }

    @Test
    void aBrokerThatRunsIsUsed(KafkaliteBroker kafka) {
        try (var own = KafkaliteBroker.start("num.partitions=1")) {
            assertFalse(own.bootstrapServers().equals(kafka.bootstrapServers()));
            System.setProperty("kafkalite.http", own.http() + "?token=not-looked-at");
            try (var used = KafkaliteBroker.attachOrStart(List.of())) {
                assertEquals(own.bootstrapServers(), used.bootstrapServers());
                assertThrows(
                        IllegalStateException.class,
                        () -> KafkaliteBroker.attachOrStart(List.of("num.partitions=2")));
            } finally {
                System.clearProperty("kafkalite.http");
            }
            assertEquals(List.of(), own.topics());
        }
        var nobody = assertThrows(
                KafkaliteException.class, () -> KafkaliteBroker.attach(URI.create("http://127.0.0.1:1")));
        assertTrue(nobody.getMessage().contains("does not answer"));
    }

    @Nested
    class Inside {

        @Test
        void nestedClassesHaveItToo(Faults faults) {
            assertTrue(faults.rules().isEmpty());
        }
    }

    @Test
    void aTestWhoseFaultNeverFiredFails() {
        engine("junit-jupiter")
                .selectors(DiscoverySelectors.selectClass(Forgetful.class))
                .enableImplicitConfigurationParameters(false)
                .execute()
                .testEvents()
                .assertStatistics(events -> events.succeeded(0).failed(1));
    }

    /** Not found by Surefire: run by the test above. */
    @Kafkalite
    static class Forgetful {

        @Test
        void forgets(Faults faults) {
            faults.on("Produce").topic("misspelt").disconnect().once();
        }
    }
}
