package io.github.kafkalite.junit;

import java.util.List;
import java.util.Map;
import java.util.concurrent.ConcurrentHashMap;
import org.junit.jupiter.api.extension.AfterEachCallback;
import org.junit.jupiter.api.extension.BeforeAllCallback;
import org.junit.jupiter.api.extension.ExtensionContext;
import org.junit.jupiter.api.extension.ExtensionContext.Namespace;
import org.junit.jupiter.api.extension.ParameterContext;
import org.junit.jupiter.api.extension.ParameterResolver;
import org.junit.platform.commons.support.AnnotationSupport;

/** What {@link Kafkalite} does. */
public final class KafkaliteExtension
        implements BeforeAllCallback, AfterEachCallback, ParameterResolver {

    private static final Namespace NAMESPACE = Namespace.create(KafkaliteExtension.class);

    /** By their settings. They end with this JVM: other tests' contexts may still use them. */
    private static final Map<List<String>, KafkaliteBroker> BROKERS = new ConcurrentHashMap<>();

    @Override
    public void beforeAll(ExtensionContext context) {
        Kafkalite wanted = annotation(context);
        KafkaliteBroker broker =
                BROKERS.computeIfAbsent(List.of(wanted.settings()), KafkaliteExtension::start);
        context.getStore(NAMESPACE).put(KafkaliteBroker.class, broker);
        for (String property : wanted.bootstrapServersProperties()) {
            System.setProperty(property, broker.bootstrapServers());
        }
        List<String> present = broker.topics();
        for (String topic : wanted.topics()) {
            if (!present.contains(topic)) {
                broker.createTopic(topic, wanted.partitions());
            }
        }
    }

    @Override
    public void afterEach(ExtensionContext context) {
        KafkaliteBroker broker = broker(context);
        List<Fault> unfired = broker.faults().clear().stream().filter(f -> f.lastHits() == 0).toList();
        broker.clock().reset();
        boolean passed = context.getExecutionException().isEmpty();
        if (passed && !unfired.isEmpty() && !annotation(context).allowUnfiredFaults()) {
            // A misspelt topic would otherwise make a test that tests nothing.
            throw new AssertionError("a fault never fired: " + unfired);
        }
    }

    @Override
    public boolean supportsParameter(ParameterContext parameter, ExtensionContext context) {
        Class<?> type = parameter.getParameter().getType();
        return type == KafkaliteBroker.class || type == Faults.class || type == BrokerClock.class;
    }

    @Override
    public Object resolveParameter(ParameterContext parameter, ExtensionContext context) {
        KafkaliteBroker broker = broker(context);
        Class<?> type = parameter.getParameter().getType();
        return type == Faults.class
                ? broker.faults()
                : type == BrokerClock.class ? broker.clock() : broker;
    }

    private static KafkaliteBroker broker(ExtensionContext context) {
        return context.getStore(NAMESPACE).get(KafkaliteBroker.class, KafkaliteBroker.class);
    }

    private static Kafkalite annotation(ExtensionContext context) {
        // A @Nested class is tested with what the class around it says.
        for (Class<?> type = context.getRequiredTestClass(); type != null; type = type.getEnclosingClass()) {
            var found = AnnotationSupport.findAnnotation(type, Kafkalite.class);
            if (found.isPresent()) {
                return found.get();
            }
        }
        throw new IllegalStateException(context.getRequiredTestClass() + " has no @Kafkalite");
    }

    private static KafkaliteBroker start(List<String> settings) {
        return KafkaliteBroker.attachOrStart(settings);
    }
}
