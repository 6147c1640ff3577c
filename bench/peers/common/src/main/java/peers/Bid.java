package peers;

import static java.nio.charset.StandardCharsets.ISO_8859_1;

/**
 * A bid, and the wire format of all jobs: ASCII JSON with its fields in one fixed order.
 *
 * The codec is written by hand and shared by both peers, so that neither pays for a general JSON parser.
 */
public final class Bid {
    public static final long WINDOW_MS = 10_000;

    public int auction;
    public int bidder;
    public int price;
    public String channel;
    public long ts;

    public static Bid decode(byte[] json) {
        Cursor at = new Cursor(json);
        Bid bid = new Bid();
        bid.auction = (int) at.number();
        bid.bidder = (int) at.number();
        bid.price = (int) at.number();
        bid.channel = at.text();
        bid.ts = at.number();
        return bid;
    }

    public byte[] encode() {
        return encode(Integer.toString(price));
    }

    /** The price times 0.908, exact to three decimals (query 1 of NEXMark). */
    public byte[] encodeConverted() {
        long thousandths = price * 908L;
        String decimals = Long.toString(1000 + thousandths % 1000);
        return encode(thousandths / 1000 + "." + decimals.substring(1));
    }

    private byte[] encode(String shownPrice) {
        return ascii(new StringBuilder(128)
            .append("{\"auction\":").append(auction)
            .append(",\"bidder\":").append(bidder)
            .append(",\"price\":").append(shownPrice)
            .append(",\"channel\":\"").append(channel)
            .append("\",\"ts\":").append(ts).append('}').toString());
    }

    public static byte[] windowKey(int auction, long start) {
        return ascii(auction + "@" + start);
    }

    public static byte[] windowValue(long count, long sum) {
        return ascii("{\"count\":" + count + ",\"sum\":" + sum + "}");
    }

    public static byte[] ascii(String text) {
        return text.getBytes(ISO_8859_1);
    }

    public static String text(byte[] ascii) {
        return new String(ascii, ISO_8859_1);
    }

    /** Walks from value to value; each stands behind a colon. */
    private static final class Cursor {
        private final byte[] bytes;
        private int at;

        Cursor(byte[] bytes) {
            this.bytes = bytes;
        }

        long number() {
            skipColon();
            long value = 0;
            while (bytes[at] >= '0' && bytes[at] <= '9') value = 10 * value + bytes[at++] - '0';
            return value;
        }

        String text() {
            skipColon();
            int start = ++at;
            while (bytes[at] != '"') at++;
            return new String(bytes, start, at - start, ISO_8859_1);
        }

        private void skipColon() {
            while (bytes[at] != ':') at++;
            at++;
        }
    }
}
