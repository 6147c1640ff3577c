package peers;

import java.util.Arrays;
import java.util.BitSet;
import java.util.HashMap;
import java.util.Map;

/**
 * Computes a job's result from its input and compares it with the committed output.
 *
 * Arguments: job in out bootstrap. Prints a line of JSON; exit status 1 when something is missing, wrong or repeated.
 */
public final class Verify {
    private final BitSet bidders = new BitSet();
    private final BitSet shown = new BitSet();
    private final Map<String, long[]> wanted = new HashMap<>();
    private final Map<String, long[]> found = new HashMap<>();
    private final Map<Integer, Long> newest = new HashMap<>();
    private long in;
    private long out;
    private long repeated;

    public static void main(String[] args) {
        Verify verify = new Verify();
        String job = args[0];
        Records.each(args[3], args[1], record -> verify.input(job, record.partition(), record.value()));
        Records.each(args[3], args[2], record -> verify.output(job, record.key(), record.value()));
        System.exit(verify.report(job) ? 0 : 1);
    }

    private void input(String job, int partition, byte[] value) {
        in++;
        if (job.equals("wordcount")) {
            for (String word : Bid.text(value).split(" ")) wanted.computeIfAbsent(word, w -> new long[2])[0]++;
            return;
        }
        Bid bid = Bid.decode(value);
        bidders.set(bid.bidder);
        newest.merge(partition, bid.ts, Math::max);
        if (job.equals("passthrough")) return;
        String window = bid.auction + "@" + bid.ts / Bid.WINDOW_MS * Bid.WINDOW_MS;
        long[] total = wanted.computeIfAbsent(window, w -> new long[2]);
        total[0]++;
        total[1] += bid.price;
    }

    private void output(String job, byte[] key, byte[] value) {
        out++;
        switch (job) {
            case "passthrough" -> {
                int bidder = Bid.decode(value).bidder;
                if (shown.get(bidder)) repeated++;
                shown.set(bidder);
            }
            case "count" -> {
                String[] parts = Bid.text(value).split("[:,}]");
                if (found.put(Bid.text(key), new long[] {Long.parseLong(parts[1]), Long.parseLong(parts[3])}) != null) repeated++;
            }
            // Counts of a word rise: one that does not was shown before.
            default -> {
                long count = Long.parseLong(Bid.text(value));
                long[] before = found.put(Bid.text(key), new long[] {count, 0});
                if (before != null && before[0] >= count) repeated++;
            }
        }
    }

    private boolean report(String job) {
        long[] faults = job.equals("passthrough") ? comparedBidders() : comparedTotals(job.equals("count"));
        boolean ok = faults[0] + faults[1] + repeated == 0 && out > 0;
        System.out.printf("{\"verified\":%b,\"in\":%d,\"out\":%d,\"missing\":%d,\"wrong\":%d,\"repeated\":%d}%n", ok, in, out, faults[0], faults[1], repeated);
        return ok;
    }

    private long[] comparedBidders() {
        BitSet missing = (BitSet) bidders.clone();
        missing.andNot(shown);
        shown.andNot(bidders);
        return new long[] {missing.cardinality(), shown.cardinality()};
    }

    /** A window must be there when the slowest partition has passed its end. */
    private long[] comparedTotals(boolean windows) {
        long watermark = newest.values().stream().min(Long::compare).orElse(0L);
        long missing = 0;
        long wrong = 0;
        for (var entry : wanted.entrySet()) {
            long[] total = found.remove(entry.getKey());
            if (total != null && !Arrays.equals(total, entry.getValue())) wrong++;
            if (total == null && !(windows && endOf(entry.getKey()) > watermark)) missing++;
        }
        return new long[] {missing, wrong + found.size()};
    }

    private static long endOf(String window) {
        return Long.parseLong(window.substring(window.indexOf('@') + 1)) + Bid.WINDOW_MS;
    }
}
