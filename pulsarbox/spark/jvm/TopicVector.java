package pulsarbox.spark;

import java.util.Arrays;
import java.util.List;
import org.apache.spark.sql.types.DataTypes;
import org.apache.spark.sql.types.Decimal;
import org.apache.spark.sql.vectorized.ColumnVector;
import org.apache.spark.sql.vectorized.ColumnarArray;
import org.apache.spark.sql.vectorized.ColumnarMap;
import org.apache.spark.unsafe.types.UTF8String;

/** Names of topics, by the segments of the rows. */
final class TopicVector extends ColumnVector {
  private final UTF8String[] names;
  private int[] segments;

  TopicVector(List<ReadPlan.Segment> segments, int capacity) {
    super(DataTypes.StringType);
    this.segments = new int[capacity];
    names = segments.stream().map(each -> UTF8String.fromString(each.topic)).toArray(UTF8String[]::new);
  }

  void reserve(int capacity) {
    if (capacity > segments.length) segments = Arrays.copyOf(segments, capacity);
  }

  void put(int row, int segment) {
    segments[row] = segment;
  }

  @Override
  public UTF8String getUTF8String(int row) {
    return names[segments[row]];
  }

  @Override
  public boolean isNullAt(int row) {
    return false;
  }

  @Override
  public boolean hasNull() {
    return false;
  }

  @Override
  public int numNulls() {
    return 0;
  }

  @Override
  public void close() {}

  private static UnsupportedOperationException not() {
    return new UnsupportedOperationException("a column of text");
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
  @Override public byte[] getBinary(int row) { throw not(); }
  @Override public ColumnVector getChild(int ordinal) { throw not(); }
}
