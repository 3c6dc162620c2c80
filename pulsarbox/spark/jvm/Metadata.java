package pulsarbox.spark;

import java.nio.ByteBuffer;
import java.util.Arrays;

/** Parsed metadata of an entry, or of a message in a batch: MessageMetadata and SingleMessageMetadata of the protocol. */
final class Metadata {
  private static final int VARINT = 0;
  private static final int FIXED64 = 1;
  private static final int BYTES = 2;
  private static final int FIXED32 = 5;

  /** The serialized metadata. Fields of bytes are given as an offset in it, or -1, and a size. */
  byte[] bytes = new byte[1024];
  long publishTime;
  long eventTime;
  long sequenceId;
  boolean hasSequenceId;
  int producerAt;
  int producerSize;
  int keyAt;
  int keySize;
  boolean isKeyBase64;
  int orderingAt;
  int orderingSize;
  int schemaAt;
  int schemaSize;
  boolean isNull;
  int compression;
  int uncompressedSize;
  /** -1 if the entry is not a batch. */
  int inBatch;
  boolean hasInBatch;
  int chunks;
  boolean isEncrypted;
  int payloadSize;
  boolean hasPayloadSize;
  /** Four numbers a property: offset and size of the name, then of the value. */
  int[] properties = new int[64];
  int propertyCount;

  private int at;
  private int end;

  private void begin(ByteBuffer from, int begin, int size) {
    if (bytes.length < size) bytes = new byte[2 * size];
    from.get(begin, bytes, 0, size);
    at = 0;
    end = size;
    publishTime = eventTime = sequenceId = 0;
    producerAt = keyAt = orderingAt = schemaAt = -1;
    hasSequenceId = isKeyBase64 = isNull = hasInBatch = isEncrypted = hasPayloadSize = false;
    compression = uncompressedSize = inBatch = chunks = payloadSize = propertyCount = 0;
  }

  /** Parses MessageMetadata. Throws a RuntimeException where it is malformed. */
  void parseEntry(ByteBuffer from, int begin, int size) {
    begin(from, begin, size);
    while (at < end) {
      int tag = (int) varint();
      switch (tag) {
        case 1 << 3 | BYTES: producerSize = size(); producerAt = at; at += producerSize; break;
        case 2 << 3: sequenceId = varint(); hasSequenceId = true; break;
        case 3 << 3: publishTime = varint(); break;
        case 4 << 3 | BYTES: property(); break;
        case 6 << 3 | BYTES: keySize = size(); keyAt = at; at += keySize; break;
        case 8 << 3: compression = (int) varint(); break;
        case 9 << 3: uncompressedSize = (int) varint(); break;
        case 11 << 3: inBatch = (int) varint(); hasInBatch = true; break;
        case 12 << 3: eventTime = varint(); break;
        case 13 << 3 | BYTES: isEncrypted = true; skip(tag); break;
        case 16 << 3 | BYTES: schemaSize = size(); schemaAt = at; at += schemaSize; break;
        case 17 << 3: isKeyBase64 = varint() != 0; break;
        case 18 << 3 | BYTES: orderingSize = size(); orderingAt = at; at += orderingSize; break;
        case 25 << 3: isNull = varint() != 0; break;
        case 27 << 3: chunks = (int) varint(); break;
        default: skip(tag);
      }
    }
  }

  /** Parses SingleMessageMetadata. Throws a RuntimeException where it is malformed. */
  void parseSingle(ByteBuffer from, int begin, int size) {
    begin(from, begin, size);
    while (at < end) {
      int tag = (int) varint();
      switch (tag) {
        case 1 << 3 | BYTES: property(); break;
        case 2 << 3 | BYTES: keySize = size(); keyAt = at; at += keySize; break;
        case 3 << 3: payloadSize = (int) varint(); hasPayloadSize = true; break;
        case 5 << 3: eventTime = varint(); break;
        case 6 << 3: isKeyBase64 = varint() != 0; break;
        case 7 << 3 | BYTES: orderingSize = size(); orderingAt = at; at += orderingSize; break;
        case 8 << 3: sequenceId = varint(); hasSequenceId = true; break;
        case 9 << 3: isNull = varint() != 0; break;
        default: skip(tag);
      }
    }
    if (!hasPayloadSize || payloadSize < 0) throw new OnlyInPython("a message without the size of its payload");
  }

  private long varint() {
    long found = 0;
    for (int shift = 0; shift < 70; shift += 7) {
      if (at >= end) throw new OnlyInPython("malformed metadata");
      byte next = bytes[at++];
      found |= (long) (next & 0x7f) << shift;
      if (next >= 0) return found;
    }
    throw new OnlyInPython("malformed metadata");
  }

  private int size() {
    long size = varint();
    if (size < 0 || size > end - at) throw new OnlyInPython("malformed metadata");
    return (int) size;
  }

  private void skip(int tag) {
    switch (tag & 7) {
      case VARINT: varint(); break;
      case FIXED64: at += 8; break;
      case BYTES: int size = size(); at += size; break; // size() moves it as well
      case FIXED32: at += 4; break;
      default: throw new OnlyInPython("malformed metadata");
    }
    if (tag >>> 3 == 0 || at > end) throw new OnlyInPython("malformed metadata");
  }

  private void property() {
    int size = size();
    int stop = at + size;
    int base = 4 * propertyCount++;
    if (properties.length < base + 4) properties = Arrays.copyOf(properties, 2 * properties.length);
    properties[base] = properties[base + 2] = -1;
    while (at < stop) {
      int tag = (int) varint();
      int place = tag == (1 << 3 | BYTES) ? base : tag == (2 << 3 | BYTES) ? base + 2 : -1;
      if (place < 0) throw new OnlyInPython("malformed metadata");
      properties[place + 1] = size();
      properties[place] = at;
      at += properties[place + 1];
    }
    if (at != stop || properties[base] < 0 || properties[base + 2] < 0) throw new OnlyInPython("malformed metadata");
    if (propertyCount > 1) keepLast(base);
  }

  /** Of a name repeated within a message, the last value counts, at the place of the first. */
  private void keepLast(int base) {
    for (int other = 0; other < base; other += 4) {
      if (isSame(other, base)) {
        properties[other + 2] = properties[base + 2];
        properties[other + 3] = properties[base + 3];
        propertyCount--;
        return;
      }
    }
  }

  private boolean isSame(int one, int other) {
    int begin = properties[one];
    int from = properties[other];
    return Arrays.equals(
        bytes, begin, begin + properties[one + 1], bytes, from, from + properties[other + 1]);
  }
}
