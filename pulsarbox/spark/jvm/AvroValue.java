package pulsarbox.spark;

import com.fasterxml.jackson.databind.JsonNode;
import java.math.BigInteger;
import java.nio.ByteBuffer;
import java.nio.ByteOrder;
import java.nio.charset.StandardCharsets;
import java.util.HashSet;
import java.util.Set;
import org.apache.spark.sql.execution.vectorized.WritableColumnVector;
import org.apache.spark.sql.types.Decimal;
import org.apache.spark.sql.types.IntegerType;

/** Reader of Avro records. What is behind a record is not read. */
final class AvroValue extends ValueReader {
  // the first and the last time of Python's datetime
  private static final long MILLIS_MIN = -62_135_596_800_000L;
  private static final long MILLIS_MAX = 253_402_300_799_999L;
  private static final long DAY = 86_400_000L;

  private final Node root;
  private ByteBuffer little;

  AvroValue(JsonNode program, int[] places) {
    root = new Fields(program, places);
  }

  @Override
  void read(WritableColumnVector to, int row) {
    if (little == null || little.array() != bytes) little = ByteBuffer.wrap(bytes).order(ByteOrder.LITTLE_ENDIAN);
    root.read(to, row);
  }

  private Node node(JsonNode node) {
    String kind = node.get(0).asText();
    String column = node.size() > 1 && node.get(1).isTextual() ? node.get(1).asText() : kind;
    switch (kind) {
      case "null": return new Null();
      case "boolean": return new Truth();
      case "int":
      case "long": return new Whole(column);
      case "float": return new Real(4, column.equals("double"));
      case "double": return new Real(8, true);
      case "bytes": return new Bytes(-1);
      case "fixed": return new Bytes(node.get(1).asInt());
      case "string": return new Text();
      case "uuid": return new Uuid();
      case "date": return new Time(0);
      case "millis": return new Time(1);
      case "micros": return new Time(1000);
      case "decimal": return new Number(node.get(1).asInt(), node.get(2).asInt(), node.get(3).asInt());
      case "enum": return new Symbol(node.get(1));
      case "array": return new Elements(node(node.get(1)));
      case "map": return new Pairs(node(node.get(1)));
      case "union": return new Branch(node.get(1));
      case "record": return new Fields(node, null);
      case "skip": return new Skipped(node(node.get(1)));
      case "?": return new Unsure();
      default: throw new OnlyInPython("a program of another version");
    }
  }

  // Records and what has elements -------------------------------------------------------------------------------------

  private final class Fields extends Node {
    private final Node[] nodes;
    private final int[] places;
    private final JsonNode[] constants;
    private final int[] constantPlaces;

    Fields(JsonNode program, int[] mapped) {
      JsonNode fields = program.get(1);
      JsonNode others = program.get(2);
      nodes = new Node[fields.size()];
      places = new int[nodes.length];
      constants = new JsonNode[others.size()];
      constantPlaces = new int[constants.length];
      for (int i = 0; i < nodes.length; i++) {
        nodes[i] = node(fields.get(i).get(1));
        places[i] = place(fields.get(i).get(0).asInt(), mapped);
      }
      for (int i = 0; i < constants.length; i++) {
        constants[i] = others.get(i).get(1);
        constantPlaces[i] = place(others.get(i).get(0).asInt(), mapped);
      }
    }

    private int place(int told, int[] mapped) {
      return told < 0 || mapped == null ? told : mapped[told];
    }

    @Override
    void read(WritableColumnVector to, int row) {
      for (int i = 0; i < nodes.length; i++) {
        nodes[i].read(to == null || places[i] < 0 ? null : to.getChild(places[i]), row);
      }
      for (int i = 0; to != null && i < constants.length; i++) {
        if (constantPlaces[i] >= 0) put(to.getChild(constantPlaces[i]), row, constants[i]);
      }
    }

    private void put(WritableColumnVector to, int row, JsonNode value) {
      if (value.isNull()) to.putNull(row);
      else if (value.isBoolean()) to.putBoolean(row, value.asBoolean());
      else if (value.isTextual()) to.putByteArray(row, value.asText().getBytes(StandardCharsets.UTF_8));
      else if (value.isFloatingPointNumber()) putReal(to, row, value.asDouble());
      else if (to.dataType() instanceof IntegerType) to.putInt(row, value.asInt());
      else to.putLong(row, value.asLong());
    }
  }

  private static void putReal(WritableColumnVector to, int row, double found) {
    if (to.dataType() instanceof org.apache.spark.sql.types.DoubleType) to.putDouble(row, found);
    else to.putFloat(row, (float) found);
  }

  private final class Branch extends Node {
    private final Node[] nodes;

    Branch(JsonNode branches) {
      nodes = new Node[branches.size()];
      for (int i = 0; i < nodes.length; i++) nodes[i] = node(branches.get(i));
    }

    @Override
    void read(WritableColumnVector to, int row) {
      nodes[index(nodes.length)].read(to, row);
    }
  }

  private final class Elements extends Node {
    private final Node item;

    Elements(Node item) {
      this.item = item;
    }

    @Override
    void read(WritableColumnVector to, int row) {
      WritableColumnVector data = to == null ? null : to.arrayData();
      int first = data == null ? 0 : data.getElementsAppended();
      int count = 0;
      for (int block = block(); block > 0; block = block()) {
        for (int i = 0; i < block; i++, count++) item.read(data, append(data));
      }
      if (to != null) to.putArray(row, first, count);
    }
  }

  private final class Pairs extends Node {
    private final Node item;

    Pairs(Node item) {
      this.item = item;
    }

    @Override
    void read(WritableColumnVector to, int row) {
      WritableColumnVector keys = to == null ? null : to.getChild(0);
      WritableColumnVector items = to == null ? null : to.getChild(1);
      int first = keys == null ? 0 : keys.getElementsAppended();
      Set<String> known = new HashSet<>();
      for (int block = block(); block > 0; block = block()) {
        for (int i = 0; i < block; i++) {
          int size = text();
          if (!known.add(name(bytes, at, size))) throw new OnlyInPython("Avro with a key that occurs twice");
          int place = append(keys);
          if (keys != null) keys.putByteArray(place, bytes, at, size);
          at += size;
          item.read(items, append(items));
        }
      }
      if (to != null) to.putArray(row, first, known.size());
    }
  }

  /** A field that the newest schema lacks: Python passes it without a look at its end. */
  private final class Skipped extends Node {
    private final Node node;

    Skipped(Node node) {
      this.node = node;
    }

    @Override
    void read(WritableColumnVector to, int row) {
      try {
        node.read(null, row);
      } catch (BadValue bad) {
        throw new OnlyInPython("a value that is not whole");
      }
    }
  }

  private static final class Unsure extends Node {
    @Override
    void read(WritableColumnVector to, int row) {
      throw new OnlyInPython("a value of a union that only Python reads");
    }
  }

  // Primitives --------------------------------------------------------------------------------------------------------

  private static final class Null extends Node {
    @Override
    void read(WritableColumnVector to, int row) {
      if (to != null) to.putNull(row);
    }
  }

  private final class Truth extends Node {
    @Override
    void read(WritableColumnVector to, int row) {
      need(1);
      if (to != null) to.putBoolean(row, bytes[at] != 0);
      at++;
    }
  }

  private final class Whole extends Node {
    private final boolean isInt;
    private final boolean isDouble;

    Whole(String column) {
      isInt = column.equals("int");
      isDouble = column.equals("double");
    }

    @Override
    void read(WritableColumnVector to, int row) {
      long found = number();
      if (isInt && found != (int) found) throw BadValue.BAD;
      if (isDouble && found != (int) found) throw new OnlyInPython("a number of more than 32 bits");
      if (to == null) return;
      if (isInt) to.putInt(row, (int) found);
      else if (isDouble) to.putDouble(row, found);
      else to.putLong(row, found);
    }
  }

  private final class Real extends Node {
    private final int size;
    private final boolean isDouble;

    Real(int size, boolean isDouble) {
      this.size = size;
      this.isDouble = isDouble;
    }

    @Override
    void read(WritableColumnVector to, int row) {
      need(size);
      if (to != null && size == 8) to.putDouble(row, little.getDouble(at));
      else if (to != null && isDouble) to.putDouble(row, little.getFloat(at));
      else if (to != null) to.putFloat(row, little.getFloat(at));
      at += size;
    }
  }

  private final class Bytes extends Node {
    private final int fixed;

    Bytes(int fixed) {
      this.fixed = fixed;
    }

    @Override
    void read(WritableColumnVector to, int row) {
      int size = size(fixed);
      if (to != null) to.putByteArray(row, bytes, at, size);
      at += size;
    }
  }

  private final class Text extends Node {
    @Override
    void read(WritableColumnVector to, int row) {
      int size = text();
      if (to != null) to.putByteArray(row, bytes, at, size);
      at += size;
    }
  }

  /** A UUID; Python puts other spellings into this one. */
  private final class Uuid extends Node {
    @Override
    void read(WritableColumnVector to, int row) {
      int size = text();
      if (size != 36) throw new OnlyInPython("a UUID that is spelled otherwise");
      for (int i = 0; i < size; i++) {
        byte each = bytes[at + i];
        boolean isDash = i == 8 || i == 13 || i == 18 || i == 23;
        boolean fits = isDash ? each == '-' : each >= '0' && each <= '9' || each >= 'a' && each <= 'f';
        if (!fits) throw new OnlyInPython("a UUID that is spelled otherwise");
      }
      if (to != null) to.putByteArray(row, bytes, at, size);
      at += size;
    }
  }

  private final class Time extends Node {
    private final int perMilli;

    /** {@code perMilli}: units of a millisecond; 0 for days. */
    Time(int perMilli) {
      this.perMilli = perMilli;
    }

    @Override
    void read(WritableColumnVector to, int row) {
      long found = number();
      long least = perMilli == 0 ? MILLIS_MIN / DAY : MILLIS_MIN * perMilli;
      long most = perMilli == 0 ? MILLIS_MAX / DAY : MILLIS_MAX * perMilli;
      if (found < least || found > most) throw new OnlyInPython("a time that Python does not have");
      if (to == null) return;
      if (perMilli == 0) to.putInt(row, (int) found);
      else to.putLong(row, perMilli == 1 ? found * 1000 : found);
    }
  }

  private final class Number extends Node {
    private final int precision;
    private final int scale;
    private final int fixed;
    private final BigInteger limit;

    Number(int precision, int scale, int fixed) {
      this.precision = precision;
      this.scale = scale;
      this.fixed = fixed;
      limit = BigInteger.TEN.pow(precision);
    }

    @Override
    void read(WritableColumnVector to, int row) {
      int size = size(fixed);
      BigInteger found = size == 0 ? BigInteger.ZERO : new BigInteger(bytes, at, size);
      at += size;
      if (found.abs().compareTo(limit) >= 0) throw BadValue.BAD;
      if (to == null) return;
      if (precision <= 18) to.putDecimal(row, Decimal.createUnsafe(found.longValue(), precision, scale), precision);
      else to.putByteArray(row, found.toByteArray());
    }
  }

  private final class Symbol extends Node {
    private final byte[][] symbols;

    Symbol(JsonNode names) {
      symbols = new byte[names.size()][];
      for (int i = 0; i < symbols.length; i++) symbols[i] = names.get(i).asText().getBytes(StandardCharsets.UTF_8);
    }

    @Override
    void read(WritableColumnVector to, int row) {
      byte[] found = symbols[index(symbols.length)];
      if (to != null) to.putByteArray(row, found, 0, found.length);
    }
  }

  // Bytes -------------------------------------------------------------------------------------------------------------

  private void need(int size) {
    if (size > end - at) throw BadValue.BAD;
  }

  private long number() {
    long found = 0;
    for (int shift = 0; shift < 64; shift += 7) {
      need(1);
      byte next = bytes[at++];
      if (shift == 63 && (next & 0xfe) != 0) break;
      found |= (long) (next & 0x7f) << shift;
      if (next >= 0) return found >>> 1 ^ -(found & 1);
    }
    throw new OnlyInPython("a number of more than 64 bits");
  }

  private int size(int fixed) {
    long size = fixed >= 0 ? fixed : number();
    if (size < 0 || size > end - at) throw BadValue.BAD;
    return (int) size;
  }

  /** Reads the size of a text, which follows. */
  private int text() {
    int size = size(-1);
    if (!isText(bytes, at, size)) throw BadValue.BAD;
    return size;
  }

  private int index(int count) {
    long found = number();
    if (found < 0) throw new OnlyInPython("a negative index"); // counts from the end in Python
    if (found >= count) throw BadValue.BAD;
    return (int) found;
  }

  /** Reads the number of elements of a block; each takes a byte at least. */
  private int block() {
    long count = number();
    if (count < 0) {
      number();
      if (count < -Integer.MAX_VALUE) throw new OnlyInPython("a block of too many elements");
      count = -count;
    }
    if (count > end - at) throw BadValue.BAD;
    return (int) count;
  }
}
