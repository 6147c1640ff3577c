package peers;

import java.time.Duration;
import java.util.HashMap;
import java.util.List;
import java.util.Map;
import java.util.function.Consumer;
import org.apache.kafka.clients.consumer.ConsumerRecord;
import org.apache.kafka.clients.consumer.KafkaConsumer;
import org.apache.kafka.common.TopicPartition;
import org.apache.kafka.common.serialization.ByteArrayDeserializer;

/** Reads topics with `read_committed`, without a group. */
final class Records {
    private Records() {}

    /** A consumer at the start of a topic. */
    static KafkaConsumer<byte[], byte[]> from(String bootstrap, String topic) {
        Map<String, Object> settings = new HashMap<>(Map.of("bootstrap.servers", bootstrap, "isolation.level", "read_committed",
            "enable.auto.commit", false, "max.poll.records", 50_000, "max.partition.fetch.bytes", 8 << 20));
        var consumer = new KafkaConsumer<>(settings, new ByteArrayDeserializer(), new ByteArrayDeserializer());
        List<TopicPartition> partitions = consumer.partitionsFor(topic).stream().map(p -> new TopicPartition(topic, p.partition())).toList();
        consumer.assign(partitions);
        consumer.seekToBeginning(partitions);
        return consumer;
    }

    /** Every committed record up to the last stable offsets of now. */
    static void each(String bootstrap, String topic, Consumer<ConsumerRecord<byte[], byte[]>> use) {
        try (var consumer = from(bootstrap, topic)) {
            Map<TopicPartition, Long> ends = consumer.endOffsets(consumer.assignment());
            while (ends.entrySet().stream().anyMatch(end -> consumer.position(end.getKey()) < end.getValue()))
                consumer.poll(Duration.ofMillis(200)).forEach(use);
        }
    }
}
