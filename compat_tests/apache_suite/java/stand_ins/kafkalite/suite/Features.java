package kafkalite.suite;

import java.util.HashMap;
import java.util.List;
import java.util.Map;
import java.util.concurrent.ExecutionException;
import org.apache.kafka.clients.admin.Admin;
import org.apache.kafka.clients.admin.FeatureMetadata;
import org.apache.kafka.clients.admin.FeatureUpdate;
import org.apache.kafka.clients.admin.UpdateFeaturesOptions;
import org.apache.kafka.common.test.KafkaClusterTestKit;
import org.apache.kafka.metadata.bootstrap.BootstrapMetadata;

/** Finalises the feature levels that a test wants, where they are others than a new broker's. */
public final class Features {
    private static final List<String> NAMES =
        List.of("transaction.version", "group.version", "share.version", "streams.version");

    private Features() {
    }

    public static void apply(KafkaClusterTestKit kit, BootstrapMetadata wanted)
        throws ExecutionException, InterruptedException {
        try (Admin admin = kit.admin()) {
            FeatureMetadata found = admin.describeFeatures().featureMetadata().get();
            Map<String, FeatureUpdate> updates = new HashMap<>();
            for (String name : NAMES) {
                short level = wanted.featureLevel(name);
                var range = found.finalizedFeatures().get(name);
                int now = range == null ? 0 : range.maxVersionLevel();
                if (level != now) {
                    updates.put(name, new FeatureUpdate(level, level < now
                        ? FeatureUpdate.UpgradeType.SAFE_DOWNGRADE
                        : FeatureUpdate.UpgradeType.UPGRADE));
                }
            }
            if (!updates.isEmpty()) {
                admin.updateFeatures(updates, new UpdateFeaturesOptions()).all().get();
            }
        }
    }
}
