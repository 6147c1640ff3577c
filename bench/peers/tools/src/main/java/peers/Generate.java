package peers;

import java.util.Arrays;
import java.util.HashMap;
import java.util.HashSet;
import java.util.List;
import java.util.Map;
import java.util.Set;
import java.util.SplittableRandom;
import org.apache.kafka.clients.admin.Admin;
import org.apache.kafka.clients.admin.NewTopic;
import org.apache.kafka.clients.producer.KafkaProducer;
import org.apache.kafka.clients.producer.ProducerRecord;
import org.apache.kafka.common.serialization.ByteArraySerializer;

/**
 * Fills a topic with bids or lines: the same ones each time, or paced with the time of day when a rate is given.
 *
 * Arguments: bids|lines records bootstrap topic [recordsPerSecond]. Prints, as JSON, how many records each job's last
 * stage sees and how many windows there are; a topic that is filled already is left as it is. Topics keep everything:
 * the event times are old, and retention by time would delete them.
 */
public final class Generate {
    private static final int PARTITIONS = 4;
    private static final int AUCTIONS = 1000;
    private static final int WORDS = 10_000;
    private static final int BIDS_PER_SECOND = 5000;
    private static final long EPOCH_MS = 1_790_000_000_000L;

    private final SplittableRandom random = new SplittableRandom(42);
    private final Set<Long> windows = new HashSet<>();
    private final double[] popularity;

    private Generate(int choices) {
        popularity = zipf(choices);
    }

    public static void main(String[] args) throws Exception {
        boolean lines = args[0].equals("lines");
        long records = Long.parseLong(args[1]);
        String topic = args[3];
        long rate = args.length > 4 ? Long.parseLong(args[4]) : 0;
        boolean create = create(args[2], topic);
        Generate source = new Generate(lines ? WORDS : AUCTIONS);
        long seen = records;
        try (var producer = new KafkaProducer<>(settings(args[2], rate), new ByteArraySerializer(), new ByteArraySerializer())) {
            long start = System.currentTimeMillis();
            for (long i = 0; i < records; i++) {
                long ts = rate > 0 ? due(start + i * 1000 / rate) : EPOCH_MS + i * 1000 / BIDS_PER_SECOND;
                var record = lines ? source.line(topic, i, ts) : source.bid(topic, i, ts);
                if (create || rate > 0) producer.send(record);
            }
            if (!lines && rate == 0) {
                long end = EPOCH_MS + records * 1000 / BIDS_PER_SECOND + 3_600_000;
                for (int partition = 0; partition < PARTITIONS && create; partition++) producer.send(closing(topic, partition, records, end));
                seen += PARTITIONS;
            }
            producer.flush();
        }
        System.out.printf("{\"records\":%d,\"passthrough\":%d,\"count\":%d,\"windows\":%d,\"wordcount\":%d}%n",
            records, seen, seen, source.windows.size(), 8 * records);
    }

    /** False when the topic is there already. */
    private static boolean create(String bootstrap, String topic) throws Exception {
        try (Admin admin = Admin.create(Map.of("bootstrap.servers", bootstrap))) {
            if (admin.listTopics().names().get().contains(topic)) return false;
            admin.createTopics(List.of(new NewTopic(topic, PARTITIONS, (short) 1).configs(Map.of("retention.ms", "-1")))).all().get();
            return true;
        }
    }

    private static Map<String, Object> settings(String bootstrap, long rate) {
        return new HashMap<>(Map.of("bootstrap.servers", bootstrap, "acks", "all", "batch.size", 262_144,
            "linger.ms", rate > 0 ? 1 : 20, "buffer.memory", 128L << 20));
    }

    private static long due(long atMs) throws InterruptedException {
        long now;
        while ((now = System.currentTimeMillis()) < atMs) Thread.sleep(1);
        return now;
    }

    private ProducerRecord<byte[], byte[]> line(String topic, long index, long ts) {
        StringBuilder line = new StringBuilder(80);
        for (int i = 0; i < 8; i++) {
            int word = choose();
            if (i > 0) line.append(' ');
            line.append((char) ('a' + word % 26)).append("word").append(word);
        }
        return new ProducerRecord<>(topic, (int) (index % PARTITIONS), ts, null, Bid.ascii(line.toString()));
    }

    /** The bidder is unique, so that every loss and every repetition shows. */
    private ProducerRecord<byte[], byte[]> bid(String topic, long index, long ts) {
        Bid bid = new Bid();
        bid.auction = choose();
        bid.bidder = (int) index;
        bid.price = random.nextInt(100, 1_000_000);
        bid.channel = "channel-" + random.nextInt(1000) + "-abcdefghijklmnopqrstuvwxyz0123456789";
        bid.ts = ts;
        windows.add(ts / Bid.WINDOW_MS * AUCTIONS + bid.auction);
        return new ProducerRecord<>(topic, null, ts, Bid.ascii(Integer.toString(bid.auction)), bid.encode());
    }

    /** An hour later in each partition: closes all windows. */
    private static ProducerRecord<byte[], byte[]> closing(String topic, int partition, long records, long ts) {
        Bid bid = new Bid();
        bid.auction = AUCTIONS + partition;
        bid.bidder = (int) records + partition;
        bid.price = 100;
        bid.channel = "closing";
        bid.ts = ts;
        return new ProducerRecord<>(topic, partition, ts, Bid.ascii("closing"), bid.encode());
    }

    private int choose() {
        int found = Arrays.binarySearch(popularity, random.nextDouble());
        return Math.min(popularity.length - 1, found < 0 ? -found - 1 : found);
    }

    private static double[] zipf(int choices) {
        double[] cumulative = new double[choices];
        double sum = 0;
        for (int i = 0; i < choices; i++) cumulative[i] = sum += 1.0 / (i + 1);
        for (int i = 0; i < choices; i++) cumulative[i] /= sum;
        return cumulative;
    }
}
