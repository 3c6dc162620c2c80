"""Schema types by their Admin API name."""

from typing import Final, cast

from pulsarbox.protocol.PulsarApi_pb2 import Schema

BYTES: Final = cast("Schema.Type", Schema.Type.Value("None"))
"""The type of schemaless bytes."""

SCHEMA_TYPES: Final[dict[str, Schema.Type]] = {
    "NONE": BYTES,
    "STRING": Schema.String,
    "JSON": Schema.Json,
    "PROTOBUF": Schema.Protobuf,
    "AVRO": Schema.Avro,
    "BOOLEAN": Schema.Bool,
    "INT8": Schema.Int8,
    "INT16": Schema.Int16,
    "INT32": Schema.Int32,
    "INT64": Schema.Int64,
    "FLOAT": Schema.Float,
    "DOUBLE": Schema.Double,
    "DATE": Schema.Date,
    "TIME": Schema.Time,
    "TIMESTAMP": Schema.Timestamp,
    "KEY_VALUE": Schema.Type.KeyValue,
    "INSTANT": Schema.Instant,
    "LOCAL_DATE": Schema.LocalDate,
    "LOCAL_TIME": Schema.LocalTime,
    "LOCAL_DATE_TIME": Schema.LocalDateTime,
    "PROTOBUF_NATIVE": Schema.ProtobufNative,
    "EXTERNAL": Schema.External,
}

DEFINITION_BYTES_MAX: Final = 1 << 20
"""Bytes of a schema definition; the definitions of key and value count separately."""
JSON_STRUCTURE: Final = b"{[,:"
"""Characters that begin or separate the elements of JSON: their number bounds the work of its parser."""

_SPELLINGS = {number: name for name, number in SCHEMA_TYPES.items()}


def spelling(schema_type: Schema.Type) -> str:
    """Return the Admin API's name of a type; NONE for a type that is not stored."""
    return _SPELLINGS.get(schema_type, "NONE")
