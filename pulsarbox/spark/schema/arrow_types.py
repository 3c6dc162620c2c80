"""Column types as Arrow types, equal to those that Spark expects of a Python source. Does not import pyspark."""

import re
from collections.abc import Mapping, Sequence
from typing import Final

import pyarrow as pa

from pulsarbox.spark.schema.column_types import ColumnField, ColumnType

_PLAIN: Final[Mapping[str, pa.DataType]] = {
    "boolean": pa.bool_(),
    "byte": pa.int8(),
    "short": pa.int16(),
    "integer": pa.int32(),
    "long": pa.int64(),
    "float": pa.float32(),
    "double": pa.float64(),
    "string": pa.string(),
    "binary": pa.binary(),
    "date": pa.date32(),
    "timestamp": pa.timestamp("us", tz="UTC"),
    "timestamp_ntz": pa.timestamp("us"),
}
_DECIMAL: Final = re.compile(r"decimal\((\d+),(-?\d+)\)")


def arrow_schema(fields: Sequence[ColumnField]) -> pa.Schema:
    """Return the Arrow schema of some columns. Raises ValueError for a type that no topic has."""
    return pa.schema([_field(each["name"], each["type"], nullable=each["nullable"]) for each in fields])


def arrow_type(kind: ColumnType) -> pa.DataType:
    """Return the Arrow type of a column type. Raises ValueError for one that no topic has."""
    if isinstance(kind, str):
        return _plain(kind)
    if kind["type"] == "struct":
        return pa.struct(list(arrow_schema(kind["fields"])))
    if kind["type"] == "array":
        return pa.list_(_field("element", kind["elementType"], nullable=kind["containsNull"]))
    if kind["type"] == "map":
        key = _field("key", kind["keyType"], nullable=False)
        return pa.map_(key, _field("value", kind["valueType"], nullable=kind["valueContainsNull"]))
    raise ValueError(f"unknown column type {kind['type']!r}")


def _field(name: str, kind: ColumnType, *, nullable: bool) -> pa.Field:
    return pa.field(name, arrow_type(kind), nullable=nullable)


def _plain(kind: str) -> pa.DataType:
    decimal = _DECIMAL.fullmatch(kind)
    if decimal:
        return pa.decimal128(int(decimal[1]), int(decimal[2]))
    if kind not in _PLAIN:
        raise ValueError(f"unknown column type {kind!r}")
    return _PLAIN[kind]
