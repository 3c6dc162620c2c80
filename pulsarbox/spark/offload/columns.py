"""The columns of a file: those of the source, ``columns=all``, and what would be lost without it."""

from typing import Any, Final

from pyspark.sql.types import BinaryType, StructField, StructType

from pulsarbox.spark.decode.row_columns import NAMES, VALUE
from pulsarbox.spark.options import READ, Options, parse
from pulsarbox.spark.schema.inference import described

PAYLOAD: Final = "__payload"
"""The payload as it came, where the value has columns of its own."""
ENCRYPTION: Final = "__encryption"
"""MessageMetadata in protobuf, of what a client has encrypted: who has its key can read the payload with it."""
SCHEMA_FREE: Final = frozenset({*NAMES, PAYLOAD, ENCRYPTION})
"""Columns that are the same whatever schema the topic has."""


def typed(schema: StructType) -> StructType:
    """Of the columns of a file, those that the source has."""
    return StructType([field for field in schema.fields if field.name not in (PAYLOAD, ENCRYPTION)])


def is_raw(schema: StructType) -> bool:
    """Whether the value is one column with the payload as it came."""
    return VALUE in schema.fieldNames() and isinstance(schema[VALUE].dataType, BinaryType) and not _records(schema)


def _records(schema: StructType) -> bool:
    own = {*NAMES, VALUE, PAYLOAD, ENCRYPTION}
    return any(field.name not in own for field in schema.fields)


def raw_names(schema: StructType) -> list[str]:
    """The columns that hold all there is, whatever the topic's schema was when they were made."""
    return [name for name in schema.fieldNames() if name in SCHEMA_FREE or (name == VALUE and is_raw(schema))]


def of_topic(topic: str, given: dict[str, str]) -> StructType:
    """The columns of a topic's files, by the schema that it has now. ``given`` says where the broker is.

    Raises OptionError, and what the broker tells.
    """
    options: Options = parse({**given, "topic": topic, "columns": "all"}, READ)
    return with_all(described(options))


def with_all(schema: StructType) -> StructType:
    """The same with what would be lost otherwise."""
    more: list[Any] = [] if is_raw(schema) else [StructField(PAYLOAD, BinaryType())]
    return StructType([*schema.fields, *more, StructField(ENCRYPTION, BinaryType())])
