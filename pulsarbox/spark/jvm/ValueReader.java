package pulsarbox.spark;

import com.fasterxml.jackson.databind.JsonNode;
import java.nio.charset.StandardCharsets;
import org.apache.spark.sql.execution.vectorized.WritableColumnVector;
import org.apache.spark.sql.types.StructField;
import org.apache.spark.sql.types.StructType;
import org.apache.spark.unsafe.types.UTF8String;

/**
 * Reader of values into columns, by a program of {@code decode/value_programs.py}. It finds what the decoder in Python
 * finds: a value that does not match is BadValue. Where it cannot tell, it throws OnlyInPython.
 */
abstract class ValueReader {
  byte[] bytes;
  int at;
  int end;

  /** Part of a program: reads what is at {@code at} into a column, or nowhere if it is null. */
  abstract static class Node {
    abstract void read(WritableColumnVector to, int row);
  }

  /** Returns a reader; {@code places}: for each column of the value its place in the struct, or -1. */
  static ValueReader of(JsonNode program, int[] places) {
    switch (program.get(0).asText()) {
      case "json": return new JsonValue(program.get(1), places);
      case "avro": return new AvroValue(program.get(1), places);
      case "text": return new TextValue(places[0]);
      default: throw new OnlyInPython("a program of another version");
    }
  }

  /** Reads a value into a row of the columns of a struct. Throws BadValue, OnlyInPython, with columns partly written. */
  final void read(byte[] value, int begin, int size, WritableColumnVector to, int row) {
    bytes = value;
    at = begin;
    end = begin + size;
    read(to, row);
  }

  abstract void read(WritableColumnVector to, int row);

  /** Appends an element to the data of an array or a map; returns its row. */
  static int append(WritableColumnVector data) {
    if (data == null) return 0;
    int row = data.getElementsAppended();
    reserve(data, row + 1);
    data.addElementsAppended(1); // now, since a row of a bad value is not used again
    return row;
  }

  /** Makes room for rows, also in the fields of structs. */
  static void reserve(WritableColumnVector column, int rows) {
    column.reserve(rows);
    if (!(column.dataType() instanceof StructType)) return;
    StructField[] fields = ((StructType) column.dataType()).fields();
    for (int i = 0; i < fields.length; i++) reserve(column.getChild(i), rows);
  }

  /** Returns whether text is UTF-8. */
  static boolean isText(byte[] bytes, int at, int size) {
    for (int i = at; i < at + size; i++) {
      if (bytes[i] < 0) return UTF8String.fromBytes(bytes, at, size).isValid();
    }
    return true;
  }

  /** Returns a string that is equal for the same bytes. */
  static String name(byte[] bytes, int at, int size) {
    return new String(bytes, at, size, StandardCharsets.ISO_8859_1);
  }

  /** Reader of values that are text. */
  private static final class TextValue extends ValueReader {
    private final int place;

    TextValue(int place) {
      this.place = place;
    }

    @Override
    void read(WritableColumnVector to, int row) {
      if (!isText(bytes, at, end - at)) throw BadValue.BAD;
      if (place >= 0) to.getChild(place).putByteArray(row, bytes, at, end - at);
    }
  }
}
