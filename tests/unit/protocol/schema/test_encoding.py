"""Encoding of text by schema, verified by the decoder, which has independent test vectors."""

import io
import json
import struct
from typing import Any

import fastavro
import pytest

from pulsarbox.errors import InvalidSchema
from pulsarbox.protocol.PulsarApi_pb2 import Schema
from pulsarbox.protocol.schema.decoding import decoder_of
from pulsarbox.protocol.schema.encoding import UnencodableError, making
from pulsarbox.protocol.schema.steps import completed
from tests.unit.protocol.schema.schemas import avro, of_type


def encoded(schema: Schema, text: str) -> bytes:
    """Encode a text as a payload of a schema."""
    return completed(completed(making(schema))(text))


@pytest.mark.parametrize(
    ("name", "text", "value"),
    [
        ("STRING", "grün", "grün"),
        ("NONE", "a", "a"),
        ("JSON", '{"a": [1, null], "b": "grün"}', {"a": [1, None], "b": "grün"}),
        ("BOOLEAN", "TRUE", True),
        ("BOOLEAN", "yes", False),  # like Java's Boolean.parseBoolean
        ("INT8", "-1", -1),
        ("INT16", "256", 256),
        ("INT32", "-256", -256),
        ("INT64", str(-(2**63)), -(2**63)),
        ("FLOAT", "0.5", 0.5),
        ("DOUBLE", "1e-3", 0.001),
        ("DATE", "1700000000123", "2023-11-14T22:13:20.123Z"),
        ("TIMESTAMP", "2023-11-14T22:13:20.123Z", "2023-11-14T22:13:20.123Z"),
        ("TIME", "1969-12-31T23:59:59.999Z", "1969-12-31T23:59:59.999Z"),
        ("INSTANT", "2023-11-14T22:13:20.000005Z", "2023-11-14T22:13:20.000005000Z"),
        ("LOCAL_DATE", "2023-11-14", "2023-11-14"),
        ("LOCAL_TIME", "22:13:20.000001", "22:13:20.000001000"),
        ("LOCAL_DATE_TIME", "2023-11-14T22:13:20", "2023-11-14T22:13:20"),
    ],
)
def test_of_simple_types(name: str, text: str, value: Any) -> None:
    schema = of_type(name)
    assert decoder_of(schema)(encoded(schema, text)) == value


@pytest.mark.parametrize(
    ("name", "text"),
    [("INT8", "128"), ("INT32", "x"), ("DOUBLE", "x"), ("JSON", "{"), ("LOCAL_DATE", "x"), ("STRING", "\ud800")],
)
def test_what_is_not_what_the_schema_says(name: str, text: str) -> None:
    with pytest.raises(UnencodableError):
        encoded(of_type(name), text)


FIELDS: list[dict[str, Any]] = [
    {"name": "a", "type": "string"},
    {"name": "b", "type": ["null", "long", {"type": "record", "name": "I", "fields": [{"name": "x", "type": "int"}]}]},
    {"name": "c", "type": {"type": "array", "items": "double"}, "default": []},
    {"name": "d", "type": {"type": "map", "values": "bytes"}},
    {"name": "e", "type": ["null", "string"], "default": None},
]
RECORD = {"type": "record", "name": "R", "fields": FIELDS}


def test_of_avro_in_its_own_json() -> None:
    schema = avro(RECORD)
    text = json.dumps({"a": "ü", "b": {"I": {"x": 7}}, "c": [1, 2.5], "d": {"k": "\u00ff"}})
    made = encoded(schema, text)
    read: Any = fastavro.schemaless_reader(io.BytesIO(made), fastavro.parse_schema(RECORD), None)
    assert read == {"a": "ü", "b": {"x": 7}, "c": [1.0, 2.5], "d": {"k": b"\xff"}, "e": None}


@pytest.mark.parametrize(
    "value",
    [
        {},
        {"a": 1, "b": None, "d": {}},
        {"a": "", "b": 1, "d": {}},
        {"a": "", "b": {"double": 1.0}, "d": {}},
        {"a": "", "b": None, "d": {"k": "\u0100"}},
        {"a": "", "b": None, "d": {}, "unknown": 1},
        [],
    ],
)
def test_what_the_avro_schema_does_not_allow(value: Any) -> None:
    with pytest.raises(UnencodableError):
        encoded(avro(RECORD), json.dumps(value))


def test_types_for_which_texts_mean_nothing() -> None:
    with pytest.raises(InvalidSchema, match="PROTOBUF_NATIVE"):
        completed(making(of_type("PROTOBUF_NATIVE")))


def test_numbers_are_big_endian() -> None:
    assert encoded(of_type("INT32"), "258") == struct.pack(">i", 258)
