package pulsarbox.spark;

import com.fasterxml.jackson.databind.JsonNode;
import java.util.ArrayList;
import java.util.HexFormat;
import java.util.List;
import org.apache.spark.sql.types.ArrayType;
import org.apache.spark.sql.types.DataType;
import org.apache.spark.sql.types.DataTypes;
import org.apache.spark.sql.types.DecimalType;
import org.apache.spark.sql.types.MapType;
import org.apache.spark.sql.types.StructField;
import org.apache.spark.sql.types.StructType;

/** How the values of a task are decoded, as planned by {@code source/jvm_plan.py}. */
final class ValuePlan {
  private static final List<DataType> PLAIN = List.of(
      DataTypes.BooleanType, DataTypes.ByteType, DataTypes.ShortType, DataTypes.IntegerType, DataTypes.LongType,
      DataTypes.FloatType, DataTypes.DoubleType, DataTypes.StringType, DataTypes.BinaryType, DataTypes.DateType,
      DataTypes.TimestampType, DataTypes.TimestampNTZType);

  /** Whether a value that does not match fails the read. */
  final boolean isFailing;
  /** Whether the message of a value that does not match is skipped. */
  final boolean isDropping;
  final List<String> columns = new ArrayList<>();
  final JsonNode programs;
  /** For each segment its schemas. */
  final int[] of;
  /** For each of several sets of schemas their versions; null is any. */
  final byte[][][] versions;
  /** The programs of these. */
  final int[][] numbers;

  ValuePlan(JsonNode node) {
    String mode = node.get("mode").asText();
    isFailing = mode.equals("failfast");
    isDropping = mode.equals("dropmalformed");
    for (JsonNode each : node.get("columns")) columns.add(each.asText());
    programs = node.get("programs");
    of = new int[node.get("of").size()];
    for (int i = 0; i < of.length; i++) of[i] = node.get("of").get(i).asInt();
    JsonNode schemas = node.get("schemas");
    versions = new byte[schemas.size()][][];
    numbers = new int[versions.length][];
    for (int i = 0; i < versions.length; i++) take(i, schemas.get(i));
  }

  private void take(int set, JsonNode schemas) {
    versions[set] = new byte[schemas.size()][];
    numbers[set] = new int[schemas.size()];
    for (int i = 0; i < numbers[set].length; i++) {
      String version = schemas.get(i).get(0).asText();
      versions[set][i] = version.equals("*") ? null : HexFormat.of().parseHex(version);
      numbers[set][i] = schemas.get(i).get(1).asInt();
    }
  }

  /** Returns whether a row depends on its value even if the query uses no column of it. */
  boolean isStrict() {
    return isFailing || isDropping;
  }

  /** Returns whether a column of the value can be filled. */
  boolean canFill(StructField field) {
    return columns.contains(field.name()) && field.nullable() && canFill(field.dataType());
  }

  private static boolean canFill(DataType type) {
    if (type instanceof DecimalType || PLAIN.contains(type)) return true;
    if (type instanceof ArrayType) return ((ArrayType) type).containsNull() && canFill(((ArrayType) type).elementType());
    if (type instanceof MapType) {
      MapType map = (MapType) type;
      return map.valueContainsNull() && canFill(map.keyType()) && canFill(map.valueType());
    }
    if (!(type instanceof StructType)) return false;
    for (StructField each : ((StructType) type).fields()) {
      if (!each.nullable() || !canFill(each.dataType())) return false;
    }
    return true;
  }
}
