package pulsarbox.spark;

import java.io.IOException;
import java.nio.ByteBuffer;
import java.nio.file.DirectoryStream;
import java.nio.file.Files;
import java.nio.file.Path;
import java.util.Arrays;

/** The tables of {@code meta} that say which volume holds an entry ({@code storage/format.py}). */
final class VolumeTable implements AutoCloseable {
  private static final long PACKED = 1L << 32;
  private static final byte[] SEALED = {'s', 'e', 'a', 'l', 'e', 'd'};

  private final Path directory;
  private final Environment meta;

  VolumeTable(Path directory) throws IOException {
    this.directory = directory;
    meta = new Environment(directory.resolve("meta"));
  }

  @Override
  public void close() throws IOException {
    meta.close();
  }

  /** Consecutive entries in a volume. */
  static final class Stretch {
    final long volume;
    /** The first entry after the stretch. */
    final long end;

    private Stretch(long volume, long end) {
      this.volume = volume;
      this.end = end;
    }
  }

  /** Returns the sealed or packed volume that holds an entry; null if none does, so that an unsealed one may. */
  Stretch of(long ledger, long entry) throws IOException {
    byte[] key = ByteBuffer.allocate(16).putLong(ledger).putLong(entry).array();
    return meta.read(() -> {
      Environment.Found found = meta.floor(meta.table("volumes"), key);
      if (found == null || found.number(0) != ledger) return null;
      ByteBuffer row = ByteBuffer.wrap(found.value());
      long end = found.number(8) + row.getLong(8);
      return entry < end ? new Stretch(row.getLong(0), end) : null;
    });
  }

  /** Returns the volumes that are not in the tables yet, in order. */
  long[] unsealed() throws IOException {
    long sealed = meta.read(() -> {
      Environment.Found found = meta.floor(meta.table("mark"), SEALED);
      return found == null || found.compare(SEALED) != 0 ? 0L : ByteBuffer.wrap(found.value()).getLong();
    });
    long[] numbers = new long[16];
    int count = 0;
    try (DirectoryStream<Path> all = Files.newDirectoryStream(directory.resolve("volumes"), "[0-9]*[0-9]")) {
      for (Path each : all) {
        long number = Long.parseLong(each.getFileName().toString());
        if (number <= sealed) continue;
        if (count == numbers.length) numbers = Arrays.copyOf(numbers, 2 * count);
        numbers[count++] = number;
      }
    }
    Arrays.sort(numbers, 0, count);
    return Arrays.copyOf(numbers, count);
  }

  /** Returns the path of a volume below the data directory. */
  static String name(long volume) {
    return volume >= PACKED ? String.format("packed/%08d", volume - PACKED) : String.format("volumes/%08d", volume);
  }

  /** Returns a dictionary of compression; null if it is missing. */
  byte[] dictionary(int number) throws IOException {
    byte[] key = ByteBuffer.allocate(4).putInt(number).array();
    return meta.read(() -> {
      Environment.Found found = meta.floor(meta.table("dictionaries"), key);
      return found == null || found.compare(key) != 0 ? null : found.value();
    });
  }
}
