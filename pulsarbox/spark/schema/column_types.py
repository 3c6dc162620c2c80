"""Pulsar schemas as column types, in Spark's JSON form: ``"long"``, ``"decimal(20,0)"``, ``{"type": "struct", ...}``.

Records become columns, other values one column ``value``, and key-value pairs the columns ``key`` and ``value``.
Without a schema the value is binary. Source: https://pulsar.apache.org/docs/4.2.x/schema-understand/. Pure: imports
neither pyspark nor pyarrow.
"""

import json
from collections.abc import Mapping
from typing import Any, Final

from google.protobuf.descriptor import Descriptor, FieldDescriptor

from pulsarbox.errors import InvalidSchema
from pulsarbox.protocol.PulsarApi_pb2 import Schema
from pulsarbox.protocol.schema import key_value
from pulsarbox.protocol.schema.native_definition import parse
from pulsarbox.spark.decode.row_columns import VALUE, MetadataColumn

ColumnType = Any
"""Type in Spark's JSON form: a name, or a dictionary for a record, list or map."""
ColumnField = dict[str, Any]
"""Field of a record in that form: ``name``, ``type``, ``nullable``, ``metadata``."""
KEY: Final = "key"


def field_of(name: str, kind: ColumnType) -> ColumnField:
    """Return a nullable field. Raises TypeError if the name is no text."""
    if not isinstance(name, str):
        raise TypeError(f"field name {name!r} is not text")
    return {"name": name, "type": kind, "nullable": True, "metadata": {}}


def record_of(fields: list[ColumnField]) -> ColumnType:
    """Return the type of a record."""
    return {"type": "struct", "fields": fields}


def is_record(kind: ColumnType) -> bool:
    """Return whether a type is a record."""
    return isinstance(kind, dict) and kind["type"] == "struct"


def _array(kind: ColumnType) -> ColumnType:
    return {"type": "array", "elementType": kind, "containsNull": True}


def _map(key: ColumnType, value: ColumnType) -> ColumnType:
    return {"type": "map", "keyType": key, "valueType": value, "valueContainsNull": True}


_PRIMITIVE: Final[Mapping[int, str]] = {
    Schema.String: "string",
    Schema.Bool: "boolean",
    Schema.Int8: "byte",
    Schema.Int16: "short",
    Schema.Int32: "integer",
    Schema.Int64: "long",
    Schema.Float: "float",
    Schema.Double: "double",
    Schema.Date: "date",
    Schema.Time: "timestamp",
    Schema.Timestamp: "timestamp",
    Schema.Instant: "timestamp",
    Schema.LocalDate: "date",
    Schema.LocalTime: "long",
    Schema.LocalDateTime: "timestamp_ntz",
}
_OF_ROWS: Final[Mapping[str, ColumnType]] = {
    "binary": "binary",
    "string": "string",
    "timestamp": "timestamp",
    "int": "integer",
    "bigint": "long",
    "map<string,string>": _map("string", "string"),
}
_AVRO: Final[Mapping[str, str]] = {
    "null": "string",
    "boolean": "boolean",
    "int": "integer",
    "long": "long",
    "float": "float",
    "double": "double",
    "bytes": "binary",
    "string": "string",
}
_LOGICAL: Final[Mapping[str, str]] = {
    "date": "date",
    "timestamp-millis": "timestamp",
    "timestamp-micros": "timestamp",
    "local-timestamp-millis": "timestamp_ntz",
    "local-timestamp-micros": "timestamp_ntz",
    "uuid": "string",
}
LOGICAL: Final = frozenset(_LOGICAL) | {"decimal"}
"""Avro logical types with a column type; others are read as their underlying type."""
_PROTOBUF: Final[Mapping[int, str]] = {
    FieldDescriptor.CPPTYPE_INT32: "integer",
    FieldDescriptor.CPPTYPE_UINT32: "long",
    FieldDescriptor.CPPTYPE_INT64: "long",
    FieldDescriptor.CPPTYPE_UINT64: "decimal(20,0)",
    FieldDescriptor.CPPTYPE_FLOAT: "float",
    FieldDescriptor.CPPTYPE_DOUBLE: "double",
    FieldDescriptor.CPPTYPE_BOOL: "boolean",
    FieldDescriptor.CPPTYPE_ENUM: "string",
    FieldDescriptor.CPPTYPE_STRING: "string",
}
_DECIMAL_MAX: Final = 38
FIELDS_MAX: Final = 20_000
"""Limit on the fields of a value, counting a nested record once per use.

Each level of a short definition can double their number.
"""


class NoColumnsError(ValueError):
    """A schema has no column type; the message says why."""


def of_row(column: MetadataColumn) -> ColumnField:
    """Return the field of a column that every topic has."""
    return field_of(column.name, _OF_ROWS[column.type])


def value_fields(schema: Schema | None) -> list[ColumnField]:
    """Return the columns of values written with a schema; None is raw bytes.

    Raises NoColumnsError if there is no type for it.
    """
    found = type_of(schema)
    return list(found["fields"]) if is_record(found) else [field_of(VALUE, found)]


def type_of(schema: Schema | None) -> ColumnType:
    """Return the type of one value. Raises NoColumnsError."""
    kind = None if schema is None else schema.type
    if schema is None or kind is None:
        return "binary"
    if kind in _PRIMITIVE:
        return _PRIMITIVE[kind]
    try:
        if kind == Schema.Type.KeyValue:
            key, value = (type_of(each) for each in key_value.split(schema))
            return record_of([field_of(KEY, key), field_of(VALUE, value)])
        if kind in (Schema.Avro, Schema.Json):
            return _Avro(is_json=kind == Schema.Json).type(json.loads(schema.schema_data))
        if kind == Schema.ProtobufNative:
            return _of_message(parse(schema.schema_data), (), _Count())
    except (InvalidSchema, ValueError, KeyError, TypeError, RecursionError) as error:
        raise NoColumnsError(str(error)) from None
    return "binary"


class _Count:
    """Running count of a value's fields."""

    def __init__(self) -> None:
        self._fields = 0

    def add(self, count: int) -> None:
        """Add to the count. Raises NoColumnsError above the limit."""
        self._fields += count
        if self._fields > FIELDS_MAX:
            raise NoColumnsError(f"it has more than {FIELDS_MAX} fields, including those of nested records")


class _Avro:
    """Column types of one Avro definition; names refer to types defined earlier in it."""

    def __init__(self, is_json: bool) -> None:
        self._is_json = is_json
        self._named: dict[str, Any] = {}
        self._open: list[str] = []
        self._count = _Count()

    def type(self, definition: Any) -> ColumnType:
        if isinstance(definition, list):
            return self._union(definition)
        if isinstance(definition, str):
            return self._by_name(definition)
        logical = self._logical(definition)
        if logical is not None:
            return logical
        kind = definition["type"]
        if kind in ("record", "error"):
            return self._record(definition)
        if kind == "array":
            return _array(self.type(definition["items"]))
        if kind == "map":
            return _map("string", self.type(definition["values"]))
        if kind in ("enum", "fixed"):
            self._named[definition["name"].rpartition(".")[2]] = definition
            return "string" if kind == "enum" else self._bytes()
        return self.type(kind)

    def _bytes(self) -> str:
        """JSON represents bytes as text, in an encoding that its writer chooses."""
        return "string" if self._is_json else "binary"

    def _by_name(self, name: str) -> ColumnType:
        if name == "bytes":
            return self._bytes()
        if name in _AVRO:
            return _AVRO[name]
        name = name.rpartition(".")[2]
        if name in self._open:
            raise NoColumnsError(f"its record {name} contains itself")
        return self.type(self._named[name])

    def _record(self, definition: Mapping[str, Any]) -> ColumnType:
        name = definition["name"].rpartition(".")[2]
        self._named[name] = definition
        self._count.add(len(definition["fields"]) + 1)  # a record without fields costs as well
        self._open.append(name)
        fields = [field_of(each["name"], self.type(each["type"])) for each in definition["fields"]]
        self._open.pop()
        return record_of(fields)

    def _union(self, branches: list[Any]) -> ColumnType:
        """Return the type of a union: null is dropped, numeric types are widened, other mixtures become JSON text."""
        found = [self.type(each) for each in branches if each != "null"]
        if len(found) == 1:
            return found[0]
        kinds = {each if isinstance(each, str) else "" for each in found}
        if kinds <= {"integer", "long"}:
            return "long"
        if kinds <= {"float", "double"}:
            return "double"
        return "string"

    def _logical(self, definition: Mapping[str, Any]) -> str | None:
        if self._is_json:  # a number or text, as its writer chose
            return None
        name = definition.get("logicalType")
        if name == "decimal" and definition.get("precision", 0) <= _DECIMAL_MAX:
            return f"decimal({definition['precision']},{definition.get('scale', 0)})"
        return _LOGICAL.get(name) if isinstance(name, str) else None


def _of_message(message: Descriptor, within: tuple[str, ...], count: _Count) -> ColumnType:
    if message.full_name in within:
        raise NoColumnsError(f"its message {message.full_name} contains itself")
    within = (*within, message.full_name)
    count.add(len(message.fields) + 1)
    return record_of([field_of(field.name, _of_field(field, within, count)) for field in message.fields])


def _of_field(field: FieldDescriptor, within: tuple[str, ...], count: _Count) -> ColumnType:
    inside = field.message_type
    if inside is not None and inside.GetOptions().map_entry:
        key, value = (_of_field(inside.fields_by_name[name], within, count) for name in ("key", "value"))
        return _map(key, value)
    found: ColumnType
    if inside is not None:
        found = _of_message(inside, within, count)
    elif field.type == FieldDescriptor.TYPE_BYTES:
        found = "binary"
    else:
        found = _PROTOBUF[field.cpp_type]
    return _array(found) if field.is_repeated else found
