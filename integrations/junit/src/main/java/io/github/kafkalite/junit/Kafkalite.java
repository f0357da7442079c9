package io.github.kafkalite.junit;

import java.lang.annotation.Documented;
import java.lang.annotation.ElementType;
import java.lang.annotation.Inherited;
import java.lang.annotation.Retention;
import java.lang.annotation.RetentionPolicy;
import java.lang.annotation.Target;
import org.junit.jupiter.api.extension.ExtendWith;

/**
 * Runs the tests of a class with a kafkalite broker.
 *
 * <p>The first class that asks for it starts the broker, in a third of a second; the others of this
 * JVM share it, and it ends with the JVM. Spring finds it by {@code spring.kafka.bootstrap-servers}.
 * Tests get it as a parameter: {@link KafkaliteBroker}, {@link Faults} or {@link BrokerClock}.
 *
 * <p>After each test its faults are removed and the clock is that of the machine again; topics stay.
 */
@Target(ElementType.TYPE)
@Retention(RetentionPolicy.RUNTIME)
@Documented
@Inherited
@ExtendWith(KafkaliteExtension.class)
public @interface Kafkalite {

    /** Topics that are made before the tests of the class, unless they are there. */
    String[] topics() default {};

    /** How many partitions these topics have. */
    int partitions() default 1;

    /** Broker settings by Kafka's names, such as {@code "num.partitions=3"}; a broker for each set. */
    String[] settings() default {};

    /** System properties that are set to the broker's address. */
    String[] bootstrapServersProperties() default {
        "spring.kafka.bootstrap-servers", "kafka.bootstrap.servers"
    };

    /** Whether a test may end with a fault that never fired; otherwise it fails. */
    boolean allowUnfiredFaults() default false;
}
