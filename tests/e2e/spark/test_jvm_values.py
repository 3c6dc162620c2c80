"""The reader inside the JVM decodes JSON and Avro values as Python does, and leaves to Python what it cannot tell."""

import io
import json
import random
from collections.abc import Callable
from typing import TYPE_CHECKING, Any

import fastavro
import pytest

from tests.e2e.conftest import Running
from tests.e2e.spark.jvm_reads import Read, Sender, by_python, check, metric, rows
from tests.tools.campaigns import short

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession

pytestmark = pytest.mark.usefixtures("jvm")
Register = Callable[..., bytes]


def avro(name: str, *fields: Any) -> dict[str, Any]:
    told = [{"name": each[0], "type": each[1], **(each[2] if len(each) > 2 else {})} for each in fields]
    return {"type": "record", "name": name, "fields": told}


INNER = avro("Inner", ("x", "string"), ("y", ["null", "double"]))
PLAIN = avro(
    "Plain",
    ("i", "int"),
    ("l", ["null", "long"]),
    ("f", "float"),
    ("d", "double"),
    ("b", "boolean"),
    ("s", ["null", "string"]),
    ("a", {"type": "array", "items": ["null", "long"]}),
    ("m", {"type": "map", "values": "int"}),
    ("r", INNER),
    ("rs", {"type": "array", "items": "Inner"}),
)
LOGICAL = avro(
    "Logical",
    ("day", {"type": "int", "logicalType": "date"}),
    ("at", {"type": "long", "logicalType": "timestamp-millis"}),
    ("us", ["null", {"type": "long", "logicalType": "timestamp-micros"}]),
    ("here", {"type": "long", "logicalType": "local-timestamp-millis"}),
    ("id", {"type": "string", "logicalType": "uuid"}),
    ("small", {"type": "bytes", "logicalType": "decimal", "precision": 9, "scale": 2}),
    ("big", {"type": "fixed", "name": "Big", "size": 12, "logicalType": "decimal", "precision": 25, "scale": 5}),
    ("clock", {"type": "int", "logicalType": "time-millis"}),
    ("kind", {"type": "enum", "name": "Kind", "symbols": ["NEW", "DONE"]}),
    ("kinds", {"type": "array", "items": "Kind"}),
    ("raw", "bytes"),
    ("four", {"type": "fixed", "name": "Four", "size": 4}),
    ("wide", ["null", "int", "long"]),
    ("either", ["null", "int", "string"]),
    ("fives", {"type": "map", "values": {"type": "array", "items": "float"}}),
)

JSON_VALUES = [
    b'{"i":1,"l":-9007199254740993,"f":0.5,"d":-1.25e3,"b":true,"s":"x","a":[1,null,3],"m":{"k":1},"r":{"x":"y"},"rs":[]}',
    b' {\n "s" : "caf\xc3\xa9 \\u00e9 \\ud83d\\ude00 \\"\\\\\\/\\b\\f\\n\\r\\t",\r\n\t"r":null }',
    b'{ "rs":[{"x":"1","y":2},{"y":null}], "r":null } ',
    b'{"unknown":{"deep":[1,{"a":[]},"\\u0000",-0.5e-3,true,false,null]},"i":2147483647,"l":null,"a":[],"m":{}}',
    b"{}",
    b'{"d":1e-30,"f":0}',
    b'{"d":123456789012345678,"f":16777216}',
    b'{"d":0.1234567890123456789,"f":0.1,"l":999999999999999999}',
    b'{"d":"NaN","f":"-Infinity"}',
    b'{"d":-0.0,"i":-0}',
    b'{"s":1}',
    b'{"s":true}',
    b'{"\\u0069":7}',
    b'{"r":{"x":"q","z":[[]]},"rs":[{},{"x":null}]}',
]
"""Values that both decode."""
JSON_BAD = [
    b"",
    b"x",
    b"null",
    b"[1]",
    b"{",
    b'{"i":1',
    b'{"i":1}}',
    b'{"i":1,}',
    b'{"i" 1}',
    b"{i:1}",
    b'{"i":01}',
    b'{"i":+1}',
    b'{"i":1.0}',
    b'{"i":1e2}',
    b'{"i":2147483648}',
    b'{"i":"1"}',
    b'{"i":true}',
    b'{"i":{"x":[}}',
    b'{"d":.5}',
    b'{"d":1.}',
    b'{"d":1e}',
    b'{"d":"1.5"}',
    b'{"d":-}',
    b'{"b":1}',
    b'{"b":tru}',
    b'{"s":"a\tb"}',
    b'{"s":"\\x"}',
    b'{"s":"\\u12g4"}',
    b'{"s":"open}',
    b'{"a":{}}',
    b'{"a":[1,"x",2]}',
    b'{"a":[1 2]}',
    b'{"m":[]}',
    b'{"m":{"a":"b"}}',
    b'{"r":[]}',
    b'{"r":{"x":"1","y":"2"},"s":"behind"}',
    b'{"rs":[{"x":"1"},3]}',
    b'{"q":"a\nb"}',
    b'{"i":1}x',
]
"""Values that both refuse."""
JSON_UNSURE = [
    b'{"i":1,"i":2}',
    b'{"i":"x","i":2}',
    b'{"m":{"a":1,"a":2}}',
    b'{"s":"\\ud800"}',
    b'{"s":"\xff"}',
    b'{"q":"\xff"}',
    b'{"s":{"a":1}}',
    b'{"s":1.50}',
    b'{"d":NaN}',
    b'{"q":-Infinity}',
    b'{"d":1e400}',
    b'{"d":-0}',
    b'{"f":16777217}',
    b'{"l":9223372036854775807}',
    b'{"l":9223372036854775808}',
    b'\xef\xbb\xbf{"i":1}',
    '{"i":1}'.encode("utf-16-le"),
    b'{"q":' + b"[" * 100 + b"]" * 100 + b"}",
]
"""Values that Python decides about."""


@pytest.fixture
def register(box: Running, topic: str) -> Register:
    """Register a schema for the topic; return the version of the newest."""
    path = f"schemas/{topic.partition('://')[2]}/schema"

    def register(definition: Any, kind: str = "AVRO") -> bytes:
        told = {"type": kind, "schema": json.dumps(definition) if definition else "", "properties": {}}
        box.admin("POST", path, json.dumps(told))
        found = json.loads(box.admin("GET", path))
        return int(found["version"]).to_bytes(8, "big")

    return register


def written(schema: Any, value: Any) -> bytes:
    out = io.BytesIO()
    fastavro.schemaless_writer(out, fastavro.parse_schema(schema), value)
    return out.getvalue()


READS: list[dict[str, str]] = [
    {},
    {"select": "i"},
    {"select": "r.y"},
    {"select": "s,_corrupt_record"},
    {"select": "_corrupt_record"},
    {"select": "m,__key"},
    {"columns": "i bigint, s string, r struct<y: double>, nothing int"},
]


@pytest.mark.parametrize("told", short(READS, 1))
def test_json_values_are_decoded_alike(
    spark: "SparkSession", read: Read, sender: Sender, register: Register, told: dict[str, str]
) -> None:
    register(PLAIN, "JSON")
    for turn, value in enumerate(JSON_VALUES + JSON_BAD):
        sender.single(value, null_value=turn == 3) if turn % 2 else sender.batch([({}, value), ({}, b'{"i":3}')])

    def frame(**options: str) -> "DataFrame":
        found = read(told.get("columns", ""), **options)
        return found.select(*told["select"].split(",")) if "select" in told else found

    assert check(spark, frame) == (count := (3 * len(JSON_VALUES + JSON_BAD) + 1) // 2)
    if not told:
        dropped = by_python(spark, lambda: frame(mode="dropmalformed"))
        assert rows(frame(mode="dropmalformed").select("*")) == dropped and len(dropped) == count - len(JSON_BAD)
        assert frame(mode="dropmalformed").count() == len(dropped)


@pytest.mark.parametrize("value", short(JSON_UNSURE, 1))
def test_json_of_which_python_decides(
    spark: "SparkSession", read: Read, sender: Sender, register: Register, value: bytes
) -> None:
    register(PLAIN, "JSON")
    for each in (b'{"i":1}', value, b'{"i":2}'):
        sender.single(each)
    assert check(spark, read, handed_over=True) == 3


@pytest.mark.campaign
def test_failing_names_the_message(spark: "SparkSession", read: Read, sender: Sender, register: Register) -> None:
    register(PLAIN, "JSON")
    sender.single(b'{"i":1}')
    assert check(spark, lambda: read(mode="failfast")) == 1
    sender.single(b'{"i":"x"}')
    with pytest.raises(Exception, match=r"message \d+:1 of .* does not match its schema"):
        read(mode="failfast").select("__key").collect()
    del spark


def logical_value(random: random.Random) -> dict[str, Any]:
    from datetime import UTC, date, datetime, timedelta
    from decimal import Decimal
    from uuid import UUID

    time = datetime(1970, 1, 1, tzinfo=UTC) + timedelta(milliseconds=random.randrange(-(10**13), 10**14))
    return {
        "day": date(1970, 1, 1) + timedelta(days=random.randrange(-700_000, 2_900_000)),
        "at": time,
        "us": random.choice([None, time + timedelta(microseconds=7)]),
        "here": time.replace(tzinfo=None),
        "id": UUID(int=random.getrandbits(128)),
        "small": Decimal(random.randrange(-(10**9) + 1, 10**9)) / 100,
        "big": Decimal(random.randrange(-(10**20), 10**20)).scaleb(-5),
        "clock": random.randrange(-5, 5),
        "kind": random.choice(["NEW", "DONE"]),
        "kinds": ["DONE"] * random.randrange(3),
        "raw": random.randbytes(random.randrange(40)),
        "four": random.randbytes(4),
        "wide": random.choice([None, 5, 2**40]),
        "either": random.choice([None, "text é"]),
        "fives": {f"k{at}": [0.5] * at for at in range(random.randrange(4))},
    }


def plain_value(random: random.Random) -> dict[str, Any]:
    inner = [{"x": "x" * random.randrange(5), "y": random.choice([None, random.random()])} for _ in range(3)]
    return {
        "i": random.randrange(-(2**31), 2**31),
        "l": random.choice([None, random.randrange(-(2**63), 2**63)]),
        "f": random.choice([0.5, float("nan"), float("inf")]),
        "d": random.random() * 10 ** random.randrange(-300, 300),
        "b": random.random() < 0.5,
        "s": random.choice([None, "", "text", "é€😀"]),
        "a": [random.choice([None, at]) for at in range(random.randrange(5))],
        "m": {str(at): at for at in range(random.randrange(5))},
        "r": inner[0],
        "rs": inner[: random.randrange(4)],
    }


BOTH = {**LOGICAL, "fields": LOGICAL["fields"] + PLAIN["fields"]}


@pytest.mark.parametrize("name", ["", *short([each["name"] for each in BOTH["fields"]], 0)])
def test_avro_values_are_decoded_alike(
    spark: "SparkSession", read: Read, sender: Sender, register: Register, name: str
) -> None:
    register(BOTH)
    chance = random.Random(7)
    bodies = [written(BOTH, logical_value(chance) | plain_value(chance)) for _ in range(30)]
    cut = bodies[0]
    for body in [*bodies, *(cut[:at] for at in range(0, len(cut), 3)), cut + b"behind"]:
        sender.single(body)
    count = check(spark, lambda: read().select(name or "*"))
    assert count == 31 + len(range(0, len(cut), 3))


AVRO_UNSURE: dict[str, bytes] = {
    "a union whose other types are text": b"\x02\x02",
    "a negative index": b"\x01",
    "a number of more than 64 bits": b"\xff" * 10 + b"\x01",
}


@pytest.mark.parametrize("name", short(list(AVRO_UNSURE), 0))
def test_avro_of_which_python_decides(
    spark: "SparkSession", read: Read, sender: Sender, register: Register, name: str
) -> None:
    register(avro("R", ("x", ["null", "int", "string"]), ("y", ["null", "int"])))
    for each in (b"\x00\x00", AVRO_UNSURE[name] + b"\x00", b"\x04\x02z\x00"):
        sender.single(each)
    assert check(spark, read, handed_over=True) == 3


OLDER = avro("R", ("x", "int"), ("gone", "string"), ("f", "float"), ("r", avro("N", ("a", "int"))))
NEWER = avro(
    "R",
    ("new", ["null", "string"], {"default": None}),
    ("x", "long"),
    ("size", "int", {"default": 5}),
    ("word", "string", {"default": "é"}),
    ("f", "double"),
    ("r", avro("N", ("a", "int"), ("b", "double", {"default": 0.5}))),
)


@pytest.mark.campaign
def test_values_of_older_schemas(
    spark: "SparkSession", box: Running, topic: str, read: Read, sender: Sender, register: Register
) -> None:
    box.admin("PUT", f"{topic.replace('://', '/')}/schemaCompatibilityStrategy", '"ALWAYS_COMPATIBLE"')
    first, second = register(OLDER), register(NEWER)
    assert first != second
    one = written(OLDER, {"x": 1, "gone": "g", "f": 0.5, "r": {"a": 2}})
    two = written(NEWER, {"new": "n", "x": 2**40, "size": 1, "word": "w", "f": 1.5, "r": {"a": 1, "b": 2.0}})
    for version in (first, b""):
        sender.single(one if version else two, schema_version=version)
    sender.single(two, schema_version=second)
    sender.single(two)
    sender.single(one[:-2], schema_version=first)
    assert check(spark, lambda: read("x bigint, r struct<b: double>, other string, word string")) == 5
    sender.single(one[:2], schema_version=first)  # ends within a field that the newest schema lacks
    assert check(spark, read, handed_over=True) == 6


@pytest.mark.campaign
def test_text(spark: "SparkSession", read: Read, sender: Sender, register: Register) -> None:
    register(None, "STRING")
    for value in (b"", b"text", "é".encode(), b"\xff"):
        sender.single(value)
    sender.single(b"", null_value=True)
    assert check(spark, read) == 5
    assert check(spark, lambda: read("value string", valueFormat="string", mode="dropmalformed")) == 4


@pytest.mark.campaign
def test_what_has_no_program_is_read_by_python(
    spark: "SparkSession", read: Read, sender: Sender, register: Register
) -> None:
    register(None, "INT32")
    sender.single(b"\x00\x00\x00\x07")
    expected, found = by_python(spark, read), read()
    assert rows(found) == expected
    assert metric(found, "jvmRows") == metric(found, "handedOver") == 0
    assert check(spark, lambda: read().select("__key", "__publishTime")) == 1
    strict = read(mode="failfast").select("__key")
    assert len(rows(strict)) == 1
    assert metric(strict, "jvmRows") == 0


@pytest.mark.campaign
@pytest.mark.parametrize("seed", range(20))
def test_damaged_values_are_decoded_alike(
    spark: "SparkSession", read: Read, sender: Sender, register: Register, seed: int
) -> None:
    """Each value is in a batch of its own task, since the first one that Python decides ends the JVM's part."""
    chance = random.Random(seed)
    is_json = seed % 2 == 0
    schema, make = (PLAIN, plain_value) if seed % 4 < 3 else (LOGICAL, logical_value)
    register(schema, "JSON" if is_json else "AVRO")
    for _ in range(60):
        if is_json:
            body = bytearray(json.dumps(plain_value(chance), ensure_ascii=chance.random() < 0.5).encode())
        else:
            body = bytearray(written(schema, make(chance)))
        for _ in range(chance.randrange(3)):
            at = chance.randrange(len(body))
            body[at : at + chance.randrange(2)] = chance.choice(
                [b'"', b"{", b"0", b"\\", b",", bytes([chance.randrange(256)])]
            )
        sender.single(bytes(body))
    expected = by_python(spark, lambda: read(minPartitions="60"))
    assert rows(read(minPartitions="60")) == expected and len(expected) == 60
