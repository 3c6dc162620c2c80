"""Programs for the reader inside the JVM: what they consist of, and which schemas have none."""

from typing import Any

import pyarrow as pa
import pytest

from pulsarbox.protocol.PulsarApi_pb2 import Schema
from pulsarbox.spark.connect.schema_registry import VERSIONS_MAX, Registry
from pulsarbox.spark.decode.record_batches import RecordBatches
from pulsarbox.spark.decode.value_programs import of_avro, of_json
from pulsarbox.spark.topic_segments import Reach
from tests.unit.protocol.schema.worst import doubling
from tests.unit.spark.decode.test_record_batches import SIMPLE, TOPIC, schema

X = pa.field("x", pa.int64())


def record(*fields: Any, name: str = "R") -> dict[str, Any]:
    told = [{"name": each[0], "type": each[1], **(each[2] if len(each) > 2 else {})} for each in fields]
    return {"type": "record", "name": name, "fields": told}


def logical(kind: str, name: str, **more: Any) -> dict[str, Any]:
    return {"type": kind, "logicalType": name, **more}


FIXED = {"type": "fixed", "name": "F", "size": 4}
ENUM = {"type": "enum", "name": "E", "symbols": ["A", "B"]}
UTC = pa.timestamp("us", tz="UTC")


@pytest.mark.parametrize(
    ("kind", "target", "node"),
    [
        ("int", pa.int32(), ["int"]),
        ("int", pa.int64(), ["int", "long"]),
        ("string", pa.string(), ["string"]),
        ("bytes", pa.binary(), ["bytes"]),
        (FIXED, pa.binary(), ["fixed", 4]),
        (ENUM, pa.string(), ["enum", ["A", "B"]]),
        (["null", "double"], pa.float64(), ["union", [["null"], ["double"]]]),
        (["int", "long"], pa.int64(), ["union", [["int", "long"], ["long"]]]),
        (["float", "double"], pa.float64(), ["union", [["float", "double"], ["double"]]]),
        (["null", "int", "string"], pa.string(), ["union", [["null"], ["?"], ["string"]]]),
        ({"type": "array", "items": "int"}, pa.list_(pa.int32()), ["array", ["int"]]),
        ({"type": "map", "values": "int"}, pa.map_(pa.string(), pa.int32()), ["map", ["int"]]),
        (logical("int", "date"), pa.date32(), ["date"]),
        (logical("long", "timestamp-millis"), UTC, ["millis"]),
        (logical("long", "local-timestamp-micros"), pa.timestamp("us"), ["micros"]),
        (logical("string", "uuid"), pa.string(), ["uuid"]),
        (logical("bytes", "decimal", precision=4, scale=2), pa.decimal128(4, 2), ["decimal", 4, 2, -1]),
        ({**FIXED, **logical("fixed", "decimal", precision=4)}, pa.decimal128(4, 0), ["decimal", 4, 0, 4]),
        (record(("y", "int"), name="N"), pa.struct([("y", pa.int32())]), ["record", [[0, ["int"]]], []]),
    ],
)
def test_avro_types(kind: Any, target: pa.DataType, node: Any) -> None:
    definition = record(("x", kind))
    assert of_avro(definition, definition, pa.struct([("x", target)])) == ["avro", ["record", [[0, node]], []]]


@pytest.mark.parametrize(
    ("kind", "target"),
    [
        ("int", pa.float64()),
        ("long", pa.int32()),
        ("string", pa.binary()),
        (["null", "int"], pa.string()),
        ({"type": "array", "items": "null"}, pa.list_(pa.string())),
        ({"type": "array", "items": record(name="N")}, pa.list_(pa.struct([]))),
        ({"type": "map", "values": {**FIXED, "size": 0}}, pa.map_(pa.string(), pa.binary())),
        (logical("long", "timestamp-millis"), pa.int64()),
        (logical("bytes", "decimal", precision=4, scale=2), pa.decimal128(5, 2)),
        (ENUM, pa.int32()),
        (record(("y", "int"), name="N"), pa.string()),
    ],
)
def test_avro_that_only_python_casts(kind: Any, target: pa.DataType) -> None:
    definition = record(("x", kind))
    assert of_avro(definition, definition, pa.struct([("x", target)])) is None


def test_avro_fields_without_a_column_are_read_without_their_ranges() -> None:
    definition = record(("a", "int"), ("x", "long"), ("d", logical("bytes", "decimal", precision=4)))
    found = of_avro(definition, definition, pa.struct([X, pa.field("none", pa.string())]))
    assert found == ["avro", ["record", [[-1, ["int", "long"]], [0, ["long"]], [-1, ["bytes"]]], [[1, None]]]]


@pytest.mark.parametrize(
    ("older", "newer", "node"),
    [
        ("int", "long", ["int", "long"]),
        ("int", "double", ["int", "double"]),
        ("float", "double", ["float", "double"]),
        (["null", "int"], ["null", "long"], ["union", [["null"], ["int", "long"]]]),
        (["null", "int"], "int", ["union", [["?"], ["int"]]]),
        ("int", ["null", "long"], ["int", "long"]),
    ],
)
def test_avro_of_an_older_schema(older: Any, newer: Any, node: Any) -> None:
    kinds = {"long": pa.int64(), "double": pa.float64(), "int": pa.int32()}
    target = kinds[newer if isinstance(newer, str) else newer[1]]
    found = of_avro(record(("x", older)), record(("x", newer)), pa.struct([("x", target)]))
    assert found == ["avro", ["record", [[0, node]], []]]


def test_fields_that_came_and_went() -> None:
    newer = record(("x", "long"), ("n", ["null", "int"], {"default": None}), ("s", "string", {"default": "d"}))
    target = pa.struct([X, ("n", pa.int32()), ("s", pa.string())])
    found = of_avro(record(("gone", "string"), ("x", "long")), newer, target)
    fields = [[-1, ["skip", ["string"]]], [0, ["long"]]]
    assert found == ["avro", ["record", fields, [[1, None], [2, "d"]]]]


@pytest.mark.parametrize(
    ("older", "newer"),
    [
        ([], [("x", "long")]),
        ([("x", "string")], [("x", "long")]),
        ([("y", "long")], [("x", "long", {"aliases": ["y"]})]),
        ([], [("x", logical("int", "date"), {"default": 5})]),
        ([("x", "long")], [("x", ["null", "int", "long"])]),
        ([("e", ENUM)], [("e", {**ENUM, "symbols": ["A"]})]),
        ([("x", "long")], [("x", "long"), ("a", {"type": "array", "items": "int"}, {"default": [1]})]),
    ],
)
def test_evolutions_that_only_python_resolves(older: list[Any], newer: list[Any]) -> None:
    target = pa.struct([(name, pa.int64() if name == "x" else pa.list_(pa.int32())) for name, *_ in newer])
    assert of_avro(record(*older), record(*newer), target) is None


def test_a_short_definition_of_very_many_fields() -> None:
    assert of_avro(doubling(20), doubling(20), pa.struct([X])) is None


def test_json_types() -> None:
    nested = pa.struct([("r", pa.struct([("f", pa.float32())])), ("a", pa.list_(pa.bool_()))])
    fields = [["r", ["struct", [["f", ["float"]]]]], ["a", ["array", ["boolean"]]]]
    assert of_json(nested) == ["json", ["struct", fields]]
    assert of_json(pa.struct([("m", pa.map_(pa.string(), pa.int8()))])) == [
        "json",
        ["struct", [["m", ["map", ["byte"]]]]],
    ]


@pytest.mark.parametrize(
    "target",
    [
        pa.struct([("d", pa.date32())]),
        pa.struct([("b", pa.binary())]),
        pa.struct([('a"b', pa.int32())]),
        pa.struct([("a", pa.int32()), ("a", pa.int32())]),
        pa.struct([("r", pa.struct([]))]),
        pa.struct([("x" * 70_000, pa.int32())]),
    ],
)
def test_json_that_only_python_casts(target: pa.DataType) -> None:
    assert of_json(target) is None


def tables(known: Schema | None, form: str = "auto", **columns: pa.DataType) -> RecordBatches:
    registry = Registry(Reach("pulsar://127.0.0.1:1"))
    registry.know(TOPIC, b"", known)
    return RecordBatches(pa.schema(list(columns.items())), registry, form, "permissive")


def test_programs_of_a_topic() -> None:
    columns = {"id": pa.int64(), "name": pa.string()}
    json_program = ["json", ["struct", [["id", ["long"]], ["name", ["string"]]]]]
    assert tables(schema(Schema.Json, SIMPLE), **columns).programs(TOPIC) == {"*": json_program}
    assert tables(schema(Schema.Avro, SIMPLE), "json", **columns).programs(TOPIC) == {"*": json_program}
    found = tables(schema(Schema.Avro, SIMPLE), **columns).programs(TOPIC)
    assert found is not None and list(found) == [""]
    assert tables(schema(Schema.String), value=pa.string()).programs(TOPIC) == {"": ["text"]}
    assert tables(None, "string", value=pa.string()).programs(TOPIC) == {"*": ["text"]}
    assert tables(schema(Schema.Int32), value=pa.int32()).programs(TOPIC) is None
    assert tables(schema(Schema.Json, SIMPLE), value=pa.struct([X])).programs(TOPIC) is None


def test_versions_that_messages_may_have() -> None:
    registry = Registry(Reach("pulsar://127.0.0.1:1"))
    assert registry.versions(TOPIC) == []
    registry._versions[TOPIC] = (1).to_bytes(8)
    assert registry.versions(f"{TOPIC}-partition-3") == [(1).to_bytes(8), bytes(8)]
    registry._versions[TOPIC] = (100).to_bytes(8)
    assert len(registry.versions(TOPIC)) == VERSIONS_MAX
