"""Encoding of typed columns as message values: by the topic's schema, by one that a row names, or by one built from the
columns. Does not import pyspark."""

import json
from collections.abc import Callable, Mapping
from typing import TYPE_CHECKING, Any, Final

from pulsarbox.client.client import Client
from pulsarbox.client.producer import Options as Producing
from pulsarbox.client.producer import Producer
from pulsarbox.errors import InvalidSchema
from pulsarbox.protocol.PulsarApi_pb2 import Schema
from pulsarbox.protocol.schema import key_value
from pulsarbox.protocol.schema.native_definition import parse
from pulsarbox.protocol.schema.types import spelling
from pulsarbox.spark.decode.row_columns import VALUE
from pulsarbox.spark.sink.epoch_client import SinkError
from pulsarbox.spark.sink.primitive_encoding import as_avro, as_json, primitive
from pulsarbox.spark.sink.row_encoder import KEY, RAW, TEXT_OR_BYTES, Encode, Encoding, raw
from pulsarbox.spark.sink.schema_from_columns import FORMATS, parse_schema, schema_of

if TYPE_CHECKING:
    from pulsarbox.spark.sink.write_job import Sinking

PAIR: Final = ("key", VALUE)
"""Columns of a KEY_VALUE schema."""


def encoding_of(client: Client, topic: str, sinking: "Sinking", named: str | None = None) -> Encoding:
    """Return the encoding of values for a topic. ``named``: the schema that the rows name.

    Raises SinkError and the broker's errors.
    """
    if named is not None:
        schema = parse_schema(named)
        return _encoding(schema, topic, sinking, _given(client, topic, schema))
    found, wanted = client.latest_schema(topic), sinking.options.value_format
    if found is None:
        return _without_schema(client, topic, sinking)
    schema, version = found
    if wanted in FORMATS and schema.type != FORMATS[wanted]:
        raise SinkError(f"{topic} has a schema of type {spelling(schema.type)}, not {wanted}: remove valueFormat")
    return _encoding(schema, topic, sinking, version)


def _without_schema(client: Client, topic: str, sinking: "Sinking") -> Encoding:
    if sinking.shape.value_type in TEXT_OR_BYTES:
        return RAW
    wanted, columns = sinking.options.value_format, ", ".join(sinking.shape.values)
    if not sinking.options.register_schema and wanted != "json":
        raise SinkError(
            f"{topic} has no schema, so consumers could not decode columns {columns}: remove registerSchema=false, set "
            "valueFormat=json, or write one column value of bytes or text"
        )
    schema = schema_of(_record(sinking), wanted, sinking.shape.values[0])
    if not sinking.options.register_schema:
        return _encoding(schema, topic, sinking, None)
    return _encoding(schema, topic, sinking, _given(client, topic, schema))


def _given(client: Client, topic: str, schema: Schema) -> bytes:
    """Return the version of a schema, registering it if the topic does not have it."""
    Producer(client, topic, Producing(), _ignore).close()  # the topic must exist before a schema can be registered
    return client.register_schema(topic, schema)


def _record(sinking: "Sinking") -> Any:
    """Return the Spark type of the value, as JSON."""
    fields = {each["name"]: each for each in json.loads(sinking.fields)["fields"]}
    chosen = [fields[name] for name in sinking.shape.values]
    if len(chosen) == 1 and sinking.shape.value_type != "struct":
        return chosen[0]["type"]
    return {"type": "struct", "fields": chosen}


# By a schema ----------------------------------------------------------------------------------------------------------


def _encoding(schema: Schema, topic: str, sinking: "Sinking", version: bytes | None) -> Encoding:
    version = version or None
    if sinking.shape.is_raw:
        return Encoding(raw, version)
    try:
        if schema.type == Schema.Type.KeyValue:
            return _of_pair(schema, topic, sinking)._replace(schema_version=version)
        return Encoding(_encode(schema, topic, sinking), version)
    except InvalidSchema as error:
        raise SinkError(f"the schema of {topic} cannot be used: {error}") from None


def _encode(schema: Schema, topic: str, sinking: "Sinking") -> Encode:
    record, alone = _record(sinking), sinking.shape.values[0]
    if sinking.shape.value_type != "struct" and alone in _fields_of(schema):
        encode = _by_schema(schema, topic, {"type": "struct", "fields": [{"name": alone, "type": record}]}, alone)
        return lambda value: encode({alone: value})
    return _by_schema(schema, topic, record, ", ".join(sinking.shape.values))


def _by_schema(schema: Schema, topic: str, kind: Any, columns: str) -> Encode:
    """Return an encoder of values of a Spark type. Raises SinkError if they do not fit the schema."""
    is_record = isinstance(kind, dict) and kind.get("type") == "struct"
    fields = _fields_of(schema)
    if fields:
        _check_fields(fields, topic, kind)
        if schema.type == Schema.ProtobufNative:
            from pulsarbox.spark.sink.protobuf_encoding import writer_of

            return writer_of(parse(schema.schema_data))
        definition = json.loads(schema.schema_data)
        return as_json(definition) if schema.type == Schema.Json else as_avro(definition)
    found = None if is_record else primitive(schema.type)
    if found is None:
        raise SinkError(
            f"{topic} has a schema of type {spelling(schema.type)}, which columns {columns} do not fit: write its "
            "values as one column of bytes, with valueFormat=bytes"
        )
    return found


def _fields_of(schema: Schema) -> dict[str, bool]:
    """Return the fields of a record schema, and whether each is required; empty for other schemas."""
    if schema.type == Schema.ProtobufNative:
        return {field.name: field.is_required for field in parse(schema.schema_data).fields}
    definition = json.loads(schema.schema_data) if schema.type in (Schema.Json, Schema.Avro) else None
    if not isinstance(definition, dict) or definition.get("type") != "record":
        return {}
    return {each["name"]: "default" not in each and not _may_be_null(each["type"]) for each in definition["fields"]}


def _check_fields(known: Mapping[str, bool], topic: str, kind: Any) -> None:
    if not isinstance(kind, dict) or kind.get("type") != "struct":
        raise SinkError(f"{topic} has records as values, but column {VALUE} is {kind}: use columns or a struct")
    given = {each["name"] for each in kind["fields"]}
    if unknown := sorted(given - known.keys()):
        raise SinkError(f"the schema of {topic} has no field {', '.join(unknown)}: its fields are {', '.join(known)}")
    if missing := sorted({name for name, is_needed in known.items() if is_needed} - given):
        raise SinkError(f"the schema of {topic} requires {', '.join(missing)}: add columns with these names")


def _may_be_null(kind: Any) -> bool:
    return kind == "null" or (isinstance(kind, list) and "null" in kind)


# Key and value --------------------------------------------------------------------------------------------------------


def _of_pair(schema: Schema, topic: str, sinking: "Sinking") -> Encoding:
    shape = sinking.shape
    if sorted(shape.values) != sorted(PAIR):
        raise SinkError(
            f"{topic} has a schema of keys and values: use columns {' and '.join(PAIR)}, not {', '.join(shape.values)}"
        )
    kinds = {each["name"]: each["type"] for each in _record(sinking)["fields"]}
    parts = zip(PAIR, key_value.split(schema), strict=True)
    key, value = (_part(name, _by_schema(part, f"the {name} of {topic}", kinds[name], name)) for name, part in parts)
    if not key_value.is_separated(schema):
        return Encoding(lambda pair: _sized(key(pair)) + _sized(value(pair)))
    if KEY in shape.columns:
        raise SinkError(f"the schema of {topic} takes the key from column {PAIR[0]}: remove column {KEY}")
    return Encoding(value, key=key)


def _part(name: str, encode: Encode) -> Callable[[Mapping[str, Any]], bytes | None]:
    return lambda pair: None if pair[name] is None else encode(pair[name])


def _sized(data: bytes | None) -> bytes:
    return b"\xff\xff\xff\xff" if data is None else len(data).to_bytes(4, "big") + data


def _ignore(*_: Any) -> None:
    pass
