package peers;

import java.util.Map;
import java.util.concurrent.ConcurrentHashMap;
import java.util.concurrent.atomic.AtomicLong;
import java.util.stream.Collectors;

/**
 * How far a job is, told to the benchmark on standard output: `EVT first=…` with the first record, and
 * `EVT done last=… need=…` when the last stage has seen everything that was expected.
 */
public final class Progress {
    private static final AtomicLong seen = new AtomicLong();
    private static final AtomicLong emitted = new AtomicLong();
    private static final Map<String, long[]> internal = new ConcurrentHashMap<>();
    private static long expectedIn;
    private static long expectedOut;
    private static volatile boolean started;
    private static boolean done;

    private Progress() {}

    /** Records at the last stage, and output records (windows only). */
    public static void expect(long in, long out) {
        expectedIn = in;
        expectedOut = out;
    }

    /** For each record of the source. */
    public static void source() {
        if (!started) start();
    }

    /** For each record at the last stage. */
    public static void seen() {
        if (seen.incrementAndGet() == expectedIn) check();
    }

    /** For each window that fires. */
    public static void emitted() {
        if (emitted.incrementAndGet() == expectedOut) check();
    }

    /** Last offset read of a partition of an internal topic; its offset must be committed before the job is done. */
    public static long[] internal(String topicPartition) {
        return internal.computeIfAbsent(topicPartition, name -> new long[1]);
    }

    private static synchronized void start() {
        if (started) return;
        started = true;
        System.out.println("EVT first=" + System.currentTimeMillis());
    }

    private static synchronized void check() {
        if (done || seen.get() < expectedIn || emitted.get() < expectedOut) return;
        done = true;
        String need = internal.entrySet().stream().map(e -> e.getKey() + ":" + e.getValue()[0]).collect(Collectors.joining(","));
        System.out.println("EVT done last=" + System.currentTimeMillis() + " need=" + need);
    }
}
