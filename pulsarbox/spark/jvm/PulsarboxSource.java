package pulsarbox.spark;

import java.util.HashMap;
import java.util.Map;
import org.apache.spark.SparkContext;
import org.apache.spark.sql.connector.catalog.Table;
import org.apache.spark.sql.connector.catalog.TableProvider;
import org.apache.spark.sql.connector.expressions.Transform;
import org.apache.spark.sql.execution.datasources.v2.python.PythonDataSourceV2;
import org.apache.spark.sql.internal.SQLConf;
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
  private static final String PARALLELISM = "session.parallelism";
  /** Setting of Spark for the number of tasks of its own sources. */
  private static final String LEAF_PARALLELISM = "spark.sql.leafNodeDefaultParallelism";

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
    return python.inferSchema(withParallelism(options));
  }

  @Override
  public Table getTable(StructType schema, Transform[] partitioning, Map<String, String> properties) {
    return new TopicsTable(python.getTable(schema, partitioning, properties), schema);
  }

  /** Adds how many tasks the session runs at a time, which Python cannot know. */
  static CaseInsensitiveStringMap withParallelism(CaseInsensitiveStringMap options) {
    Map<String, String> made = new HashMap<>(options.asCaseSensitiveMap());
    made.put(PARALLELISM, parallelism());
    return new CaseInsensitiveStringMap(made);
  }

  private static String parallelism() {
    SQLConf settings = SQLConf.get();
    if (settings.contains(LEAF_PARALLELISM)) return settings.getConfString(LEAF_PARALLELISM);
    return String.valueOf(SparkContext.getOrCreate().defaultParallelism());
  }

  @Override
  public boolean supportsExternalMetadata() {
    return python.supportsExternalMetadata();
  }
}
