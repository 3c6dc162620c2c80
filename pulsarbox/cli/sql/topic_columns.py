"""Columns of a topic in SQL: those of its values, then the columns that every topic has. Pure."""

from collections.abc import Sequence
from typing import NamedTuple

from pulsarbox.cli.sql.column_sql import read_as, sql_type
from pulsarbox.protocol.PulsarApi_pb2 import Schema
from pulsarbox.spark.decode.row_columns import ALL, CORRUPT, ENCRYPTION, NAMES, PAYLOAD, VALUE
from pulsarbox.spark.schema.column_types import ColumnField, NoColumnsError, field_of, of_row, value_fields

_RAW = [field_of(VALUE, "binary")]


class TopicColumns(NamedTuple):
    """Columns of a topic."""

    fields: list[ColumnField]
    omitted: list[str]
    """Why some fields have no column, one sentence each."""


def of_schema(schema: Schema | None) -> TopicColumns:
    """Return the columns of a topic with this schema; None is raw bytes."""
    try:
        values = value_fields(schema)
    except NoColumnsError:
        values = _RAW
    if any(field["name"].startswith("__") for field in values):
        values = _RAW
    return _with_own(values)


def of_file(stored: Sequence[ColumnField]) -> TopicColumns:
    """Return the columns of a topic as those of a file that was offloaded from it."""
    own = {*NAMES, CORRUPT, PAYLOAD, ENCRYPTION}
    return _with_own([field for field in stored if field["name"] not in own])


def is_raw(fields: Sequence[ColumnField]) -> bool:
    """Return whether the value is one column with the original payload."""
    values = [field for field in fields if field["name"] not in {*NAMES, CORRUPT, PAYLOAD, ENCRYPTION}]
    return values == _RAW


def _with_own(values: Sequence[ColumnField]) -> TopicColumns:
    found: dict[str, ColumnField] = {}
    omitted = []
    for field in values:
        try:
            sql_type(field["type"])
        except ValueError as error:
            omitted.append(f"column {field['name']} is omitted: it has {error}")
            continue
        folded = field["name"].casefold()
        if folded in found:
            omitted.append(f"column {field['name']} is omitted: it differs from {found[folded]['name']} only by case")
        else:
            found[folded] = field
    fields = [*found.values(), *map(of_row, ALL)]
    return TopicColumns(fields if is_raw(values) else [*fields, field_of(CORRUPT, "binary")], omitted)


def expressions(stored: Sequence[ColumnField], wanted: Sequence[ColumnField]) -> list[str]:
    """Return an expression for each wanted column, over a file with the columns ``stored``.

    A missing column is null. The values of a file without columns for them are in the column of corrupt records, and a
    wanted payload is the file's payload.
    """
    from pulsarbox.cli.sql.column_sql import identifier, null_of

    types = {field["name"]: field["type"] for field in stored}
    found = []
    for field in wanted:
        name, kind = field["name"], field["type"]
        source = name
        if name == VALUE and is_raw(wanted) and PAYLOAD in types:
            source = PAYLOAD
        elif name == CORRUPT and is_raw(stored):
            source = VALUE
        there = types.get(source) if not (name == VALUE and is_raw(stored) and not is_raw(wanted)) else None
        found.append(null_of(kind) if there is None else read_as(identifier(source), there, kind))
    return found
