package pulsarbox.spark;

import java.nio.ByteBuffer;
import java.util.Arrays;
import java.util.Base64;
import java.util.List;
import java.util.Map;
import org.apache.spark.sql.execution.vectorized.OnHeapColumnVector;
import org.apache.spark.sql.execution.vectorized.WritableColumnVector;
import org.apache.spark.sql.types.DataType;
import org.apache.spark.sql.types.DataTypes;
import org.apache.spark.sql.types.StructField;
import org.apache.spark.sql.types.StructType;
import org.apache.spark.sql.vectorized.ColumnVector;
import org.apache.spark.sql.vectorized.ColumnarBatch;
import org.apache.spark.unsafe.types.UTF8String;

/** Columns of messages, those that the query requires ({@code decode/row_columns.py} lists all). */
final class MessageColumns {
  /** Rows of a batch, unless an entry has more messages. */
  static final int ROWS = 4096;

  /** Most bytes of one batch that are not in the mapped file. */
  private static final long HELD_MAX = 16 << 20;

  private static final String VALUE = "value";
  private static final long TIME_MAX = Long.MAX_VALUE / 1000;
  private static final Map<String, DataType> TYPES = Map.ofEntries(
      Map.entry("__key", DataTypes.BinaryType),
      Map.entry("__topic", DataTypes.StringType),
      Map.entry("__messageId", DataTypes.BinaryType),
      Map.entry("__publishTime", DataTypes.TimestampType),
      Map.entry("__eventTime", DataTypes.TimestampType),
      Map.entry("__messageProperties", DataTypes.createMapType(DataTypes.StringType, DataTypes.StringType)),
      Map.entry("__partition", DataTypes.IntegerType),
      Map.entry("__ledgerId", DataTypes.LongType),
      Map.entry("__entryId", DataTypes.LongType),
      Map.entry("__batchIndex", DataTypes.IntegerType),
      Map.entry("__producerName", DataTypes.StringType),
      Map.entry("__sequenceId", DataTypes.LongType),
      Map.entry("__orderingKey", DataTypes.BinaryType),
      Map.entry("__schemaVersion", DataTypes.BinaryType),
      Map.entry("__redeliveryCount", DataTypes.IntegerType));

  private final PayloadVector payload;
  private final TopicVector topic;
  private final WritableColumnVector key;
  private final WritableColumnVector id;
  private final WritableColumnVector publishTime;
  private final WritableColumnVector eventTime;
  private final WritableColumnVector properties;
  private final WritableColumnVector partition;
  private final WritableColumnVector ledger;
  private final WritableColumnVector entry;
  private final WritableColumnVector batchIndex;
  private final WritableColumnVector producer;
  private final WritableColumnVector sequenceId;
  private final WritableColumnVector orderingKey;
  private final WritableColumnVector schemaVersion;
  private final WritableColumnVector redeliveries;
  /** The columns of decoded values; null if no row depends on its value. */
  private final ValueColumns values;
  private final ColumnVector[] all;
  private final ColumnarBatch batch;
  private final List<ReadPlan.Segment> segments;
  private final byte[] idBytes = new byte[64];
  private int rows;
  private int capacity = ROWS;
  private long held;

  /** Returns whether the JVM fills these columns of a plan. */
  static boolean canFill(StructType columns, ReadPlan plan) {
    for (StructField field : columns.fields()) {
      if (plan.values != null && plan.values.canFill(field)) continue;
      DataType type = type(field.name(), plan);
      if (type == null || !field.nullable() || !type.sameType(field.dataType())) return false;
    }
    return true;
  }

  private static DataType type(String name, ReadPlan plan) {
    boolean isBytes = VALUE.equals(name) && plan.isRaw || ValueColumns.CORRUPT.equals(name) && plan.values != null;
    return isBytes ? DataTypes.BinaryType : TYPES.get(name);
  }

  MessageColumns(StructType columns, ReadPlan plan) {
    segments = plan.segments;
    values = ValueColumns.of(plan.values, columns, ROWS);
    all = new ColumnVector[columns.length()];
    StructField[] fields = columns.fields();
    PayloadVector payloads = null;
    TopicVector topics = null;
    for (int i = 0; i < all.length; i++) {
      if (values != null) all[i] = values.column(fields[i].name());
      if (all[i] != null) continue;
      if (VALUE.equals(fields[i].name())) all[i] = payloads = new PayloadVector(ROWS);
      else if ("__topic".equals(fields[i].name())) all[i] = topics = new TopicVector(segments, ROWS);
      else all[i] = new OnHeapColumnVector(ROWS, fields[i].dataType());
    }
    payload = payloads;
    topic = topics;
    key = named("__key", fields);
    id = named("__messageId", fields);
    publishTime = named("__publishTime", fields);
    eventTime = named("__eventTime", fields);
    properties = named("__messageProperties", fields);
    partition = named("__partition", fields);
    ledger = named("__ledgerId", fields);
    entry = named("__entryId", fields);
    batchIndex = named("__batchIndex", fields);
    producer = named("__producerName", fields);
    sequenceId = named("__sequenceId", fields);
    orderingKey = named("__orderingKey", fields);
    schemaVersion = named("__schemaVersion", fields);
    redeliveries = named("__redeliveryCount", fields);
    batch = new ColumnarBatch(all);
  }

  private WritableColumnVector named(String name, StructField[] fields) {
    for (int i = 0; i < fields.length; i++) {
      if (name.equals(fields[i].name())) return (WritableColumnVector) all[i];
    }
    return null;
  }

  boolean hasPayloads() {
    return payload != null || values != null;
  }

  int rows() {
    return rows;
  }

  ColumnarBatch batch() {
    batch.setNumRows(rows);
    return batch;
  }

  void reset() {
    for (ColumnVector each : all) {
      if (each instanceof WritableColumnVector) ((WritableColumnVector) each).reset();
    }
    if (payload != null) payload.reset();
    rows = 0;
    held = 0;
  }

  /** Drops the rows from {@code count} on. The batch must end there, as their nulls remain. */
  void cut(int count) {
    rows = count;
  }

  boolean isFull() {
    return rows >= ROWS || held >= HELD_MAX;
  }

  /** Returns whether there is room for more rows; an empty batch makes room for any number. */
  boolean reserve(int more) {
    if (rows + more <= capacity) return true;
    if (rows > 0) return false;
    capacity = more;
    for (ColumnVector each : all) {
      if (each instanceof WritableColumnVector) ValueReader.reserve((WritableColumnVector) each, more);
    }
    if (payload != null) payload.reserve(more);
    if (topic != null) topic.reserve(more);
    return true;
  }

  /** Notes bytes that this batch keeps in memory. */
  void hold(int bytes) {
    held += bytes;
  }

  /**
   * Adds a message, unless it is skipped for its value. {@code own}: its metadata, which is that of the entry if
   * {@code index} is -1; {@code of}: that of the entry; {@code at}, {@code size}: its payload in {@code body}.
   */
  void add(
      int segment, long entryId, Metadata of, Metadata own, int index, ByteBuffer body, int at, int size) {
    int row = rows;
    ReadPlan.Segment from = segments.get(segment);
    if (values != null) {
      if (!values.add(row, segment, of, own.isNull, body, at, size)) return;
      held += size;
    }
    if (payload != null) {
      if (own.isNull) payload.putNull(row);
      else payload.put(row, body, at, size);
    }
    if (topic != null) topic.put(row, segment);
    if (key != null) putKey(row, own);
    if (id != null) putId(row, from, entryId, index, of.inBatch);
    if (publishTime != null) putTime(publishTime, row, of.publishTime);
    if (eventTime != null) putTime(eventTime, row, own.eventTime == 0 ? -1 : own.eventTime);
    if (properties != null) putProperties(row, own);
    if (partition != null) putNumber(partition, row, from.partition);
    if (ledger != null) ledger.putLong(row, from.ledger);
    if (entry != null) entry.putLong(row, entryId);
    if (batchIndex != null) putNumber(batchIndex, row, index);
    if (producer != null) putText(producer, row, of.bytes, of.producerAt, of.producerSize);
    if (sequenceId != null) {
      sequenceId.putLong(row, index < 0 || own.hasSequenceId ? own.sequenceId : of.sequenceId + index);
    }
    if (orderingKey != null) putBytes(orderingKey, row, own.bytes, own.orderingAt, own.orderingSize);
    if (schemaVersion != null) putBytes(schemaVersion, row, of.bytes, of.schemaAt, of.schemaSize);
    if (redeliveries != null) redeliveries.putInt(row, 0);
    rows = row + 1;
  }

  private static void putNumber(WritableColumnVector column, int row, int number) {
    if (number < 0) column.putNull(row);
    else column.putInt(row, number);
  }

  /** Puts milliseconds since 1970; null beyond Spark's timestamps. */
  private static void putTime(WritableColumnVector column, int row, long time) {
    if (time < 0 || time > TIME_MAX) column.putNull(row);
    else column.putLong(row, time * 1000);
  }

  private void putBytes(WritableColumnVector column, int row, byte[] bytes, int at, int size) {
    if (at < 0) {
      column.putNull(row);
    } else {
      column.putByteArray(row, bytes, at, size);
      held += size;
    }
  }

  private void putText(WritableColumnVector column, int row, byte[] bytes, int at, int size) {
    checkText(bytes, at, size);
    putBytes(column, row, bytes, at, size);
  }

  /** Leaves text that is not UTF-8 to Python, which replaces what is wrong with it. */
  private static void checkText(byte[] bytes, int at, int size) {
    for (int i = at; i < at + size; i++) {
      if (bytes[i] < 0) {
        if (!UTF8String.fromBytes(bytes, at, size).isValid()) throw new OnlyInPython("text that is not UTF-8");
        return;
      }
    }
  }

  private void putKey(int row, Metadata own) {
    if (own.keyAt < 0 || !own.isKeyBase64 || own.keySize == 0) {
      putBytes(key, row, own.bytes, own.keyAt, own.keySize);
      return;
    }
    if (own.keySize % 4 != 0) throw new OnlyInPython("a key that is not base64");
    byte[] raw;
    try {
      raw = Base64.getDecoder().decode(Arrays.copyOfRange(own.bytes, own.keyAt, own.keyAt + own.keySize));
    } catch (IllegalArgumentException error) {
      throw new OnlyInPython("a key that is not base64");
    }
    putBytes(key, row, raw, 0, raw.length);
  }

  private void putId(int row, ReadPlan.Segment from, long entryId, int index, int count) {
    byte[] bytes = idBytes;
    bytes[0] = 1 << 3;
    int size = varint(bytes, 1, from.ledger);
    bytes[size++] = 2 << 3;
    size = varint(bytes, size, entryId);
    if (from.partition >= 0) {
      bytes[size++] = 3 << 3;
      size = varint(bytes, size, from.partition);
    }
    if (index >= 0) {
      bytes[size++] = 4 << 3;
      size = varint(bytes, size, index);
      bytes[size++] = 6 << 3;
      size = varint(bytes, size, count);
    }
    id.putByteArray(row, bytes, 0, size);
  }

  private static int varint(byte[] bytes, int at, long number) {
    int next = at;
    long left = number;
    while ((left & ~0x7fL) != 0) {
      bytes[next++] = (byte) (left & 0x7f | 0x80);
      left >>>= 7;
    }
    bytes[next++] = (byte) left;
    return next;
  }

  private void putProperties(int row, Metadata own) {
    WritableColumnVector names = properties.getChild(0);
    WritableColumnVector values = properties.getChild(1);
    int[] places = own.properties;
    int offset = names.getElementsAppended();
    for (int i = 0; i < 4 * own.propertyCount; i += 4) {
      checkText(own.bytes, places[i], places[i + 1]);
      checkText(own.bytes, places[i + 2], places[i + 3]);
      names.appendByteArray(own.bytes, places[i], places[i + 1]);
      values.appendByteArray(own.bytes, places[i + 2], places[i + 3]);
      held += places[i + 1] + places[i + 3];
    }
    properties.putArray(row, offset, own.propertyCount);
  }
}
