package pulsarbox.spark;

import java.io.IOException;
import java.nio.ByteBuffer;
import java.util.Arrays;

/** Where the entries of a task are: for each its segment, volume, position of the batch, and offset within it. */
final class Places {
  private int[] segments = new int[1024];
  private int[] volumes = new int[1024];
  private long[] positions = new long[1024];
  private int[] offsets = new int[1024];
  private long[] entries = new long[1024];
  private int count;

  /** A value of the log: its bytes, or where they are in the file. */
  static final class Value {
    private final byte[] bytes;
    private final long offset;
    private final int size;

    Value(byte[] bytes) {
      this.bytes = bytes;
      offset = 0;
      size = bytes.length;
    }

    Value(long offset, int size) {
      bytes = null;
      this.offset = offset;
      this.size = size;
    }

    /** Returns a buffer from 0 to the size of the value. */
    ByteBuffer in(MappedFile file) throws IOException {
      if (bytes != null) return ByteBuffer.wrap(bytes);
      return file.at(offset, size).slice(MappedFile.within(offset), size);
    }
  }

  void add(int segment, int volume, long position, int offset, long entry) {
    if (count == segments.length) {
      segments = Arrays.copyOf(segments, 2 * count);
      volumes = Arrays.copyOf(volumes, 2 * count);
      positions = Arrays.copyOf(positions, 2 * count);
      offsets = Arrays.copyOf(offsets, 2 * count);
      entries = Arrays.copyOf(entries, 2 * count);
    }
    segments[count] = segment;
    volumes[count] = volume;
    positions[count] = position;
    offsets[count] = offset;
    entries[count++] = entry;
  }

  int count() {
    return count;
  }

  int segment(int place) {
    return segments[place];
  }

  int volume(int place) {
    return volumes[place];
  }

  long position(int place) {
    return positions[place];
  }

  int offset(int place) {
    return offsets[place];
  }

  long entry(int place) {
    return entries[place];
  }

  /** Returns the places in stored order, in which the entries of a segment keep theirs. */
  int[] sorted() {
    long least = Long.MAX_VALUE;
    long most = 0;
    for (int i = 0; i < count; i++) {
      least = Math.min(least, positions[i]);
      most = Math.max(most, positions[i]);
    }
    if (count > 0 && most - least >= Integer.MAX_VALUE) throw new OnlyInPython("the entries are too far apart");
    long[] keys = new long[count];
    for (int i = 0; i < count; i++) keys[i] = positions[i] - least << 32 | i;
    Arrays.sort(keys);
    int[] order = new int[count];
    for (int i = 0; i < count; i++) order[i] = (int) keys[i];
    return order;
  }
}
