package pulsarbox.spark;

import java.util.Base64;
import org.apache.spark.sql.sources.Filter;
import org.apache.spark.sql.vectorized.ColumnarBatch;

/**
 * Reads plans, one a line on stdin. For each, a line on stdout, separated by tabs: the reason why Python has to go on, or
 * nothing; the first entry of each segment that was not read, separated by commas; then each row as ledger:entry:value,
 * with the value in base64. A line that begins with "!" is an error that a user would see.
 */
public final class ImageRows {
  public static void main(String[] args) throws Exception {
    PlanLines.serve(plan -> read(new ReadPlan(plan)));
  }

  private static String read(ReadPlan plan) throws Exception {
    StringBuilder rows = new StringBuilder();
    StringBuilder rest = new StringBuilder();
    String reason = "";
    long[] next = null;
    try (VolumeReader reader = VolumeReader.open(plan, PlanLines.COLUMNS, new Filter[0])) {
      while (reader.next()) add(reader.batch(), rows);
      next = reader.rest();
      if (next != null) reason = reader.reason();
    } catch (OnlyInPython error) {
      reason = "only in Python: " + error.getMessage();
      next = plan.segments.stream().mapToLong(ReadPlan.Segment::first).toArray();
    }
    for (int i = 0; i < plan.segments.size(); i++) {
      rest.append(i == 0 ? "" : ",").append(next == null ? plan.segments.get(i).last() + 1 : next[i]);
    }
    return reason.replace('\t', ' ') + "\t" + rest + rows;
  }

  private static void add(ColumnarBatch batch, StringBuilder rows) {
    for (int row = 0; row < batch.numRows(); row++) {
      rows.append('\t').append(batch.column(1).getLong(row)).append(':').append(batch.column(2).getLong(row)).append(':');
      rows.append(Base64.getEncoder().encodeToString(batch.column(0).getBinary(row)));
    }
  }
}
