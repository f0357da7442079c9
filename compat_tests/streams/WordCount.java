import java.nio.charset.StandardCharsets;
import java.util.Arrays;
import java.util.List;
import java.util.Properties;
import java.util.stream.Collectors;
import java.util.zip.CRC32;
import org.apache.kafka.common.serialization.Serdes;
import org.apache.kafka.streams.KafkaStreams;
import org.apache.kafka.streams.StreamsBuilder;
import org.apache.kafka.streams.errors.StreamsUncaughtExceptionHandler.StreamThreadExceptionResponse;
import org.apache.kafka.streams.kstream.Consumed;
import org.apache.kafka.streams.kstream.Grouped;
import org.apache.kafka.streams.kstream.KStream;
import org.apache.kafka.streams.kstream.Materialized;
import org.apache.kafka.streams.kstream.Produced;

/**
 * Counts words (through a repartition topic) and makes a chain of checksums over the lines of each key, which shows a
 * line lost, repeated or out of its place. Every update goes out, so the updates of a key are the same in every run.
 *
 * <p>Started as WordCount BOOTSTRAP APPLICATION SOURCE COUNTS CHAINS [NAME=VALUE ...]; ends by SIGTERM. Same source
 * for Kafka Streams 3.9 and 4.x.
 */
public final class WordCount {
    private WordCount() { }

    private static List<String> words(String line) {
        return Arrays.stream(line.toLowerCase().split("[^a-z]+")).filter(word -> !word.isEmpty()).collect(Collectors.toList());
    }

    /** The number of lines so far, and a checksum of the chain before and the line. */
    private static String linked(String chain, String line) {
        CRC32 sum = new CRC32();
        sum.update((chain + line).getBytes(StandardCharsets.UTF_8));
        return (Integer.parseInt(chain.substring(0, chain.indexOf(':'))) + 1) + ":" + sum.getValue();
    }

    public static void main(String[] args) throws InterruptedException {
        StreamsBuilder builder = new StreamsBuilder();
        KStream<String, String> lines = builder.stream(args[2], Consumed.with(Serdes.String(), Serdes.String()));
        lines.flatMapValues(WordCount::words)
            .groupBy((key, word) -> word, Grouped.with("words", Serdes.String(), Serdes.String()))
            .count(Materialized.as("counts"))
            .toStream()
            .mapValues(count -> Long.toString(count))
            .to(args[3], Produced.with(Serdes.String(), Serdes.String()));
        lines.groupByKey(Grouped.with("lines", Serdes.String(), Serdes.String()))
            .aggregate(() -> "0:0", (key, line, chain) -> linked(chain, line),
                Materialized.<String, String, org.apache.kafka.streams.state.KeyValueStore<org.apache.kafka.common.utils.Bytes, byte[]>>as("chains")
                    .withKeySerde(Serdes.String()).withValueSerde(Serdes.String()))
            .toStream()
            .to(args[4], Produced.with(Serdes.String(), Serdes.String()));

        Properties config = new Properties();
        config.put("bootstrap.servers", args[0]);
        config.put("application.id", args[1]);
        config.put("processing.guarantee", "exactly_once_v2");
        config.put("statestore.cache.max.bytes", 0);
        config.put("consumer.auto.offset.reset", "earliest");
        for (int i = 5; i < args.length; i++) {
            String[] setting = args[i].split("=", 2);
            config.put(setting[0], setting[1]);
        }
        KafkaStreams streams = new KafkaStreams(builder.build(), config);
        streams.setUncaughtExceptionHandler(failure -> {
            System.out.println("failed: " + failure + ": " + failure.getCause());
            failure.printStackTrace();
            return StreamThreadExceptionResponse.REPLACE_THREAD;
        });
        streams.setStateListener((state, before) -> {
            System.out.println("state: " + state);
            System.out.flush();
        });
        Runtime.getRuntime().addShutdownHook(new Thread(() -> streams.close(java.time.Duration.ofSeconds(20))));
        streams.start();
        Thread.currentThread().join();
    }
}
