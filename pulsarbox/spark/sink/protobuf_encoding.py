"""Encoding of columns as Protobuf messages, by a topic's definition or one built from the columns.

``schema.protobuf_native`` does the reverse. Does not import pyspark.
"""

import base64
import json
from collections.abc import Callable, Mapping
from typing import Any, Final

from google.protobuf.descriptor import Descriptor
from google.protobuf.descriptor_pb2 import DescriptorProto, FieldDescriptorProto, FileDescriptorProto, FileDescriptorSet
from google.protobuf.message import Message
from google.protobuf.message_factory import GetMessageClass

from pulsarbox.spark.sink.epoch_client import SinkError

FILE: Final = "row.proto"
_TYPES: Final = {
    "string": FieldDescriptorProto.TYPE_STRING,
    "binary": FieldDescriptorProto.TYPE_BYTES,
    "byte": FieldDescriptorProto.TYPE_INT32,
    "short": FieldDescriptorProto.TYPE_INT32,
    "integer": FieldDescriptorProto.TYPE_INT32,
    "long": FieldDescriptorProto.TYPE_INT64,
    "float": FieldDescriptorProto.TYPE_FLOAT,
    "double": FieldDescriptorProto.TYPE_DOUBLE,
    "boolean": FieldDescriptorProto.TYPE_BOOL,
}
"""Spark types as Protobuf types."""
_KEYS: Final = ("string", "byte", "short", "integer", "long", "boolean")


def definition_of(kind: Mapping[str, Any], name: str) -> bytes:
    """Return a PROTOBUF_NATIVE definition for a Spark record given as JSON. Raises SinkError."""
    file = FileDescriptorProto(name=FILE)
    _describe(kind, file.message_type.add(name=name), name)
    told = {
        "fileDescriptorSet": base64.b64encode(FileDescriptorSet(file=[file]).SerializeToString()).decode(),
        "rootMessageTypeName": name,
        "rootFileDescriptorName": FILE,
    }
    return json.dumps(told).encode()


def _describe(kind: Mapping[str, Any], into: DescriptorProto, path: str) -> None:
    """Add the fields of a record to a message; ``path`` is the message's full name."""
    for number, each in enumerate(kind["fields"], 1):
        field = into.field.add(name=each["name"], number=number, label=FieldDescriptorProto.LABEL_OPTIONAL)
        found = each["type"]
        if isinstance(found, Mapping) and found["type"] == "map":
            _map(found, field, into, path)
            continue
        if isinstance(found, Mapping) and found["type"] == "array":
            field.label, found = FieldDescriptorProto.LABEL_REPEATED, found["elementType"]
        _single(found, field, into, path)


def _single(kind: Any, field: FieldDescriptorProto, into: DescriptorProto, path: str, name: str = "") -> None:
    """Set the type of a value, or of each value of a repeated field.

    ``name``: base of the nested message's name, by default the field's.
    """
    column = f"{path}.{name or field.name}"
    if isinstance(kind, Mapping) and kind["type"] == "struct":
        inside = into.nested_type.add(name=f"{_camel(name or field.name)}Message")
        field.type, field.type_name = FieldDescriptorProto.TYPE_MESSAGE, f".{path}.{inside.name}"
        _describe(kind, inside, f"{path}.{inside.name}")
        return
    word = kind if isinstance(kind, str) else f"a {kind['type']} inside another type"
    if word not in _TYPES:
        raise SinkError(f"column {column} is {word}, for which Protobuf has no type: cast it")
    field.type = _TYPES[word]


def _map(kind: Mapping[str, Any], field: FieldDescriptorProto, into: DescriptorProto, path: str) -> None:
    if kind["keyType"] not in _KEYS:
        raise SinkError(
            f"column {path}.{field.name} is a map with {kind['keyType']} keys, which Protobuf does not support: use "
            "string keys"
        )
    inside = into.nested_type.add(name=f"{_camel(field.name)}Entry")  # name required by Protobuf
    inside.options.map_entry = True
    field.label, field.type = FieldDescriptorProto.LABEL_REPEATED, FieldDescriptorProto.TYPE_MESSAGE
    field.type_name = f".{path}.{inside.name}"
    for number, (word, found) in enumerate((("key", kind["keyType"]), ("value", kind["valueType"])), 1):
        part = inside.field.add(name=word, number=number, label=FieldDescriptorProto.LABEL_OPTIONAL)
        _single(found, part, into, path, field.name)


def _camel(field: str) -> str:
    return "".join(word[:1].upper() + word[1:] for word in field.split("_"))


def writer_of(descriptor: Descriptor) -> Callable[[Mapping[str, Any]], bytes]:
    """Return an encoder of records as messages; null leaves a field unset. It raises ValueError and TypeError."""
    made = GetMessageClass(descriptor)

    def write(value: Mapping[str, Any]) -> bytes:
        message = made()
        _fill(message, value)
        return bytes(message.SerializeToString())

    return write


def _fill(message: Message, value: Mapping[str, Any]) -> None:
    fields = message.DESCRIPTOR.fields_by_name
    for name, each in value.items():
        if name not in fields:
            raise ValueError(f"message {message.DESCRIPTOR.full_name} has no field {name}")
        if each is None:
            continue
        try:
            _set(message, fields[name], each)
        except (TypeError, ValueError, AttributeError) as error:
            raise ValueError(f"field {name}: {error}") from None


def _set(message: Message, field: Any, value: Any) -> None:
    inside = field.message_type
    if inside is not None and inside.GetOptions().map_entry:
        into, of_value = getattr(message, field.name), inside.fields_by_name["value"]
        for key, each in value.items():
            if of_value.message_type is not None:
                _fill(into[key], each or {})
            else:
                into[key] = _one(of_value, each)
    elif field.is_repeated:
        into = getattr(message, field.name)
        for each in value:
            if inside is not None:
                _fill(into.add(), each or {})
            else:
                into.append(_one(field, each))
    elif inside is not None:
        getattr(message, field.name).SetInParent()
        _fill(getattr(message, field.name), value)
    else:
        setattr(message, field.name, _one(field, value))


def _one(field: Any, value: Any) -> Any:
    if value is None:
        raise ValueError("a list or map contains a null, which Protobuf does not support")
    if field.enum_type is None:
        return int(value) if field.cpp_type == field.CPPTYPE_UINT64 else value
    named = field.enum_type.values_by_name.get(value)
    if named is None:
        raise ValueError(f"{value!r} is not one of {', '.join(field.enum_type.values_by_name)}")
    return named.number
