/**
 * A witness that shares no code with Pawl: the Java client.
 *
 *   java Witness.java read BOOTSTRAP TOPIC      prints partition TAB key TAB value of all committed records, each
 *                                               text in Base64, - for null; ends where the partitions end now
 *   java Witness.java partition                 reads lines "count TAB key in Base64", prints the partition of each
 */
import java.io.BufferedReader;
import java.io.InputStreamReader;
import java.time.Duration;
import java.util.Base64;
import java.util.List;
import java.util.Map;
import org.apache.kafka.clients.consumer.KafkaConsumer;
import org.apache.kafka.clients.producer.internals.BuiltInPartitioner;
import org.apache.kafka.common.TopicPartition;
import org.apache.kafka.common.serialization.ByteArrayDeserializer;

public class Witness {
  public static void main(String[] args) throws Exception {
    if (args[0].equals("read")) read(args[1], args[2]);
    else partition();
  }

  static void read(String bootstrap, String topic) {
    Map<String, Object> config =
        Map.of("bootstrap.servers", bootstrap, "isolation.level", "read_committed", "auto.offset.reset", "earliest");
    ByteArrayDeserializer bytes = new ByteArrayDeserializer();
    try (KafkaConsumer<byte[], byte[]> consumer = new KafkaConsumer<>(config, bytes, bytes)) {
      List<TopicPartition> all =
          consumer.partitionsFor(topic).stream().map(p -> new TopicPartition(topic, p.partition())).toList();
      consumer.assign(all);
      consumer.seekToBeginning(all);
      Map<TopicPartition, Long> ends = consumer.endOffsets(all);
      while (all.stream().anyMatch(p -> consumer.position(p) < ends.get(p)))
        consumer.poll(Duration.ofMillis(200)).forEach(
            r -> System.out.println(r.partition() + "\t" + text(r.key()) + "\t" + text(r.value())));
    }
  }

  static void partition() throws Exception {
    BufferedReader in = new BufferedReader(new InputStreamReader(System.in));
    for (String line; (line = in.readLine()) != null; ) {
      String[] parts = line.split("\t", -1);
      byte[] key = Base64.getDecoder().decode(parts[1]);
      System.out.println(BuiltInPartitioner.partitionForKey(key, Integer.parseInt(parts[0])));
    }
  }

  static String text(byte[] bytes) {
    return bytes == null ? "-" : Base64.getEncoder().encodeToString(bytes);
  }
}
