"""The committed protobuf code matches its source tables."""

from __future__ import annotations

import importlib.util
from pathlib import Path

import pytest
from google.protobuf.descriptor import FieldDescriptor as F

from pulsarbox.protocol import PulsarApi_pb2 as api
from tests.tools.generate_protocol import generate
from tests.tools.make_proto import PROTO, ROOT, proto_text, read_enums, read_fields

TYPE_NAMES = {
    F.TYPE_STRING: "string",
    F.TYPE_BYTES: "bytes",
    F.TYPE_BOOL: "bool",
    F.TYPE_UINT64: "uint64",
    F.TYPE_INT64: "int64",
    F.TYPE_UINT32: "uint32",
    F.TYPE_INT32: "int32",
    F.TYPE_DOUBLE: "double",
}


def test_the_proto_file_is_what_the_tables_say() -> None:
    assert PROTO.read_text("utf-8") == proto_text(read_fields(), read_enums())


@pytest.mark.skipif(importlib.util.find_spec("grpc_tools") is None, reason="grpcio-tools is not installed")
def test_the_generated_code_is_current(tmp_path: Path) -> None:
    for path in generate(tmp_path):
        assert path.read_text("utf-8") == (ROOT / path.relative_to(tmp_path)).read_text("utf-8"), path.name


def test_every_field_is_as_in_the_table() -> None:
    found = set()
    for name, message in api.DESCRIPTOR.message_types_by_name.items():
        for field in message.fields:
            label = "required" if field.is_required else "repeated" if field.is_repeated else "optional"
            named = field.message_type or field.enum_type
            kind = TYPE_NAMES[field.type] if named is None else named.full_name
            found.add((name, field.number, field.name, label, kind.removeprefix("pulsar.proto."), _default(field)))
    assert found == {tuple(row) for row in read_fields()}


def _default(field: F) -> str:
    if not field.has_default_value:
        return ""
    if field.enum_type is not None:
        name: str = field.enum_type.values_by_number[field.default_value].name
        return name
    return str(field.default_value).lower()


def test_every_enum_value_is_as_in_the_table() -> None:
    enums = list(api.DESCRIPTOR.enum_types_by_name.values())
    enums += [enum for message in api.DESCRIPTOR.message_types_by_name.values() for enum in message.enum_types]
    found = {
        (enum.full_name.removeprefix("pulsar.proto."), value.name, value.number)
        for enum in enums
        for value in enum.values
    }
    assert found == {tuple(row) for row in read_enums()}
