"""Columns of an offloaded file: those of the source with ``columns=all``, and two that preserve the rest."""

from typing import Any, Final

from pyspark.sql.types import BinaryType, StructField, StructType

from pulsarbox.spark.decode.row_columns import ENCRYPTION, NAMES, PAYLOAD, VALUE
from pulsarbox.spark.options import READ, SparkOptions, parse
from pulsarbox.spark.schema.inference import described

SCHEMA_FREE: Final = frozenset({*NAMES, PAYLOAD, ENCRYPTION})
"""Columns that are the same for every schema of the topic."""


def typed(schema: StructType) -> StructType:
    """Return the columns of a file that the source has."""
    return StructType([field for field in schema.fields if field.name not in (PAYLOAD, ENCRYPTION)])


def is_raw(schema: StructType) -> bool:
    """Return whether the value is a single column with the original payload."""
    return VALUE in schema.fieldNames() and isinstance(schema[VALUE].dataType, BinaryType) and not _records(schema)


def _records(schema: StructType) -> bool:
    own = {*NAMES, VALUE, PAYLOAD, ENCRYPTION}
    return any(field.name not in own for field in schema.fields)


def raw_names(schema: StructType) -> list[str]:
    """Return the columns that preserve the messages whatever the topic's schema was."""
    return [name for name in schema.fieldNames() if name in SCHEMA_FREE or (name == VALUE and is_raw(schema))]


def of_topic(topic: str, given: dict[str, str]) -> StructType:
    """Return the columns of a topic's files, from its current schema. ``given``: options that locate the broker.

    Raises OptionError and the broker's errors.
    """
    options: SparkOptions = parse({**given, "topic": topic, "columns": "all"}, READ)
    return with_all(described(options))


def with_all(schema: StructType) -> StructType:
    """Add the columns that preserve payloads and encryption metadata."""
    more: list[Any] = [] if is_raw(schema) else [StructField(PAYLOAD, BinaryType())]
    return StructType([*schema.fields, *more, StructField(ENCRYPTION, BinaryType())])
