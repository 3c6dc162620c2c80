package pulsarbox.spark;

import com.github.luben.zstd.Zstd;
import com.github.luben.zstd.ZstdDecompressCtx;
import com.github.luben.zstd.ZstdDictDecompress;
import java.io.IOException;
import java.nio.ByteBuffer;
import java.util.HashMap;
import java.util.Map;
import java.util.zip.DataFormatException;
import java.util.zip.Inflater;
import net.jpountz.lz4.LZ4Factory;
import org.xerial.snappy.Snappy;

/** Decompression of bodies, by clients and at rest. Every size is checked; a codec that is unknown here is Python's. */
final class Codecs implements AutoCloseable {
  /** Most bytes of a decompressed body, as in {@code plugins/compression/wire.py}. */
  private static final int BYTES_MAX = 1 << 28;
  private static final int LZ4_RATIO = 255;
  private static final int DICTIONARY_HEAD = 16;
  private static final int LZ4_TAG = 0x6c7a3420;
  private static final int ZLIB_TAG = 0x7a6c6962;
  private static final int ZSTD_TAG = 0x7a737464;
  private static final int SNAPPY_TAG = 0x736e6170;
  private static final int LZ4 = 1;
  private static final int ZLIB = 2;
  private static final int ZSTD = 3;
  private static final int SNAPPY = 4;

  private final VolumeTable tables;
  private final Map<Integer, ZstdDictDecompress> dictionaries = new HashMap<>();
  private final ZstdDecompressCtx zstd = new ZstdDecompressCtx();

  Codecs(VolumeTable tables) {
    this.tables = tables;
  }

  @Override
  public void close() {
    zstd.close();
    for (ZstdDictDecompress each : dictionaries.values()) each.close();
  }

  /** Decompresses an entry: its codec, size and dictionary are at {@code header}. */
  byte[] atRest(ByteBuffer batch, int header, int at, int end) throws IOException {
    int tag = batch.getInt(header);
    int type = tag == LZ4_TAG ? LZ4 : tag == ZLIB_TAG ? ZLIB : tag == ZSTD_TAG ? ZSTD : tag == SNAPPY_TAG ? SNAPPY : 0;
    return decompress(type, batch.getInt(header + 8), copy(batch, at, end), batch.getInt(header + 4));
  }

  /** Decompresses a body with a CompressionType of the protocol. */
  byte[] ofClient(int type, ByteBuffer body, int at, int end, int size) throws IOException {
    return decompress(type, 0, copy(body, at, end), size);
  }

  private static byte[] copy(ByteBuffer from, int at, int end) {
    byte[] copy = new byte[end - at];
    from.get(at, copy);
    return copy;
  }

  private byte[] decompress(int type, int dictionary, byte[] packed, int size) throws IOException {
    if (size < 0 || size > BYTES_MAX) throw new OnlyInPython("an entry of " + (size & 0xffffffffL) + " bytes");
    if (dictionary != 0 && type != ZSTD) throw new OnlyInPython("a dictionary of an unknown codec");
    if (type == LZ4 && size > LZ4_RATIO * (long) packed.length) throw new OnlyInPython("a damaged LZ4 block");
    if (type == SNAPPY && Snappy.uncompressedLength(packed) != size) throw new OnlyInPython("a damaged Snappy block");
    if (type == ZSTD && Zstd.getFrameContentSize(packed) > size) throw new OnlyInPython("a damaged ZSTD frame");
    byte[] made = new byte[size];
    if (into(type, dictionary, packed, made) != size) throw new OnlyInPython("an entry of another size than declared");
    return made;
  }

  private int into(int type, int dictionary, byte[] packed, byte[] made) throws IOException {
    switch (type) {
      case LZ4:
        return LZ4Factory.fastestInstance().safeDecompressor().decompress(packed, 0, packed.length, made, 0);
      case ZLIB:
        return inflate(packed, made);
      case ZSTD:
        if (dictionary == 0) return (int) Zstd.decompressByteArray(made, 0, made.length, packed, 0, packed.length);
        zstd.loadDict(dictionary(dictionary));
        return zstd.decompressByteArray(made, 0, made.length, packed, 0, packed.length);
      case SNAPPY:
        return Snappy.uncompress(packed, 0, packed.length, made, 0);
      default:
        throw new OnlyInPython("a codec that the JVM does not have");
    }
  }

  private static int inflate(byte[] packed, byte[] made) throws IOException {
    Inflater inflater = new Inflater();
    try {
      inflater.setInput(packed);
      int count = inflater.inflate(made);
      // a longer body would not be finished
      return inflater.finished() || inflater.inflate(new byte[1]) == 0 && inflater.finished() ? count : -1;
    } catch (DataFormatException error) {
      throw new OnlyInPython("a damaged ZLIB stream: " + error.getMessage());
    } finally {
      inflater.end();
    }
  }

  private ZstdDictDecompress dictionary(int number) throws IOException {
    ZstdDictDecompress known = dictionaries.get(number);
    if (known != null) return known;
    byte[] row = tables.dictionary(number);
    if (row == null || row.length <= DICTIONARY_HEAD) throw new OnlyInPython("dictionary " + number + " is missing");
    ZstdDictDecompress made = new ZstdDictDecompress(row, DICTIONARY_HEAD, row.length - DICTIONARY_HEAD);
    dictionaries.put(number, made);
    return made;
  }
}
