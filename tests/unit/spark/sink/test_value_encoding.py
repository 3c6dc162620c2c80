"""Typed columns as values: definitions from Spark types, and values by a topic's schema."""

import json
from collections.abc import Mapping
from datetime import UTC, date, datetime
from decimal import Decimal
from io import BytesIO
from typing import Any

import fastavro
import pytest
from pyspark.sql.pandas.types import to_arrow_type

from pulsarbox.protocol.PulsarApi_pb2 import Schema
from pulsarbox.protocol.schema.definition import check
from pulsarbox.protocol.schema.key_value import is_separated, split
from pulsarbox.spark.decode.value_decoder import decoder, pair
from pulsarbox.spark.options import WRITE, parse
from pulsarbox.spark.schema.spark_types import type_of
from pulsarbox.spark.sink import value_encoding
from pulsarbox.spark.sink.epoch_client import SinkError
from pulsarbox.spark.sink.primitive_encoding import Forms
from pulsarbox.spark.sink.row_encoder import shape_of
from pulsarbox.spark.sink.schema_from_columns import definition_of
from pulsarbox.spark.sink.value_encoding import encoding_of
from pulsarbox.spark.sink.write_job import Sinking
from pulsarbox.spark.topic_segments import Reach

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
    """Broker with or without a schema, which accepts a new one."""

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
    monkeypatch.setattr(value_encoding, "Producer", _Opened)


def sinking(options: Mapping[str, str] = {}, **columns: Any) -> Sinking:
    found = parse({"topic": TOPIC, **options}, WRITE)
    simple = {name: kind if isinstance(kind, str) else "struct<>" for name, kind in columns.items()}
    names = {"long": "bigint", "integer": "int"}
    shape = shape_of([(name, names.get(kind, kind)) for name, kind in simple.items()], TOPIC, found.value_format)
    fields = [{"name": name, "type": kind} for name, kind in columns.items()]
    return Sinking(found, Reach("pulsar://h:1"), shape, json.dumps({"type": "struct", "fields": fields}), True)


def encoded(broker: Broker, write: Sinking, value: Any) -> bytes:
    found = encoding_of(broker, TOPIC, write).encode(value)  # type: ignore[arg-type]
    assert found is not None
    return found


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
        ({"id": "long", "whom": "string"}, "has no field whom: its fields are id, who, state"),
        ({"who": "string", "state": "string"}, "requires id: add columns with these names"),
    ],
)
def test_columns_have_to_fit_the_schema(columns: dict[str, Any], words: str) -> None:
    with pytest.raises(SinkError, match=words):
        encoded(Broker(Schema.Json, ORDER), sinking(**columns), {})


def test_a_value_that_its_field_does_not_take_names_the_field() -> None:
    with pytest.raises(ValueError, match="field id: 'x' is not of type long"):
        encoded(Broker(Schema.Json, ORDER), sinking(id="long"), "x")
    with pytest.raises(ValueError, match="field id: True is not of type long"):
        encoded(Broker(Schema.Json, ORDER), sinking(id="long"), True)


def test_numbers_that_json_has_not_are_text_as_of_java_clients() -> None:
    reading = {"type": "record", "name": "R", "fields": [{"name": "x", "type": ["null", "double"], "default": None}]}
    broker, write = Broker(Schema.Json, reading), sinking(x="double")
    given = (float("nan"), float("inf"), float("-inf"), 1.5, None)
    found = [encoded(broker, write, each) for each in given]
    assert found == [b'{"x":"NaN"}', b'{"x":"Infinity"}', b'{"x":"-Infinity"}', b'{"x":1.5}', b'{"x":null}']


def test_a_topic_without_a_schema_is_given_one_where_a_format_is_named() -> None:
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
    with pytest.raises(SinkError, match="consumers could not decode columns id, who"):
        encoded(broker, write, {})


def test_a_schema_of_another_kind_is_refused() -> None:
    with pytest.raises(SinkError, match="has a schema of type AVRO, not json"):
        encoded(Broker(Schema.Avro, ORDER), sinking({"valueFormat": "json"}, id="long", who="string"), {})
    with pytest.raises(SinkError, match=r"schema of type PROTOBUF.*valueFormat=bytes"):
        encoded(Broker(Schema.Protobuf), sinking(id="long", who="string"), {})
    with pytest.raises(SinkError, match="has records as values, but column value is long"):
        encoded(Broker(Schema.Json, ORDER), sinking(value="long"), 1)


@pytest.mark.parametrize(
    ("kind", "value", "data"),
    [
        (Schema.Int8, -1, b"\xff"),
        (Schema.Int64, 258, b"\0\0\0\0\0\0\x01\x02"),
        (Schema.Double, 1.0, b"\x3f\xf0\0\0\0\0\0\0"),
        (Schema.Float, 1.0, b"\x3f\x80\0\0"),
        (Schema.Bool, True, b"\x01"),
        (Schema.String, "é", "é".encode()),
        (Schema.LocalTime, 1, b"\0\0\0\0\0\0\0\x01"),
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
    form = Forms().of({**definition, "fields": definition["fields"][:2]})
    assert form({"many": [{"x": 1}, None], "named": [("a", 0.5)]}) == {"many": [{"x": 1}, None], "named": {"a": 0.5}}
    with pytest.raises(SinkError, match=r"column c is interval.*cast it"):
        definition_of("interval", "c")


# Round trips ----------------------------------------------------------------------------------------------------------

DAY, WHEN = date(2026, 11, 22), datetime(2026, 11, 22, 7, 30, 0, 123_456, tzinfo=UTC)
EACH: dict[str, Any] = {
    "text": "string", "raw": "binary", "small": "byte", "short": "short", "whole": "integer", "id": "long",
    "half": "float", "real": "double", "is": "boolean", "day": "date", "at": "timestamp", "local": "timestamp_ntz",
    "price": "decimal(20,3)",
    "many": {"type": "array", "elementType": "long", "containsNull": True},
    "named": {"type": "map", "keyType": "string", "valueType": "double", "valueContainsNull": True},
    "inside": {"type": "struct", "fields": [
        {"name": "a", "type": "string", "nullable": True, "metadata": {}},
        {"name": "b", "type": {"type": "array", "containsNull": True, "elementType": {"type": "struct", "fields": [
            {"name": "c", "type": "integer", "nullable": True, "metadata": {}}]}}, "nullable": True, "metadata": {}},
    ]},
}  # fmt: skip
FULL: dict[str, Any] = {
    "text": "é", "raw": b"\xff\x00", "small": -3, "short": 300, "whole": -70_000, "id": 2**40, "half": 0.5,
    "real": 1 / 3, "is": True, "day": DAY, "at": WHEN, "local": WHEN.replace(tzinfo=None),
    "price": Decimal("12345678901234567.125"), "many": [1, 2], "named": {"x": 1.5},
    "inside": {"a": "b", "b": [{"c": 1}, {"c": None}]},
}  # fmt: skip
NO_TIMES = [name for name in EACH if name not in ("day", "at", "local", "price")]
OF_JSON = [name for name in EACH if name not in ("raw", "day", "at", "local", "price")]


def read_back(broker: Broker, write: Sinking, value: Any) -> Any:
    """Return the value as decoded by a reader with the schema registered for the topic."""
    data = encoded(broker, write, value)
    schema = broker.registered or (broker.found and broker.found[0])
    assert schema is not None
    check(schema)
    array, bad = decoder(schema, schema, to_arrow_type(type_of(schema), timezone="UTC")).array([data])
    assert not bad
    return array.to_pylist(maps_as_pydicts="strict")[0]


@pytest.mark.parametrize(("form", "names"), [("avro", list(EACH)), ("protobuf", NO_TIMES), ("json", OF_JSON)])
@pytest.mark.parametrize("row", [FULL, dict.fromkeys(EACH)], ids=["full", "null"])
def test_what_is_written_is_read(form: str, names: list[str], row: dict[str, Any]) -> None:
    write = sinking({"valueFormat": form}, **{name: EACH[name] for name in names})
    found = read_back(Broker(), write, {name: row[name] for name in names})
    if form == "protobuf" and row is not FULL:  # repeated fields have no null in protobuf
        row = row | {"many": [], "named": {}}
    assert {name: found[name] for name in names} == {name: row[name] for name in names}


def test_what_json_has_no_form_for_is_written_so_that_nothing_is_lost() -> None:
    write = sinking({"valueFormat": "json"}, price="decimal(20,3)", raw="binary", day="date", at="timestamp")
    found = json.loads(encoded(Broker(), write, {name: FULL[name] for name in ("price", "raw", "day", "at")}))
    assert found == {"price": "12345678901234567.125", "raw": "/wA=", "day": 20_779, "at": 1_795_332_600_123_456}


@pytest.mark.parametrize("name", [name for name, kind in EACH.items() if kind not in ("string", "binary")][:9])
def test_one_column_becomes_a_primitive_schema(name: str) -> None:
    broker = Broker()
    write = sinking(**{name: EACH[name]})
    assert read_back(broker, write, FULL[name]) == FULL[name]
    assert broker.registered is not None
    assert broker.registered.IsInitialized(), "it can be sent"
    assert not broker.registered.schema_data


def test_one_column_of_text_is_written_by_the_schema_unless_it_is_the_value() -> None:
    record = {"type": "record", "name": "R", "fields": [{"name": "who", "type": "string"}]}
    assert encoded(Broker(Schema.Json, record), sinking(who="string"), "a") == b'{"who":"a"}'
    assert encoded(Broker(Schema.String), sinking(who="string"), "a") == b"a"
    with pytest.raises(ValueError, match="'7' is not a whole number"):
        encoded(Broker(Schema.Int64), sinking(who="string"), "7")
    without = Broker()
    assert encoded(without, sinking(who="string"), "a") == b"a"
    assert without.registered is None
    assert sinking(value="string").shape.is_raw
    assert sinking({"valueFormat": "string"}, who="string").shape.is_raw


def test_a_word_that_an_enum_has_not_is_told() -> None:
    enum = {"type": "enum", "name": "E", "symbols": ["A", "B"]}
    broker = Broker(Schema.Json, {"type": "record", "name": "R", "fields": [{"name": "e", "type": enum}]})
    assert encoded(broker, sinking(e="string"), "B") == b'{"e":"B"}'
    with pytest.raises(ValueError, match="field e: 'Z' is not one of A, B"):
        encoded(broker, sinking(e="string"), "Z")


def test_columns_become_avro_where_nothing_is_said() -> None:
    broker = Broker()
    assert read_back(broker, sinking(id="long", text="string"), {"id": 1, "text": "a"}) == {"id": 1, "text": "a"}
    assert broker.registered is not None
    assert broker.registered.type == Schema.Avro


def test_a_key_and_a_value_by_their_schemas() -> None:
    broker = Broker()
    write = sinking({"valueFormat": "keyvalue"}, key="long", value=EACH["inside"])
    found = encoding_of(broker, TOPIC, write)  # type: ignore[arg-type]
    assert broker.registered is not None
    check(broker.registered)
    assert is_separated(broker.registered)
    assert found.key is not None
    assert found.key({"key": 258, "value": None}) == b"\0\0\0\0\0\0\x01\x02"
    assert found.encode({"key": 258, "value": None}) is None
    _, of_value = split(broker.registered)
    target = to_arrow_type(type_of(of_value), timezone="UTC")
    data = found.encode({"key": None, "value": FULL["inside"]})
    assert data is not None
    assert decoder(of_value, of_value, target).array([data])[0].to_pylist() == [FULL["inside"]]
    # The same schema with key and value inline in one payload.
    inline = Schema(name="s", type=Schema.Type.KeyValue, schema_data=broker.registered.schema_data)
    for each in broker.registered.properties:
        inline.properties.add(key=each.key, value="INLINE" if each.value == "SEPARATED" else each.value)
    broker.found = inline, b"\x02"
    whole = encoding_of(broker, TOPIC, write)  # type: ignore[arg-type]
    assert (whole.key, whole.schema_version) == (None, b"\x02")
    assert pair(whole.encode({"key": 258, "value": None}) or b"") == (b"\0\0\0\0\0\0\x01\x02", None)
    with pytest.raises(SinkError, match="use columns key and value, not id"):
        encoded(broker, sinking(id="long"), 1)
    broker.found = broker.registered, b"\x02"
    with pytest.raises(SinkError, match="remove column __key"):
        encoded(broker, sinking(key="long", value=EACH["inside"], __key="string"), {})


def test_rows_may_name_their_schema() -> None:
    broker, told = Broker(Schema.String), json.dumps({"type": "AVRO", "schema": json.dumps(ORDER)})
    write = sinking(id="long", __schema="string")
    found = encoding_of(broker, TOPIC, write, told)  # type: ignore[arg-type]
    assert (found.encode(1), found.schema_version) == (b"\x02\x00\x06new", b"\x00")
    raw = encoding_of(broker, TOPIC, sinking(value="binary", __schema="string"), told)  # type: ignore[arg-type]
    assert (raw.encode(b"x"), raw.schema_version) == (b"x", b"\x00")
    for wrong in ("AVRO", "{}", '{"type": "avro"}', '{"type": "KEY_VALUE", "schema": "1"}'):
        with pytest.raises(SinkError, match=r"is not a valid schema.*format of the Admin API"):
            encoding_of(broker, TOPIC, write, wrong)  # type: ignore[arg-type]


@pytest.mark.parametrize(
    ("columns", "words"),
    [
        ({"at": "timestamp"}, r"column Row\.at is timestamp, for which Protobuf has no type: cast it"),
        ({"m": {"type": "map", "keyType": "double", "valueType": "long"}}, "is a map with double keys"),
        ({"a": {"type": "array", "elementType": {"type": "array", "elementType": "long"}}}, "a array inside another"),
    ],
)
def test_what_protobuf_has_not(columns: dict[str, Any], words: str) -> None:
    with pytest.raises(SinkError, match=words):
        encoded(Broker(), sinking({"valueFormat": "protobuf"}, **columns), {})


def test_what_a_field_of_protobuf_does_not_take_is_named() -> None:
    write = sinking({"valueFormat": "protobuf"}, id="long", many={"type": "array", "elementType": "long"})
    with pytest.raises(ValueError, match="field id: "):
        encoded(Broker(), write, {"id": "x"})
    with pytest.raises(ValueError, match="field many: a list or map contains a null"):
        encoded(Broker(), write, {"many": [None]})
