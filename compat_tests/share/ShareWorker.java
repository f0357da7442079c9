import java.time.Duration;
import java.util.List;
import java.util.Map;
import java.util.Optional;
import java.util.Properties;
import org.apache.kafka.clients.consumer.AcknowledgeType;
import org.apache.kafka.clients.consumer.ConsumerRecord;
import org.apache.kafka.clients.consumer.ConsumerRecords;
import org.apache.kafka.clients.consumer.KafkaShareConsumer;
import org.apache.kafka.common.KafkaException;
import org.apache.kafka.common.TopicIdPartition;
import org.apache.kafka.common.serialization.StringDeserializer;

/**
 * A worker of a queue. A line "got PARTITION OFFSET COUNT VALUE" for each record, then for those
 * whose acknowledgement was answered "accepted ...", "released ..." or "rejected ...".
 *
 * Arguments: bootstrap, group, topic, mode, idle seconds after which it ends, further settings as
 * key=value. Modes: "implicit" acknowledges by polling, "explicit" accepts each record,
 * "releasing" releases each of an even offset at its first delivery, "rejecting" rejects those.
 */
public class ShareWorker {
    public static void main(String[] arguments) {
        Properties settings = new Properties();
        String mode = arguments[3];
        long idleMs = 1000L * Integer.parseInt(arguments[4]);
        settings.put("bootstrap.servers", arguments[0]);
        settings.put("group.id", arguments[1]);
        settings.put("key.deserializer", StringDeserializer.class.getName());
        settings.put("value.deserializer", StringDeserializer.class.getName());
        settings.put("share.acknowledgement.mode", mode.equals("implicit") ? "implicit" : "explicit");
        for (int index = 5; index < arguments.length; index++) {
            String[] pair = arguments[index].split("=", 2);
            settings.put(pair[0], pair[1]);
        }
        try (KafkaShareConsumer<String, String> consumer = new KafkaShareConsumer<>(settings)) {
            consumer.subscribe(List.of(arguments[2]));
            long lastMs = System.currentTimeMillis();
            while (System.currentTimeMillis() - lastMs < idleMs) {
                ConsumerRecords<String, String> records = consumer.poll(Duration.ofMillis(200));
                if (records.isEmpty()) {
                    continue;
                }
                lastMs = System.currentTimeMillis();
                StringBuilder done = new StringBuilder();
                for (ConsumerRecord<String, String> record : records) {
                    System.out.println("got " + text(record));
                    if (!mode.equals("implicit")) {
                        AcknowledgeType type = typeOf(mode, record);
                        consumer.acknowledge(record, type);
                        String word = type == AcknowledgeType.ACCEPT ? "accepted "
                            : type == AcknowledgeType.RELEASE ? "released " : "rejected ";
                        done.append(word).append(text(record)).append('\n');
                    }
                }
                System.out.flush();
                Map<TopicIdPartition, Optional<KafkaException>> results = consumer.commitSync();
                boolean failed = results.values().stream().anyMatch(Optional::isPresent);
                if (failed) {
                    System.out.println("failed " + results);
                } else {
                    System.out.print(done);
                }
                System.out.flush();
            }
        }
        System.out.println("done");
    }

    private static AcknowledgeType typeOf(String mode, ConsumerRecord<String, String> record) {
        boolean isChosen = record.offset() % 2 == 0 && record.deliveryCount().orElse((short) 1) == 1;
        if (isChosen && mode.equals("releasing")) {
            return AcknowledgeType.RELEASE;
        }
        return isChosen && mode.equals("rejecting") ? AcknowledgeType.REJECT : AcknowledgeType.ACCEPT;
    }

    private static String text(ConsumerRecord<String, String> record) {
        return record.partition() + " " + record.offset() + " "
            + record.deliveryCount().orElse((short) 0) + " " + record.value();
    }
}
