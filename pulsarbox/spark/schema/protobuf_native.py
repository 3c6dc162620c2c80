"""Protobuf messages as Python values that match the columns of their schema."""

from collections.abc import Callable
from typing import Any

from google.protobuf.descriptor import Descriptor
from google.protobuf.message import Message
from google.protobuf.message_factory import GetMessageClass


def reader_of(descriptor: Descriptor) -> Callable[[bytes], dict[str, Any]]:
    """Return a parser of serialized messages, with enums by name. It raises DecodeError for other bytes."""
    made = GetMessageClass(descriptor)
    return lambda value: _message(made.FromString(value))


def _message(message: Message) -> dict[str, Any]:
    return {field.name: _value(message, field) for field in message.DESCRIPTOR.fields}


def _value(message: Message, field: Any) -> Any:
    inside = field.message_type
    if inside is not None and inside.GetOptions().map_entry:
        of_value = inside.fields_by_name["value"]
        return {name: _one(of_value, each) for name, each in getattr(message, field.name).items()}
    if field.is_repeated:
        return [_one(field, each) for each in getattr(message, field.name)]
    if field.has_presence and not message.HasField(field.name):
        return None
    return _one(field, getattr(message, field.name))


def _one(field: Any, value: Any) -> Any:
    if field.message_type is not None:
        return _message(value)
    if field.enum_type is None:
        return value
    named = field.enum_type.values_by_number.get(value)
    return str(value) if named is None else named.name
