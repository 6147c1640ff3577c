package peers;

import java.time.Duration;

/**
 * Follows a topic with `read_committed` and prints a line for each poll that found something: `now newest`, then the
 * ages of its records as `age:count …`. All in milliseconds; a record is as old as its timestamp says.
 *
 * Arguments: topic bootstrap. Runs until it is stopped.
 */
public final class Watch {
    public static void main(String[] args) {
        try (var consumer = Records.from(args[1], args[0])) {
            while (true) {
                var records = consumer.poll(Duration.ofMillis(100));
                if (records.isEmpty()) continue;
                long now = System.currentTimeMillis();
                long newest = 0;
                var ages = new java.util.TreeMap<Long, Integer>();
                for (var record : records) {
                    newest = Math.max(newest, record.timestamp());
                    ages.merge(Math.max(0, now - record.timestamp()), 1, Integer::sum);
                }
                StringBuilder line = new StringBuilder().append(now).append(' ').append(newest);
                ages.forEach((age, count) -> line.append(' ').append(age).append(':').append(count));
                System.out.println(line);
            }
        }
    }
}
