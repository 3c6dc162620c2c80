package pulsarbox.spark;

import java.io.IOException;
import org.apache.spark.sql.connector.read.InputPartition;
import org.apache.spark.sql.execution.datasources.v2.python.PythonInputPartition;
import org.apache.spark.sql.execution.datasources.v2.python.PythonStreamingInputPartition;
import org.apache.spark.sql.internal.SQLConf;
import org.apache.spark.sql.types.StructType;

/** Partition that Python has planned; with a plan, the JVM can read it. */
final class PlannedPartition implements InputPartition {
  private static final long serialVersionUID = 1;

  /** Setting of Spark: false has everything read by Python. */
  private static final String ENABLED = "spark.pulsarbox.jvm";

  final InputPartition python;
  final byte[] plan;
  /** Whether the partitions of this scan are read as columns: Spark requires the same for all. */
  final boolean isColumnar;

  private PlannedPartition(InputPartition python, byte[] plan, boolean isColumnar) {
    this.python = python;
    this.plan = plan;
    this.isColumnar = isColumnar;
  }

  static InputPartition[] of(InputPartition[] partitions, StructType required) {
    byte[][] plans = new byte[partitions.length][];
    boolean isColumnar = false;
    boolean isEnabled = Boolean.parseBoolean(SQLConf.get().getConfString(ENABLED, "true"));
    for (int i = 0; isEnabled && i < plans.length; i++) {
      plans[i] = PickledPart.plan(pickled(partitions[i]));
      if (plans[i] != null && !isReadable(plans[i], required)) plans[i] = null;
      isColumnar |= plans[i] != null;
    }
    InputPartition[] planned = new InputPartition[partitions.length];
    for (int i = 0; i < plans.length; i++) planned[i] = new PlannedPartition(partitions[i], plans[i], isColumnar);
    return planned;
  }

  private static boolean isReadable(byte[] plan, StructType required) {
    try {
      ReadPlan found = new ReadPlan(plan);
      return found.segments.isEmpty() || MessageColumns.canFill(required, found);
    } catch (IOException error) {
      return false; // of another version of pulsarbox
    }
  }

  /** Returns the partition of Python that starts at these entries, one per segment. */
  InputPartition rest(long[] next) {
    byte[] rest = PickledPart.rest(pickled(python), next);
    if (python instanceof PythonInputPartition) return ((PythonInputPartition) python).copy(at(), rest);
    PythonStreamingInputPartition part = (PythonStreamingInputPartition) python;
    return part.copy(at(), rest, part.copy$default$3());
  }

  private int at() {
    return python instanceof PythonInputPartition
        ? ((PythonInputPartition) python).index()
        : ((PythonStreamingInputPartition) python).index();
  }

  private static byte[] pickled(InputPartition part) {
    if (part instanceof PythonInputPartition) return ((PythonInputPartition) part).pickedPartition();
    if (part instanceof PythonStreamingInputPartition) return ((PythonStreamingInputPartition) part).pickedPartition();
    return new byte[0];
  }

  @Override
  public String[] preferredLocations() {
    return python.preferredLocations();
  }
}
