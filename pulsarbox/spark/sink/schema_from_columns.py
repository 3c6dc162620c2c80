"""Schemas made from the columns of a frame, for topics that have none. Nothing of pyspark.

Types come as the JSON of a StructType.
"""

import json
from collections.abc import Mapping
from typing import Any, Final

from pulsarbox.protocol.PulsarApi_pb2 import Schema
from pulsarbox.protocol.schema import key_value
from pulsarbox.protocol.schema.types import BYTES, SCHEMA_TYPES
from pulsarbox.spark.sink.epoch_client import SinkError

RECORD: Final = "Row"
"""The name of the record that is made from a frame's columns."""
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
"""Types of Spark's as Avro has them."""


FORMATS: Final[Mapping[str, Schema.Type]] = {
    "json": Schema.Json,
    "avro": Schema.Avro,
    "protobuf": Schema.ProtobufNative,
    "keyvalue": Schema.Type.KeyValue,
}
"""Of the option valueFormat: those by which a schema is made."""
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
    """A schema for values of a type of Spark's. ``form``: a word of ``FORMATS``; or ``auto``: a primitive for what is
    one, else Avro. ``column``: the name of the column, where it is one alone.

    Raises SinkError.
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


def told_schema(text: str) -> Schema:
    """A schema as the Admin API writes it: ``{"type": "AVRO", "schema": "...", "properties": {}}``.

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
            f"{text[:100]!r} is no schema: {type(error).__name__} {error}. It is written as the Admin API does: "
            '{"type": "AVRO", "schema": "...", "properties": {}}'
        ) from None
    return made


_PAIR: Final = ("key", "value")


def definition_of(kind: Any, name: str = RECORD) -> Any:
    """A type of Spark's, as its JSON has it, as a definition of Avro; records inside are named by where they stand.

    Raises SinkError for types that Avro has no form for.
    """
    column = name.removeprefix(f"{RECORD}_")
    if isinstance(kind, str):
        if kind.startswith("decimal"):
            precision, _, scale = kind.removeprefix("decimal").strip("()").partition(",")
            sizes = {"precision": int(precision or 10), "scale": int(scale or 0)}
            return {"type": "bytes", "logicalType": "decimal", **sizes}
        found = _SIMPLE.get(kind)
        if found is None:
            raise SinkError(f"column {column} is {kind}, which Avro and JSON schemas have no type for: cast it")
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
    raise SinkError(f"column {column} is a {kind['type']} that Avro and JSON schemas have no type for: cast it")
