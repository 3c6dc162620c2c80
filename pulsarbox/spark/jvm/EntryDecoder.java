package pulsarbox.spark;

import java.io.IOException;
import java.nio.ByteBuffer;
import java.util.zip.CRC32C;

/** Decoder of stored entries into rows: verified, decompressed, and split into the messages of a batch. */
final class EntryDecoder {
  /** Most messages of an entry whose columns the JVM grows for. */
  static final int MESSAGES_MAX = 1 << 16;

  private static final int HEADER = 96;
  private static final int COMPRESSED_HEADER = 104;
  private static final int CHECKSUM_AT = 88;
  private static final int CODEC_AT = 92;
  private static final int ENTRY = 1;
  private static final int CHECKSUM = 1;
  private static final int MARKER = 16;
  private static final int CHUNK = 32;
  private static final int ENCRYPTED = 64;
  private static final int OWN_CHECKSUM = 128;
  private static final short MAGIC = 0x0e01;
  private static final int MAGIC_AND_CHECKSUM = 6;

  private final MessageColumns columns;
  private final Codecs codecs;
  private final RowFilter filter;
  private final CRC32C crc = new CRC32C();
  private final Metadata entryMetadata = new Metadata();
  private final Metadata single = new Metadata();
  private ByteBuffer body;
  private int at;
  private int end;

  EntryDecoder(MessageColumns columns, Codecs codecs, RowFilter filter) {
    this.columns = columns;
    this.codecs = codecs;
    this.filter = filter;
  }

  /**
   * Adds the messages of the entry whose record is at {@code offset}; returns false, with nothing added, if they do not
   * fit. Throws OnlyInPython or another RuntimeException if it cannot; some of the messages may have been added then.
   */
  boolean add(ByteBuffer batch, int offset, ReadPlan.Segment segment, int number, long entry) throws IOException {
    if (offset < 0 || batch.limit() - offset < HEADER) throw new OnlyInPython("the index points beyond the batch");
    int flags = batch.get(offset + 1) & 0xff;
    int header = batch.getShort(offset + 2) & 0xffff;
    long size = batch.getInt(offset + 4) & 0xffffffffL;
    boolean isIt = batch.get(offset) == ENTRY && batch.getLong(offset + 8) == segment.ledger
        && batch.getLong(offset + 16) == entry && header >= HEADER && offset + header + size <= batch.limit();
    if (!isIt) throw new OnlyInPython("the index points to another entry");
    if ((flags & (CHUNK | ENCRYPTED)) != 0) throw new OnlyInPython("the entry is a chunk, or encrypted");
    unpack(batch, offset, header, (int) size);
    verify(flags, batch.getInt(offset + CHECKSUM_AT));
    return (flags & MARKER) != 0 || open(segment, number, entry);
  }

  private void unpack(ByteBuffer batch, int offset, int header, int size) throws IOException {
    body = batch;
    at = offset + header;
    end = at + size;
    if (batch.getInt(offset + CODEC_AT) == 0) return;
    if (header < COMPRESSED_HEADER) throw new OnlyInPython("the header of a compressed entry is damaged");
    to(codecs.atRest(batch, offset + CODEC_AT, at, end));
  }

  private void to(byte[] bytes) {
    body = ByteBuffer.wrap(bytes);
    at = 0;
    end = bytes.length;
    if (columns.hasPayloads()) columns.hold(end);
  }

  private void verify(int flags, int checksum) {
    if ((flags & CHECKSUM) != 0) {
      boolean isIt = end - at > MAGIC_AND_CHECKSUM && body.getShort(at) == MAGIC && body.getInt(at + 2) == checksum;
      at += MAGIC_AND_CHECKSUM;
      if (!isIt || sum() != checksum) throw new OnlyInPython("the entry does not match its checksum");
    } else if ((flags & OWN_CHECKSUM) == 0 || sum() != checksum) {
      throw new OnlyInPython("the entry has no checksum, or does not match it");
    }
  }

  private int sum() {
    crc.reset();
    int limit = body.limit();
    body.limit(end).position(at);
    crc.update(body);
    body.limit(limit);
    return (int) crc.getValue();
  }

  private boolean open(ReadPlan.Segment segment, int number, long entry) throws IOException {
    int size = end - at < 4 ? -1 : body.getInt(at);
    at += 4;
    if (size < 0 || size > end - at) throw new OnlyInPython("its metadata is malformed");
    Metadata found = entryMetadata;
    found.parseEntry(body, at, size);
    at += size;
    if (found.chunks > 1 || found.isEncrypted) throw new OnlyInPython("the entry is a chunk, or encrypted");
    if (!filter.allowsTime(found.publishTime)) return true;
    if (!found.hasInBatch) {
      if (!filter.allowsKey(found)) return true;
      if (!columns.reserve(1)) return false;
      if (found.compression != 0) decompress(found);
      columns.add(number, entry, found, found, -1, body, at, end - at);
      return true;
    }
    if (found.inBatch > MESSAGES_MAX) throw new OnlyInPython("the entry has " + found.inBatch + " messages");
    int first = entry == segment.first() ? segment.fromBatch : 0;
    int last = entry == segment.last() && segment.toBatch > 0 ? segment.toBatch : found.inBatch;
    if (!columns.reserve(Math.max(0, Math.min(last, found.inBatch) - first))) return false;
    if (found.compression != 0) decompress(found);
    split(number, entry, first, last);
    return true;
  }

  /** Decompresses the body, needed or not: what cannot be decompressed is reported. */
  private void decompress(Metadata found) throws IOException {
    to(codecs.ofClient(found.compression, body, at, end, found.uncompressedSize));
  }

  private void split(int number, long entry, int first, int last) {
    for (int index = 0; index < entryMetadata.inBatch; index++) {
      int size = end - at < 4 ? -1 : body.getInt(at);
      if (size < 0 || size > end - at - 4) throw new OnlyInPython("a message of the batch is damaged");
      single.parseSingle(body, at + 4, size);
      at += 4 + size;
      if (single.payloadSize > end - at) throw new OnlyInPython("a message of the batch is damaged");
      if (index >= first && index < last && filter.allowsKey(single)) {
        columns.add(number, entry, entryMetadata, single, index, body, at, single.payloadSize);
      }
      at += single.payloadSize;
    }
  }
}
