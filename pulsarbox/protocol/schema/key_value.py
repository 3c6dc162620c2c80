"""Definitions of KEY_VALUE schemas: the length-prefixed definitions of key and value.

Types, names and properties of the two are stored in the schema's properties.
Source: https://pulsar.apache.org/docs/4.2.x/schema-understand/#keyvalue-schema.
"""

import json
import struct
from typing import Final

from pulsarbox.errors import InvalidSchema
from pulsarbox.protocol.PulsarApi_pb2 import Schema
from pulsarbox.protocol.schema.types import BYTES, SCHEMA_TYPES, spelling

_ENCODING = "kv.encoding.type"
PROPERTIES_CHARACTERS_MAX: Final = 1 << 16
"""Limit of the properties of a key or value as JSON text, which is parsed in one step."""


def join(key: bytes, value: bytes) -> bytes:
    """Join the definitions of key and value."""
    return b"".join((struct.pack(">I", len(key)), key, struct.pack(">I", len(value)), value))


def joined(name: str, key: Schema, value: Schema) -> Schema:
    """Return the KEY_VALUE schema of two schemas with a separate key."""
    made = Schema(name=name, type=Schema.Type.KeyValue, schema_data=join(key.schema_data, value.schema_data))
    for part, each in (("key", key), ("value", value)):
        told = {item.key: item.value for item in each.properties}
        kind = spelling(each.type)
        made.properties.add(key=f"{part}.schema.name", value=each.name)
        made.properties.add(key=f"{part}.schema.type", value="BYTES" if kind == "NONE" else kind)
        made.properties.add(key=f"{part}.schema.properties", value=json.dumps(told, separators=(",", ":")))
    made.properties.add(key=_ENCODING, value="SEPARATED")
    return made


def is_separated(schema: Schema) -> bool:
    """Return whether messages of a KEY_VALUE schema carry the key outside the payload."""
    return any(item.key == _ENCODING and item.value == "SEPARATED" for item in schema.properties)


def parts(data: bytes) -> tuple[bytes, bytes]:
    """Split a definition into those of key and value. Raises InvalidSchema."""
    found, offset = [], 0
    for _ in range(2):
        try:
            (length,) = struct.unpack_from(">i", data, offset)
        except struct.error:
            raise InvalidSchema("expected the definitions of a key and a value") from None
        end = offset + 4 + max(length, 0)  # some clients send -1 for an empty definition
        if end > len(data):
            raise InvalidSchema("expected the definitions of a key and a value")
        found.append(data[offset + 4 : end])
        offset = end
    return found[0], found[1]


def split(schema: Schema) -> tuple[Schema, Schema]:
    """Return the schemas of key and value. Raises InvalidSchema."""
    properties = {item.key: item.value for item in schema.properties}
    key, value = (
        _part(properties, part, data) for part, data in zip(("key", "value"), parts(schema.schema_data), strict=True)
    )
    return key, value


def _part(properties: dict[str, str], part: str, data: bytes) -> Schema:
    name = properties.get(f"{part}.schema.type", "BYTES")
    if name not in SCHEMA_TYPES and name != "BYTES":
        raise InvalidSchema(f"unknown type {name[:40]!r} of the {part}")
    made = Schema(name=properties.get(f"{part}.schema.name", ""), type=SCHEMA_TYPES.get(name, BYTES), schema_data=data)
    text = properties.get(f"{part}.schema.properties") or "{}"
    if len(text) > PROPERTIES_CHARACTERS_MAX:
        raise InvalidSchema(
            f"the properties of the {part} have {len(text)} characters, the maximum is {PROPERTIES_CHARACTERS_MAX}"
        )
    try:
        told = json.loads(text)
    except (ValueError, RecursionError):
        told = {}
    if isinstance(told, dict):
        for each, value in told.items():
            made.properties.add(key=str(each), value=str(value))
    return made
