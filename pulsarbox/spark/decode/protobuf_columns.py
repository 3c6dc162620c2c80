"""Fields of many Protobuf messages as lists, from a single parse. Does not import pyspark.

Creating a Python object per message and reading each field from it would dominate the cost of a read. Instead, many
messages are concatenated and parsed as one message whose fields are all repeated, so each field becomes one list.
Random marks, one after each message in every requested field, show which value belongs to which message.
"""

import os
from collections.abc import Iterable, Sequence
from functools import cache
from itertools import count
from typing import Any, Final, NamedTuple

from google.protobuf.descriptor import FieldDescriptor
from google.protobuf.descriptor_pb2 import FieldDescriptorProto, FileDescriptorProto
from google.protobuf.descriptor_pool import DescriptorPool
from google.protobuf.message import DecodeError, Message
from google.protobuf.message_factory import GetMessageClass

Columns = dict[str, list[Any]]
"""By field name: the value in each message, None if unset. Strings are bytes, booleans numbers."""


class Lists(NamedTuple):
    """Values of a repeated field."""

    counts: list[int]
    """Number of values of each message."""
    values: list[Any]
    """The values of all messages, concatenated."""


_BYTES: Final = (FieldDescriptor.TYPE_STRING, FieldDescriptor.TYPE_BYTES, FieldDescriptor.TYPE_MESSAGE)
_UNSIGNED: Final = (FieldDescriptor.TYPE_UINT64, FieldDescriptor.TYPE_UINT32)
_SIGNED: Final = (FieldDescriptor.TYPE_INT32, FieldDescriptor.TYPE_BOOL, FieldDescriptor.TYPE_ENUM)
"""Signed varint types. Their values are not truncated to 32 bits."""
_MARK: Final = os.urandom(8)
"""Mark in fields of bytes."""
_MARK_NUMBER: Final = int.from_bytes(os.urandom(8)) >> 2 | 1 << 61
_numbers: Final = count()


class Many:
    """Parser of selected fields of messages of one type."""

    def __init__(self, kind: type[Message], each: Iterable[str], seldom: Iterable[str] = (), lists: str = "") -> None:
        """Prepare the parser. ``each``: fields that most messages set, at least one. ``seldom``: fields that few set,
        nearly free while none does. ``lists``: a repeated field. Required fields that are not selected are only
        counted.

        Raises ValueError for a field that is not a string, bytes, boolean, enum, message or integer.
        """
        self._each, self._seldom, self._lists = tuple(each), tuple(seldom), lists
        if not self._each:
            raise ValueError("no field is present in every message, so message boundaries are unknown")
        usual = (*self._each, lists) if lists else self._each
        fields = kind.DESCRIPTOR.fields_by_name
        self._required = [name for name, field in fields.items() if field.is_required]
        self._counted = [name for name in self._required if name not in usual]
        chosen = [fields[name] for name in (*usual, *self._seldom, *self._counted)]
        self._parse = _of_lists(chosen).FromString
        self._marks = {field.name: _MARK if field.type in _BYTES else _MARK_NUMBER for field in chosen}
        self._behind = self._end(usual)
        self._behind_all = self._end((*usual, *self._seldom))

    def _end(self, names: Iterable[str]) -> bytes:
        """Return the marks that follow each message."""
        made = self._parse(b"")
        for name in names:
            getattr(made, name).append(self._marks[name])
        return bytes(made.SerializeToString())

    def columns(self, messages: Sequence[bytes]) -> tuple[Columns, Lists] | None:
        """Return the columns of the messages, leaving out fields of ``seldom`` that none sets. The last value of a
        repeated singular field counts, as in Protobuf.

        None if the messages cannot be separated: one is malformed or lacks a required field.
        """
        number = len(messages)
        names = self._each
        try:
            found = self._parse(self._behind.join((*messages, b"")))
            more = [name for name in self._seldom if getattr(found, name)]
            if more:
                found = self._parse(self._behind_all.join((*messages, b"")))
                names = (*names, *more)
        except DecodeError:
            return None
        if any(len(getattr(found, name)) != number for name in self._counted):
            return None
        made: Columns = {}
        for name in names:
            column = _apart(getattr(found, name), self._marks[name], number)
            if column is None or (name in self._required and None in column):
                return None
            made[name] = column
        if not self._lists:
            return made, Lists([0] * number, [])
        lists = _listed(getattr(found, self._lists), self._marks[self._lists], number)
        return None if lists is None else (made, lists)


def _apart(values: Any, mark: Any, messages: int) -> list[Any] | None:
    """Return the last value before each mark."""
    if len(values) == 2 * messages and values[1::2].count(mark) == messages:
        found: list[Any] = values[::2]
        return found
    found = []
    last = None
    for value in values:
        if value == mark:
            found.append(last)
            last = None
        else:
            last = value
    return found if len(found) == messages else None


def _listed(values: Any, mark: Any, messages: int) -> Lists | None:
    """Return all values before each mark."""
    if len(values) == 2 * messages and values[1::2].count(mark) == messages:
        return Lists([1] * messages, values[::2])
    found: list[Any] = []
    counts, begin = [], 0
    for at, value in enumerate(values):
        if value == mark:
            counts.append(at - begin)
            begin = at + 1
        else:
            found.append(value)
    return Lists(counts, found) if len(counts) == messages else None


@cache
def many(kind: type[Message], each: tuple[str, ...], seldom: tuple[str, ...] = (), lists: str = "") -> Many:
    """Return the cached parser of these fields."""
    return Many(kind, each, seldom, lists)


def _of_lists(fields: Iterable[Any]) -> type[Message]:
    """Return a message type with these fields, under their numbers, each repeated and not packed."""
    number = next(_numbers)
    file = FileDescriptorProto(name=f"pulsarbox/lists{number}.proto", package="pulsarbox.lists", syntax="proto2")
    made = file.message_type.add(name=f"Lists{number}")
    for field in fields:
        made.field.add(
            name=field.name, number=field.number, type=_type(field), label=FieldDescriptorProto.LABEL_REPEATED
        )
    pool = DescriptorPool()
    pool.Add(file)
    return GetMessageClass(pool.FindMessageTypeByName(f"{file.package}.{made.name}"))


def _type(field: Any) -> FieldDescriptorProto.Type.ValueType:
    if field.type in _BYTES:
        return FieldDescriptorProto.TYPE_BYTES
    if field.type in _UNSIGNED:
        return FieldDescriptorProto.TYPE_UINT64
    if field.type in _SIGNED or field.type == FieldDescriptor.TYPE_INT64:
        return FieldDescriptorProto.TYPE_INT64
    raise ValueError(f"{field.full_name} has a type that cannot be decoded in bulk")
