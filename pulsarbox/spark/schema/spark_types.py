"""Pulsar schemas as Spark types: the columns of a topic's values.

Records become columns, other values one column ``value``, and key-value pairs the columns ``key`` and ``value``.
Without a schema the value is binary. Source: https://pulsar.apache.org/docs/4.2.x/schema-understand/.
"""

import json
from collections.abc import Mapping
from typing import Any, Final

from google.protobuf.descriptor import Descriptor, FieldDescriptor
from pyspark.sql.types import (
    ArrayType,
    BinaryType,
    BooleanType,
    ByteType,
    DataType,
    DateType,
    DecimalType,
    DoubleType,
    FloatType,
    IntegerType,
    LongType,
    MapType,
    ShortType,
    StringType,
    StructField,
    StructType,
    TimestampNTZType,
    TimestampType,
)

from pulsarbox.errors import InvalidSchema
from pulsarbox.protocol.PulsarApi_pb2 import Schema
from pulsarbox.protocol.schema import key_value
from pulsarbox.protocol.schema.native_definition import parse
from pulsarbox.spark.decode.row_columns import CORRUPT, VALUE, MetadataColumn

KEY: Final = "key"

_PRIMITIVE: Final[Mapping[int, DataType]] = {
    Schema.String: StringType(),
    Schema.Bool: BooleanType(),
    Schema.Int8: ByteType(),
    Schema.Int16: ShortType(),
    Schema.Int32: IntegerType(),
    Schema.Int64: LongType(),
    Schema.Float: FloatType(),
    Schema.Double: DoubleType(),
    Schema.Date: DateType(),
    Schema.Time: TimestampType(),
    Schema.Timestamp: TimestampType(),
    Schema.Instant: TimestampType(),
    Schema.LocalDate: DateType(),
    Schema.LocalTime: LongType(),
    Schema.LocalDateTime: TimestampNTZType(),
}
_OF_ROWS: Final[Mapping[str, DataType]] = {
    "binary": BinaryType(),
    "string": StringType(),
    "timestamp": TimestampType(),
    "int": IntegerType(),
    "bigint": LongType(),
    "map<string,string>": MapType(StringType(), StringType()),
}
_AVRO: Final[Mapping[str, DataType]] = {
    "null": StringType(),
    "boolean": BooleanType(),
    "int": IntegerType(),
    "long": LongType(),
    "float": FloatType(),
    "double": DoubleType(),
    "bytes": BinaryType(),
    "string": StringType(),
}
_LOGICAL: Final[Mapping[str, DataType]] = {
    "date": DateType(),
    "timestamp-millis": TimestampType(),
    "timestamp-micros": TimestampType(),
    "local-timestamp-millis": TimestampNTZType(),
    "local-timestamp-micros": TimestampNTZType(),
    "uuid": StringType(),
}
LOGICAL: Final = frozenset(_LOGICAL) | {"decimal"}
"""Avro logical types with a Spark type; others are read as their underlying type."""
_PROTOBUF: Final[Mapping[int, DataType]] = {
    FieldDescriptor.CPPTYPE_INT32: IntegerType(),
    FieldDescriptor.CPPTYPE_UINT32: LongType(),
    FieldDescriptor.CPPTYPE_INT64: LongType(),
    FieldDescriptor.CPPTYPE_UINT64: DecimalType(20, 0),
    FieldDescriptor.CPPTYPE_FLOAT: FloatType(),
    FieldDescriptor.CPPTYPE_DOUBLE: DoubleType(),
    FieldDescriptor.CPPTYPE_BOOL: BooleanType(),
    FieldDescriptor.CPPTYPE_ENUM: StringType(),
    FieldDescriptor.CPPTYPE_STRING: StringType(),
}
_DECIMAL_MAX: Final = 38
FIELDS_MAX: Final = 20_000
"""Limit on the fields of a value, counting a nested record once per use.

Each level of a short definition can double their number.
"""


class NoColumnsError(ValueError):
    """Spark has no type for a schema; the message says why."""


def of_row(column: MetadataColumn) -> StructField:
    """Return the Spark field of a column that every topic has."""
    return StructField(column.name, _OF_ROWS[column.type])


def value_fields(schema: Schema | None) -> list[StructField]:
    """Return the columns of values written with a schema; None is raw bytes.

    Raises NoColumnsError if Spark has no type for it.
    """
    found = type_of(schema)
    return list(found.fields) if isinstance(found, StructType) else [StructField(VALUE, found)]


def type_of(schema: Schema | None) -> DataType:
    """Return the Spark type of one value. Raises NoColumnsError."""
    kind = None if schema is None else schema.type
    if schema is None or kind is None:
        return BinaryType()
    if kind in _PRIMITIVE:
        return _PRIMITIVE[kind]
    try:
        if kind == Schema.Type.KeyValue:
            key, value = (type_of(each) for each in key_value.split(schema))
            return StructType([StructField(KEY, key), StructField(VALUE, value)])
        if kind in (Schema.Avro, Schema.Json):
            return _Avro(is_json=kind == Schema.Json).type(json.loads(schema.schema_data))
        if kind == Schema.ProtobufNative:
            return _of_message(parse(schema.schema_data), (), _Count())
    except (InvalidSchema, ValueError, KeyError, TypeError, RecursionError) as error:
        raise NoColumnsError(str(error)) from None
    return BinaryType()


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
    """Spark types of one Avro definition; names refer to types defined earlier in it."""

    def __init__(self, is_json: bool) -> None:
        self._is_json = is_json
        self._named: dict[str, Any] = {}
        self._open: list[str] = []
        self._count = _Count()

    def type(self, definition: Any) -> DataType:
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
            return ArrayType(self.type(definition["items"]))
        if kind == "map":
            return MapType(StringType(), self.type(definition["values"]))
        if kind in ("enum", "fixed"):
            self._named[definition["name"].rpartition(".")[2]] = definition
            return StringType() if kind == "enum" else self._bytes()
        return self.type(kind)

    def _bytes(self) -> DataType:
        """JSON represents bytes as text, in an encoding that its writer chooses."""
        return StringType() if self._is_json else BinaryType()

    def _by_name(self, name: str) -> DataType:
        if name == "bytes":
            return self._bytes()
        if name in _AVRO:
            return _AVRO[name]
        name = name.rpartition(".")[2]
        if name in self._open:
            raise NoColumnsError(f"its record {name} contains itself")
        return self.type(self._named[name])

    def _record(self, definition: Mapping[str, Any]) -> DataType:
        name = definition["name"].rpartition(".")[2]
        self._named[name] = definition
        self._count.add(len(definition["fields"]) + 1)  # a record without fields costs as well
        self._open.append(name)
        fields = [StructField(each["name"], self.type(each["type"])) for each in definition["fields"]]
        self._open.pop()
        return StructType(fields)

    def _union(self, branches: list[Any]) -> DataType:
        """Return the type of a union: null is dropped, numeric types are widened, other mixtures become JSON text."""
        found = [self.type(each) for each in branches if each != "null"]
        if len(found) == 1:
            return found[0]
        kinds = {type(each) for each in found}
        if kinds <= {IntegerType, LongType}:
            return LongType()
        if kinds <= {FloatType, DoubleType}:
            return DoubleType()
        return StringType()

    def _logical(self, definition: Mapping[str, Any]) -> DataType | None:
        if self._is_json:  # a number or text, as its writer chose
            return None
        name = definition.get("logicalType")
        if name == "decimal" and definition.get("precision", 0) <= _DECIMAL_MAX:
            return DecimalType(definition["precision"], definition.get("scale", 0))
        return _LOGICAL.get(name) if isinstance(name, str) else None


def _of_message(message: Descriptor, within: tuple[str, ...], count: _Count) -> StructType:
    if message.full_name in within:
        raise NoColumnsError(f"its message {message.full_name} contains itself")
    within = (*within, message.full_name)
    count.add(len(message.fields) + 1)
    return StructType([StructField(field.name, _of_field(field, within, count)) for field in message.fields])


def _of_field(field: FieldDescriptor, within: tuple[str, ...], count: _Count) -> DataType:
    inside = field.message_type
    if inside is not None and inside.GetOptions().map_entry:
        key, value = (_of_field(inside.fields_by_name[name], within, count) for name in ("key", "value"))
        return MapType(key, value)
    found: DataType
    if inside is not None:
        found = _of_message(inside, within, count)
    elif field.type == FieldDescriptor.TYPE_BYTES:
        found = BinaryType()
    else:
        found = _PROTOBUF[field.cpp_type]
    return ArrayType(found) if field.is_repeated else found


def with_corrupt(fields: list[StructField]) -> list[StructField]:
    """Add the column for corrupt records, unless every value is readable."""
    if all(isinstance(field.dataType, BinaryType) for field in fields) and len(fields) == 1:
        return fields
    return [*fields, StructField(CORRUPT, BinaryType())]
