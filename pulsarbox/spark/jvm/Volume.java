package pulsarbox.spark;

import java.io.IOException;
import java.nio.ByteBuffer;
import java.nio.file.Path;
import java.util.zip.CRC32C;

/** Volume of a data directory: its index, which locates entries, and its log, which has them ({@code storage/format.py}). */
final class Volume implements AutoCloseable {
  private static final int INDEX_KEY = 16;
  private static final int SEGMENT = 12;
  private static final int BATCH_HEADER = 20;
  private static final int BATCH_VERSION = 2;
  private static final int RECORD_PREFIX = 8;
  private static final int ENTRY_HEADER = 96;
  private static final int ENTRY = 1;
  private static final byte[] INDEXED = {'i', 'n', 'd', 'e', 'x', 'e', 'd'};

  final String name;
  private final Environment env;
  private final Batches batches = new Batches();
  private VolumeTail tail;

  Volume(Path directory, String name) throws IOException {
    this.name = name;
    env = new Environment(directory.resolve(name));
  }

  @Override
  public void close() throws IOException {
    env.close();
  }

  /** Adds where the entries of a segment from {@code next} on are; returns the first one that the volume does not have. */
  long locate(ReadPlan.Segment segment, int number, int volume, long next, long last, Places places)
      throws IOException {
    long at = next;
    for (long before = -1; at <= last && at != before; ) {
      before = at;
      at = byIndex(segment.ledger, number, volume, at, last, places);
      if (at <= last) at = byTail(segment.ledger, number, volume, at, last, places);
    }
    return at;
  }

  private long byIndex(long ledger, int number, int volume, long next, long last, Places places) throws IOException {
    long at = next;
    while (at <= last) {
      byte[] key = ByteBuffer.allocate(INDEX_KEY).putLong(ledger).putLong(at).array();
      long[] first = {0};
      byte[] row = env.read(() -> {
        Environment.Found found = env.floor(env.table("index"), key);
        if (found == null || found.number(0) != ledger) return null;
        first[0] = found.number(8);
        return found.value();
      });
      long end = row == null ? at : addRow(ByteBuffer.wrap(row), first[0], number, volume, at, last, places);
      if (end == at) return at;
      at = end;
    }
    return at;
  }

  /** Adds the entries of an index row from {@code next} on; returns the one after them. */
  private long addRow(ByteBuffer row, long begin, int number, int volume, long next, long last, Places places) {
    long first = begin;
    long at = next;
    int offset = 0;
    while (offset < row.limit()) {
      if (row.limit() - offset < SEGMENT) throw new OnlyInPython(name + ": an index row is damaged");
      long position = row.getLong(offset);
      int count = row.getInt(offset + 8);
      offset += SEGMENT;
      if (count <= 0 || count > (row.limit() - offset) / 4) throw new OnlyInPython(name + ": an index row is damaged");
      for (int i = (int) Math.max(0, Math.min(count, at - first)); i < count && at <= last; i++, at++) {
        places.add(number, volume, position, row.getInt(offset + 4 * i), at);
      }
      offset += 4 * count;
      first += count;
    }
    return at;
  }

  private long byTail(long ledger, int number, int volume, long next, long last, Places places) throws IOException {
    if (tail == null) tail = VolumeTail.of(env.file.path, batches);
    tail.extend(batches);
    return tail.add(ledger, number, volume, next, last, places);
  }

  /** The batches that the index does not cover yet. */
  private final class Batches implements VolumeTail.Batches {
    @Override
    public long indexed() throws IOException {
      byte[] mark = env.read(() -> {
        Environment.Found found = env.floor(env.table("mark"), INDEXED);
        return found == null || found.compare(INDEXED) != 0 ? new byte[8] : found.value();
      });
      return ByteBuffer.wrap(mark).getLong();
    }

    @Override
    public long next(long position, VolumeTail to) throws IOException {
      byte[] key = ByteBuffer.allocate(8).putLong(position + 1).array();
      Places.Value[] found = {null};
      Long at = env.read(() -> {
        Environment.Found node = env.ceiling(env.table("log"), key);
        if (node == null) return null;
        found[0] = value(node);
        return node.number(0);
      });
      if (at == null) return -1;
      ByteBuffer batch = found[0].in(env.file);
      check(at, batch);
      for (int offset = BATCH_HEADER; offset < batch.limit(); offset += length(batch, offset)) {
        if (batch.get(offset) == ENTRY) to.put(batch.getLong(offset + 8), batch.getLong(offset + 16), at, offset);
      }
      return at;
    }
  }

  /** Verifies a batch as storage/record.py does: its version, its records, and all of it but the bodies of entries. */
  private void check(long position, ByteBuffer batch) {
    boolean isWhole = batch.limit() >= BATCH_HEADER && batch.get(0) == BATCH_VERSION;
    if (!isWhole || BATCH_HEADER + (batch.getInt(4) & 0xffffffffL) != batch.limit()) throw damaged(position);
    CRC32C crc = new CRC32C();
    for (int offset = BATCH_HEADER; offset < batch.limit(); ) {
      int length = length(batch, offset);
      if (length < RECORD_PREFIX || length > batch.limit() - offset) throw damaged(position);
      boolean isEntry = batch.get(offset) == ENTRY;
      int header = batch.getShort(offset + 2) & 0xffff;
      if (isEntry && (header < ENTRY_HEADER || header > length)) throw damaged(position);
      ByteBuffer covered = batch.duplicate().limit(offset + (isEntry ? header : length)).position(offset);
      crc.update(covered);
      offset += length;
    }
    if ((int) crc.getValue() != batch.getInt(8)) throw damaged(position);
  }

  private static int length(ByteBuffer batch, int offset) {
    if (batch.limit() - offset < RECORD_PREFIX) return -1;
    long length = (batch.getShort(offset + 2) & 0xffff) + (batch.getInt(offset + 4) & 0xffffffffL);
    return length > Integer.MAX_VALUE ? -1 : (int) length;
  }

  private OnlyInPython damaged(long position) {
    return new OnlyInPython(name + ": batch " + position + " is damaged");
  }

  /** Finds where the batches of some positions are, sorted, from {@code at} on: at least one. Returns how many. */
  int values(long[] positions, int at, int end, Places.Value[] found) throws IOException {
    byte[] key = ByteBuffer.allocate(8).putLong(positions[at]).array();
    return env.read(() -> {
      Environment.Found node = env.floor(env.table("log"), key);
      if (node == null || node.number(0) != positions[at]) throw new OnlyInPython(name + " lacks batch " + positions[at]);
      int next = at;
      do {
        if (node.number(0) == positions[next]) found[next++ - at] = value(node);
      } while (next < end && node.next());
      return next - at;
    });
  }

  /** Returns the value of a node of the log. One with pages of its own stays where it is for the life of the file. */
  private static Places.Value value(Environment.Found node) throws IOException {
    return node.isInPage() ? new Places.Value(node.value()) : new Places.Value(node.offset(), node.size());
  }

  ByteBuffer batch(Places.Value value) throws IOException {
    return value.in(env.file);
  }
}
