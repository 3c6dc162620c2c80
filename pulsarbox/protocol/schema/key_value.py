"""Definitions of KEY_VALUE schemas: those of the key and of the value, one behind the other, each with its length.

Types, names and properties of the two stand in the schema's properties.
Source: https://pulsar.apache.org/docs/4.2.x/schema-understand/#keyvalue-schema.
"""

import json
import struct

from pulsarbox.errors import InvalidSchema
from pulsarbox.protocol.PulsarApi_pb2 import Schema
from pulsarbox.protocol.schema.types import BYTES, SCHEMA_TYPES


def join(key: bytes, value: bytes) -> bytes:
    """The definitions of key and value as one."""
    return b"".join((struct.pack(">I", len(key)), key, struct.pack(">I", len(value)), value))


def parts(data: bytes) -> tuple[bytes, bytes]:
    """The definitions of key and value. Raises InvalidSchema."""
    found, offset = [], 0
    for _ in range(2):
        try:
            (length,) = struct.unpack_from(">i", data, offset)
        except struct.error:
            raise InvalidSchema("it is no pair of definitions") from None
        end = offset + 4 + max(length, 0)  # -1 stands for none with some clients
        if end > len(data):
            raise InvalidSchema("it is no pair of definitions")
        found.append(data[offset + 4 : end])
        offset = end
    return found[0], found[1]


def split(schema: Schema) -> tuple[Schema, Schema]:
    """The schemas of key and value. Raises InvalidSchema."""
    properties = {item.key: item.value for item in schema.properties}
    key, value = (
        _part(properties, part, data) for part, data in zip(("key", "value"), parts(schema.schema_data), strict=True)
    )
    return key, value


def _part(properties: dict[str, str], part: str, data: bytes) -> Schema:
    name = properties.get(f"{part}.schema.type", "BYTES")
    if name not in SCHEMA_TYPES and name != "BYTES":
        raise InvalidSchema(f"its {part} is of a type {name[:40]!r}, which there is not")
    made = Schema(name=properties.get(f"{part}.schema.name", ""), type=SCHEMA_TYPES.get(name, BYTES), schema_data=data)
    try:
        told = json.loads(properties.get(f"{part}.schema.properties") or "{}")
    except (ValueError, RecursionError):
        told = {}
    if isinstance(told, dict):
        for each, text in told.items():
            made.properties.add(key=str(each), value=str(text))
    return made
