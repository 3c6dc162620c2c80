"""Sample schemas."""

import json
from base64 import b64encode
from typing import Any

from google.protobuf.descriptor_pb2 import FileDescriptorProto, FileDescriptorSet

from pulsarbox.protocol.PulsarApi_pb2 import Schema
from pulsarbox.protocol.schema import key_value
from pulsarbox.protocol.schema.types import SCHEMA_TYPES, spelling


def of_type(name: str, data: bytes = b"") -> Schema:
    """A schema of the given type."""
    return Schema(name="s", type=SCHEMA_TYPES[name], schema_data=data)


def avro(told: Any) -> Schema:
    """An AVRO schema with the given definition."""
    return of_type("AVRO", json.dumps(told).encode())


def json_schema(told: Any) -> Schema:
    """A JSON schema with the given definition."""
    return of_type("JSON", json.dumps(told).encode())


def record(name: str, *fields: dict[str, Any]) -> dict[str, Any]:
    """A record definition."""
    return {"type": "record", "name": name, "fields": list(fields)}


def field(name: str, kind: Any = "int", **more: Any) -> dict[str, Any]:
    """A record field."""
    return {"name": name, "type": kind, **more}


def native(message: str, *fields: str) -> Schema:
    """A PROTOBUF_NATIVE schema with one message whose fields are all int32."""
    file = FileDescriptorProto(name="a.proto")
    made = file.message_type.add(name=message)
    for number, name in enumerate(fields, 1):
        made.field.add(name=name, number=number, type=5, label=1)
    told = {
        "fileDescriptorSet": b64encode(FileDescriptorSet(file=[file]).SerializeToString()).decode(),
        "rootMessageTypeName": message,
        "rootFileDescriptorName": "a.proto",
    }
    return of_type("PROTOBUF_NATIVE", json.dumps(told).encode())


def pair(key: Schema, value: Schema) -> Schema:
    """A KEY_VALUE schema of two schemas."""
    made = of_type("KEY_VALUE", key_value.join(key.schema_data, value.schema_data))
    made.properties.add(key="key.schema.type", value=spelling(key.type))
    made.properties.add(key="value.schema.type", value=spelling(value.type))
    return made
