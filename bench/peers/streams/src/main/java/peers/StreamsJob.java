package peers;

import java.nio.ByteBuffer;
import java.time.Duration;
import java.util.ArrayList;
import java.util.List;
import java.util.Properties;
import org.apache.kafka.clients.consumer.ConsumerConfig;
import org.apache.kafka.clients.producer.ProducerConfig;
import org.apache.kafka.common.serialization.Serde;
import org.apache.kafka.common.serialization.Serdes;
import org.apache.kafka.common.utils.Bytes;
import org.apache.kafka.streams.KafkaStreams;
import org.apache.kafka.streams.KeyValue;
import org.apache.kafka.streams.StreamsBuilder;
import org.apache.kafka.streams.StreamsConfig;
import org.apache.kafka.streams.errors.StreamsUncaughtExceptionHandler.StreamThreadExceptionResponse;
import org.apache.kafka.streams.kstream.Consumed;
import org.apache.kafka.streams.kstream.EmitStrategy;
import org.apache.kafka.streams.kstream.Grouped;
import org.apache.kafka.streams.kstream.KStream;
import org.apache.kafka.streams.kstream.Materialized;
import org.apache.kafka.streams.kstream.Produced;
import org.apache.kafka.streams.kstream.Repartitioned;
import org.apache.kafka.streams.kstream.TimeWindows;
import org.apache.kafka.streams.processor.api.FixedKeyProcessor;
import org.apache.kafka.streams.processor.api.FixedKeyProcessorContext;
import org.apache.kafka.streams.processor.api.FixedKeyRecord;
import org.apache.kafka.streams.state.KeyValueStore;
import org.apache.kafka.streams.state.WindowStore;

/** Kafka Streams with exactly-once v2. Arguments: job in out id bootstrap intervalMs threads expectedIn expectedOut directory. */
public final class StreamsJob {
    private static final Serde<byte[]> RAW = Serdes.ByteArray();
    private static final Serde<String> TEXT = Serdes.String();

    public static void main(String[] args) throws Exception {
        String job = args[0], in = args[1], out = args[2];
        Progress.expect(Long.parseLong(args[7]), Long.parseLong(args[8]));
        StreamsBuilder builder = new StreamsBuilder();
        KStream<byte[], byte[]> source = builder.stream(in, Consumed.with(RAW, RAW));
        switch (job) {
            case "passthrough" -> passthrough(source).to(out, Produced.with(RAW, RAW));
            case "count" -> count(source).to(out, Produced.with(RAW, RAW));
            case "wordcount" -> wordcount(source).to(out, Produced.with(TEXT, RAW));
            default -> throw new IllegalArgumentException(job);
        }
        KafkaStreams streams = new KafkaStreams(builder.build(), settings(args));
        streams.setUncaughtExceptionHandler(error -> {
            error.printStackTrace();
            return StreamThreadExceptionResponse.SHUTDOWN_CLIENT;
        });
        Runtime.getRuntime().addShutdownHook(new Thread(() -> streams.close(Duration.ofSeconds(10))));
        streams.start();
        Thread.sleep(Long.MAX_VALUE);
    }

    private static Properties settings(String[] args) {
        long intervalMs = Long.parseLong(args[5]);
        Properties settings = new Properties();
        settings.put(StreamsConfig.APPLICATION_ID_CONFIG, args[3]);
        settings.put(StreamsConfig.BOOTSTRAP_SERVERS_CONFIG, args[4]);
        settings.put(StreamsConfig.PROCESSING_GUARANTEE_CONFIG, StreamsConfig.EXACTLY_ONCE_V2);
        settings.put(StreamsConfig.COMMIT_INTERVAL_MS_CONFIG, intervalMs);
        settings.put(StreamsConfig.NUM_STREAM_THREADS_CONFIG, args[6]);
        settings.put(StreamsConfig.STATE_DIR_CONFIG, args[9] + "/state");
        settings.put(StreamsConfig.REPLICATION_FACTOR_CONFIG, 1);
        settings.put(ConsumerConfig.AUTO_OFFSET_RESET_CONFIG, "earliest");
        // Its default of 10 s must exceed the interval.
        if (intervalMs >= 10_000) settings.put(StreamsConfig.producerPrefix(ProducerConfig.TRANSACTION_TIMEOUT_CONFIG), 60_000);
        // Closed windows are emitted at once, not at most once a second.
        settings.put("__emit.interval.ms.kstreams.windowed.aggregation__", 0L);
        // Static membership, so that a restart after a kill need not wait for the session to time out.
        settings.put(StreamsConfig.consumerPrefix(ConsumerConfig.GROUP_INSTANCE_ID_CONFIG), "bench");
        return settings;
    }

    private static KStream<byte[], byte[]> passthrough(KStream<byte[], byte[]> bids) {
        return bids.mapValues(value -> {
            Progress.source();
            byte[] converted = Bid.decode(value).encodeConverted();
            Progress.seen();
            return converted;
        });
    }

    /** The key of the input is the auction already, so nothing is repartitioned. */
    private static KStream<byte[], byte[]> count(KStream<byte[], byte[]> bids) {
        return bids
            .mapValues(value -> {
                Progress.source();
                Bid bid = Bid.decode(value);
                Progress.seen();
                return bid;
            })
            .groupByKey(Grouped.with(RAW, null))
            .windowedBy(TimeWindows.ofSizeWithNoGrace(Duration.ofMillis(Bid.WINDOW_MS)))
            .emitStrategy(EmitStrategy.onWindowClose())
            .aggregate(() -> new long[2], (key, bid, total) -> {
                total[0]++;
                total[1] += bid.price;
                return total;
            }, Materialized.<byte[], long[], WindowStore<Bytes, byte[]>>as("totals")
                .withKeySerde(RAW).withValueSerde(pairs()).withRetention(Duration.ofSeconds(30)))
            .toStream()
            .map((key, total) -> {
                Progress.emitted();
                byte[] name = Bid.windowKey(Integer.parseInt(Bid.text(key.key())), key.window().start());
                return KeyValue.pair(name, Bid.windowValue(total[0], total[1]));
            });
    }

    private static KStream<String, byte[]> wordcount(KStream<byte[], byte[]> lines) {
        return lines
            .flatMap((key, line) -> {
                Progress.source();
                List<KeyValue<String, byte[]>> words = new ArrayList<>(8);
                for (String word : Bid.text(line).split(" ")) words.add(KeyValue.pair(word, new byte[0]));
                return words;
            })
            .repartition(Repartitioned.with(TEXT, RAW).withName("words"))
            .processValues(Seen::new)
            .groupByKey(Grouped.with(TEXT, RAW))
            .count(Materialized.<String, Long, KeyValueStore<Bytes, byte[]>>as("counts").withKeySerde(TEXT).withValueSerde(Serdes.Long()))
            .toStream()
            .mapValues(count -> Bid.ascii(Long.toString(count)));
    }

    private static Serde<long[]> pairs() {
        return Serdes.serdeFrom(
            (topic, pair) -> pair == null ? null : ByteBuffer.allocate(16).putLong(pair[0]).putLong(pair[1]).array(),
            (topic, bytes) -> bytes == null ? null : new long[] {ByteBuffer.wrap(bytes).getLong(), ByteBuffer.wrap(bytes).getLong(8)});
    }

    /** Notes what was read of the repartition topic. */
    private static final class Seen implements FixedKeyProcessor<String, byte[], byte[]> {
        private FixedKeyProcessorContext<String, byte[]> context;
        private long[] offset;

        @Override
        public void init(FixedKeyProcessorContext<String, byte[]> context) {
            this.context = context;
        }

        @Override
        public void process(FixedKeyRecord<String, byte[]> word) {
            var at = context.recordMetadata().orElseThrow();
            if (offset == null) offset = Progress.internal(at.topic() + "-" + at.partition());
            offset[0] = at.offset() + 1;
            Progress.seen();
            context.forward(word);
        }
    }
}
