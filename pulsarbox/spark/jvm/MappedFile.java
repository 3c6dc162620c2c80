package pulsarbox.spark;

import java.io.IOException;
import java.nio.ByteBuffer;
import java.nio.ByteOrder;
import java.nio.MappedByteBuffer;
import java.nio.channels.FileChannel;
import java.nio.file.Path;
import java.nio.file.StandardOpenOption;

/**
 * File mapped read-only, of any size, which may grow. Buffers of it stay valid after {@code close}: the garbage
 * collector unmaps them, since other threads of a task may still use a row.
 */
final class MappedFile implements AutoCloseable {
  private static final int WINDOW_BITS = 30;

  final Path path;
  private final FileChannel channel;
  private ByteBuffer[] windows = {};
  private long size;

  MappedFile(Path path) throws IOException {
    this.path = path;
    channel = FileChannel.open(path, StandardOpenOption.READ);
    size = channel.size();
  }

  /** Returns a buffer that holds {@code length} bytes from an offset on, which {@code within} turns into an index. */
  ByteBuffer at(long offset, long length) throws IOException {
    if (offset < 0 || length < 0 || length >= 1L << WINDOW_BITS) throw new OnlyInPython(path + ": no page at " + offset);
    if (offset + length > size) grow();
    if (offset + length > size) throw new OnlyInPython(path + " ends before " + (offset + length));
    int number = (int) (offset >>> WINDOW_BITS);
    if (number >= windows.length) windows = java.util.Arrays.copyOf(windows, number + 1);
    if (windows[number] == null) windows[number] = map((long) number << WINDOW_BITS);
    return windows[number];
  }

  /** Returns the index of an offset in the buffer that has it. */
  static int within(long offset) {
    return (int) (offset & (1L << WINDOW_BITS) - 1);
  }

  /** Maps from {@code begin} on: a gibibyte, and as much again for what begins in it. */
  private ByteBuffer map(long begin) throws IOException {
    MappedByteBuffer made =
        channel.map(FileChannel.MapMode.READ_ONLY, begin, Math.min(size - begin, Integer.MAX_VALUE));
    return made.order(ByteOrder.BIG_ENDIAN);
  }

  private void grow() throws IOException {
    size = channel.size();
    windows = new ByteBuffer[0];
  }

  @Override
  public void close() throws IOException {
    channel.close();
  }
}
