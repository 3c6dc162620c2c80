"""Pulsar schemas as Spark types: ``column_types`` as objects of pyspark."""

from pyspark.sql.types import BinaryType, DataType, StructField

from pulsarbox.protocol.PulsarApi_pb2 import Schema
from pulsarbox.spark.decode.row_columns import CORRUPT, MetadataColumn
from pulsarbox.spark.schema import column_types
from pulsarbox.spark.schema.column_types import NoColumnsError

__all__ = ["NoColumnsError", "of_row", "type_of", "value_fields", "with_corrupt"]


def of_row(column: MetadataColumn) -> StructField:
    """Return the Spark field of a column that every topic has."""
    return StructField.fromJson(column_types.of_row(column))


def value_fields(schema: Schema | None) -> list[StructField]:
    """Return the columns of values written with a schema; None is raw bytes.

    Raises NoColumnsError if Spark has no type for it.
    """
    return [StructField.fromJson(each) for each in column_types.value_fields(schema)]


def type_of(schema: Schema | None) -> DataType:
    """Return the Spark type of one value. Raises NoColumnsError."""
    return StructField.fromJson(column_types.field_of("value", column_types.type_of(schema))).dataType


def with_corrupt(fields: list[StructField]) -> list[StructField]:
    """Add the column for corrupt records, unless every value is readable."""
    if all(isinstance(field.dataType, BinaryType) for field in fields) and len(fields) == 1:
        return fields
    return [*fields, StructField(CORRUPT, BinaryType())]
