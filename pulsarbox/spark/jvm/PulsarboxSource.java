package pulsarbox.spark;

import java.util.Map;
import org.apache.spark.sql.connector.catalog.Table;
import org.apache.spark.sql.connector.catalog.TableProvider;
import org.apache.spark.sql.connector.expressions.Transform;
import org.apache.spark.sql.execution.datasources.v2.python.PythonDataSourceV2;
import org.apache.spark.sql.sources.DataSourceRegister;
import org.apache.spark.sql.types.StructType;
import org.apache.spark.sql.util.CaseInsensitiveStringMap;

/**
 * Format {@code pulsarbox}: the Python data source of this name, whose partitions the JVM reads where it can.
 *
 * <p>Spark prefers a source in a jar to a Python source of the same name. This one passes every call to the latter.
 */
public final class PulsarboxSource implements TableProvider, DataSourceRegister {
  private static final String NAME = "pulsarbox";

  private final PythonDataSourceV2 python = new PythonDataSourceV2();

  public PulsarboxSource() {
    python.setShortName(NAME);
  }

  @Override
  public String shortName() {
    return NAME;
  }

  @Override
  public StructType inferSchema(CaseInsensitiveStringMap options) {
    return python.inferSchema(options);
  }

  @Override
  public Table getTable(StructType schema, Transform[] partitioning, Map<String, String> properties) {
    return new TopicsTable(python.getTable(schema, partitioning, properties), schema);
  }

  @Override
  public boolean supportsExternalMetadata() {
    return python.supportsExternalMetadata();
  }
}
