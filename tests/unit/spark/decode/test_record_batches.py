"""Messages as record batches: Spark's types, values by schema, and invalid values."""

import io
import json
import pickle
import re
import struct
from base64 import b64encode
from datetime import UTC, date, datetime
from decimal import Decimal
from itertools import accumulate
from typing import Any

import fastavro
import pyarrow as pa
import pytest
from google.protobuf.descriptor_pb2 import FileDescriptorProto, FileDescriptorSet
from google.protobuf.descriptor_pool import DescriptorPool
from google.protobuf.message_factory import GetMessageClass
from hypothesis import given
from hypothesis import strategies as st
from pyspark.sql.pandas.types import to_arrow_schema
from pyspark.sql.types import (
    ArrayType,
    BinaryType,
    DataType,
    DoubleType,
    IntegerType,
    LongType,
    MapType,
    StringType,
    StructField,
    StructType,
    TimestampNTZType,
    TimestampType,
)

from pulsarbox.protocol.PulsarApi_pb2 import KeyValue, Schema
from pulsarbox.protocol.schema.key_value import joined
from pulsarbox.spark.connect.schema_registry import Registry
from pulsarbox.spark.decode.message_columns import Cuts, Messages, Properties
from pulsarbox.spark.decode.record_batches import MalformedError, RecordBatches
from pulsarbox.spark.decode.row_columns import ALL
from pulsarbox.spark.decode.value_decoder import UnreadableValues
from pulsarbox.spark.schema.spark_types import NoColumnsError, of_row, type_of, value_fields, with_corrupt
from pulsarbox.spark.topic_segments import Reach
from tests.unit.protocol.schema.worst import doubling

TOPIC = "persistent://public/default/orders"
ORDER = {
    "type": "record",
    "name": "Order",
    "namespace": "demo.Outer$",
    "fields": [
        {"name": "id", "type": "long"},
        {"name": "amount", "type": ["null", "double"], "default": None},
        {"name": "tags", "type": {"type": "array", "items": "string"}},
        {"name": "labels", "type": {"type": "map", "values": "int"}},
        {"name": "state", "type": {"type": "enum", "name": "State", "symbols": ["NEW", "DONE"]}},
        {"name": "at", "type": {"type": "long", "logicalType": "timestamp-millis"}},
        {"name": "day", "type": {"type": "int", "logicalType": "date"}},
        {"name": "price", "type": {"type": "bytes", "logicalType": "decimal", "precision": 9, "scale": 2}},
        {"name": "either", "type": ["null", "int", "string"]},
        {"name": "clock", "type": {"type": "int", "logicalType": "time-millis"}},
        {"name": "raw", "type": "bytes"},
    ],
}
SIMPLE = {
    "type": "record",
    "name": "Simple",
    "fields": [{"name": "id", "type": "long"}, {"name": "name", "type": ["null", "string"], "default": None}],
}


def schema(kind: Any, definition: Any = None) -> Schema:
    data = (
        definition if isinstance(definition, bytes) else b"" if definition is None else json.dumps(definition).encode()
    )
    return Schema(name="s", type=kind, schema_data=data)


def columns_of(**types: DataType) -> StructType:
    return StructType([StructField(name, each) for name, each in types.items()])


def arrow_of(columns: StructType) -> pa.Schema:
    return to_arrow_schema(columns, timezone="UTC")


BINARY, INT, LONG, TEXT, TIME = BinaryType(), IntegerType(), LongType(), StringType(), TimestampType()


def tables(
    columns: StructType | None, known: Schema | None, form: str = "auto", mode: str = "permissive"
) -> RecordBatches:
    registry = Registry(Reach("pulsar://127.0.0.1:1"))
    registry.know(TOPIC, b"", known)
    registry.know(TOPIC, b"\0", known)
    if columns is None:
        columns = StructType(with_corrupt(value_fields(known)))
    return RecordBatches(arrow_of(columns), registry, form, mode)


def messages(*payloads: bytes | None, version: bytes | None = b"\0", **more: Any) -> Messages:
    count = len(payloads)
    versions: list[bytes | None] = [version] * count
    return Messages(TOPIC, -1, count, payload=list(payloads), schema_version=versions, **more)


def read(made: RecordBatches, given: Messages) -> list[dict[str, Any]]:
    rows: list[dict[str, Any]] = made.batch(given).to_pylist()
    return rows


def avro(definition: Any, value: Any) -> bytes:
    out = io.BytesIO()
    fastavro.schemaless_writer(out, fastavro.parse_schema(json.loads(json.dumps(definition).replace("$", ""))), value)
    return out.getvalue()


def test_all_columns_have_the_types_that_spark_expects() -> None:
    columns = StructType([*value_fields(None), *map(of_row, ALL)])
    given = messages(
        b"x",
        None,
        key=[b"k", None],
        message_id=[b"\x08\x01", b"\x08\x02"],
        publish_time=[1_700_000_000_001, 1],
        event_time=[None, 5],
        properties=Properties([1, 0], [b"a"], [b"b"]),
        ledger=[1, 1],
        entry=[0, 1],
        batch=[None, 3],
        producer_name=["p", "p"],
        sequence_id=[0, 1],
        ordering_key=[None, b"o"],
    )
    made = tables(columns, None)
    batch = made.batch(given)
    assert batch.schema.equals(to_arrow_schema(columns, timezone="UTC"))
    first, second = batch.to_pylist()
    assert first["value"] == b"x" and second["value"] is None
    assert first["__publishTime"] == datetime(2023, 11, 14, 22, 13, 20, 1000, tzinfo=UTC)
    assert first["__messageProperties"] == [("a", "b")] and second["__messageProperties"] == []
    assert first["__topic"] == TOPIC and first["__partition"] is None and first["__redeliveryCount"] == 0
    assert (first["__batchIndex"], second["__batchIndex"]) == (None, 3)


def test_only_what_is_asked_for_is_needed() -> None:
    columns = columns_of(value=BINARY, __key=TEXT, __publishTime=TIME)
    assert tables(columns, None, form="bytes").wanted == {"payload", "key", "publish_time"}
    assert tables(columns_of(__key=BINARY), None).wanted == {"key"}


def test_a_column_may_be_asked_for_as_another_type() -> None:
    columns = columns_of(
        value=TEXT, __key=TEXT, __publishTime=TimestampNTZType(), __messageProperties=MapType(TEXT, TEXT)
    )
    given = messages(b"v", key=[b"k"], publish_time=[1000], properties=Properties([0]))
    (row,) = read(tables(columns, None), given)
    assert (row["value"], row["__key"]) == ("v", "k")


@pytest.mark.parametrize(
    ("columns", "words"),
    [
        (
            {"__messageProperties": TEXT},
            "column __messageProperties has type map<string,string> and cannot be read as string",
        ),
        ({"__partition": MapType(TEXT, TEXT)}, "column __partition has type int and cannot be read as map"),
        ({"__kye": BINARY, "value": BINARY}, "unknown column __kye; did you mean __key?"),
    ],
)
def test_columns_that_cannot_be_read_are_told_before_any_message_is(columns: Any, words: str) -> None:
    with pytest.raises(UnreadableValues, match=re.escape(words)):
        tables(columns_of(**columns), None).check([None])


def test_columns_that_can_be_read_are_not_refused() -> None:
    columns = columns_of(
        __key=LONG, __publishTime=LONG, __eventTime=TEXT, __partition=TEXT, __messageId=TEXT, __op=TEXT
    )
    field = {"type": "record", "name": "R", "fields": [{"name": "__op", "type": "string"}]}
    tables(columns, None).check([schema(Schema.Avro, field), None])
    tables(columns, None, form="json").check([])
    tables(StructType([of_row(column) for column in ALL]), None).check([])


def test_one_message_with_a_number_that_spark_has_not_does_not_end_the_read() -> None:
    """An event time given in nanoseconds by mistake, and a sequence ID of -1, which is unsigned in the protocol."""
    columns = StructType([*value_fields(None), *map(of_row, ALL)])
    wrong = [1_700_000_000_000_000_000, 2**64 - 1, 2**63 // 1000 + 1, None]
    four: dict[str, Any] = {
        "key": [None] * 4, "message_id": [b""] * 4, "ledger": [1] * 4, "entry": [0, 1, 2, 3], "batch": [None] * 4,
        "producer_name": ["p"] * 4, "ordering_key": [None] * 4, "properties": Properties([0] * 4),
    }  # fmt: skip
    given = messages(
        b"a",
        b"b",
        b"c",
        b"d",
        event_time=wrong,
        publish_time=[1, 2, 3, 2**63],
        sequence_id=[0, 1, 2**64 - 1, 3],
        **four,
    )
    batch = tables(columns, None).batch(given)
    assert batch.column("__eventTime").cast(pa.int64()).to_pylist() == [None] * 4
    assert batch.column("__publishTime").cast(pa.int64()).to_pylist() == [1000, 2000, 3000, None]
    assert batch.column("__sequenceId").to_pylist() == [0, 1, -1, 3]
    narrow = tables(columns_of(value=BINARY, __sequenceId=IntegerType()), None)
    with pytest.raises(pa.ArrowInvalid):
        narrow.batch(messages(b"a", sequence_id=[2**40]))


def test_a_record_in_avro_becomes_columns() -> None:
    value = {
        "id": 7,
        "amount": None,
        "tags": ["a", "b"],
        "labels": {"x": 1},
        "state": "NEW",
        "at": datetime(2026, 1, 2, tzinfo=UTC),
        "day": date(2026, 1, 2),
        "price": Decimal("12.50"),
        "either": 5,
        "clock": 1000,
        "raw": b"\0\xff",
    }
    plain = json.loads(json.dumps(ORDER))
    plain["fields"][9]["type"] = "int"
    made = tables(None, schema(Schema.Avro, ORDER))
    (row,) = read(made, messages(avro(plain, value)))
    assert row == {**value, "labels": [("x", 1)], "either": "5", "_corrupt_record": None}


def test_a_record_in_json_becomes_columns() -> None:
    made = tables(None, schema(Schema.Json, SIMPLE))
    rows = read(made, messages(b'{"id": 1, "name": "a", "more": 2}', None, b'{"id":2}'))
    assert [(row["id"], row["name"]) for row in rows] == [(1, "a"), (None, None), (2, None)]
    assert not any(row["_corrupt_record"] for row in rows)


@pytest.mark.parametrize("inside", [("string", "a"), ({"type": "array", "items": "int"}, [1, 2])])
def test_a_record_whose_only_field_is_called_value(inside: tuple[Any, Any]) -> None:
    kind, value = inside
    record = {"type": "record", "name": "R", "fields": [{"name": "value", "type": kind}]}
    made = tables(None, schema(Schema.Avro, record))
    assert read(made, messages(avro(record, {"value": value}))) == [{"value": value, "_corrupt_record": None}]


def test_numbers_that_json_has_not_are_read_as_python_and_as_java_clients_write_them() -> None:
    columns = columns_of(x=DoubleType(), n=LongType())
    given = (b'{"x": NaN, "n": 1}', b'{"x": "NaN", "n": 1}', b'{"x": -Infinity, "n": 1}', b'{"x": "-Infinity", "n": 1}')
    found = read(tables(columns, None, form="json"), messages(*given, b'{"x": 1.5, "n": NaN}', b'{"x": "n", "n": 1}'))
    assert [str(row["x"]) for row in found] == ["nan", "nan", "-inf", "-inf", "None", "None"]
    assert [row["n"] for row in found] == [1, 1, 1, 1, None, None], "what cannot be read is null as a whole"


HOSTILE = [b"", b" ", b"{", b"{}{}", b'{"id":"x"}', b"5", b"null", b'{"id":\n3}', b'{"id":1}\n{"id":2}', b"\xff", b"[]"]
GOOD = [b'{"id":1}', b'{"id": 2, "name": "b"}', b' {"id":3}', b"{}", b'{"id":4,"name":null,"z":[1,{}]}']


@given(st.lists(st.one_of(st.sampled_from(GOOD), st.sampled_from(HOSTILE), st.none()), max_size=12))
def test_what_stands_beside_a_value_does_not_change_how_it_is_read(payloads: list[bytes | None]) -> None:
    """Bulk and single decoding return the same values; anything but a JSON object of the schema is reported
    separately."""
    known = schema(Schema.Json, SIMPLE)
    together = read(tables(None, known), messages(*payloads)) if payloads else []
    alone = [read(tables(None, known), messages(payload))[0] for payload in payloads]
    assert together == alone
    for payload, row in zip(payloads, together, strict=True):
        is_bad = payload in HOSTILE and payload != b'{"id":\n3}'
        assert row["_corrupt_record"] == (payload if is_bad else None)


def test_a_bad_value_ends_the_read_by_name_where_that_is_asked_for() -> None:
    made = tables(None, schema(Schema.Json, SIMPLE), mode="failfast")
    given = messages(b'{"id":1}', b"{", ledger=[3, 3], entry=[4, 5])
    with pytest.raises(MalformedError, match=f"3:5 of {TOPIC}.*mode=permissive"):
        made.batch(given)


def test_a_bad_value_is_left_out_where_that_is_asked_for() -> None:
    made = tables(columns_of(id=LONG), schema(Schema.Json, SIMPLE), mode="dropmalformed")
    assert read(made, messages(b'{"id":1}', b"{", None, b'{"id":2}')) == [{"id": 1}, {"id": None}, {"id": 2}]


def test_bad_avro_is_kept_aside() -> None:
    made = tables(None, schema(Schema.Avro, SIMPLE))
    good = avro(SIMPLE, {"id": 1, "name": "a"})
    rows = read(made, messages(good, b"\xff", good))
    assert [row["id"] for row in rows] == [1, None, 1]
    assert [row["_corrupt_record"] for row in rows] == [None, b"\xff", None]


def test_what_is_encrypted_is_not_read_as_something_else() -> None:
    made = tables(None, schema(Schema.Avro, SIMPLE))
    good = avro(SIMPLE, {"id": 1, "name": "a"})
    rows = read(made, messages(good, good, encryption=[b"metadata", None]))
    assert [(row["id"], row["_corrupt_record"]) for row in rows] == [(None, good), (1, None)]
    assert "encryption" in made.wanted
    as_it_came = tables(columns_of(value=BINARY), schema(Schema.Avro, SIMPLE))
    assert read(as_it_came, messages(good, encryption=[b"metadata"])) == [{"value": good}]


def test_older_records_get_the_defaults_of_the_newest_schema() -> None:
    newer = {**SIMPLE, "name": "Renamed", "fields": [*SIMPLE["fields"], {"name": "size", "type": "int", "default": 9}]}
    registry = Registry(Reach("pulsar://127.0.0.1:1"))
    registry.know(TOPIC, b"\0", schema(Schema.Avro, SIMPLE))
    registry.know(TOPIC, b"\1", schema(Schema.Avro, newer))
    registry.know(TOPIC, b"", schema(Schema.Avro, newer))
    made = RecordBatches(arrow_of(columns_of(id=LONG, size=INT, gone=TEXT)), registry, "auto", "permissive")
    given = messages(
        avro(newer, {"id": 1, "name": None, "size": 3}),
        avro(SIMPLE, {"id": 2, "name": "b"}),
        avro(newer, {"id": 3, "name": "c", "size": 4}),
    )
    given.schema_version = [b"\1", b"\0", b"\1"]
    assert [(row["id"], row["size"], row["gone"]) for row in read(made, given)] == [
        (1, 3, None),
        (2, 9, None),
        (3, 4, None),
    ]


@pytest.mark.parametrize(
    ("kind", "payload", "value"),
    [
        (Schema.String, "ä".encode(), "ä"),
        (Schema.Bool, b"\1", True),
        (Schema.Int8, b"\xff", -1),
        (Schema.Int16, struct.pack(">h", -2), -2),
        (Schema.Int32, struct.pack(">i", 7), 7),
        (Schema.Int64, struct.pack(">q", 2**40), 2**40),
        (Schema.Float, struct.pack(">f", 0.5), 0.5),
        (Schema.Double, struct.pack(">d", 0.1), 0.1),
        (Schema.Timestamp, struct.pack(">q", 1500), datetime(1970, 1, 1, 0, 0, 1, 500_000, tzinfo=UTC)),
        (Schema.Date, struct.pack(">q", 86_400_000), date(1970, 1, 2)),
        (Schema.LocalDate, struct.pack(">q", 2), date(1970, 1, 3)),
        (Schema.LocalTime, struct.pack(">q", 5), 5),
        (Schema.Instant, struct.pack(">qi", 1, 5000), datetime(1970, 1, 1, 0, 0, 1, 5, tzinfo=UTC)),
        (Schema.LocalDateTime, struct.pack(">qq", 1, 1000), datetime(1970, 1, 2, 0, 0, 0, 1)),  # noqa: DTZ001
    ],
)
def test_a_primitive_is_a_value_of_its_type(kind: Any, payload: bytes, value: Any) -> None:
    rows = read(tables(None, schema(kind)), messages(payload, None, b"\xff\xff\xff"))
    assert [row["value"] for row in rows] == [value, None, None]
    assert rows[2]["_corrupt_record"] == b"\xff\xff\xff"


def native() -> tuple[Schema, type[Any]]:
    file = FileDescriptorProto(name="m.proto", package="demo", syntax="proto3")
    part = file.message_type.add(name="Part")
    part.field.add(name="n", number=1, type=5, label=1)
    made = file.message_type.add(name="Message")
    made.field.add(name="id", number=1, type=3, label=1)
    made.field.add(name="big", number=2, type=4, label=1)
    made.field.add(name="names", number=3, type=9, label=3)
    made.field.add(name="part", number=4, type=11, type_name=".demo.Part", label=1)
    made.field.add(name="data", number=5, type=12, label=1)
    pool = DescriptorPool()
    pool.Add(file)
    told = {
        "fileDescriptorSet": b64encode(FileDescriptorSet(file=[file]).SerializeToString()).decode(),
        "rootMessageTypeName": "demo.Message",
        "rootFileDescriptorName": "m.proto",
    }
    return schema(Schema.ProtobufNative, told), GetMessageClass(pool.FindMessageTypeByName("demo.Message"))


def test_a_message_of_protobuf_becomes_columns() -> None:
    known, message = native()
    sent = message(id=5, big=2**64 - 1, names=["a"], data=b"\xff")
    sent.part.n = 3
    rows = read(tables(None, known), messages(sent.SerializeToString(), message().SerializeToString(), b"\xff"))
    assert rows[0] == {
        "id": 5, "big": Decimal(2**64 - 1), "names": ["a"], "part": {"n": 3}, "data": b"\xff", "_corrupt_record": None
    }  # fmt: skip
    assert (rows[1]["id"], rows[1]["part"]) == (0, None)
    assert rows[2]["_corrupt_record"] == b"\xff"


def test_key_and_value_become_two_columns_wherever_the_key_stands() -> None:
    key, value = schema(Schema.String), schema(Schema.Json, SIMPLE)
    apart = joined("kv", key, value)
    inline = Schema.FromString(apart.SerializeToString())
    del inline.properties[:]
    inline.properties.extend(
        KeyValue(key=each.key, value=each.value) for each in apart.properties if "kv." not in each.key
    )
    body = b'{"id":1}'
    wanted = {"key": "k", "value": {"id": 1, "name": None}, "_corrupt_record": None}
    assert read(tables(None, apart), messages(body, key=[b"k"])) == [wanted]
    both = struct.pack(">i", 1) + b"k" + struct.pack(">i", len(body)) + body
    rows = read(tables(None, inline), messages(both, b"\0\0\0\x09", key=[None, None]))
    assert rows == [wanted, {"key": None, "value": None, "_corrupt_record": b"\0\0\0\x09"}]


def test_one_column_value_is_all_of_a_record_as_it_came() -> None:
    known = schema(Schema.Json, SIMPLE)
    body = b'{"id":1}'
    assert read(tables(columns_of(value=BINARY), known), messages(body)) == [{"value": body}]
    assert read(tables(columns_of(value=TEXT), known), messages(body)) == [{"value": body.decode()}]
    assert read(tables(columns_of(value=BINARY), known, form="bytes"), messages(body)) == [{"value": body}]


def test_json_without_a_schema_is_read_by_the_columns_asked_for() -> None:
    columns = columns_of(a=INT, b=columns_of(c=ArrayType(DoubleType())), d=MapType(TEXT, LONG), _corrupt_record=TEXT)
    made = tables(columns, None, form="json")
    rows = read(made, messages(b'{"a":1,"b":{"c":[1,2.5]},"d":{"x":5}}', b'{"a":1.5}', version=None))
    assert rows[0] == {"a": 1, "b": {"c": [1.0, 2.5]}, "d": [("x", 5)], "_corrupt_record": None}
    assert rows[1] == {"a": None, "b": None, "d": None, "_corrupt_record": '{"a":1.5}'}


@pytest.mark.parametrize(("name", "form"), [("a", "auto"), ("value", "auto"), ("a", "avro")])
def test_columns_of_values_that_have_none_are_refused_with_what_to_do(name: str, form: str) -> None:
    made = tables(columns_of(**{name: INT}), None, form=form)
    with pytest.raises(UnreadableValues, match="valueFormat"):
        made.batch(messages(b"x", version=None))


SEVERAL = [
    ("persistent://public/default/plain", -1),
    ("persistent://public/default/simple-partition-0", 0),
    ("persistent://public/default/simple-partition-1", 1),
    ("persistent://public/default/other", -1),
]


def tables_of_several(columns: StructType, mode: str = "permissive") -> RecordBatches:
    registry = Registry(Reach("pulsar://127.0.0.1:1"))
    simple = schema(Schema.Json, SIMPLE)
    for (topic, _), known in zip(SEVERAL, [None, simple, simple, schema(Schema.Avro, SIMPLE)], strict=True):
        for version in (b"", b"\1"):
            registry.know(topic, version, known)
    return RecordBatches(arrow_of(columns), registry, "auto", mode)


@given(st.lists(st.tuples(st.sampled_from([1, 2]) | st.integers(0, 3), st.booleans()), max_size=20), st.booleans())
def test_rows_of_several_topics_are_those_of_each(given: list[tuple[int, bool]], is_cut: bool) -> None:
    columns = columns_of(value=BINARY, __topic=TEXT, __partition=INT)
    payloads = [b'{"id": %d}' % at for at in range(len(given))]
    versions = [b"\1" if versioned else None for _, versioned in given]
    data = b"".join(b"gap" + each for each in payloads)
    ends = list(accumulate(3 + len(each) for each in payloads))
    places = [place for end, each in zip(ends, payloads, strict=True) for place in (end - len(each), end)]
    some = Messages("", -1, len(given), [number for number, _ in given], SEVERAL, schema_version=versions)
    if is_cut:
        some.cuts = Cuts(data, places)
    else:
        some.payload = list(payloads)
    records = columns_of(id=LONG, name=TEXT, __topic=TEXT, __partition=INT)
    of_json = all(number in (1, 2) for number, _ in given)
    made = tables_of_several(records if of_json else columns)
    rows = made.batch(some).to_pylist() if given else []
    for row, (number, _), payload in zip(rows, given, payloads, strict=True):
        name, partition = SEVERAL[number]
        value = {"id": json.loads(payload)["id"], "name": None} if of_json else {"value": payload}
        assert row == {**value, "__topic": name, "__partition": None if partition < 0 else partition}


def test_a_bad_value_among_several_topics_is_told_of_its_own() -> None:
    columns = columns_of(id=LONG, name=TEXT)
    payloads = [b"{}", b"{", b"{}"]
    some = Messages("", -1, 3, [1, 2, 1], SEVERAL, Cuts(b"{}{{}", [0, 2, 2, 3, 3, 5]))
    some.schema_version, some.ledger, some.entry = [b"\1"] * 3, [5, 6, 5], [0, 9, 1]
    assert some.cuts is not None and some.cuts.all() == payloads
    with pytest.raises(MalformedError, match="message 6:9 of persistent://public/default/simple-partition-1"):
        tables_of_several(columns, "failfast").batch(some)


def test_topics_are_read_together_whose_values_are_read_alike(monkeypatch: pytest.MonkeyPatch) -> None:
    names = [name for name, _ in SEVERAL]
    monkeypatch.setattr("pulsarbox.spark.decode.record_batches._SCHEMAS_MIXED", 1)
    assert tables_of_several(columns_of(id=LONG)).mixes(names[1:3])
    assert not tables_of_several(columns_of(id=LONG)).mixes(names)
    assert tables_of_several(columns_of(__key=BINARY)).mixes(names)
    assert tables(columns_of(value=BINARY), None, form="bytes").mixes(["not asked"])


def test_text_out_of_one_piece_of_memory_is_checked_too() -> None:
    made = tables(columns_of(value=TEXT, _corrupt_record=BINARY), None)
    some = Messages(TOPIC, -1, 2, cuts=Cuts(b"\xc3\xa9-\xff", [0, 2, 3, 4]), schema_version=[None, None])
    assert read(made, some) == [
        {"value": "é", "_corrupt_record": None}, {"value": None, "_corrupt_record": b"\xff"},
    ]  # fmt: skip
    assert read(made, Messages(TOPIC, -1, 0, cuts=Cuts(b"", []))) == []


def test_tables_travel() -> None:
    known = schema(Schema.Json, SIMPLE)
    made = pickle.loads(pickle.dumps(tables(None, known)))  # noqa: S301 - our own
    assert read(made, messages(b'{"id":1}'))[0]["id"] == 1


def test_no_rows_are_a_batch_too() -> None:
    assert tables(None, schema(Schema.Json, SIMPLE)).batch(messages()).num_rows == 0
    assert isinstance(tables(None, None).batch(messages()), pa.RecordBatch)


def test_records_that_double_with_each_level() -> None:
    """A definition of 40 lines would expand to 2**40 columns."""
    message = FileDescriptorProto(name="a.proto")
    message.message_type.add(name="D0")
    for level in range(30):
        made = message.message_type.add(name=f"D{level + 1}")
        for number, name in enumerate("ab", 1):
            made.field.add(name=name, number=number, type=11, label=1, type_name=f".D{level}")
    native = {
        "fileDescriptorSet": b64encode(FileDescriptorSet(file=[message]).SerializeToString()).decode(),
        "rootMessageTypeName": "D30",
    }
    for kind, definition in ((Schema.Avro, doubling(40)), (Schema.Json, doubling(40)), (Schema.ProtobufNative, native)):
        with pytest.raises(NoColumnsError, match="more than 20000 fields"):
            type_of(Schema(name="s", type=kind, schema_data=json.dumps(definition).encode()))
    assert isinstance(
        type_of(Schema(name="s", type=Schema.Avro, schema_data=json.dumps(doubling(3)).encode())), StructType
    )
