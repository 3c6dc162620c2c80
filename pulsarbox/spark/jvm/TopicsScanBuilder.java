package pulsarbox.spark;

import java.util.ArrayList;
import java.util.Arrays;
import java.util.HashSet;
import java.util.List;
import java.util.Set;
import org.apache.spark.sql.connector.read.Scan;
import org.apache.spark.sql.connector.read.ScanBuilder;
import org.apache.spark.sql.connector.read.SupportsPushDownFilters;
import org.apache.spark.sql.connector.read.SupportsPushDownRequiredColumns;
import org.apache.spark.sql.sources.Filter;
import org.apache.spark.sql.types.StructField;
import org.apache.spark.sql.types.StructType;

/** Builder of a scan: notes the columns and the filters of the query. Spark applies every filter again. */
final class TopicsScanBuilder implements ScanBuilder, SupportsPushDownRequiredColumns, SupportsPushDownFilters {
  /** Column that is read for a query without columns, such as a count: it has no bytes to copy. */
  private static final String CHEAPEST = "__publishTime";

  private final ScanBuilder python;
  private final StructType declared;
  private StructType required;
  private Filter[] filters = {};

  TopicsScanBuilder(ScanBuilder python, StructType declared) {
    this.python = python;
    this.declared = declared;
    this.required = declared;
  }

  @Override
  public Filter[] pushFilters(Filter[] all) {
    filters = all;
    return ((SupportsPushDownFilters) python).pushFilters(all);
  }

  @Override
  public Filter[] pushedFilters() {
    return ((SupportsPushDownFilters) python).pushedFilters();
  }

  @Override
  public void pruneColumns(StructType wanted) {
    Set<String> names = new HashSet<>(Arrays.asList(wanted.fieldNames()));
    if (names.isEmpty() && declared.length() > 0) {
      List<String> all = Arrays.asList(declared.fieldNames());
      names.add(all.contains(CHEAPEST) ? CHEAPEST : all.get(all.size() - 1));
    }
    List<StructField> kept = new ArrayList<>();
    for (StructField field : declared.fields()) {
      if (names.contains(field.name())) kept.add(field);
    }
    required = new StructType(kept.toArray(new StructField[0]));
  }

  @Override
  public Scan build() {
    return new TopicsScan(python.build(), declared, required, filters);
  }
}
