package pulsarbox.spark;

import java.io.IOException;
import java.lang.invoke.VarHandle;
import java.nio.ByteBuffer;
import java.nio.charset.StandardCharsets;
import java.nio.file.Files;
import java.nio.file.Path;

/**
 * LMDB environment that another process may be writing, read without a slot in its table of readers.
 *
 * <p>LMDB never changes a page of a snapshot, and reuses it at the earliest in the transaction after the next but one:
 * a page freed by transaction {@code s + 1} is available to {@code s + 3}, which begins after {@code s + 2} is
 * committed. So what was copied out of snapshot {@code s} is intact if afterwards the newest transaction is {@code s} or
 * {@code s + 1}; otherwise the copy is repeated. Each step copies a few pages, in microseconds.
 */
final class Environment implements AutoCloseable {
  private static final int MAGIC = 0xBEEFC0DE;
  private static final int TRIES = 10_000;
  private static final int META = 16;
  private static final int META_DBS = 24;
  private static final int META_MAIN_ROOT = META_DBS + 48 + 40;
  private static final int META_TXN = META_DBS + 2 * 48 + 8;
  private static final int PAGE_FLAGS = 10;
  private static final int PAGE_LOWER = 12;
  private static final int PAGE_HEAD = 16;
  private static final int BRANCH = 1;
  private static final int LEAF = 2;
  private static final int NODE_HEAD = 8;
  private static final int BIG_DATA = 1;
  private static final int DB_ROOT = 40;
  private static final int DEPTH_MAX = 32;
  private static final long NO_PAGE = -1;

  final MappedFile file;
  private final ByteBuffer lock;
  private final int pageBytes;
  private long snapshot;
  private long root;

  Environment(Path directory) throws IOException {
    file = new MappedFile(directory.resolve("data.mdb"));
    try {
      ByteBuffer head = file.at(0, 4096);
      if (le(head.getInt(META)) != MAGIC) throw new OnlyInPython(file.path + " is not an LMDB file");
      pageBytes = le(head.getInt(META + META_DBS));
      if (pageBytes < 512 || pageBytes > 65536) throw new OnlyInPython(file.path + " has pages of " + pageBytes);
      Path locks = directory.resolve("lock.mdb");
      try (MappedFile mapped = Files.exists(locks) ? new MappedFile(locks) : null) {
        lock = mapped == null ? null : mapped.at(0, 16);
      }
    } catch (IOException | RuntimeException error) {
      file.close();
      throw error;
    }
  }

  @Override
  public void close() throws IOException {
    file.close();
  }

  /** Work on one snapshot, which must copy what it returns. It may see anything if the snapshot is overwritten. */
  interface Step<T> {
    T take() throws IOException;
  }

  /** Runs a step until its snapshot was intact throughout. */
  <T> T read(Step<T> step) throws IOException {
    RuntimeException failure = null;
    for (int i = 0; i < TRIES; i++) {
      if (!begin()) continue;
      T found = null;
      failure = null;
      try {
        found = step.take();
      } catch (RuntimeException error) {
        failure = error;
      }
      VarHandle.fullFence();
      if (newest() > snapshot + 1) continue;
      if (failure != null) throw new OnlyInPython(file.path + " cannot be read: " + failure);
      return found;
    }
    throw new OnlyInPython(file.path + " is written too fast" + (failure == null ? "" : ": " + failure));
  }

  private boolean begin() throws IOException {
    snapshot = newest();
    long at = (snapshot & 1) * pageBytes + META;
    ByteBuffer page = file.at(at, META_TXN + 8);
    root = le(page.getLong((int) at + META_MAIN_ROOT));
    VarHandle.fullFence();
    return le(page.getLong((int) at + META_TXN)) == snapshot && newest() == snapshot;
  }

  /** Returns the newest committed transaction: by the lock file, whose number LMDB sets last, or by the meta pages. */
  private long newest() throws IOException {
    ByteBuffer metas = file.at(0, 2L * pageBytes);
    long first = le(metas.getLong(META + META_TXN));
    long second = le(metas.getLong(pageBytes + META + META_TXN));
    long written = Math.max(first, second);
    if (lock == null) return written;
    long locked = le(lock.getLong(8));
    VarHandle.fullFence();
    // a lock file that no process has open may be older than the file
    return locked == written - 1 && locked >= 0 && metaOf(metas, locked) == locked ? locked : written;
  }

  private long metaOf(ByteBuffer metas, long transaction) {
    return le(metas.getLong((int) (transaction & 1) * pageBytes + META + META_TXN));
  }

  /** Returns the root page of a table. Within a step. */
  long table(String name) throws IOException {
    byte[] key = name.getBytes(StandardCharsets.US_ASCII);
    Found found = seek(root, key);
    if (found == null || found.compare(key) != 0) throw new OnlyInPython(file.path + " has no table " + name);
    return le(found.page.getLong(found.data + DB_ROOT));
  }

  /** A node of a leaf page; valid within a step. */
  final class Found {
    ByteBuffer page;
    int at;
    int index;
    int count;
    int key;
    int keyBytes;
    int data;
    private int flags;
    private long size;

    private void to(int number) {
      index = number;
      int node = at + (le(page.getShort(at + PAGE_HEAD + 2 * number)) & 0xffff);
      size = le(page.getShort(node)) & 0xffff | (le(page.getShort(node + 2)) & 0xffffL) << 16;
      flags = le(page.getShort(node + 4));
      keyBytes = le(page.getShort(node + 6)) & 0xffff;
      key = node + NODE_HEAD;
      data = key + keyBytes;
    }

    boolean next() {
      if (index + 1 >= count) return false;
      to(index + 1);
      return true;
    }

    int compare(byte[] wanted) {
      return Environment.compare(page, key, keyBytes, wanted);
    }

    long number(int offset) {
      return page.getLong(key + offset);
    }

    boolean isInPage() {
      return (flags & BIG_DATA) == 0;
    }

    int size() {
      if (size > Integer.MAX_VALUE - 8) throw new OnlyInPython(file.path + " has a value of " + size + " bytes");
      return (int) size;
    }

    /** Returns the offset in the file of a value that has pages of its own. */
    long offset() {
      return le(page.getLong(data)) * pageBytes + PAGE_HEAD;
    }

    byte[] value() throws IOException {
      byte[] copy = new byte[size()];
      if (isInPage()) {
        page.get(data, copy);
      } else {
        file.at(offset(), size).get(MappedFile.within(offset()), copy);
      }
      return copy;
    }
  }

  /** Returns the node with the greatest key up to {@code key}; null if there is none. Within a step. */
  Found floor(long table, byte[] key) throws IOException {
    return seek(table, key);
  }

  /** Returns the node with the least key from {@code key} on, if it is the first of all or beside the one before it. */
  Found ceiling(long table, byte[] key) throws IOException {
    Found found = seek(table, key);
    if (found == null) return table == NO_PAGE ? null : first(table);
    return found.compare(key) == 0 || found.next() ? found : null;
  }

  private Found first(long table) throws IOException {
    long page = table;
    for (int depth = 0; depth < DEPTH_MAX; depth++) {
      ByteBuffer buffer = file.at(page * pageBytes, pageBytes);
      int at = MappedFile.within(page * pageBytes);
      int count = ((le(buffer.getShort(at + PAGE_LOWER)) & 0xffff) - PAGE_HEAD) / 2;
      if ((le(buffer.getShort(at + PAGE_FLAGS)) & BRANCH) == 0) return node(buffer, at, count, 0);
      page = child(buffer, at, 0);
    }
    return null;
  }

  private Found seek(long table, byte[] key) throws IOException {
    long page = table;
    // the nearest branch that has keys before the one taken: a leaf may begin after the key
    long before = NO_PAGE;
    for (int depth = 0; depth < DEPTH_MAX && page != NO_PAGE; depth++) {
      ByteBuffer buffer = file.at(page * pageBytes, pageBytes);
      int at = MappedFile.within(page * pageBytes);
      int flags = le(buffer.getShort(at + PAGE_FLAGS));
      int count = ((le(buffer.getShort(at + PAGE_LOWER)) & 0xffff) - PAGE_HEAD) / 2;
      int place = place(buffer, at, count, key, (flags & BRANCH) != 0);
      if ((flags & BRANCH) != 0) {
        if (place > 0) before = child(buffer, at, place - 1);
        page = child(buffer, at, place);
      } else if ((flags & LEAF) == 0) {
        throw new OnlyInPython(file.path + ": page " + page + " is no leaf");
      } else if (place >= 0) {
        return node(buffer, at, count, place);
      } else {
        return before == NO_PAGE ? null : last(before);
      }
    }
    return null;
  }

  /** Returns the last node below a page. */
  private Found last(long page) throws IOException {
    for (int depth = 0; depth < DEPTH_MAX; depth++) {
      ByteBuffer buffer = file.at(page * pageBytes, pageBytes);
      int at = MappedFile.within(page * pageBytes);
      int count = ((le(buffer.getShort(at + PAGE_LOWER)) & 0xffff) - PAGE_HEAD) / 2;
      if ((le(buffer.getShort(at + PAGE_FLAGS)) & BRANCH) == 0) return node(buffer, at, count, count - 1);
      page = child(buffer, at, count - 1);
    }
    return null;
  }

  private Found node(ByteBuffer buffer, int at, int count, int place) {
    Found found = new Found();
    found.page = buffer;
    found.at = at;
    found.count = count;
    found.to(place);
    return found;
  }

  /** Returns the last node of a page whose key is up to {@code key}; -1 if none. A branch's first key is the lowest. */
  private static int place(ByteBuffer page, int at, int count, byte[] key, boolean isBranch) {
    int low = isBranch ? 1 : 0;
    int high = count - 1;
    int found = low - 1;
    while (low <= high) {
      int middle = (low + high) >>> 1;
      int node = at + (le(page.getShort(at + PAGE_HEAD + 2 * middle)) & 0xffff);
      if (compare(page, node + NODE_HEAD, le(page.getShort(node + 6)) & 0xffff, key) <= 0) {
        found = middle;
        low = middle + 1;
      } else {
        high = middle - 1;
      }
    }
    return found;
  }

  private static long child(ByteBuffer page, int at, int place) {
    int node = at + (le(page.getShort(at + PAGE_HEAD + 2 * place)) & 0xffff);
    long low = le(page.getShort(node)) & 0xffff;
    long middle = le(page.getShort(node + 2)) & 0xffff;
    long high = le(page.getShort(node + 4)) & 0xffff;
    return low | middle << 16 | high << 32;
  }

  private static int compare(ByteBuffer page, int at, int size, byte[] wanted) {
    int both = Math.min(size, wanted.length);
    for (int i = 0; i < both; i++) {
      int order = (page.get(at + i) & 0xff) - (wanted[i] & 0xff);
      if (order != 0) return order;
    }
    return size - wanted.length;
  }

  private static int le(int value) {
    return Integer.reverseBytes(value);
  }

  private static long le(long value) {
    return Long.reverseBytes(value);
  }

  private static short le(short value) {
    return Short.reverseBytes(value);
  }
}
