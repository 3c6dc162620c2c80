package pulsarbox.spark;

import java.io.IOException;
import java.lang.ref.SoftReference;
import java.nio.file.Files;
import java.nio.file.Path;
import java.nio.file.attribute.BasicFileAttributes;
import java.util.Arrays;
import java.util.HashMap;
import java.util.LinkedHashMap;
import java.util.Map;

/**
 * Entries of the batches of a volume that its index does not cover yet. The tasks of a process share it, as each would
 * read the headers of all these batches. Whoever reads an entry verifies that it is the one.
 */
final class VolumeTail {
  private static final int TAILS_MAX = 16;
  private static final int ENTRIES_MAX = 1 << 20;
  private static final Map<String, SoftReference<VolumeTail>> TAILS = new LinkedHashMap<>();

  private final Map<Long, Entries> ledgers = new HashMap<>();
  private int count;
  private long position;

  private VolumeTail(long position) {
    this.position = position;
  }

  /** Reads the batches of a volume. */
  interface Batches {
    /** Returns the position up to which the index covers the log. */
    long indexed() throws IOException;

    /** Adds the entries of the next batch behind a position; returns its position, or -1 if there is none. */
    long next(long position, VolumeTail to) throws IOException;
  }

  /** Returns the tail of the volume whose file this is. */
  static VolumeTail of(Path file, Batches batches) throws IOException {
    String name = file + " " + Files.readAttributes(file, BasicFileAttributes.class).fileKey();
    synchronized (TAILS) {
      SoftReference<VolumeTail> reference = TAILS.get(name);
      VolumeTail found = reference == null ? null : reference.get();
      if (found != null && found.count < ENTRIES_MAX) return found;
      if (TAILS.size() >= TAILS_MAX) TAILS.remove(TAILS.keySet().iterator().next());
      found = new VolumeTail(batches.indexed());
      TAILS.put(name, new SoftReference<>(found));
      return found;
    }
  }

  /** Takes in the batches that were added since. */
  synchronized void extend(Batches batches) throws IOException {
    for (long at = batches.next(position, this); at >= 0; at = batches.next(position, this)) position = at;
  }

  /** Adds an entry; called by {@code Batches.next}. */
  void put(long ledger, long entry, long at, int offset) {
    ledgers.computeIfAbsent(ledger, each -> new Entries()).put(entry, at, offset);
    count++;
  }

  /** Adds where the entries of a ledger from {@code next} on are; returns the first one that is not here. */
  synchronized long add(long ledger, int number, int volume, long next, long last, Places places) {
    Entries found = ledgers.get(ledger);
    return found == null ? next : found.add(number, volume, next, last, places);
  }

  /** Entries of a ledger in stored order. */
  private static final class Entries {
    private long[] entries = new long[16];
    private long[] positions = new long[16];
    private int[] offsets = new int[16];
    private int count;

    void put(long entry, long at, int offset) {
      if (count == entries.length) {
        entries = Arrays.copyOf(entries, 2 * count);
        positions = Arrays.copyOf(positions, 2 * count);
        offsets = Arrays.copyOf(offsets, 2 * count);
      }
      entries[count] = entry;
      positions[count] = at;
      offsets[count++] = offset;
    }

    long add(int number, int volume, long next, long last, Places places) {
      long at = next;
      for (int i = 0; i < count && at <= last; i++) {
        if (entries[i] == at) places.add(number, volume, positions[i], offsets[i], at++);
      }
      return at;
    }
  }
}
