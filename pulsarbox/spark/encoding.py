"""Typed columns as the values of messages: by the schema that a topic has, or one made from the columns.

Nothing of pyspark: types come as the JSON of a StructType.
"""

import base64
import json
from collections.abc import Callable, Mapping
from datetime import UTC, date, datetime
from io import BytesIO
from struct import Struct
from typing import TYPE_CHECKING, Any, Final

from pulsarbox.client.client import Client
from pulsarbox.client.producer import Options as Producing
from pulsarbox.client.producer import Producer
from pulsarbox.protocol.PulsarApi_pb2 import Schema
from pulsarbox.spark.epochs import SinkError
from pulsarbox.spark.outgoing import Encode, Encoding, raw
from pulsarbox.spark.rows import VALUE

if TYPE_CHECKING:
    from pulsarbox.spark.sinking import Sinking

RECORD: Final = "Row"
"""The name of the record that is made from a frame's columns."""
_FORMATS: Final = {"json": Schema.Json, "avro": Schema.Avro}
_SIZES: Final[Mapping[int, int]] = {Schema.Int8: 1, Schema.Int16: 2, Schema.Int32: 4, Schema.Int64: 8}
_EPOCH: Final = datetime(1970, 1, 1, tzinfo=UTC)
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


def encoding_of(client: Client, topic: str, sinking: "Sinking") -> Encoding:
    """How values for a topic are written. Raises SinkError, and what the broker tells."""
    found, wanted = client.latest_schema(topic), sinking.options.value_format
    if found is None:
        return _without_schema(client, topic, sinking)
    schema, version = found
    if wanted in _FORMATS and schema.type != _FORMATS[wanted]:
        raise SinkError(f"{topic} has a schema of type {_name(schema)}, not {wanted}: leave valueFormat out")
    return Encoding(_encode(schema, topic, sinking), version or None)


def _without_schema(client: Client, topic: str, sinking: "Sinking") -> Encoding:
    wanted = sinking.options.value_format
    if wanted not in _FORMATS:
        raise SinkError(
            f"{topic} has no schema, so it is not known how to write columns {', '.join(sinking.shape.values)}: say "
            "valueFormat=json or avro, or give one column value of bytes or text"
        )
    definition = definition_of(_record(sinking))
    schema = Schema(name=RECORD, type=_FORMATS[wanted], schema_data=json.dumps(definition).encode())
    if not sinking.options.register_schema:
        if wanted == "avro":
            raise SinkError(f"{topic} has no schema, and nobody can read Avro without: leave registerSchema out")
        return Encoding(_encode(schema, topic, sinking))
    Producer(client, topic, Producing(), _ignore).close()  # a schema is given to a topic that there is
    return Encoding(_encode(schema, topic, sinking), client.register_schema(topic, schema))


def _record(sinking: "Sinking") -> Any:
    """The type of the record that is written, as Spark has it in JSON."""
    fields = {each["name"]: each for each in json.loads(sinking.fields)["fields"]}
    chosen = [fields[name] for name in sinking.shape.values]
    if len(chosen) == 1 and sinking.shape.value_type != "struct":
        return chosen[0]["type"]
    return {"type": "struct", "fields": chosen}


def definition_of(kind: Any, name: str = RECORD) -> Any:
    """A type of Spark's, as its JSON has it, as a definition of Avro; records inside are named by where they stand.

    Raises SinkError for types that Avro has no form for.
    """
    if isinstance(kind, str):
        if kind.startswith("decimal"):
            precision, _, scale = kind.removeprefix("decimal").strip("()").partition(",")
            sizes = {"precision": int(precision or 10), "scale": int(scale or 0)}
            return {"type": "bytes", "logicalType": "decimal", **sizes}
        found = _SIMPLE.get(kind)
        if found is None:
            raise SinkError(f"column {name} is {kind}, which Avro and JSON schemas have no type for: cast it")
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
    raise SinkError(f"column {name} is a {kind['type']} that Avro and JSON schemas have no type for: cast it")


def _encode(schema: Schema, topic: str, sinking: "Sinking") -> Encode:
    """Bytes of one value. Raises SinkError where the columns do not fit the schema."""
    kind = schema.type
    if kind in (Schema.Json, Schema.Avro):
        definition = json.loads(schema.schema_data)
        if definition.get("type") == "record":
            record, alone = _record(sinking), sinking.shape.values[0]
            if sinking.shape.value_type != "struct" and any(each["name"] == alone for each in definition["fields"]):
                record = {"type": "struct", "fields": [{"name": alone, "type": record}]}
            else:
                alone = ""
            _check_fields(definition, topic, record)
            encode = _as_json(definition) if kind == Schema.Json else _as_avro(definition)
            return (lambda value: encode({alone: value})) if alone else encode
    elif sinking.shape.value_type != "struct":
        found = _primitive(kind)
        if found is not None:
            return found
    raise SinkError(
        f"{topic} has a schema of type {_name(schema)}, as which columns {', '.join(sinking.shape.values)} cannot be "
        "written: give its values as one column of bytes, with valueFormat=bytes"
    )


def _check_fields(definition: dict[str, Any], topic: str, kind: Any) -> None:
    if not isinstance(kind, dict) or kind.get("type") != "struct":
        raise SinkError(f"{topic} has records as values, and column {VALUE} is {kind}: give columns, or a struct")
    given, known = {each["name"] for each in kind["fields"]}, {each["name"]: each for each in definition["fields"]}
    if unknown := sorted(given - known.keys()):
        raise SinkError(f"the schema of {topic} has no field {', '.join(unknown)}: it has {', '.join(known)}")
    needed = [name for name, each in known.items() if "default" not in each and not _may_be_null(each["type"])]
    if missing := sorted(set(needed) - given):
        raise SinkError(f"the schema of {topic} needs {', '.join(missing)}: give columns of that name")


def _may_be_null(kind: Any) -> bool:
    return kind == "null" or (isinstance(kind, list) and "null" in kind)


def _primitive(kind: int) -> Encode | None:
    """Pulsar's primitive schemas: big-endian numbers, text, one byte for true and false."""
    if kind in (Schema.String, Schema.Type.Value("None")):
        return raw
    size = _SIZES.get(kind, 0)
    if size:
        return lambda value: _whole(value).to_bytes(size, "big", signed=True)
    if kind == Schema.Bool:
        return lambda value: b"\x01" if value else b"\x00"
    if kind in (Schema.Float, Schema.Double):
        return Struct(">f" if kind == Schema.Float else ">d").pack
    return None


def _whole(value: Any) -> int:
    if isinstance(value, bool) or not isinstance(value, int):
        raise ValueError(f"{value!r} is no whole number")
    return value


def _as_json(definition: dict[str, Any]) -> Encode:
    form = _Forms().of(definition)
    return lambda value: json.dumps(form(value), separators=(",", ":"), ensure_ascii=False).encode()


Form = Callable[[Any], Any]


class _Forms:
    """What stands in JSON for values of an Avro definition, as Pulsar's Java client has it: bytes in base64."""

    def __init__(self) -> None:
        self._named: dict[str, Form] = {}

    def of(self, kind: Any) -> Form:
        if isinstance(kind, list):
            return self._union(kind)
        if isinstance(kind, str):
            return self._named[kind] if kind in self._named else _checked(kind)
        logical = kind.get("logicalType")
        if logical in _LOGICAL:
            return _LOGICAL[logical]
        if kind["type"] == "record":
            return self._record(kind)
        if kind["type"] == "array":
            of_item = self.of(kind["items"])
            return lambda value: [of_item(each) for each in value]
        if kind["type"] == "map":
            of_value = self.of(kind["values"])
            return lambda value: {name: of_value(each) for name, each in _pairs(value)}
        if kind["type"] == "enum":
            return _checked("string")
        return self.of(kind["type"])

    def _union(self, kinds: list[Any]) -> Form:
        others = [each for each in kinds if each != "null"]
        if len(others) != 1:
            raise SinkError(f"the schema has a union of {len(others)} types: it cannot be written from columns")
        form = self.of(others[0])
        if len(others) == len(kinds):
            return form
        return lambda value: None if value is None else form(value)

    def _record(self, kind: dict[str, Any]) -> Form:
        fields: list[tuple[str, Form, Any]] = []

        def record(value: Mapping[str, Any]) -> dict[str, Any]:
            return {name: form(value[name]) if name in value else default for name, form, default in fields}

        self._named[kind["name"]] = record
        fields += [
            (each["name"], _named(self.of(each["type"]), each["name"]), each.get("default")) for each in kind["fields"]
        ]
        return record


def _pairs(value: Any) -> Any:
    return value.items() if isinstance(value, dict) else value


def _named(form: Form, name: str) -> Form:
    def named(value: Any) -> Any:
        try:
            return form(value)
        except (ValueError, TypeError) as error:
            raise ValueError(f"field {name}: {error}") from None

    return named


_PYTHON: Final[Mapping[str, tuple[type, ...]]] = {
    "string": (str,),
    "int": (int,),
    "long": (int,),
    "float": (float, int),
    "double": (float, int),
    "boolean": (bool,),
    "bytes": (bytes,),
}


def _checked(kind: str) -> Form:
    """A primitive of Avro; raises ValueError for a value that is none."""
    accepted = _PYTHON.get(kind)
    if accepted is None:
        raise SinkError(f"the schema has type {kind}, which cannot be written from columns")

    def form(value: Any) -> Any:
        if not isinstance(value, accepted) or (isinstance(value, bool) and kind != "boolean"):
            raise ValueError(f"{value!r} is no {kind}")
        return base64.b64encode(value).decode() if isinstance(value, bytes) else value

    return form


def _micros(value: datetime) -> int:
    zoned = value if value.tzinfo is not None else value.replace(tzinfo=UTC)
    since = zoned - _EPOCH
    return (since.days * 86_400 + since.seconds) * 1_000_000 + since.microseconds


def _no_decimal(value: Any) -> Any:
    raise ValueError("a decimal has no form in JSON that all clients read: cast it to double or string")


_LOGICAL: Final[Mapping[str, Form]] = {
    "date": lambda value: (value - date(1970, 1, 1)).days,
    "timestamp-millis": lambda value: _micros(value) // 1000,
    "timestamp-micros": _micros,
    "local-timestamp-millis": lambda value: _micros(value) // 1000,
    "local-timestamp-micros": _micros,
    "decimal": _no_decimal,
}


def _as_avro(definition: dict[str, Any]) -> Encode:
    try:
        import fastavro
    except ImportError:
        raise SinkError("Avro is written with fastavro: pip install 'pulsarbox[spark]' on every worker") from None
    parsed = fastavro.parse_schema(definition)
    write = fastavro.schemaless_writer

    def encode(value: Any) -> bytes:
        out = BytesIO()
        write(out, parsed, value)
        return out.getvalue()

    return encode


def _name(schema: Schema) -> str:
    return Schema.Type.Name(schema.type).upper()


def _ignore(*_: Any) -> None:
    pass
