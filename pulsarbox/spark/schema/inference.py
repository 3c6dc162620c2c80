"""Inference of a read's columns from its options and the topics' schemas."""

from pyspark.sql.types import BinaryType, StringType, StructField, StructType

from pulsarbox.protocol.PulsarApi_pb2 import Schema
from pulsarbox.protocol.schema.types import spelling
from pulsarbox.spark.connect.broker_api import Service
from pulsarbox.spark.connect.schema_registry import Registry
from pulsarbox.spark.connect.target import reach
from pulsarbox.spark.decode import row_columns
from pulsarbox.spark.options import OptionError, SparkOptions
from pulsarbox.spark.schema.spark_types import NoColumnsError, of_row, value_fields, with_corrupt
from pulsarbox.spark.source import topic_selection

PERMISSIVE = "permissive"


def described(options: SparkOptions) -> StructType:
    """Return the columns of a read. Raises OptionError and the broker's errors."""
    made: list[StructField] = []
    if row_columns.with_value(options.columns):
        made = _of_values(options)
        if options.mode == PERMISSIVE:
            made = with_corrupt(made)
    own = [of_row(column) for column in row_columns.chosen(options.columns)]
    # The value's columns first and the corrupt record last, as in Spark's own sources.
    corrupt = [field for field in made if field.name == row_columns.CORRUPT]
    return StructType([*(field for field in made if field.name != row_columns.CORRUPT), *own, *corrupt])


def _of_values(options: SparkOptions) -> list[StructField]:
    if options.different_schemas or options.value_format == "bytes":
        return [StructField(row_columns.VALUE, BinaryType())]
    if options.value_format == "string":
        return [StructField(row_columns.VALUE, StringType())]
    found = _schemas(options)
    kind = {"json": Schema.Json, "avro": Schema.Avro}.get(options.value_format)
    for topic, schema in found.items():
        if kind is not None and (schema is None or schema.type != kind):
            has = "no schema" if schema is None else f"a schema of type {spelling(schema.type)}"
            raise OptionError(
                f"option valueFormat = {options.value_format!r}: {topic} has {has}. Set the columns with .schema(...)"
            )
    return _common(list(found.values()))


def _schemas(options: SparkOptions) -> dict[str, Schema | None]:
    to = reach(options)
    registry = Registry(to)
    try:
        with Service(to) as service:
            topics = topic_selection.awaited(service, options)
        return dict(zip(topics, registry.newest_of(topics), strict=True))
    finally:
        registry.close()


def _common(schemas: list[Schema | None]) -> list[StructField]:
    """Return the columns common to all schemas; one binary column if they differ or Spark lacks a type."""
    raw = [StructField(row_columns.VALUE, BinaryType())]
    try:
        found = [value_fields(schema) for schema in schemas]
    except NoColumnsError:
        return raw
    names = [field.name for field in found[0]] if found else []
    if not found or any(each != found[0] for each in found) or any(name.startswith("__") for name in names):
        return raw
    return found[0]
