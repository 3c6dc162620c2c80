package pulsarbox.spark;

import com.fasterxml.jackson.databind.JsonNode;
import com.fasterxml.jackson.databind.ObjectMapper;
import java.io.IOException;
import java.nio.ByteBuffer;
import java.nio.file.Files;
import java.nio.file.NoSuchFileException;
import java.nio.file.Path;
import java.util.ArrayList;
import java.util.HashMap;
import java.util.List;
import java.util.Map;
import org.apache.spark.sql.sources.Filter;
import org.apache.spark.sql.types.StructType;
import org.apache.spark.sql.vectorized.ColumnarBatch;

/**
 * Reader of a plan's entries in the volumes of a data directory.
 *
 * <p>All entries are located first. They are read in stored order, and each has to be the next one of its segment. At the
 * first one that is missing, damaged or unusual the reader ends; {@code rest} says what it has not read.
 */
final class VolumeReader implements AutoCloseable {
  /** Entries located at a time. */
  private static final int PLACES_MAX = 1 << 20;
  private static final int TRIES = 4;
  /** Formats of a data directory that can be read ({@code storage/format.py}). */
  private static final List<Integer> FORMATS = List.of(2, 3);

  private final ReadPlan plan;
  private final Path directory;
  private final VolumeTable tables;
  /** The volumes in use, by their numbers in the tables. */
  private final Map<Long, Integer> known = new HashMap<>();
  private final List<VolumeLog> logs = new ArrayList<>();
  private final MessageColumns columns;
  private final Codecs codecs;
  private final EntryDecoder decoder;
  private final RowFilter filter;
  /** The first entry of each segment that was not read. */
  private final long[] next;
  private Places places = new Places();
  private int[] order = {};
  private int at;
  private long[] unsealed;
  private boolean isOver;
  private String reason;

  private VolumeReader(ReadPlan plan, Path directory, StructType required, Filter[] filters) throws IOException {
    this.plan = plan;
    this.directory = directory;
    tables = new VolumeTable(directory);
    columns = new MessageColumns(required, plan);
    codecs = new Codecs(tables);
    // a value that fails the read does so in a row that a filter excludes too
    filter = new RowFilter(plan.values != null && plan.values.isFailing ? new Filter[0] : filters);
    decoder = new EntryDecoder(columns, codecs, filter);
    next = plan.segments.stream().mapToLong(each -> filter.allows(each) ? each.first() : each.last() + 1).toArray();
  }

  /** Opens the volumes. Throws OnlyInPython if the directory is not here or not the one of the plan. */
  static VolumeReader open(ReadPlan plan, StructType required, Filter[] filters) throws IOException {
    Path directory = Path.of(plan.directory).toAbsolutePath();
    check(directory, plan.instance);
    VolumeReader made = new VolumeReader(plan, directory, required, filters);
    try {
      made.locate();
      return made;
    } catch (IOException | RuntimeException error) {
      made.close();
      throw error;
    }
  }

  private static void check(Path directory, String instance) throws IOException {
    Path file = directory.resolve("INSTANCE");
    if (!Files.isReadable(file)) throw new OnlyInPython(directory + " is not a data directory that can be read here");
    JsonNode identity = new ObjectMapper().readTree(Files.readString(file));
    if (!FORMATS.contains(identity.path("format").asInt())) throw new OnlyInPython(directory + " has another format");
    if (!instance.equals(identity.path("instance").asText())) {
      throw new OnlyInPython(directory + " is the data directory of another box");
    }
    if (Files.exists(directory.resolve("ENSEMBLE"))) throw new OnlyInPython(directory + " is one of several");
  }

  private void locateMore() {
    try {
      locate();
    } catch (IOException | RuntimeException error) {
      reason = directory + ": " + error;
      at = order.length;
    }
  }

  /** Locates the next entries of all segments; ends the read at those that no volume has. */
  private void locate() throws IOException {
    places = new Places();
    at = 0;
    isOver = true;
    for (int i = 0; i < next.length && places.count() < PLACES_MAX; i++) locate(i);
    order = places.sorted();
    for (VolumeLog each : logs) each.begin(places, order);
  }

  private void locate(int number) throws IOException {
    ReadPlan.Segment segment = plan.segments.get(number);
    long begin = next[number];
    for (int run = 0; run < segment.runs.length; run += 2) {
      long last = segment.runs[run + 1];
      long from = Math.max(begin, segment.runs[run]);
      if (from > last) continue;
      long until = Math.min(last, from + PLACES_MAX - 1);
      long end = locate(segment, number, from, until);
      if (end <= until) {
        fail(segment, end, last, "no volume has it");
        return;
      }
      if (until < last || places.count() >= PLACES_MAX) {
        isOver = false;
        return;
      }
    }
  }

  /** Locates entries, as often as some are found: others may move at the same time. */
  private long locate(ReadPlan.Segment segment, int number, long from, long last) throws IOException {
    long end = from;
    int tries = 0;
    while (end <= last && tries < TRIES) {
      long before = end;
      VolumeTable.Stretch stretch = tables.of(segment.ledger, end);
      if (stretch != null) {
        end = locateIn(stretch.volume, segment, number, end, Math.min(last, stretch.end - 1));
      } else {
        for (long volume : unsealed()) end = locateIn(volume, segment, number, end, last);
      }
      if (end == before) {
        tries++;
        unsealed = null;
      }
    }
    return end;
  }

  private long[] unsealed() throws IOException {
    if (unsealed == null) unsealed = tables.unsealed();
    return unsealed;
  }

  private long locateIn(long volume, ReadPlan.Segment segment, int number, long from, long last) throws IOException {
    if (from > last) return from;
    try {
      VolumeLog log = log(volume);
      return log.volume.locate(segment, number, log.number, from, last, places);
    } catch (NoSuchFileException error) {
      return from; // packed or removed since
    }
  }

  private VolumeLog log(long volume) throws IOException {
    Integer place = known.get(volume);
    if (place != null) return logs.get(place);
    VolumeLog made = new VolumeLog(new Volume(directory, VolumeTable.name(volume)), logs.size());
    known.put(volume, logs.size());
    logs.add(made);
    return made;
  }

  /** Reads the next rows; returns false if there are none, at the end or where only Python can go on. */
  boolean next() throws IOException {
    columns.reset();
    while (columns.rows() == 0) {
      if (at >= order.length) {
        if (isOver || reason != null) return false;
        locateMore();
        continue;
      }
      fill();
      if (reason != null && columns.rows() == 0) return false;
    }
    return true;
  }

  private void fill() {
    int before = columns.rows();
    int place = 0;
    try {
      for (; at < order.length && !columns.isFull(); at++) {
        place = order[at];
        before = columns.rows();
        if (!add(place)) return;
      }
    } catch (IOException | RuntimeException error) {
      columns.cut(before);
      ReadPlan.Segment segment = plan.segments.get(places.segment(place));
      String why = error instanceof OnlyInPython ? error.getMessage() : error.toString();
      fail(segment, places.entry(place), segment.last(), logs.get(places.volume(place)).volume.name + ": " + why);
      at = order.length;
    }
  }

  private boolean add(int place) throws IOException {
    int number = places.segment(place);
    long entry = places.entry(place);
    ReadPlan.Segment segment = plan.segments.get(number);
    if (entry != expected(segment, next[number])) throw new OnlyInPython("the entries are not stored in order");
    if (!filter.allowsEntry(entry)) {
      next[number] = entry + 1;
      return true;
    }
    ByteBuffer batch = logs.get(places.volume(place)).batch(places.position(place));
    if (!decoder.add(batch, places.offset(place), segment, number, entry)) return false;
    next[number] = entry + 1;
    return true;
  }

  /** Returns the first visible entry from {@code entry} on. */
  private static long expected(ReadPlan.Segment segment, long entry) {
    for (int run = 0; run < segment.runs.length; run += 2) {
      if (entry <= segment.runs[run + 1]) return Math.max(entry, segment.runs[run]);
    }
    return entry;
  }

  private void fail(ReadPlan.Segment segment, long entry, long last, String why) {
    if (reason != null) return;
    reason = String.format(
        "entries %d:%d to %d of %s in %s: %s", segment.ledger, entry, last, segment.topic, directory, why);
  }

  ColumnarBatch batch() {
    return columns.batch();
  }

  /** Returns the first entry of each segment that remains to be read, after the end; null if none does. */
  long[] rest() {
    return reason == null ? null : next;
  }

  String reason() {
    return reason;
  }

  @Override
  public void close() throws IOException {
    codecs.close();
    tables.close();
    for (VolumeLog each : logs) each.volume.close();
  }
}
