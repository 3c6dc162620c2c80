"""Decoding of payloads by their schemas."""

import io
import json
import struct
from decimal import Decimal
from typing import Any
from uuid import UUID

import fastavro
import pytest
from google.protobuf.message_factory import GetMessageClass

from pulsarbox.errors import InvalidSchema
from pulsarbox.protocol.PulsarApi_pb2 import Schema
from pulsarbox.protocol.schema import native_definition
from pulsarbox.protocol.schema.decoding import UndecodableError, decoder_of, key_bytes, separated
from pulsarbox.protocol.schema.types import BYTES
from tests.unit.protocol.schema.schemas import avro, field, native, of_type, pair, record


@pytest.mark.parametrize(
    ("name", "payload", "value"),
    [
        ("STRING", "grün".encode(), "grün"),
        ("JSON", b'{"a":[1,null]}', {"a": [1, None]}),
        ("BOOLEAN", b"\1", True),
        ("INT8", b"\xff", -1),
        ("INT16", b"\x01\x00", 256),
        ("INT32", b"\0\0\1\0", 256),
        ("INT64", struct.pack(">q", -(2**63)), -(2**63)),
        ("FLOAT", struct.pack(">f", 0.5), 0.5),
        ("DOUBLE", struct.pack(">d", 0.1), 0.1),
        ("DATE", struct.pack(">q", 1_700_000_000_123), "2023-11-14T22:13:20.123Z"),
        ("TIMESTAMP", struct.pack(">q", 0), "1970-01-01T00:00:00.000Z"),
        ("INSTANT", struct.pack(">qi", 1_700_000_000, 5), "2023-11-14T22:13:20.000000005Z"),
        ("INSTANT", struct.pack(">qi", 1_700_000_000, 0), "2023-11-14T22:13:20Z"),
        ("LOCAL_DATE", struct.pack(">q", 19675), "2023-11-14"),
        ("LOCAL_TIME", struct.pack(">q", 80_000_000_000_001), "22:13:20.000000001"),
        ("LOCAL_DATE_TIME", struct.pack(">qq", 19675, 80_000_000_000_000), "2023-11-14T22:13:20"),
    ],
)
def test_of_simple_types(name: str, payload: bytes, value: Any) -> None:
    decode = decoder_of(of_type(name))
    assert decode(payload) == value
    json.dumps(value)
    if name not in ("STRING", "JSON"):
        with pytest.raises(UndecodableError):
            decode(payload + b"x")


@pytest.mark.parametrize(
    ("name", "payload"),
    [
        ("STRING", b"\xff"),
        ("JSON", b"{"),
        ("JSON", b"[" * 100_000),
        ("DATE", struct.pack(">q", 2**62)),
        ("LOCAL_DATE", struct.pack(">q", 2**62)),
        ("LOCAL_TIME", struct.pack(">q", -1)),
        ("INSTANT", struct.pack(">qi", 2**62, 0)),
    ],
)
def test_what_is_not_what_the_schema_says(name: str, payload: bytes) -> None:
    with pytest.raises(UndecodableError):
        decoder_of(of_type(name))(payload)


RICH = record(
    "R",
    field("a", ["null", "string"]),
    field("b", "bytes"),
    field("c", {"type": "bytes", "logicalType": "decimal", "precision": 9, "scale": 2}),
    field("d", {"type": "long", "logicalType": "timestamp-millis"}),
    field("e", {"type": "map", "values": {"type": "array", "items": "double"}}),
    field("f", {"type": "string", "logicalType": "uuid"}),
)


def test_of_records() -> None:
    written = io.BytesIO()
    some_id = UUID("6ba7b810-9dad-11d1-80b4-00c04fd430c8")
    fields = {"a": "x", "b": b"\0\xff", "c": Decimal("1.25"), "d": 1_700_000_000_123, "e": {"k": [0.5]}, "f": some_id}
    fastavro.schemaless_writer(written, fastavro.parse_schema(RICH), fields)
    decode = decoder_of(avro(RICH))
    value = decode(written.getvalue())
    assert value == {
        "a": "x",
        "b": "\0ÿ",
        "c": "1.25",
        "d": "2023-11-14T22:13:20.123000+00:00",
        "e": {"k": [0.5]},
        "f": "6ba7b810-9dad-11d1-80b4-00c04fd430c8",
    }
    json.dumps(value)
    with pytest.raises(UndecodableError):
        decode(b"\2")


def test_of_messages() -> None:
    schema = native("Sensor", "low", "high")
    message = GetMessageClass(native_definition.parse(schema.schema_data))(low=3, high=-4)
    assert decoder_of(schema)(message.SerializeToString()) == {"low": 3, "high": -4}
    with pytest.raises(UndecodableError):
        decoder_of(schema)(b"\xff")


def test_of_pairs() -> None:
    schema = pair(of_type("STRING"), avro(record("A", field("a"))))
    decode = decoder_of(schema)
    assert decode(b"\0\0\0\1k\0\0\0\1\2") == {"key": "k", "value": {"a": 1}}
    assert decode(b"\xff\xff\xff\xff\0\0\0\1\2") == {"key": None, "value": {"a": 1}}
    assert separated(schema) is None
    for bad in (b"", b"\0\0\0\5k", b"\0\0\0\1k\0\0\0\7"):
        with pytest.raises(UndecodableError):
            decode(bad)
    schema.properties.add(key="kv.encoding.type", value="SEPARATED")
    apart = separated(schema)
    assert apart is not None and (apart[0](b"k"), apart[1](b"\2")) == ("k", {"a": 1})


def test_of_pairs_of_bytes() -> None:
    assert decoder_of(pair(Schema(name="", type=BYTES, schema_data=b""), of_type("INT8")))(
        b"\0\0\0\1\xff\0\0\0\1\2"
    ) == {"key": "ÿ", "value": 2}


def test_what_nobody_decodes() -> None:
    with pytest.raises(InvalidSchema, match="decoding payloads of PROTOBUF schemas is not supported"):
        decoder_of(of_type("PROTOBUF", b'"string"'))


def test_keys() -> None:
    assert (key_bytes("aw==", True), key_bytes("k", False), key_bytes("\udcff", False)) == (b"k", b"k", b"\xff")
