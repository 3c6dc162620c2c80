package pulsarbox.spark;

import java.io.IOException;
import org.apache.spark.sql.catalyst.InternalRow;
import org.apache.spark.sql.connector.read.InputPartition;
import org.apache.spark.sql.connector.read.PartitionReader;
import org.apache.spark.sql.connector.read.PartitionReaderFactory;
import org.apache.spark.sql.sources.Filter;
import org.apache.spark.sql.types.StructType;
import org.apache.spark.sql.vectorized.ColumnarBatch;

/** Factory of the readers of a scan, in a task. */
final class TopicsReaderFactory implements PartitionReaderFactory {
  private static final long serialVersionUID = 1;

  private final PartitionReaderFactory python;
  private final StructType declared;
  private final StructType required;
  private final Filter[] filters;

  TopicsReaderFactory(PartitionReaderFactory python, StructType declared, StructType required, Filter[] filters) {
    this.python = python;
    this.declared = declared;
    this.required = required;
    this.filters = filters;
  }

  @Override
  public boolean supportColumnarReads(InputPartition part) {
    return ((PlannedPartition) part).isColumnar;
  }

  @Override
  public PartitionReader<InternalRow> createReader(InputPartition part) {
    return rows(((PlannedPartition) part).python);
  }

  @Override
  public PartitionReader<ColumnarBatch> createColumnarReader(InputPartition part) {
    return new TopicsReader((PlannedPartition) part, this);
  }

  /** Returns the required columns of a partition, read by Python. */
  PartitionReader<InternalRow> rows(InputPartition part) {
    PartitionReader<InternalRow> all = python.createReader(part);
    return required.equals(declared) ? all : new RequiredColumns(all);
  }

  StructType required() {
    return required;
  }

  Filter[] filters() {
    return filters;
  }

  /** Rows with the required columns only. */
  private final class RequiredColumns implements PartitionReader<InternalRow> {
    private final PartitionReader<InternalRow> all;
    private final int[] places = new int[required.length()];
    private final Object[] values = new Object[required.length()];
    private final InternalRow row = new org.apache.spark.sql.catalyst.expressions.GenericInternalRow(values);

    RequiredColumns(PartitionReader<InternalRow> all) {
      this.all = all;
      for (int i = 0; i < places.length; i++) places[i] = declared.fieldIndex(required.fields()[i].name());
    }

    @Override
    public boolean next() throws IOException {
      return all.next();
    }

    @Override
    public InternalRow get() {
      InternalRow found = all.get();
      for (int i = 0; i < places.length; i++) values[i] = found.get(places[i], required.fields()[i].dataType());
      return row;
    }

    @Override
    public org.apache.spark.sql.connector.metric.CustomTaskMetric[] currentMetricsValues() {
      return all.currentMetricsValues();
    }

    @Override
    public void close() throws IOException {
      all.close();
    }
  }
}
