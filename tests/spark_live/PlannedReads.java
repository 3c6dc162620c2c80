package pulsarbox.spark;

import java.nio.charset.StandardCharsets;
import java.util.Arrays;
import org.apache.spark.sql.sources.Filter;
import org.apache.spark.sql.vectorized.ColumnarBatch;

/**
 * Reads plans, one a line on stdin. For each, a line on stdout: the reason why Python has to go on, or nothing; then for
 * each segment a tab and: rows, first and last entry, first and last number, the first entry that was not read, and 1 if
 * the numbers at the beginning of the payloads are consecutive.
 */
public final class PlannedReads {
  public static void main(String[] args) throws Exception {
    PlanLines.serve(plan -> read(new ReadPlan(plan)));
  }

  private static String read(ReadPlan plan) throws Exception {
    long[][] seen = new long[plan.segments.size()][];
    for (int i = 0; i < seen.length; i++) seen[i] = new long[] {0, -1, -1, -1, -1, plan.segments.get(i).first(), 1};
    String reason = "";
    try (VolumeReader reader = VolumeReader.open(plan, PlanLines.COLUMNS, new Filter[0])) {
      while (reader.next()) note(plan, reader.batch(), seen);
      for (int i = 0; i < seen.length; i++) {
        seen[i][5] = reader.rest() == null ? plan.segments.get(i).last() + 1 : reader.rest()[i];
      }
      if (reader.rest() != null) reason = reader.reason();
    } catch (OnlyInPython error) {
      reason = error.getMessage();
    }
    StringBuilder out = new StringBuilder(reason.replace('\t', ' '));
    for (long[] each : seen) out.append('\t').append(Arrays.toString(each));
    return out.toString();
  }

  private static void note(ReadPlan plan, ColumnarBatch batch, long[][] seen) {
    for (int row = 0; row < batch.numRows(); row++) {
      long ledger = batch.column(1).getLong(row);
      long entry = batch.column(2).getLong(row);
      String value = new String(batch.column(0).getBinary(row), StandardCharsets.ISO_8859_1);
      long number = Long.parseLong(value.substring(0, value.indexOf(' ')));
      long[] at = seen[segment(plan, ledger, entry)];
      if (at[0]++ == 0) {
        at[1] = entry;
        at[3] = number;
      } else if (number != at[4] + 1 || entry < at[2]) {
        at[6] = 0;
      }
      at[2] = entry;
      at[4] = number;
    }
  }

  private static int segment(ReadPlan plan, long ledger, long entry) {
    for (int i = 0; i < plan.segments.size(); i++) {
      ReadPlan.Segment each = plan.segments.get(i);
      if (each.ledger == ledger && each.first() <= entry && entry <= each.last()) return i;
    }
    throw new IllegalStateException("no segment has " + ledger + ":" + entry);
  }
}
