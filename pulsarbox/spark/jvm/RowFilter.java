package pulsarbox.spark;

import java.sql.Timestamp;
import java.time.Instant;
import java.util.ArrayList;
import java.util.Arrays;
import java.util.List;
import org.apache.spark.sql.sources.EqualNullSafe;
import org.apache.spark.sql.sources.EqualTo;
import org.apache.spark.sql.sources.Filter;
import org.apache.spark.sql.sources.GreaterThan;
import org.apache.spark.sql.sources.GreaterThanOrEqual;
import org.apache.spark.sql.sources.In;
import org.apache.spark.sql.sources.LessThan;
import org.apache.spark.sql.sources.LessThanOrEqual;

/** What the filters of a query exclude for certain. Spark applies the filters to all other rows. */
final class RowFilter {
  /** Values that a column may have: some, or any between two. */
  private static final class Allowed {
    private List<Object> some;
    private long least = Long.MIN_VALUE;
    private long most = Long.MAX_VALUE;

    boolean has(Object value) {
      if (some == null) return true;
      for (Object each : some) {
        if (value.equals(each)) return true;
      }
      return false;
    }

    boolean has(long value) {
      return least <= value && value <= most;
    }
  }

  private final Allowed topic = new Allowed();
  private final Allowed key = new Allowed();
  private final Allowed partition = new Allowed();
  private final Allowed ledger = new Allowed();
  private final Allowed entry = new Allowed();
  /** In milliseconds. */
  private final Allowed publishTime = new Allowed();

  RowFilter(Filter[] filters) {
    for (Filter each : filters) {
      if (each instanceof EqualTo) some(((EqualTo) each).attribute(), ((EqualTo) each).value());
      else if (each instanceof EqualNullSafe) some(((EqualNullSafe) each).attribute(), ((EqualNullSafe) each).value());
      else if (each instanceof In) some(((In) each).attribute(), ((In) each).values());
      else if (each instanceof GreaterThan) least(((GreaterThan) each).attribute(), ((GreaterThan) each).value());
      else if (each instanceof GreaterThanOrEqual) {
        least(((GreaterThanOrEqual) each).attribute(), ((GreaterThanOrEqual) each).value());
      } else if (each instanceof LessThan) most(((LessThan) each).attribute(), ((LessThan) each).value());
      else if (each instanceof LessThanOrEqual) {
        most(((LessThanOrEqual) each).attribute(), ((LessThanOrEqual) each).value());
      }
    }
  }

  private Allowed of(String column) {
    switch (column) {
      case "__topic": return topic;
      case "__key": return key;
      case "__partition": return partition;
      case "__ledgerId": return ledger;
      case "__entryId": return entry;
      case "__publishTime": return publishTime;
      default: return new Allowed();
    }
  }

  private void some(String column, Object... values) {
    List<Object> found = new ArrayList<>();
    long least = Long.MAX_VALUE;
    long most = Long.MIN_VALUE;
    for (Object each : values) {
      if (each == null) return; // may select rows without a value
      found.add(each);
      Long number = number(each);
      if (number == null) continue;
      least = Math.min(least, number);
      most = Math.max(most, number + (isTime(each) ? 1 : 0));
    }
    Allowed allowed = of(column);
    if (allowed == topic || allowed == key) {
      if (allowed.some == null) allowed.some = found;
    } else if (least <= most) {
      allowed.least = Math.max(allowed.least, least);
      allowed.most = Math.min(allowed.most, most);
    }
  }

  private void least(String column, Object value) {
    Long number = number(value);
    if (number != null) of(column).least = Math.max(of(column).least, number);
  }

  private void most(String column, Object value) {
    Long number = number(value);
    if (number != null) of(column).most = Math.min(of(column).most, number + (isTime(value) ? 1 : 0));
  }

  private static boolean isTime(Object value) {
    return value instanceof Timestamp || value instanceof Instant;
  }

  /** Returns a number, or the milliseconds of a time, rounded down; null for others. */
  private static Long number(Object value) {
    if (value instanceof Long || value instanceof Integer) return ((Number) value).longValue();
    long time = value instanceof Timestamp ? ((Timestamp) value).getTime()
        : value instanceof Instant ? ((Instant) value).toEpochMilli() : -1;
    return time < 0 ? null : Long.valueOf(time); // Spark's times before 1970 may follow another calendar
  }

  boolean allows(ReadPlan.Segment segment) {
    return topic.has(segment.topic) && ledger.has(segment.ledger)
        && (segment.partition < 0 || partition.has(segment.partition));
  }

  boolean allowsEntry(long number) {
    return entry.has(number);
  }

  /** Returns whether an entry published then may be wanted; a time beyond Spark's is left to Spark. */
  boolean allowsTime(long time) {
    return time < 0 || publishTime.has(time);
  }

  boolean allowsKey(Metadata own) {
    if (key.some == null || own.keyAt < 0 || own.isKeyBase64) return true;
    for (Object each : key.some) {
      byte[] bytes = each instanceof byte[] ? (byte[]) each : null;
      int end = own.keyAt + own.keySize;
      if (bytes == null || Arrays.equals(own.bytes, own.keyAt, end, bytes, 0, bytes.length)) return true;
    }
    return false;
  }
}
