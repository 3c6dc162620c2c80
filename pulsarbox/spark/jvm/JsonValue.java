package pulsarbox.spark;

import com.fasterxml.jackson.databind.JsonNode;
import java.nio.charset.StandardCharsets;
import java.util.Arrays;
import java.util.HashSet;
import java.util.Set;
import org.apache.spark.sql.execution.vectorized.WritableColumnVector;

/** Reader of JSON objects. Of a name that occurs twice, Python decides which value counts. */
final class JsonValue extends ValueReader {
  private static final int DEPTH_MAX = 64;
  private static final int DIGITS_MAX = 18;
  private static final int EXACT_DIGITS = 15;
  private static final double[] TENS = new double[23];

  static {
    for (int i = 0; i < TENS.length; i++) TENS[i] = Double.parseDouble("1e" + i);
  }

  private final Node root;
  private boolean isBad;
  private int depth;
  /** The last string: its bytes, without escapes. */
  private byte[] text;
  private int textAt;
  private int textSize;
  private byte[] unescaped = new byte[256];
  private int numberAt;
  private boolean isWhole;

  JsonValue(JsonNode program, int[] places) {
    root = struct(program, places);
  }

  private Struct struct(JsonNode node, int[] places) {
    JsonNode fields = node.get(1);
    Struct made = new Struct(fields.size());
    for (int i = 0; i < fields.size(); i++) {
      made.names[i] = fields.get(i).get(0).asText().getBytes(StandardCharsets.UTF_8);
      made.nodes[i] = node(fields.get(i).get(1));
      made.places[i] = places == null ? i : places[i];
    }
    return made;
  }

  private Node node(JsonNode node) {
    switch (node.get(0).asText()) {
      case "boolean": return new Truth();
      case "byte": return new Whole(1, Byte.MIN_VALUE, Byte.MAX_VALUE);
      case "short": return new Whole(2, Short.MIN_VALUE, Short.MAX_VALUE);
      case "int": return new Whole(4, Integer.MIN_VALUE, Integer.MAX_VALUE);
      case "long": return new Whole(8, Long.MIN_VALUE, Long.MAX_VALUE);
      case "float": return new Real(false);
      case "double": return new Real(true);
      case "string": return new Text();
      case "array": return new Elements(node(node.get(1)));
      case "map": return new Pairs(node(node.get(1)));
      case "struct": return struct(node, null);
      default: throw new OnlyInPython("a program of another version");
    }
  }

  @Override
  void read(WritableColumnVector to, int row) {
    isBad = false;
    depth = 0;
    if (at == end) throw BadValue.BAD;
    if (bytes[at] <= 0 || end - at > 1 && bytes[at + 1] == 0) throw new OnlyInPython("JSON in another encoding");
    space();
    if (peek() != '{') throw BadValue.BAD;
    root.read(to, row);
    space();
    if (isBad || at != end) throw BadValue.BAD;
  }

  // Values ------------------------------------------------------------------------------------------------------------

  private void value(Node node, WritableColumnVector to, int row) {
    if (peek() != 'n') {
      node.read(to, row);
    } else {
      literal("null");
      if (to != null) to.putNull(row);
    }
  }

  /** Passes a value that does not fit. The rest is read too: a name that occurs twice would make it fit. */
  private void mismatch() {
    isBad = true;
    skip();
  }

  private final class Struct extends Node {
    private final byte[][] names;
    private final Node[] nodes;
    private final int[] places;

    Struct(int count) {
      names = new byte[count][];
      nodes = new Node[count];
      places = new int[count];
    }

    @Override
    void read(WritableColumnVector to, int row) {
      if (peek() != '{') {
        mismatch();
        return;
      }
      at++;
      long[] seen = new long[(names.length + 63) >> 6];
      int next = 0;
      for (boolean isMore = !isOver('}'); isMore; isMore = goesOn('}')) {
        int field = name(next);
        if (field < 0) {
          skip();
          continue;
        }
        if ((seen[field >> 6] & 1L << field) != 0) throw new OnlyInPython("JSON with a name that occurs twice");
        seen[field >> 6] |= 1L << field;
        value(nodes[field], column(to, field), row);
        next = field + 1;
      }
      if (to == null) return;
      for (int i = 0; i < names.length; i++) {
        if ((seen[i >> 6] & 1L << i) == 0 && places[i] >= 0) to.getChild(places[i]).putNull(row);
      }
    }

    private WritableColumnVector column(WritableColumnVector to, int field) {
      return to == null || places[field] < 0 ? null : to.getChild(places[field]);
    }

    /** Reads a name and its colon; returns the number of the field, which is likely {@code next}, or -1. */
    private int name(int next) {
      int found = -1;
      if (next < names.length && isHere(names[next])) {
        at += names[next].length + 2;
        found = next;
      } else {
        string();
        for (int i = 0; i < names.length && found < 0; i++) {
          int field = next + i < names.length ? next + i : next + i - names.length; // the next ones are the likeliest
          if (Arrays.equals(names[field], 0, names[field].length, text, textAt, textAt + textSize)) found = field;
        }
      }
      colon();
      return found;
    }

    private boolean isHere(byte[] name) {
      int last = at + name.length + 1;
      return last < end && bytes[at] == '"' && bytes[last] == '"'
          && Arrays.equals(name, 0, name.length, bytes, at + 1, last);
    }
  }

  private final class Elements extends Node {
    private final Node item;

    Elements(Node item) {
      this.item = item;
    }

    @Override
    void read(WritableColumnVector to, int row) {
      if (peek() != '[') {
        mismatch();
        return;
      }
      at++;
      WritableColumnVector data = to == null ? null : to.arrayData();
      int first = data == null ? 0 : data.getElementsAppended();
      int count = 0;
      for (boolean isMore = !isOver(']'); isMore; isMore = goesOn(']')) {
        value(item, data, append(data));
        count++;
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
      if (peek() != '{') {
        mismatch();
        return;
      }
      at++;
      WritableColumnVector keys = to == null ? null : to.getChild(0);
      WritableColumnVector items = to == null ? null : to.getChild(1);
      int first = keys == null ? 0 : keys.getElementsAppended();
      Set<String> known = new HashSet<>();
      for (boolean isMore = !isOver('}'); isMore; isMore = goesOn('}')) {
        string();
        if (!known.add(ValueReader.name(text, textAt, textSize))) throw new OnlyInPython("JSON with a name twice");
        int place = append(keys);
        if (keys != null) keys.putByteArray(place, text, textAt, textSize);
        colon();
        value(item, items, append(items));
      }
      if (to != null) to.putArray(row, first, known.size());
    }
  }

  private final class Truth extends Node {
    @Override
    void read(WritableColumnVector to, int row) {
      int first = peek();
      if (first != 't' && first != 'f') {
        mismatch();
        return;
      }
      literal(first == 't' ? "true" : "false");
      if (to != null) to.putBoolean(row, first == 't');
    }
  }

  private final class Text extends Node {
    @Override
    void read(WritableColumnVector to, int row) {
      int first = peek();
      if (first == '"') {
        string();
        if (to != null) to.putByteArray(row, text, textAt, textSize);
        return;
      }
      int begin = at;
      if (first == 't' || first == 'f') literal(first == 't' ? "true" : "false");
      else if (!isNumber(first) || !isShortNumber()) throw new OnlyInPython("JSON with another value for text");
      if (to != null) to.putByteArray(row, bytes, begin, at - begin);
    }

    /** Passes a whole number that Python writes as it is. */
    private boolean isShortNumber() {
      number();
      boolean isZero = at - numberAt == 2 && bytes[numberAt] == '-' && bytes[numberAt + 1] == '0';
      return isWhole && at - numberAt <= DIGITS_MAX && !isZero;
    }
  }

  private final class Whole extends Node {
    private final int size;
    private final long least;
    private final long most;

    Whole(int size, long least, long most) {
      this.size = size;
      this.least = least;
      this.most = most;
    }

    @Override
    void read(WritableColumnVector to, int row) {
      if (!isNumber(peek())) {
        mismatch();
        return;
      }
      number();
      long found = isWhole ? whole() : 0;
      if (!isWhole || found < least || found > most) isBad = true;
      else if (to != null) put(to, row, found);
    }

    private void put(WritableColumnVector to, int row, long found) {
      if (size == 8) to.putLong(row, found);
      else if (size == 4) to.putInt(row, (int) found);
      else if (size == 2) to.putShort(row, (short) found);
      else to.putByte(row, (byte) found);
    }
  }

  private final class Real extends Node {
    private final boolean isDouble;

    Real(boolean isDouble) {
      this.isDouble = isDouble;
    }

    @Override
    void read(WritableColumnVector to, int row) {
      int first = peek();
      if (first == '"') {
        string();
        String name = ValueReader.name(text, textAt, textSize);
        if (name.equals("NaN") || name.equals("Infinity") || name.equals("-Infinity")) {
          put(to, row, Double.parseDouble(name));
        } else {
          isBad = true;
        }
      } else if (isNumber(first)) {
        number();
        put(to, row, real());
      } else {
        mismatch();
      }
    }

    private void put(WritableColumnVector to, int row, double found) {
      if (!isDouble && isUnsure(found)) throw new OnlyInPython("a number between two of 32 bits");
      if (to == null) return;
      if (isDouble) to.putDouble(row, found);
      else to.putFloat(row, (float) found);
    }

    /** Returns whether rounding to 32 bits directly may give another number. */
    private boolean isUnsure(double found) {
      long bits = Double.doubleToRawLongBits(found) & (1L << 29) - 1;
      return bits == 1L << 28 || found != 0 && Math.abs(found) < Float.MIN_NORMAL;
    }
  }

  // Syntax ------------------------------------------------------------------------------------------------------------

  private void space() {
    while (at < end && (bytes[at] == ' ' || bytes[at] == '\n' || bytes[at] == '\r' || bytes[at] == '\t')) at++;
  }

  private int peek() {
    if (at >= end) throw BadValue.BAD;
    return bytes[at];
  }

  /** Passes the end of an object or array that begins here, if it has no elements. */
  private boolean isOver(char last) {
    space();
    if (peek() != last) return false;
    at++;
    return true;
  }

  /** Passes what is behind an element: a comma, or the end. */
  private boolean goesOn(char last) {
    space();
    int found = peek();
    at++;
    if (found == last) return false;
    if (found != ',') throw BadValue.BAD;
    space();
    return true;
  }

  private void colon() {
    space();
    if (peek() != ':') throw BadValue.BAD;
    at++;
    space();
  }

  private void literal(String word) {
    for (int i = 0; i < word.length(); i++, at++) {
      if (at >= end || bytes[at] != word.charAt(i)) throw BadValue.BAD;
    }
  }

  private void skip() {
    int first = peek();
    if (first == '"') string();
    else if (first == '{' || first == '[') skipInside(first == '{');
    else if (first == 't') literal("true");
    else if (first == 'f') literal("false");
    else if (first == 'n') literal("null");
    else if (isNumber(first)) number();
    else throw BadValue.BAD;
  }

  private void skipInside(boolean isObject) {
    if (++depth > DEPTH_MAX) throw new OnlyInPython("JSON with too many levels");
    char last = isObject ? '}' : ']';
    at++;
    for (boolean isMore = !isOver(last); isMore; isMore = goesOn(last)) {
      if (isObject) {
        string();
        colon();
      }
      skip();
    }
    depth--;
  }

  /** Reads a string into {@code text}. */
  private void string() {
    if (peek() != '"') throw BadValue.BAD;
    int begin = ++at;
    int all = 0;
    while (true) {
      int next = peek();
      if (next == '"') break;
      if (next == '\\') {
        unescape(begin);
        return;
      }
      if (next >= 0 && next < ' ') throw BadValue.BAD;
      all |= next;
      at++;
    }
    take(bytes, begin, at - begin, all < 0);
    at++;
  }

  private void take(byte[] from, int begin, int size, boolean isOther) {
    if (isOther && !isText(from, begin, size)) throw new OnlyInPython("JSON that is not UTF-8");
    text = from;
    textAt = begin;
    textSize = size;
  }

  private void unescape(int begin) {
    int size = at - begin;
    if (unescaped.length < end - begin) unescaped = new byte[2 * (end - begin)]; // no escape is longer in UTF-8
    System.arraycopy(bytes, begin, unescaped, 0, size);
    for (int next = peek(); next != '"'; next = peek()) {
      at++;
      if (next >= 0 && next < ' ') throw BadValue.BAD;
      if (next != '\\') unescaped[size++] = (byte) next;
      else size = escape(size);
    }
    at++;
    take(unescaped, 0, size, true);
  }

  private int escape(int size) {
    int kind = peek();
    at++;
    int plain = "\"\\/bfnrt".indexOf(kind);
    if (kind == 'u') return unicode(size);
    if (plain < 0) throw BadValue.BAD;
    unescaped[size] = (byte) "\"\\/\b\f\n\r\t".charAt(plain);
    return size + 1;
  }

  private int unicode(int size) {
    int code = hex();
    if (code >= 0xd800 && code < 0xe000) {
      boolean isPair = code < 0xdc00 && end - at > 6 && bytes[at] == '\\' && bytes[at + 1] == 'u';
      if (!isPair) throw new OnlyInPython("JSON with half a character");
      at += 2;
      int low = hex();
      if (low < 0xdc00 || low >= 0xe000) throw new OnlyInPython("JSON with half a character");
      code = Character.toCodePoint((char) code, (char) low);
    }
    byte[] made = new String(Character.toChars(code)).getBytes(StandardCharsets.UTF_8);
    System.arraycopy(made, 0, unescaped, size, made.length);
    return size + made.length;
  }

  private int hex() {
    int found = 0;
    for (int i = 0; i < 4; i++, at++) {
      int digit = peek() < 0 ? -1 : Character.digit(bytes[at], 16);
      if (digit < 0) throw BadValue.BAD;
      found = found << 4 | digit;
    }
    return found;
  }

  // Numbers -----------------------------------------------------------------------------------------------------------

  private boolean isNumber(int first) {
    if (first == 'N' || first == 'I') throw new OnlyInPython("JSON with a number that JSON does not have");
    return first == '-' || isDigit(first);
  }

  private static boolean isDigit(int found) {
    return found >= '0' && found <= '9';
  }

  /** Passes a number, from {@code numberAt}. */
  private void number() {
    numberAt = at;
    isWhole = true;
    if (bytes[at] == '-') at++;
    if (peek() == 'I') throw new OnlyInPython("JSON with a number that JSON does not have");
    if (peek() == '0') at++;
    else if (digits() == 0) throw BadValue.BAD;
    if (at < end && bytes[at] == '.') {
      at++;
      isWhole = false;
      if (digits() == 0) throw BadValue.BAD;
    }
    if (at < end && (bytes[at] == 'e' || bytes[at] == 'E')) {
      at++;
      isWhole = false;
      if (at < end && (bytes[at] == '+' || bytes[at] == '-')) at++;
      int count = digits();
      if (count == 0) throw BadValue.BAD;
      if (count > 2) throw new OnlyInPython("a number with a long exponent");
    }
    if (at - numberAt > 200) throw new OnlyInPython("a number with many digits");
  }

  private int digits() {
    int begin = at;
    while (at < end && isDigit(bytes[at])) at++;
    return at - begin;
  }

  private long whole() {
    boolean isNegative = bytes[numberAt] == '-';
    if (at - numberAt > DIGITS_MAX) throw new OnlyInPython("a number with many digits");
    long found = 0;
    for (int i = isNegative ? numberAt + 1 : numberAt; i < at; i++) found = 10 * found + bytes[i] - '0';
    return isNegative ? -found : found;
  }

  private double real() {
    boolean isNegative = bytes[numberAt] == '-';
    long digits = 0;
    int count = 0;
    int power = 0;
    int i = isNegative ? numberAt + 1 : numberAt;
    boolean isBehind = false;
    for (; i < at && count <= EXACT_DIGITS && (isDigit(bytes[i]) || bytes[i] == '.'); i++) {
      if (bytes[i] == '.') {
        isBehind = true;
        continue;
      }
      digits = 10 * digits + bytes[i] - '0';
      if (digits > 0) count++;
      if (isBehind) power--;
    }
    if (isWhole && digits == 0 && isNegative) throw new OnlyInPython("a negative zero");
    if (i < at || count > EXACT_DIGITS || power <= -TENS.length) {
      return Double.parseDouble(ValueReader.name(bytes, numberAt, at - numberAt));
    }
    double found = digits / TENS[-power]; // both are exact, so the quotient is rounded once
    return isNegative ? -found : found;
  }
}
