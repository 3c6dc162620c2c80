package pulsarbox.spark;

import java.io.IOException;
import java.util.ArrayList;
import java.util.Arrays;
import java.util.List;
import org.apache.spark.sql.catalyst.InternalRow;
import org.apache.spark.sql.connector.metric.CustomTaskMetric;
import org.apache.spark.sql.connector.read.PartitionReader;
import org.apache.spark.sql.execution.RowToColumnConverter;
import org.apache.spark.sql.execution.vectorized.OnHeapColumnVector;
import org.apache.spark.sql.execution.vectorized.WritableColumnVector;
import org.apache.spark.sql.types.BinaryType;
import org.apache.spark.sql.types.StringType;
import org.apache.spark.sql.vectorized.ColumnarBatch;
import org.slf4j.Logger;
import org.slf4j.LoggerFactory;

/** Reader of a partition: the JVM reads its entries, up to the first that only Python can read; Python reads the rest. */
final class TopicsReader implements PartitionReader<ColumnarBatch> {
  private static final Logger LOG = LoggerFactory.getLogger(TopicsReader.class);
  private static final int PYTHON_ROWS = 1024;
  /** Bytes of a column in a batch of Python's rows, unless a single row has more. */
  private static final int PYTHON_BYTES = 4 << 20;

  private final PlannedPartition part;
  private final TopicsReaderFactory factory;
  private VolumeReader volumes;
  private PartitionReader<InternalRow> python;
  private WritableColumnVector[] vectors;
  private RowToColumnConverter converter;
  private ColumnarBatch batch;
  private long rows;
  private long handedOver;

  TopicsReader(PlannedPartition part, TopicsReaderFactory factory) {
    this.part = part;
    this.factory = factory;
    if (part.plan == null) {
      python = factory.rows(part.python);
    } else {
      open();
    }
  }

  private void open() {
    try {
      ReadPlan plan = new ReadPlan(part.plan);
      if (!plan.segments.isEmpty()) volumes = VolumeReader.open(plan, factory.required(), factory.filters());
    } catch (OnlyInPython reason) {
      LOG.info("Python reads this partition: {}", reason.getMessage());
      handOver(part.python);
    } catch (IOException | RuntimeException error) {
      LOG.warn("Python reads this partition, as the JVM failed to", error);
      handOver(part.python);
    }
  }

  private void handOver(org.apache.spark.sql.connector.read.InputPartition rest) {
    handedOver = 1;
    python = factory.rows(rest);
  }

  @Override
  public boolean next() throws IOException {
    if (volumes != null) {
      if (volumes.next()) {
        batch = volumes.batch();
        rows += batch.numRows();
        return true;
      }
      long[] rest = volumes.rest();
      String reason = volumes.reason();
      volumes.close();
      volumes = null;
      if (rest == null) return false;
      LOG.warn("Python reads the rest of this partition: {}", reason);
      handOver(part.rest(rest));
    }
    return python != null && nextOfPython();
  }

  private boolean nextOfPython() throws IOException {
    if (vectors == null) {
      vectors = OnHeapColumnVector.allocateColumns(PYTHON_ROWS, factory.required());
      converter = new RowToColumnConverter(factory.required());
    }
    for (WritableColumnVector each : vectors) each.reset();
    int count = 0;
    while (count < PYTHON_ROWS && !isFull() && python.next()) {
      converter.convert(python.get(), vectors);
      count++;
    }
    batch = new ColumnarBatch(vectors, count);
    return count > 0;
  }

  private boolean isFull() {
    for (WritableColumnVector each : vectors) {
      boolean isBytes = each.dataType() instanceof BinaryType || each.dataType() instanceof StringType;
      if (isBytes && each.arrayData().getElementsAppended() > PYTHON_BYTES) return true;
    }
    return false;
  }

  @Override
  public ColumnarBatch get() {
    return batch;
  }

  @Override
  public CustomTaskMetric[] currentMetricsValues() {
    List<CustomTaskMetric> all = new ArrayList<>();
    if (python != null) all.addAll(Arrays.asList(python.currentMetricsValues()));
    all.add(ReadMetrics.of(ReadMetrics.ROWS, rows));
    all.add(ReadMetrics.of(ReadMetrics.HANDED_OVER, handedOver));
    return all.toArray(new CustomTaskMetric[0]);
  }

  @Override
  public void close() throws IOException {
    if (volumes != null) volumes.close();
    if (python != null) python.close();
  }
}
