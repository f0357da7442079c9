import com.fasterxml.jackson.databind.JsonNode;
import com.fasterxml.jackson.databind.ObjectMapper;
import com.fasterxml.jackson.databind.node.ArrayNode;
import com.fasterxml.jackson.databind.node.ObjectNode;
import java.time.Duration;
import java.util.ArrayList;
import java.util.Arrays;
import java.util.Base64;
import java.util.HashMap;
import java.util.HashSet;
import java.util.List;
import java.util.Map;
import java.util.Properties;
import java.util.Set;
import java.util.concurrent.ExecutionException;
import java.util.concurrent.Future;
import java.util.concurrent.TimeUnit;
import org.apache.kafka.clients.consumer.*;
import org.apache.kafka.clients.producer.*;
import org.apache.kafka.common.KafkaException;
import org.apache.kafka.common.TopicPartition;
import org.apache.kafka.common.errors.ApiException;
import org.apache.kafka.common.serialization.ByteArrayDeserializer;
import org.apache.kafka.common.serialization.ByteArraySerializer;

/** Transactions with Apache's Java client: a part of its driver. V1 of the protocol in 3.9, V2 in 4.x. */
final class Transactions {
    private static final ObjectMapper JSON = new ObjectMapper();

    private final String bootstrap;
    private final Map<String, KafkaProducer<byte[], byte[]>> producers = new HashMap<>();

    Transactions(String bootstrap) {
        this.bootstrap = bootstrap;
    }

    ObjectNode handle(String op, JsonNode request) throws Exception {
        try {
            return carryOut(op, request);
        } catch (KafkaException failure) {
            // What a producer that has failed says to everything; the cause is what made it fail.
            throw failure.getCause() instanceof ApiException ? (ApiException) failure.getCause() : failure;
        }
    }

    private ObjectNode carryOut(String op, JsonNode request) throws Exception {
        switch (op) {
            case "txn_open": return open(request);
            case "txn_begin": producer(request).beginTransaction(); return JSON.createObjectNode();
            case "txn_send": return JSON.createObjectNode().set("results", send(producer(request), request.get("topic").asText(), request.get("records")));
            case "txn_transform": return transform(request);
            case "txn_commit": producer(request).commitTransaction(); return JSON.createObjectNode();
            case "txn_abort": producer(request).abortTransaction(); return JSON.createObjectNode();
            case "txn_close": return close(request);
            case "read_until": return readUntil(request);
            default: throw new UnsupportedOperationException(op);
        }
    }

    private KafkaProducer<byte[], byte[]> producer(JsonNode request) {
        return producers.get(request.get("producer").asText());
    }

    private static byte[] bytes(JsonNode value) {
        return value == null || value.isNull() ? null : Base64.getDecoder().decode(value.asText());
    }

    private ObjectNode open(JsonNode request) {
        Properties config = Driver.security();
        config.put("bootstrap.servers", bootstrap);
        config.put("transactional.id", request.get("transactional_id").asText());
        int timeoutMs = request.has("timeout_ms") ? request.get("timeout_ms").asInt() : 60000;
        config.put("transaction.timeout.ms", timeoutMs);
        config.put("max.block.ms", 30000);
        config.put("request.timeout.ms", request.has("request_timeout_ms") ? request.get("request_timeout_ms").asInt() : 20000);
        config.put("delivery.timeout.ms", 30000);
        config.put("retry.backoff.ms", 20);
        KafkaProducer<byte[], byte[]> producer = new KafkaProducer<>(config, new ByteArraySerializer(), new ByteArraySerializer());
        try {
            producer.initTransactions();
        } catch (RuntimeException refused) {
            producer.close(Duration.ZERO);
            throw refused;
        }
        producers.put(request.get("producer").asText(), producer);
        return JSON.createObjectNode();
    }

    private ObjectNode close(JsonNode request) {
        producers.remove(request.get("producer").asText()).close(Duration.ZERO);
        return JSON.createObjectNode();
    }

    private static ArrayNode send(Producer<byte[], byte[]> producer, String topic, JsonNode records) throws Exception {
        List<Future<RecordMetadata>> sent = new ArrayList<>();
        for (JsonNode record : records) {
            Integer partition = record.hasNonNull("partition") ? (Integer) record.get("partition").asInt() : null;
            sent.add(producer.send(new ProducerRecord<>(topic, partition, bytes(record.get("key")), bytes(record.get("value")))));
        }
        producer.flush();
        ArrayNode results = JSON.createArrayNode();
        for (Future<RecordMetadata> future : sent) {
            try {
                RecordMetadata metadata = future.get(30, TimeUnit.SECONDS);
                results.addObject().put("partition", metadata.partition()).put("offset", metadata.offset());
            } catch (ExecutionException failure) {
                results.addObject().set("error", Driver.error(failure));
            }
        }
        return results;
    }

    private Properties consumerConfig(String isolation) {
        Properties config = Driver.security();
        config.put("bootstrap.servers", bootstrap);
        config.put("enable.auto.commit", false);
        config.put("auto.offset.reset", "earliest");
        config.put("isolation.level", isolation);
        config.put("fetch.max.wait.ms", 100);
        return config;
    }

    private ObjectNode transform(JsonNode request) throws Exception {
        int count = request.get("count").asInt();
        Properties config = consumerConfig("read_committed");
        config.put("group.id", request.get("group").asText());
        config.put("max.poll.records", count);
        ArrayNode records = JSON.createArrayNode();
        ArrayNode outputs = JSON.createArrayNode();
        Map<TopicPartition, OffsetAndMetadata> offsets = new HashMap<>();
        try (Consumer<byte[], byte[]> consumer = new KafkaConsumer<>(config, new ByteArrayDeserializer(), new ByteArrayDeserializer())) {
            consumer.subscribe(List.of(request.get("source").asText()));
            long deadline = System.nanoTime() + 20_000_000_000L;
            while (records.size() < count) {
                if (System.nanoTime() > deadline) {
                    throw new org.apache.kafka.common.errors.TimeoutException(records.size() + " of " + count + " records");
                }
                for (ConsumerRecord<byte[], byte[]> record : consumer.poll(Duration.ofMillis(100))) {
                    if (records.size() < count) {
                        records.add(Driver.record(record));
                        offsets.put(new TopicPartition(record.topic(), record.partition()), new OffsetAndMetadata(record.offset() + 1));
                        byte[] seen = ("seen " + new String(record.value(), "ISO-8859-1")).getBytes("ISO-8859-1");
                        outputs.addObject().put("partition", record.partition()).put("key", record.key()).put("value", seen);
                    }
                }
            }
            KafkaProducer<byte[], byte[]> producer = producer(request);
            producer.beginTransaction();
            send(producer, request.get("target").asText(), JSON.readTree(outputs.toString()));
            producer.sendOffsetsToTransaction(offsets, consumer.groupMetadata());
        }
        return JSON.createObjectNode().set("records", records);
    }

    private ObjectNode readUntil(JsonNode request) {
        Set<TopicPartition> missing = new HashSet<>();
        request.get("partitions").forEach(index -> missing.add(new TopicPartition(request.get("topic").asText(), index.asInt())));
        byte[] last = bytes(request.get("last"));
        int timeoutMs = request.has("timeout_ms") ? request.get("timeout_ms").asInt() : 20000;
        long deadline = System.nanoTime() + timeoutMs * 1_000_000L;
        ArrayNode records = JSON.createArrayNode();
        Properties config = consumerConfig(request.get("isolation").asText());
        try (Consumer<byte[], byte[]> consumer = new KafkaConsumer<>(config, new ByteArrayDeserializer(), new ByteArrayDeserializer())) {
            consumer.assign(missing);
            consumer.seekToBeginning(missing);
            while (!missing.isEmpty() && System.nanoTime() < deadline) {
                for (ConsumerRecord<byte[], byte[]> record : consumer.poll(Duration.ofMillis(100))) {
                    TopicPartition partition = new TopicPartition(record.topic(), record.partition());
                    if (missing.contains(partition)) {
                        records.add(Driver.record(record));
                        if (Arrays.equals(record.value(), last)) {
                            missing.remove(partition);
                        }
                    }
                }
            }
        }
        ObjectNode reply = JSON.createObjectNode();
        reply.set("records", records);
        return reply.put("reached", missing.isEmpty());
    }
}
