"""Rows as messages: meaning of the columns, and rows that cannot be written."""

from datetime import UTC, datetime
from typing import Any

import pyarrow as pa
import pytest

from pulsarbox.protocol.message_encoder import Outgoing
from pulsarbox.spark.sink.epoch_client import SinkError
from pulsarbox.spark.sink.row_encoder import RAW, Encoding, RowShape, Taker, shape_of

TOPIC = "persistent://public/default/t"
NOW = 5_000


def shape(topic: str = TOPIC, value_format: str = "auto", **columns: str) -> RowShape:
    return shape_of(list(columns.items()), topic, value_format)


def taken(found: RowShape, batch: pa.RecordBatch, topic: str = TOPIC, encoding: Encoding = RAW) -> list[Any]:
    return list(Taker(found, topic, lambda name, named: encoding, lambda: NOW).messages(batch))


def test_a_value_alone_goes_as_bytes() -> None:
    batch = pa.RecordBatch.from_pydict({"value": ["a", "b"]})
    assert taken(shape(value="string"), batch) == [(TOPIC, [b"a", b"b"])]
    assert taken(shape(value="binary"), pa.RecordBatch.from_pydict({"value": [b"\xff"]})) == [(TOPIC, [b"\xff"])]
    assert taken(shape(value="string"), batch.slice(0, 0)) == []


def test_a_null_value_is_a_tombstone() -> None:
    batch = pa.RecordBatch.from_pydict({"value": ["a", None]})
    assert taken(shape(value="string"), batch) == [(TOPIC, [Outgoing(b"a"), Outgoing(None)])]


def test_columns_become_what_they_are_called() -> None:
    when = datetime(2023, 11, 14, 22, 13, 20, 123_999, tzinfo=UTC)
    batch = pa.RecordBatch.from_arrays(
        [
            pa.array([b"k", b"\xff\xfe", None]),
            pa.array(["o", None, None]),
            pa.array([[("a", "1"), ("b", "2")], [], None], pa.map_(pa.string(), pa.string())),
            pa.array([when, None, None], pa.timestamp("us", "UTC")),
            pa.array([1, 0, None], pa.int64()),
            pa.array(["x", "y", "z"]),
        ],
        names=["__key", "__orderingKey", "__messageProperties", "__eventTime", "__deliverAfter", "value"],
    )
    found = shape(
        __key="binary",
        __orderingKey="string",
        __messageProperties="map<string,string>",
        __eventTime="timestamp",
        __deliverAfter="bigint",
        value="string",
    )
    (only,) = taken(found, batch)
    assert only[1] == [
        Outgoing(b"x", "k", False, b"o", (("a", "1"), ("b", "2")), 1_700_000_000_123, NOW + 1),
        Outgoing(b"y", "//4=", True),
        Outgoing(b"z"),
    ]


def test_times_may_be_milliseconds() -> None:
    batch = pa.RecordBatch.from_pydict({"__deliverAt": [7], "value": ["x"]})
    assert taken(shape(__deliverAt="bigint", value="string"), batch) == [(TOPIC, [Outgoing(b"x", deliver_at=7)])]


def test_rows_name_their_topics_where_no_option_does() -> None:
    batch = pa.RecordBatch.from_pydict({"__topic": ["a", "a", "b", "a"], "value": ["1", "2", "3", "4"]})
    columns = {"__topic": "string", "value": "string"}
    found = taken(shape("", **columns), batch, "")
    assert [(topic, [each.payload for each in messages]) for topic, messages in found] == [
        ("a", [b"1", b"2"]),
        ("b", [b"3"]),
        ("a", [b"4"]),
    ]
    assert taken(shape(TOPIC, **columns), batch) == [(TOPIC, [b"1", b"2", b"3", b"4"])]
    with pytest.raises(SinkError, match="row 0 has no __topic"):
        taken(shape("", **columns), pa.RecordBatch.from_pydict({"__topic": [None], "value": ["1"]}), "")


def test_what_a_topic_fills_itself_is_passed_over() -> None:
    found = shape(value="binary", __messageId="binary", __publishTime="timestamp", __partition="int")
    assert (found.columns, found.values) == ((), ("value",))


@pytest.mark.parametrize(
    ("columns", "words"),
    [
        ({"__kye": "binary", "value": "string"}, "unknown column __kye; did you mean __key"),
        ({"__key": "int", "value": "string"}, "column __key has type int: it must be string or binary"),
        ({"__messageProperties": "map<string,int>", "value": "string"}, "must be map<string,string>"),
        ({"__key": "binary"}, "no value"),
        ({"__deliverAt": "bigint", "__deliverAfter": "bigint", "value": "string"}, "conflict"),
    ],
)
def test_columns_that_cannot_be_written_are_refused(columns: dict[str, str], words: str) -> None:
    with pytest.raises(SinkError, match=words):
        shape(**columns)


def test_formats_want_their_columns() -> None:
    with pytest.raises(SinkError, match="no topic: set option topic"):
        shape("", value="string")
    with pytest.raises(SinkError, match="valueFormat=bytes writes one binary column, not a, b"):
        shape(value_format="bytes", a="int", b="int")
    with pytest.raises(SinkError, match="valueFormat=json writes a record, but value is string"):
        shape(value_format="json", value="string")
    assert shape(value_format="json", value="struct<a:int>").value_type == "struct<a:int>"
    assert shape(value_format="json", a="int").value_type == "struct"
    assert shape(a="int", b="int").value_type == "struct"


@pytest.mark.parametrize(
    ("columns", "types", "words"),
    [
        ({"__eventTime": [1, -1]}, {"__eventTime": "bigint"}, "row 1 cannot be written: __eventTime is before 1970"),
        ({"__deliverAfter": [1, -5]}, {"__deliverAfter": "bigint"}, "row 1 .*must not be negative"),
    ],
)
def test_a_row_that_cannot_be_written_is_named(columns: dict[str, Any], types: dict[str, str], words: str) -> None:
    batch = pa.RecordBatch.from_pydict({**columns, "value": ["x", "y"]})
    with pytest.raises(SinkError, match=words):
        taken(shape(**types, value="string"), batch)


def test_rows_are_counted_over_batches() -> None:
    found = shape(__eventTime="bigint", value="string")
    taker = Taker(found, TOPIC, lambda name, named: RAW, lambda: NOW)
    list(taker.messages(pa.RecordBatch.from_pydict({"__eventTime": [1, 2], "value": ["x", "y"]})))
    with pytest.raises(SinkError, match="row 2 "):
        list(taker.messages(pa.RecordBatch.from_pydict({"__eventTime": [-1], "value": ["x"]})))


def test_records_are_rows_of_their_columns() -> None:
    batch = pa.RecordBatch.from_pydict({"a": [1, None, None], "b": ["x", "y", None], "__key": ["1", "2", "3"]})
    encoding = Encoding(lambda value: repr(value).encode(), b"v")
    ((_, messages),) = taken(shape(a="int", b="string", __key="string"), batch, encoding=encoding)
    assert [each.payload for each in messages] == [b"{'a': 1, 'b': 'x'}", b"{'a': None, 'b': 'y'}", None]
    assert messages[0].schema_version == b"v"


def test_rows_of_one_schema_each_and_a_key_that_the_schema_has_apart() -> None:
    batch = pa.RecordBatch.from_pydict(
        {"__schema": ["a", "a", None], "key": ["k", None, "l"], "value": [b"1", b"2", None]}
    )
    asked: list[tuple[str, str | None]] = []

    def encoding(topic: str, named: str | None) -> Encoding:
        asked.append((topic, named))
        return Encoding(lambda pair: pair["value"], b"\x01", lambda pair: pair["key"] and pair["key"].encode())

    found = shape(__schema="string", key="string", value="binary")
    rows = [each for _, some in Taker(found, TOPIC, encoding, lambda: NOW).messages(batch) for each in some]
    assert asked == [(TOPIC, "a"), (TOPIC, None)]
    assert rows == [
        Outgoing(b"1", "aw==", True, schema_version=b"\x01"),
        Outgoing(b"2", schema_version=b"\x01", null_key=True),
        Outgoing(None, "bA==", True, schema_version=b"\x01"),
    ]


def test_maps_and_times_come_as_python_has_them() -> None:
    named = pa.map_(pa.string(), pa.int64())
    when = datetime(2023, 11, 14, 22, 13, 20, 123_999, tzinfo=UTC)
    got: list[Any] = []

    def keep(value: Any) -> bytes:
        got.append(value)
        return b""

    catch = Encoding(keep)
    batch = pa.RecordBatch.from_arrays(
        [pa.array([[("a", 1)]], named), pa.array([{"x": [("b", 2)]}], pa.struct([("x", named)]))], names=["m", "s"]
    )
    taken(shape(m="map<string,bigint>", s="struct<x:map<string,bigint>>"), batch, encoding=catch)
    taken(shape(at="timestamp"), pa.RecordBatch.from_pydict({"at": pa.array([when], pa.timestamp("us", "UTC"))}),
          encoding=catch)  # fmt: skip
    assert got == [{"m": {"a": 1}, "s": {"x": {"b": 2}}}, when]


def test_a_pair_has_two_columns() -> None:
    with pytest.raises(SinkError, match="valueFormat=keyvalue writes columns key and value, not id, value"):
        shape(value_format="keyvalue", id="bigint", value="string")
