"""Types of Iceberg columns as column types, in Spark's JSON form. Imports pyiceberg, but not pyspark."""

from typing import TYPE_CHECKING, Any, Final

from pulsarbox.spark.lakehouse.table_place import TableError
from pulsarbox.spark.schema.column_types import ColumnField, ColumnType, field_of, record_of

if TYPE_CHECKING:
    from pyiceberg.schema import Schema

_PLAIN: Final = {
    "boolean": "boolean",
    "int": "integer",
    "long": "long",
    "float": "float",
    "double": "double",
    "date": "date",
    "time": "long",
    "timestamp": "timestamp_ntz",
    "timestamptz": "timestamp",
    "string": "string",
    "binary": "binary",
}
"""Spark has no time of day: microseconds."""


def columns_of(schema: "Schema") -> list[ColumnField]:
    """Return the columns of a table. Columns of types that no offload writes are left out."""
    found = []
    for field in schema.fields:
        try:
            found.append(field_of(field.name, _type(field.field_type)))
        except TableError:  # a column of another program
            continue
    return found


def _type(kind: Any) -> ColumnType:
    from pyiceberg.types import DecimalType, ListType, MapType, StructType

    if isinstance(kind, StructType):
        return record_of([field_of(each.name, _type(each.field_type)) for each in kind.fields])
    if isinstance(kind, ListType):
        return {"type": "array", "elementType": _type(kind.element_type), "containsNull": True}
    if isinstance(kind, MapType):
        key, value = _type(kind.key_type), _type(kind.value_type)
        return {"type": "map", "keyType": key, "valueType": value, "valueContainsNull": True}
    if isinstance(kind, DecimalType):
        return f"decimal({kind.precision},{kind.scale})"
    if str(kind) not in _PLAIN:
        raise TableError(f"type {kind} is not supported")
    return _PLAIN[str(kind)]
