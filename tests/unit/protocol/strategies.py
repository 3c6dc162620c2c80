"""Hypothesis strategies for protocol values, derived from the descriptors, and captured frames."""

from __future__ import annotations

from pathlib import Path
from typing import Any, NamedTuple

from google.protobuf.descriptor import FieldDescriptor as F
from google.protobuf.message import Message
from hypothesis import strategies as st

from pulsarbox.protocol import PulsarApi_pb2 as api
from pulsarbox.protocol.commands import COMMANDS, CommandSpec, encode_frame, encode_payload_frame
from pulsarbox.protocol.PulsarApi_pb2 import BaseCommand

CAPTURED = Path(__file__).parents[2] / "data" / "captured-frames.tsv"

uint64 = st.integers(0, 2**64 - 1) | st.integers(0, 300)
int64 = st.integers(-(2**63), 2**63 - 1)
text = st.text(st.characters(exclude_categories=["Cs"]), max_size=8)

_SCALARS: dict[int, st.SearchStrategy[Any]] = {
    F.TYPE_STRING: text,
    F.TYPE_BYTES: st.binary(max_size=8),
    F.TYPE_BOOL: st.booleans(),
    F.TYPE_UINT64: uint64,
    F.TYPE_INT64: int64,
    F.TYPE_UINT32: st.integers(0, 2**32 - 1),
    F.TYPE_INT32: st.integers(-(2**31), 2**31 - 1),
    F.TYPE_DOUBLE: st.floats(allow_nan=False),
}


def _value(field: Any, depth: int) -> st.SearchStrategy[Any]:
    if field.type == F.TYPE_MESSAGE:
        return messages(getattr(api, field.message_type.name), depth + 1)
    if field.type == F.TYPE_ENUM:
        return st.sampled_from([value.number for value in field.enum_type.values])
    return _SCALARS[field.type]


_made: dict[tuple[str, int], st.SearchStrategy[Any]] = {}


def messages(cls: type[Message], depth: int = 0) -> st.SearchStrategy[Any]:
    """Messages of a class, with required fields set and random optional fields."""
    key = (cls.DESCRIPTOR.full_name, depth)
    if key not in _made:
        _made[key] = _messages(cls, depth)
    return _made[key]


def _messages(cls: type[Message], depth: int) -> st.SearchStrategy[Any]:
    required: dict[str, st.SearchStrategy[Any]] = {}
    optional: dict[str, st.SearchStrategy[Any]] = {}
    for field in cls.DESCRIPTOR.fields:
        if depth > 2 and field.message_type is not None and not field.is_required:
            continue
        value = _value(field, depth)
        if field.is_repeated:
            value = st.lists(value, max_size=3)
        (required if field.is_required else optional)[field.name] = value
    return st.fixed_dictionaries(required, optional=optional).map(lambda fields: cls(**fields))


def command_of(spec: CommandSpec) -> st.SearchStrategy[BaseCommand]:
    """Commands of one type with random fields."""
    make: Any = BaseCommand
    return messages(spec.message_class).map(lambda part: make(type=spec.number, **{spec.field: part}))


commands = st.sampled_from(list(COMMANDS.values())).flatmap(command_of)


def _frame(command: BaseCommand, payload: bytes) -> bytes:
    return encode_payload_frame(command, payload) if payload else encode_frame(command)


frames = st.builds(_frame, commands, st.binary(max_size=40))


class Captured(NamedTuple):
    """One captured frame."""

    connection: int
    sender: str
    type: str
    frame: bytes


def captured() -> list[Captured]:
    """Return the frames between a real client and a real broker, in capture order."""
    lines = [line for line in CAPTURED.read_text("utf-8").splitlines() if not line.startswith("#")]
    rows = [line.split("\t") for line in lines[1:]]
    return [Captured(int(row[0]), row[1], row[2], bytes.fromhex(row[3])) for row in rows]
