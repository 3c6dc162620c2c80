"""Column types in DuckDB's SQL, and the expressions that read a stored column as another type. Pure."""

import re
from collections.abc import Mapping
from typing import Final

from pulsarbox.spark.schema.column_types import ColumnField, ColumnType, is_record

_PLAIN: Final[Mapping[str, str]] = {
    "boolean": "BOOLEAN",
    "byte": "TINYINT",
    "short": "SMALLINT",
    "integer": "INTEGER",
    "long": "BIGINT",
    "float": "FLOAT",
    "double": "DOUBLE",
    "string": "VARCHAR",
    "binary": "BLOB",
    "date": "DATE",
    "timestamp": "TIMESTAMPTZ",
    "timestamp_ntz": "TIMESTAMP",
}
_DECIMAL: Final = re.compile(r"decimal\(\d+,\d+\)")


def identifier(name: str) -> str:
    """Quote a name."""
    return '"' + name.replace('"', '""') + '"'


def literal(text: str) -> str:
    """Quote a text."""
    return "'" + text.replace("'", "''") + "'"


def sql_type(kind: ColumnType) -> str:
    """Return the type in SQL. Raises ValueError for one that DuckDB lacks."""
    if isinstance(kind, str):
        if not _DECIMAL.fullmatch(kind) and kind not in _PLAIN:
            raise ValueError(f"no SQL type for {kind}")
        return _PLAIN.get(kind) or kind.upper()
    if kind["type"] == "array":
        return f"{sql_type(kind['elementType'])}[]"
    if kind["type"] == "map":
        return f"MAP({sql_type(kind['keyType'])}, {sql_type(kind['valueType'])})"
    fields = kind["fields"]
    if not fields:
        raise ValueError("a record without fields")
    names = {each["name"].casefold() for each in fields}
    if len(names) < len(fields) or "" in names:
        raise ValueError("a record with field names that differ only by case")
    return f"STRUCT({', '.join(_declared(each) for each in fields)})"


def _declared(field: ColumnField) -> str:
    return f"{identifier(field['name'])} {sql_type(field['type'])}"


def read_as(sql: str, stored: ColumnType, wanted: ColumnType) -> str:
    """Return an expression for the column ``sql`` of type ``stored`` as type ``wanted``.

    Fields of records are matched by name, and missing ones are null. Values without a cast are null.
    """
    if stored == wanted:
        return sql
    if isinstance(stored, str) and isinstance(wanted, str):
        return f"TRY_CAST({sql} AS {sql_type(wanted)})"
    if is_record(stored) and is_record(wanted):
        return _record_as(sql, stored, wanted)
    if _is_array(stored) and _is_array(wanted):
        element = read_as("each", stored["elementType"], wanted["elementType"])
        return f"list_transform({sql}, lambda each: {element})"
    return null_of(wanted)


def null_of(kind: ColumnType) -> str:
    """Return a null of a type."""
    return f"CAST(NULL AS {sql_type(kind)})"


def _record_as(sql: str, stored: ColumnType, wanted: ColumnType) -> str:
    there = {field["name"]: field["type"] for field in stored["fields"]}
    parts = []
    for field in wanted["fields"]:
        name = field["name"]
        found = f"struct_extract({sql}, {literal(name)})"
        value = read_as(found, there[name], field["type"]) if name in there else null_of(field["type"])
        parts.append(f"{identifier(name)} := {value}")
    return f"CASE WHEN {sql} IS NULL THEN NULL ELSE struct_pack({', '.join(parts)}) END"


def _is_array(kind: ColumnType) -> bool:
    return isinstance(kind, dict) and kind["type"] == "array"
