package pulsarbox.spark;

import org.apache.spark.sql.connector.metric.CustomMetric;
import org.apache.spark.sql.connector.metric.CustomTaskMetric;
import org.apache.spark.sql.connector.read.Batch;
import org.apache.spark.sql.connector.read.InputPartition;
import org.apache.spark.sql.connector.read.PartitionReaderFactory;
import org.apache.spark.sql.connector.read.Scan;
import org.apache.spark.sql.connector.read.streaming.MicroBatchStream;
import org.apache.spark.sql.sources.Filter;
import org.apache.spark.sql.types.StructType;

/** Scan that Python plans. */
final class TopicsScan implements Scan, Batch {
  private final Scan python;
  private final StructType declared;
  private final StructType required;
  private final Filter[] filters;
  private Batch batch;

  TopicsScan(Scan python, StructType declared, StructType required, Filter[] filters) {
    this.python = python;
    this.declared = declared;
    this.required = required;
    this.filters = filters;
  }

  @Override
  public StructType readSchema() {
    return required;
  }

  @Override
  public String description() {
    return "pulsarbox: planned by Python, read by the JVM where it can";
  }

  @Override
  public CustomMetric[] supportedCustomMetrics() {
    return ReadMetrics.with(python.supportedCustomMetrics());
  }

  @Override
  public CustomTaskMetric[] reportDriverMetrics() {
    return python.reportDriverMetrics();
  }

  @Override
  public Batch toBatch() {
    batch = python.toBatch();
    return this;
  }

  @Override
  public MicroBatchStream toMicroBatchStream(String checkpoint) {
    MicroBatchStream stream = python.toMicroBatchStream(checkpoint);
    return TopicsStream.of(stream, declared, required);
  }

  @Override
  public InputPartition[] planInputPartitions() {
    return PlannedPartition.of(batch.planInputPartitions(), required);
  }

  @Override
  public PartitionReaderFactory createReaderFactory() {
    return new TopicsReaderFactory(batch.createReaderFactory(), declared, required, filters);
  }
}
