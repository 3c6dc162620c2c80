package pulsarbox.spark;

import java.io.BufferedReader;
import java.io.InputStreamReader;
import java.nio.charset.StandardCharsets;
import java.util.Base64;
import org.apache.spark.sql.sources.Filter;
import org.apache.spark.sql.types.DataTypes;
import org.apache.spark.sql.types.StructType;
import org.apache.spark.sql.vectorized.ColumnarBatch;

/**
 * Reads plans, one a line on stdin. For each, a line on stdout, separated by tabs: the reason why Python has to go on, or
 * nothing; the first entry of each segment that was not read, separated by commas; then each row as ledger:entry:value,
 * with the value in base64. A line that begins with "!" is an error that a user would see.
 */
public final class ImageRows {
  private static final StructType COLUMNS = new StructType()
      .add("value", DataTypes.BinaryType)
      .add("__ledgerId", DataTypes.LongType)
      .add("__entryId", DataTypes.LongType);

  public static void main(String[] args) throws Exception {
    BufferedReader in = new BufferedReader(new InputStreamReader(System.in, StandardCharsets.UTF_8));
    for (String line = in.readLine(); line != null; line = in.readLine()) {
      String answer;
      try {
        answer = read(new ReadPlan(line.getBytes(StandardCharsets.UTF_8)));
      } catch (Throwable error) {
        answer = "!" + error;
      }
      System.out.println(answer.replace('\n', ' '));
      System.out.flush();
    }
  }

  private static String read(ReadPlan plan) throws Exception {
    StringBuilder rows = new StringBuilder();
    StringBuilder rest = new StringBuilder();
    String reason = "";
    long[] next = null;
    try (VolumeReader reader = VolumeReader.open(plan, COLUMNS, new Filter[0])) {
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
