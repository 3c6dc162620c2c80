package pulsarbox.spark;

import java.nio.ByteBuffer;
import java.util.ArrayList;
import java.util.Arrays;
import java.util.List;
import org.apache.spark.sql.execution.vectorized.OnHeapColumnVector;
import org.apache.spark.sql.execution.vectorized.WritableColumnVector;
import org.apache.spark.sql.types.DataTypes;
import org.apache.spark.sql.types.StructField;
import org.apache.spark.sql.types.StructType;

/** Columns of decoded values, those that the query requires. The others are checked too: a value is read as a whole. */
final class ValueColumns {
  static final String CORRUPT = "_corrupt_record";

  private final ValuePlan plan;
  private final ValueReader[] readers;
  private final WritableColumnVector all;
  private final String[] names;
  private final WritableColumnVector corrupt;
  private byte[] copy = new byte[1024];

  private ValueColumns(ValuePlan plan, StructType columns, boolean isCorruptRequired, int capacity) {
    this.plan = plan;
    all = new OnHeapColumnVector(capacity, columns);
    corrupt = isCorruptRequired ? new OnHeapColumnVector(capacity, DataTypes.BinaryType) : null;
    names = columns.fieldNames();
    int[] places = new int[plan.columns.size()];
    for (int i = 0; i < places.length; i++) places[i] = Arrays.asList(names).indexOf(plan.columns.get(i));
    readers = new ValueReader[plan.programs.size()];
    for (int i = 0; i < readers.length; i++) readers[i] = ValueReader.of(plan.programs.get(i), places);
  }

  /** Returns the columns of the value that a query requires; null if no row depends on its value. */
  static ValueColumns of(ValuePlan plan, StructType required, int capacity) {
    if (plan == null) return null;
    List<StructField> found = new ArrayList<>();
    boolean isCorruptRequired = false;
    for (StructField each : required.fields()) {
      if (plan.columns.contains(each.name())) found.add(each);
      isCorruptRequired |= CORRUPT.equals(each.name());
    }
    if (found.isEmpty() && !isCorruptRequired && !plan.isStrict()) return null;
    StructType columns = new StructType(found.toArray(new StructField[0]));
    return new ValueColumns(plan, columns, isCorruptRequired, capacity);
  }

  /** Returns the column of this name, or null. */
  WritableColumnVector column(String name) {
    if (CORRUPT.equals(name)) return corrupt;
    int at = Arrays.asList(names).indexOf(name);
    return at < 0 ? null : all.getChild(at);
  }

  /**
   * Decodes a value into a row; returns false if its message is skipped. {@code of}: the metadata of the entry. Throws
   * OnlyInPython.
   */
  boolean add(int row, int segment, Metadata of, boolean isNull, ByteBuffer body, int at, int size) {
    if (isNull) {
      for (int i = 0; i < names.length; i++) all.getChild(i).putNull(row);
      if (corrupt != null) corrupt.putNull(row);
      return true;
    }
    ValueReader reader = reader(plan.of[segment], of);
    byte[] bytes = bytes(body, at, size);
    int begin = body.hasArray() ? body.arrayOffset() + at : 0;
    try {
      reader.read(bytes, begin, size, all, row);
    } catch (BadValue bad) {
      return addBad(row, bytes, begin, size);
    }
    if (corrupt != null) corrupt.putNull(row);
    return true;
  }

  private byte[] bytes(ByteBuffer body, int at, int size) {
    if (body.hasArray()) return body.array();
    if (copy.length < size) copy = new byte[2 * size];
    body.get(at, copy, 0, size);
    return copy;
  }

  private ValueReader reader(int set, Metadata of) {
    byte[][] versions = plan.versions[set];
    for (int i = 0; i < versions.length; i++) {
      int size = of.schemaAt < 0 ? 0 : of.schemaSize;
      int begin = Math.max(of.schemaAt, 0);
      boolean isIt = versions[i] == null
          || Arrays.equals(versions[i], 0, versions[i].length, of.bytes, begin, begin + size);
      if (isIt) return readers[plan.numbers[set][i]];
    }
    throw new OnlyInPython("a schema that was not known when the read was planned");
  }

  private boolean addBad(int row, byte[] bytes, int at, int size) {
    if (plan.isFailing) throw new OnlyInPython("a value that does not match its schema");
    for (int i = 0; i < names.length; i++) {
      if (plan.isDropping) clear(all.getChild(i), row);
      else all.getChild(i).putNull(row);
    }
    if (corrupt != null && !plan.isDropping) corrupt.putByteArray(row, bytes, at, size);
    return !plan.isDropping;
  }

  /** Makes a row as if nothing had been put. */
  private static void clear(WritableColumnVector column, int row) {
    column.putNotNull(row);
    if (!(column.dataType() instanceof StructType)) return;
    for (int i = 0; i < ((StructType) column.dataType()).length(); i++) clear(column.getChild(i), row);
  }
}
