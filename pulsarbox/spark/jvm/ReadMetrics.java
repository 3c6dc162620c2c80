package pulsarbox.spark;

import java.util.Arrays;
import org.apache.spark.sql.connector.metric.CustomMetric;
import org.apache.spark.sql.connector.metric.CustomTaskMetric;
import org.apache.spark.sql.execution.datasources.v2.python.PythonCustomMetric;

/**
 * Metrics of a scan, beside those of Python sources. Spark's class of those serves, since the listener that adds them up
 * does not see classes of jars that were added to a running session.
 */
final class ReadMetrics {
  static final String ROWS = "jvmRows";
  static final String HANDED_OVER = "handedOver";

  private ReadMetrics() {}

  static CustomMetric[] with(CustomMetric[] others) {
    CustomMetric[] all = Arrays.copyOf(others, others.length + 2);
    all[others.length] = new PythonCustomMetric(ROWS, "rows read in the JVM");
    all[others.length + 1] = new PythonCustomMetric(HANDED_OVER, "tasks handed over to Python");
    return all;
  }

  static CustomTaskMetric of(String name, long value) {
    return new CustomTaskMetric() {
      @Override
      public String name() {
        return name;
      }

      @Override
      public long value() {
        return value;
      }
    };
  }
}
