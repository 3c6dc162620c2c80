"""Typed columns as values: definitions made from types of Spark's, and values by the schema of a topic."""

import json
from collections.abc import Mapping
from datetime import UTC, date, datetime
from decimal import Decimal
from io import BytesIO
from typing import Any

import fastavro
import pytest

from pulsarbox.protocol.PulsarApi_pb2 import Schema
from pulsarbox.spark import encoding
from pulsarbox.spark.encoding import definition_of, encoding_of
from pulsarbox.spark.epochs import SinkError
from pulsarbox.spark.options import WRITE, parse
from pulsarbox.spark.outgoing import shape_of
from pulsarbox.spark.segments import Reach
from pulsarbox.spark.sinking import Sinking

TOPIC = "persistent://public/default/t"
ORDER = {
    "type": "record",
    "name": "Order",
    "fields": [
        {"name": "id", "type": "long"},
        {"name": "who", "type": ["null", "string"], "default": None},
        {"name": "state", "type": "string", "default": "new"},
    ],
}


class Broker:
    """Has a schema or none, and takes one."""

    def __init__(self, kind: int | None = None, definition: Any = None) -> None:
        self.found: tuple[Schema, bytes] | None = None
        self.registered: Schema | None = None
        if kind is not None:
            data = b"" if definition is None else json.dumps(definition).encode()
            self.found = Schema(name="s", type=kind, schema_data=data), b"\x01"  # type: ignore[arg-type]

    def latest_schema(self, topic: str) -> tuple[Schema, bytes] | None:
        return self.found

    def register_schema(self, topic: str, schema: Schema) -> bytes:
        self.registered = schema
        return b"\x00"


class _Opened:
    def __init__(self, *_: Any) -> None:
        pass

    def close(self) -> None:
        pass


@pytest.fixture(autouse=True)
def _no_producer(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(encoding, "Producer", _Opened)


def sinking(options: Mapping[str, str] = {}, **columns: Any) -> Sinking:
    found = parse({"topic": TOPIC, **options}, WRITE)
    simple = {name: kind if isinstance(kind, str) else "struct<>" for name, kind in columns.items()}
    names = {"long": "bigint", "integer": "int"}
    shape = shape_of([(name, names.get(kind, kind)) for name, kind in simple.items()], TOPIC, found.value_format)
    fields = [{"name": name, "type": kind} for name, kind in columns.items()]
    return Sinking(found, Reach("pulsar://h:1"), shape, json.dumps({"type": "struct", "fields": fields}), True)


def encoded(broker: Broker, write: Sinking, value: Any) -> bytes:
    return encoding_of(broker, TOPIC, write).encode(value)  # type: ignore[arg-type]


def test_rows_are_json_by_the_schema_of_the_topic() -> None:
    broker = Broker(Schema.Json, ORDER)
    write = sinking(id="long", who="string")
    assert encoding_of(broker, TOPIC, write).schema_version == b"\x01"  # type: ignore[arg-type]
    assert json.loads(encoded(broker, write, {"id": 7, "who": "é"})) == {"id": 7, "who": "é", "state": "new"}


def test_rows_are_avro_by_the_schema_of_the_topic() -> None:
    data = encoded(Broker(Schema.Avro, ORDER), sinking(id="long", who="string"), {"id": 7, "who": None})
    parsed = fastavro.parse_schema(ORDER)
    assert fastavro.schemaless_reader(BytesIO(data), parsed, None) == {"id": 7, "who": None, "state": "new"}


@pytest.mark.parametrize(
    ("columns", "words"),
    [
        ({"id": "long", "whom": "string"}, "has no field whom: it has id, who, state"),
        ({"who": "string", "state": "string"}, "needs id: give columns of that name"),
    ],
)
def test_columns_have_to_fit_the_schema(columns: dict[str, Any], words: str) -> None:
    with pytest.raises(SinkError, match=words):
        encoded(Broker(Schema.Json, ORDER), sinking(**columns), {})


def test_a_value_that_its_field_does_not_take_names_the_field() -> None:
    with pytest.raises(ValueError, match="field id: 'x' is no long"):
        encoded(Broker(Schema.Json, ORDER), sinking(id="long"), "x")
    with pytest.raises(ValueError, match="field id: True is no long"):
        encoded(Broker(Schema.Json, ORDER), sinking(id="long"), True)


def test_a_topic_without_a_schema_is_given_one_where_a_format_is_named() -> None:
    with pytest.raises(SinkError, match=r"has no schema.*say valueFormat=json or avro"):
        encoded(Broker(), sinking(id="long", at="timestamp"), {})
    broker, when = Broker(), datetime(1970, 1, 2, 0, 0, 0, 5, tzinfo=UTC)
    write = sinking({"valueFormat": "json"}, id="long", at="timestamp", raw="binary", day="date")
    row = {"id": 1, "at": when, "raw": b"\xff", "day": date(1970, 1, 3)}
    assert json.loads(encoded(broker, write, row)) == {"id": 1, "at": 86_400_000_005, "raw": "/w==", "day": 2}
    assert broker.registered is not None
    assert broker.registered.type == Schema.Json
    fields = json.loads(broker.registered.schema_data)["fields"]
    assert fields[0] == {"name": "id", "type": ["null", "long"], "default": None}
    broker = Broker()
    write = sinking({"valueFormat": "avro"}, id="long", at="timestamp")
    data = encoded(broker, write, {"id": 1, "at": when})
    assert broker.registered is not None
    parsed = fastavro.parse_schema(json.loads(broker.registered.schema_data))
    assert fastavro.schemaless_reader(BytesIO(data), parsed, None) == {"id": 1, "at": when}


def test_a_schema_is_not_given_where_that_is_not_wanted() -> None:
    broker = Broker()
    write = sinking({"valueFormat": "json", "registerSchema": "false"}, id="long", who="string")
    assert encoded(broker, write, {"id": 1, "who": None}) == b'{"id":1,"who":null}'
    assert broker.registered is None
    write = sinking({"valueFormat": "avro", "registerSchema": "false"}, id="long", who="string")
    with pytest.raises(SinkError, match="nobody can read Avro without"):
        encoded(broker, write, {})


def test_a_schema_of_another_kind_is_refused() -> None:
    with pytest.raises(SinkError, match="has a schema of type AVRO, not json"):
        encoded(Broker(Schema.Avro, ORDER), sinking({"valueFormat": "json"}, id="long", who="string"), {})
    with pytest.raises(SinkError, match=r"schema of type KEYVALUE.*valueFormat=bytes"):
        encoded(Broker(Schema.Type.Value("KeyValue")), sinking(id="long", who="string"), {})
    with pytest.raises(SinkError, match="has records as values, and column value is long"):
        encoded(Broker(Schema.Json, ORDER), sinking(value="long"), 1)


@pytest.mark.parametrize(
    ("kind", "value", "data"),
    [
        (Schema.Int8, -1, b"\xff"),
        (Schema.Int64, 258, b"\0\0\0\0\0\0\x01\x02"),
        (Schema.Double, 1.0, b"\x3f\xf0\0\0\0\0\0\0"),
        (Schema.Float, 1.0, b"\x3f\x80\0\0"),
        (Schema.Bool, True, b"\x01"),
    ],
)
def test_single_columns_are_written_as_pulsars_primitives(kind: int, value: Any, data: bytes) -> None:
    assert encoded(Broker(kind), sinking(value="long"), value) == data


def test_a_number_that_is_too_large_is_an_error() -> None:
    with pytest.raises(OverflowError):
        encoded(Broker(Schema.Int8), sinking(value="long"), 300)


def test_types_inside_of_types() -> None:
    struct = {"type": "struct", "fields": [{"name": "x", "type": "integer"}]}
    kind = {
        "type": "struct",
        "fields": [
            {"name": "many", "type": {"type": "array", "elementType": struct}},
            {"name": "named", "type": {"type": "map", "keyType": "string", "valueType": "double"}},
            {"name": "price", "type": "decimal(9,2)"},
        ],
    }
    definition = definition_of(kind)
    names = [each["name"] for each in definition["fields"]]
    assert names == ["many", "named", "price"]
    parsed, out = fastavro.parse_schema(definition), BytesIO()
    value = {"many": [{"x": 1}, None], "named": {"a": 0.5}, "price": Decimal("1.25")}
    fastavro.schemaless_writer(out, parsed, value)
    out.seek(0)
    assert fastavro.schemaless_reader(out, parsed, None) == value
    form = encoding._Forms().of({**definition, "fields": definition["fields"][:2]})
    assert form({"many": [{"x": 1}, None], "named": [("a", 0.5)]}) == {"many": [{"x": 1}, None], "named": {"a": 0.5}}
    with pytest.raises(SinkError, match=r"column c is interval.*cast it"):
        definition_of("interval", "c")
