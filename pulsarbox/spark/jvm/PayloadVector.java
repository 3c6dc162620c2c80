package pulsarbox.spark;

import java.nio.ByteBuffer;
import java.util.Arrays;
import org.apache.spark.sql.types.DataTypes;
import org.apache.spark.sql.types.Decimal;
import org.apache.spark.sql.vectorized.ColumnVector;
import org.apache.spark.sql.vectorized.ColumnarArray;
import org.apache.spark.sql.vectorized.ColumnarMap;
import org.apache.spark.unsafe.types.UTF8String;

/** Payloads where they are: in the mapped file, or decompressed. Their bytes are copied when a query takes them. */
final class PayloadVector extends ColumnVector {
  private ByteBuffer[] buffers;
  private int[] offsets;
  private int[] sizes;
  private int nulls;

  PayloadVector(int capacity) {
    super(DataTypes.BinaryType);
    buffers = new ByteBuffer[capacity];
    offsets = new int[capacity];
    sizes = new int[capacity];
  }

  void reserve(int capacity) {
    if (capacity <= sizes.length) return;
    buffers = Arrays.copyOf(buffers, capacity);
    offsets = Arrays.copyOf(offsets, capacity);
    sizes = Arrays.copyOf(sizes, capacity);
  }

  void reset() {
    Arrays.fill(buffers, null);
    nulls = 0;
  }

  void put(int row, ByteBuffer buffer, int offset, int size) {
    buffers[row] = buffer;
    offsets[row] = offset;
    sizes[row] = size;
  }

  void putNull(int row) {
    buffers[row] = null;
    nulls++;
  }

  @Override
  public byte[] getBinary(int row) {
    if (buffers[row] == null) return null;
    byte[] copy = new byte[sizes[row]];
    buffers[row].get(offsets[row], copy);
    return copy;
  }

  @Override
  public boolean isNullAt(int row) {
    return buffers[row] == null;
  }

  @Override
  public boolean hasNull() {
    return nulls > 0;
  }

  @Override
  public int numNulls() {
    return nulls;
  }

  @Override
  public void close() {}

  private static UnsupportedOperationException not() {
    return new UnsupportedOperationException("a column of bytes");
  }

  @Override public boolean getBoolean(int row) { throw not(); }
  @Override public byte getByte(int row) { throw not(); }
  @Override public short getShort(int row) { throw not(); }
  @Override public int getInt(int row) { throw not(); }
  @Override public long getLong(int row) { throw not(); }
  @Override public float getFloat(int row) { throw not(); }
  @Override public double getDouble(int row) { throw not(); }
  @Override public ColumnarArray getArray(int row) { throw not(); }
  @Override public ColumnarMap getMap(int row) { throw not(); }
  @Override public Decimal getDecimal(int row, int precision, int scale) { throw not(); }
  @Override public UTF8String getUTF8String(int row) { throw not(); }
  @Override public ColumnVector getChild(int ordinal) { throw not(); }
}
