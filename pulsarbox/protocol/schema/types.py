"""Types of schemas: as the Admin API spells them, and as the protocol has them."""

from typing import Final, cast

from pulsarbox.protocol.PulsarApi_pb2 import Schema

BYTES: Final = cast("Schema.Type", Schema.Type.Value("None"))
"""No schema, which is the schema of bytes."""

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
"""Length of the definition of a schema; a definition of a key or a value counts by itself."""

_SPELLINGS = {number: name for name, number in SCHEMA_TYPES.items()}


def spelling(schema_type: Schema.Type) -> str:
    """The Admin API's word for a type; of one that is not kept, NONE."""
    return _SPELLINGS.get(schema_type, "NONE")
