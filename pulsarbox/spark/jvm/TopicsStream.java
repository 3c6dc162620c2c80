package pulsarbox.spark;

import org.apache.spark.sql.connector.read.InputPartition;
import org.apache.spark.sql.connector.read.PartitionReaderFactory;
import org.apache.spark.sql.connector.read.streaming.MicroBatchStream;
import org.apache.spark.sql.connector.read.streaming.Offset;
import org.apache.spark.sql.connector.read.streaming.ReadLimit;
import org.apache.spark.sql.connector.read.streaming.SupportsTriggerAvailableNow;
import org.apache.spark.sql.sources.Filter;
import org.apache.spark.sql.types.StructType;

/** Stream whose offsets and partitions Python determines. */
final class TopicsStream implements MicroBatchStream, SupportsTriggerAvailableNow {
  private final MicroBatchStream python;
  private final SupportsTriggerAvailableNow limited;
  private final StructType declared;
  private final StructType required;

  private TopicsStream(
      MicroBatchStream python, SupportsTriggerAvailableNow limited, StructType declared, StructType required) {
    this.python = python;
    this.limited = limited;
    this.declared = declared;
    this.required = required;
  }

  /** Wraps the stream of Python, unless it lacks what the wrapper promises. */
  static MicroBatchStream of(MicroBatchStream python, StructType declared, StructType required) {
    boolean isWhole = python instanceof SupportsTriggerAvailableNow;
    if (!isWhole && required.equals(declared)) return python;
    if (!isWhole) throw new IllegalStateException("the Python stream has no AvailableNow: install matching versions");
    return new TopicsStream(python, (SupportsTriggerAvailableNow) python, declared, required);
  }

  @Override
  public Offset initialOffset() {
    return python.initialOffset();
  }

  @Override
  public Offset latestOffset() {
    return python.latestOffset();
  }

  @Override
  public Offset latestOffset(Offset start, ReadLimit limit) {
    return limited.latestOffset(start, limit);
  }

  @Override
  public ReadLimit getDefaultReadLimit() {
    return limited.getDefaultReadLimit();
  }

  @Override
  public Offset reportLatestOffset() {
    return limited.reportLatestOffset();
  }

  @Override
  public void prepareForTriggerAvailableNow() {
    limited.prepareForTriggerAvailableNow();
  }

  @Override
  public Offset deserializeOffset(String json) {
    return python.deserializeOffset(json);
  }

  @Override
  public InputPartition[] planInputPartitions(Offset start, Offset end) {
    return PlannedPartition.of(python.planInputPartitions(start, end), required);
  }

  @Override
  public PartitionReaderFactory createReaderFactory() {
    return new TopicsReaderFactory(python.createReaderFactory(), declared, required, new Filter[0]);
  }

  @Override
  public void commit(Offset end) {
    python.commit(end);
  }

  @Override
  public void stop() {
    python.stop();
  }

  @Override
  public String toString() {
    return python.toString();
  }
}
