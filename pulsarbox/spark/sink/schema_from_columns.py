"""Schemas built from a frame's columns, for topics without one. Does not import pyspark.

Types are given as the JSON of a StructType.
"""

import json
from collections.abc import Mapping
from typing import Any, Final

from pulsarbox.protocol.PulsarApi_pb2 import Schema
from pulsarbox.protocol.schema import key_value
from pulsarbox.protocol.schema.types import BYTES, SCHEMA_TYPES
from pulsarbox.spark.sink.epoch_client import SinkError

RECORD: Final = "Row"
"""Name of the record built from a frame's columns."""
_SIMPLE: Final = {
    "string": "string",
    "binary": "bytes",
    "byte": "int",
    "short": "int",
    "integer": "int",
    "long": "long",
    "float": "float",
    "double": "double",
    "boolean": "boolean",
    "date": {"type": "int", "logicalType": "date"},
    "timestamp": {"type": "long", "logicalType": "timestamp-micros"},
    "timestamp_ntz": {"type": "long", "logicalType": "local-timestamp-micros"},
}
"""Spark types as Avro types."""


FORMATS: Final[Mapping[str, Schema.Type]] = {
    "json": Schema.Json,
    "avro": Schema.Avro,
    "protobuf": Schema.ProtobufNative,
    "keyvalue": Schema.Type.KeyValue,
}
"""Values of the option valueFormat that determine a schema type."""
_PRIMITIVES: Final[Mapping[str, Schema.Type]] = {
    "string": Schema.String,
    "binary": BYTES,
    "byte": Schema.Int8,
    "short": Schema.Int16,
    "integer": Schema.Int32,
    "long": Schema.Int64,
    "float": Schema.Float,
    "double": Schema.Double,
    "boolean": Schema.Bool,
    "date": Schema.LocalDate,
    "timestamp": Schema.Instant,
    "timestamp_ntz": Schema.LocalDateTime,
}


def schema_of(kind: Any, form: str, column: str = "") -> Schema:
    """Return a schema for values of a Spark type.

    ``form``: a key of ``FORMATS``; or ``auto``: a primitive schema if one fits, else Avro. ``column``: the name of a
    single column. Raises SinkError.
    """
    if form == "keyvalue":
        parts = {each["name"]: each["type"] for each in kind["fields"]}
        return key_value.joined("KeyValue", *(schema_of(parts[name], "auto", name) for name in ("key", "value")))
    if form == "auto" and isinstance(kind, str) and kind in _PRIMITIVES:
        return Schema(name=kind, type=_PRIMITIVES[kind], schema_data=b"")
    if isinstance(kind, str) or kind["type"] != "struct":
        kind = {"type": "struct", "fields": [{"name": column, "type": kind}]}
    if form == "protobuf":
        from pulsarbox.spark.sink import protobuf_encoding

        return Schema(name=RECORD, type=FORMATS[form], schema_data=protobuf_encoding.definition_of(kind, RECORD))
    made = FORMATS["avro" if form == "auto" else form]
    return Schema(name=RECORD, type=made, schema_data=json.dumps(definition_of(kind)).encode())


def parse_schema(text: str) -> Schema:
    """Parse a schema in the Admin API's format: ``{"type": "AVRO", "schema": "...", "properties": {}}``.

    Raises SinkError.
    """
    try:
        told = json.loads(text)
        kind, data, properties = told["type"], told.get("schema", ""), told.get("properties") or {}
        if not isinstance(data, str):
            data = json.dumps(data)
        named = SCHEMA_TYPES[kind]
        if named == Schema.Type.KeyValue:
            pair = json.loads(data)
            content = key_value.join(*(json.dumps(pair[part]).encode() if pair[part] else b"" for part in _PAIR))
        else:
            content = data.encode()
        made = Schema(name=RECORD, type=named, schema_data=content)
        for name, value in properties.items():
            made.properties.add(key=name, value=value)
    except (ValueError, KeyError, TypeError, AttributeError) as error:
        raise SinkError(
            f"{text[:100]!r} is not a valid schema: {type(error).__name__} {error}. Use the format of the Admin API: "
            '{"type": "AVRO", "schema": "...", "properties": {}}'
        ) from None
    return made


_PAIR: Final = ("key", "value")


def definition_of(kind: Any, name: str = RECORD) -> Any:
    """Return an Avro definition for a Spark type given as JSON; nested records are named by their path.

    Raises SinkError for types without an Avro equivalent.
    """
    column = name.removeprefix(f"{RECORD}_")
    if isinstance(kind, str):
        if kind.startswith("decimal"):
            precision, _, scale = kind.removeprefix("decimal").strip("()").partition(",")
            sizes = {"precision": int(precision or 10), "scale": int(scale or 0)}
            return {"type": "bytes", "logicalType": "decimal", **sizes}
        found = _SIMPLE.get(kind)
        if found is None:
            raise SinkError(f"column {column} is {kind}, for which Avro and JSON schemas have no type: cast it")
        return found
    if kind["type"] == "struct":
        fields = [
            {"name": each["name"], "type": ["null", definition_of(each["type"], f"{name}_{each['name']}")]}
            | {"default": None}
            for each in kind["fields"]
        ]
        return {"type": "record", "name": name, "fields": fields}
    if kind["type"] == "array":
        return {"type": "array", "items": ["null", definition_of(kind["elementType"], f"{name}_item")]}
    if kind["type"] == "map" and kind["keyType"] == "string":
        return {"type": "map", "values": ["null", definition_of(kind["valueType"], f"{name}_value")]}
    raise SinkError(f"column {column} is a {kind['type']} for which Avro and JSON schemas have no type: cast it")
