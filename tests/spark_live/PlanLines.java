package pulsarbox.spark;

import java.io.BufferedReader;
import java.io.IOException;
import java.io.InputStreamReader;
import java.nio.charset.StandardCharsets;
import org.apache.spark.sql.types.DataTypes;
import org.apache.spark.sql.types.StructType;

/** Plans, one a line on stdin, each answered by a line on stdout. */
final class PlanLines {
  static final StructType COLUMNS = new StructType()
      .add("value", DataTypes.BinaryType)
      .add("__ledgerId", DataTypes.LongType)
      .add("__entryId", DataTypes.LongType);

  interface Answers {
    String to(byte[] plan) throws Exception;
  }

  private PlanLines() {}

  /** Answers until the end of stdin. An error is answered by "!" and its text. */
  static void serve(Answers answers) throws IOException {
    BufferedReader in = new BufferedReader(new InputStreamReader(System.in, StandardCharsets.UTF_8));
    for (String line = in.readLine(); line != null; line = in.readLine()) {
      String answer;
      try {
        answer = answers.to(line.getBytes(StandardCharsets.UTF_8));
      } catch (Throwable error) {
        answer = "!" + error;
      }
      System.out.println(answer.replace('\n', ' '));
      System.out.flush();
    }
  }
}
