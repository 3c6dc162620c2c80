package pulsarbox.spark;

import java.io.ByteArrayOutputStream;
import java.nio.ByteBuffer;
import java.nio.ByteOrder;
import java.nio.charset.StandardCharsets;

/**
 * Partitions as Python pickles them. The plan for the JVM is a bytes object in one, behind MAGIC and its size, both
 * written by {@code source/jvm_plan.py}; no text in a pickle has these bytes, as text is UTF-8.
 */
final class PickledPart {
  private static final byte[] MAGIC = "\u00ffpulsarbox\u00ff".getBytes(StandardCharsets.ISO_8859_1);
  private static final String REST = "cpulsarbox.spark.source.partition_read\nrest_of_part\n";

  private PickledPart() {}

  /** Returns the plan in a pickled partition, or null. */
  static byte[] plan(byte[] pickled) {
    int at = find(pickled);
    if (at < 0 || pickled.length - at < 4) return null;
    int size = ByteBuffer.wrap(pickled).getInt(at);
    if (size <= 0 || size > pickled.length - at - 4) return null;
    byte[] plan = new byte[size];
    System.arraycopy(pickled, at + 4, plan, 0, size);
    return plan;
  }

  private static int find(byte[] pickled) {
    for (int at = 0; at <= pickled.length - MAGIC.length; at++) {
      int same = 0;
      while (same < MAGIC.length && pickled[at + same] == MAGIC[same]) same++;
      if (same == MAGIC.length) return at + same;
    }
    return -1;
  }

  /** Returns a pickle of {@code rest_of_part(pickled, next)}, with {@code next} as big-endian 64-bit integers. */
  static byte[] rest(byte[] pickled, long[] next) {
    ByteBuffer numbers = ByteBuffer.allocate(8 * next.length);
    for (long each : next) numbers.putLong(each);
    ByteArrayOutputStream out = new ByteArrayOutputStream();
    out.writeBytes(new byte[] {(byte) 0x80, 3}); // protocol 3
    out.writeBytes(REST.getBytes(StandardCharsets.US_ASCII));
    bytes(out, pickled);
    bytes(out, numbers.array());
    out.writeBytes(new byte[] {(byte) 0x86, 'R', '.'}); // a tuple of two, the call, the end
    return out.toByteArray();
  }

  private static void bytes(ByteArrayOutputStream out, byte[] value) {
    out.write('B');
    out.writeBytes(ByteBuffer.allocate(4).order(ByteOrder.LITTLE_ENDIAN).putInt(value.length).array());
    out.writeBytes(value);
  }
}
