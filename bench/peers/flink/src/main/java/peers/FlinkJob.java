package peers;

import java.time.Duration;
import org.apache.flink.api.common.eventtime.WatermarkStrategy;
import org.apache.flink.api.common.functions.AggregateFunction;
import org.apache.flink.api.common.functions.OpenContext;
import org.apache.flink.api.common.state.ValueState;
import org.apache.flink.api.common.state.ValueStateDescriptor;
import org.apache.flink.api.common.typeinfo.TypeInformation;
import org.apache.flink.api.common.typeinfo.Types;
import org.apache.flink.api.java.tuple.Tuple2;
import org.apache.flink.configuration.Configuration;
import org.apache.flink.connector.base.DeliveryGuarantee;
import org.apache.flink.connector.kafka.sink.KafkaRecordSerializationSchema;
import org.apache.flink.connector.kafka.sink.KafkaSink;
import org.apache.flink.connector.kafka.source.KafkaSource;
import org.apache.flink.connector.kafka.source.enumerator.initializer.OffsetsInitializer;
import org.apache.flink.connector.kafka.source.reader.deserializer.KafkaRecordDeserializationSchema;
import org.apache.flink.streaming.api.datastream.DataStream;
import org.apache.flink.streaming.api.environment.StreamExecutionEnvironment;
import org.apache.flink.streaming.api.functions.KeyedProcessFunction;
import org.apache.flink.streaming.api.functions.windowing.ProcessWindowFunction;
import org.apache.flink.streaming.api.windowing.assigners.TumblingEventTimeWindows;
import org.apache.flink.streaming.api.windowing.windows.TimeWindow;
import org.apache.flink.util.Collector;
import org.apache.kafka.clients.consumer.ConsumerRecord;
import org.apache.kafka.clients.producer.ProducerRecord;

/**
 * Flink in one process, with an exactly-once sink and state on the heap.
 * Arguments: job in out id bootstrap intervalMs parallelism expectedIn expectedOut directory [checkpoint].
 */
public final class FlinkJob {
    private static final TypeInformation<Tuple2<byte[], byte[]>> ROW =
        Types.TUPLE(Types.PRIMITIVE_ARRAY(Types.BYTE), Types.PRIMITIVE_ARRAY(Types.BYTE));
    private static final TypeInformation<Tuple2<Long, Long>> TOTAL = Types.TUPLE(Types.LONG, Types.LONG);

    public static void main(String[] args) throws Exception {
        String job = args[0], in = args[1], out = args[2], id = args[3], bootstrap = args[4];
        int parallelism = Integer.parseInt(args[6]);
        Progress.expect(Long.parseLong(args[7]), Long.parseLong(args[8]));
        var environment = StreamExecutionEnvironment.createLocalEnvironment(parallelism, settings(args, parallelism));
        DataStream<Tuple2<byte[], byte[]>> rows = switch (job) {
            case "passthrough" -> environment
                .fromSource(source(in, id, bootstrap, new Bids()), WatermarkStrategy.noWatermarks(), "in").uid("in")
                .map(FlinkJob::converted).returns(ROW);
            case "count" -> environment
                .fromSource(source(in, id, bootstrap, new Bids()), eventTime(), "in").uid("in")
                .keyBy(bid -> bid.auction)
                .window(TumblingEventTimeWindows.of(Duration.ofMillis(Bid.WINDOW_MS)))
                .aggregate(new Total(), new Fired(), TOTAL, TOTAL, ROW).uid("count");
            case "wordcount" -> environment
                .fromSource(source(in, id, bootstrap, new Lines()), WatermarkStrategy.noWatermarks(), "in").uid("in")
                .flatMap(FlinkJob::words).returns(Types.STRING)
                .keyBy(word -> word)
                .process(new Count()).returns(ROW).uid("count");
            default -> throw new IllegalArgumentException(job);
        };
        rows.sinkTo(sink(out, id, bootstrap)).uid("out");
        environment.executeAsync(job).getJobExecutionResult().whenComplete((result, error) -> {
            if (error != null) error.printStackTrace();
            Runtime.getRuntime().halt(3);
        });
        Thread.sleep(Long.MAX_VALUE);
    }

    private static Configuration settings(String[] args, int parallelism) {
        Configuration settings = new Configuration();
        settings.setString("state.backend.type", "hashmap");
        settings.setString("execution.checkpointing.interval", args[5] + " ms");
        settings.setString("execution.checkpointing.mode", "EXACTLY_ONCE");
        settings.setString("execution.checkpointing.storage", "filesystem");
        settings.setString("execution.checkpointing.dir", "file://" + args[9] + "/checkpoints");
        settings.setString("execution.checkpointing.externalized-checkpoint-retention", "RETAIN_ON_CANCELLATION");
        settings.setString("rest.bind-port", "0");
        settings.setString("taskmanager.numberOfTaskSlots", Integer.toString(parallelism));
        settings.setString("pipeline.object-reuse", "true");
        if (args.length > 10) settings.setString("execution.state-recovery.path", args[10]);
        return settings;
    }

    private static <T> KafkaSource<T> source(String topic, String id, String bootstrap, KafkaRecordDeserializationSchema<T> schema) {
        return KafkaSource.<T>builder()
            .setBootstrapServers(bootstrap)
            .setTopics(topic)
            .setGroupId(id)
            .setStartingOffsets(OffsetsInitializer.earliest())
            .setDeserializer(schema)
            .build();
    }

    private static KafkaSink<Tuple2<byte[], byte[]>> sink(String topic, String id, String bootstrap) {
        return KafkaSink.<Tuple2<byte[], byte[]>>builder()
            .setBootstrapServers(bootstrap)
            .setDeliveryGuarantee(DeliveryGuarantee.EXACTLY_ONCE)
            .setTransactionalIdPrefix(id)
            // Its default of an hour exceeds what brokers allow.
            .setProperty("transaction.timeout.ms", "600000")
            .setRecordSerializer(new Rows(topic))
            .build();
    }

    private static WatermarkStrategy<Bid> eventTime() {
        return WatermarkStrategy.<Bid>forMonotonousTimestamps().withTimestampAssigner((bid, timestamp) -> bid.ts);
    }

    private static Tuple2<byte[], byte[]> converted(Bid bid) {
        var row = Tuple2.of(Bid.ascii(Integer.toString(bid.auction)), bid.encodeConverted());
        Progress.seen();
        return row;
    }

    private static void words(String line, Collector<String> words) {
        for (String word : line.split(" ")) words.collect(word);
    }

    private static final class Bids implements KafkaRecordDeserializationSchema<Bid> {
        @Override
        public void deserialize(ConsumerRecord<byte[], byte[]> record, Collector<Bid> bids) {
            Progress.source();
            bids.collect(Bid.decode(record.value()));
        }

        @Override
        public TypeInformation<Bid> getProducedType() {
            return Types.POJO(Bid.class);
        }
    }

    private static final class Lines implements KafkaRecordDeserializationSchema<String> {
        @Override
        public void deserialize(ConsumerRecord<byte[], byte[]> record, Collector<String> lines) {
            Progress.source();
            lines.collect(Bid.text(record.value()));
        }

        @Override
        public TypeInformation<String> getProducedType() {
            return Types.STRING;
        }
    }

    private static final class Rows implements KafkaRecordSerializationSchema<Tuple2<byte[], byte[]>> {
        private final String topic;

        Rows(String topic) {
            this.topic = topic;
        }

        @Override
        public ProducerRecord<byte[], byte[]> serialize(Tuple2<byte[], byte[]> row, KafkaSinkContext context, Long timestamp) {
            return new ProducerRecord<>(topic, null, timestamp != null && timestamp > 0 ? timestamp : null, row.f0, row.f1);
        }
    }

    private static final class Count extends KeyedProcessFunction<String, String, Tuple2<byte[], byte[]>> {
        private transient ValueState<Long> count;

        @Override
        public void open(OpenContext context) {
            count = getRuntimeContext().getState(new ValueStateDescriptor<>("count", Types.LONG));
        }

        @Override
        public void processElement(String word, Context context, Collector<Tuple2<byte[], byte[]>> rows) throws Exception {
            Long before = count.value();
            long now = before == null ? 1 : before + 1;
            count.update(now);
            rows.collect(Tuple2.of(Bid.ascii(word), Bid.ascii(Long.toString(now))));
            Progress.seen();
        }
    }

    private static final class Total implements AggregateFunction<Bid, Tuple2<Long, Long>, Tuple2<Long, Long>> {
        @Override
        public Tuple2<Long, Long> createAccumulator() {
            return Tuple2.of(0L, 0L);
        }

        @Override
        public Tuple2<Long, Long> add(Bid bid, Tuple2<Long, Long> total) {
            total.f0++;
            total.f1 += bid.price;
            Progress.seen();
            return total;
        }

        @Override
        public Tuple2<Long, Long> getResult(Tuple2<Long, Long> total) {
            return total;
        }

        @Override
        public Tuple2<Long, Long> merge(Tuple2<Long, Long> one, Tuple2<Long, Long> other) {
            return Tuple2.of(one.f0 + other.f0, one.f1 + other.f1);
        }
    }

    private static final class Fired extends ProcessWindowFunction<Tuple2<Long, Long>, Tuple2<byte[], byte[]>, Integer, TimeWindow> {
        @Override
        public void process(Integer auction, Context context, Iterable<Tuple2<Long, Long>> totals, Collector<Tuple2<byte[], byte[]>> rows) {
            for (var total : totals) {
                rows.collect(Tuple2.of(Bid.windowKey(auction, context.window().getStart()), Bid.windowValue(total.f0, total.f1)));
                Progress.emitted();
            }
        }
    }
}
