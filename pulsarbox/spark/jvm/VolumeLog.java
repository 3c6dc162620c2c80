package pulsarbox.spark;

import java.io.IOException;
import java.nio.ByteBuffer;
import java.util.Arrays;

/** The batches of a volume that have located entries, in stored order. */
final class VolumeLog {
  private static final int AT_ONCE = 256;

  final Volume volume;
  /** The number that places in this volume have. */
  final int number;
  private long[] positions = {};
  private int begin;
  private int end;
  private final Places.Value[] values = new Places.Value[AT_ONCE];
  private int current = -1;
  private ByteBuffer batch;

  VolumeLog(Volume volume, int number) {
    this.volume = volume;
    this.number = number;
  }

  /** Takes the positions that places in this volume have. */
  void begin(Places places, int[] order) {
    long[] found = new long[order.length];
    int count = 0;
    for (int place : order) {
      if (places.volume(place) != number) continue;
      long position = places.position(place);
      if (count == 0 || found[count - 1] != position) found[count++] = position;
    }
    positions = Arrays.copyOf(found, count);
    begin = end = 0;
    current = -1;
  }

  /** Returns the batch at a position, which is that of the last call or behind it. */
  ByteBuffer batch(long position) throws IOException {
    if (current >= 0 && positions[current] == position) return batch;
    current++;
    while (current < positions.length && positions[current] < position) current++;
    if (current >= positions.length || positions[current] != position) {
      throw new OnlyInPython("batch " + position + " is out of order");
    }
    if (current >= end) {
      begin = current;
      end = begin + volume.values(positions, begin, Math.min(positions.length, begin + AT_ONCE), values);
    }
    batch = volume.batch(values[current - begin]);
    return batch;
  }
}
