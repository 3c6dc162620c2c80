"""Types and expressions in SQL, as DuckDB evaluates them."""

from typing import Any

import duckdb
import pytest

from pulsarbox.cli.sql.column_sql import identifier, literal, read_as, sql_type
from pulsarbox.spark.schema.column_types import ColumnType, field_of, record_of

INNER = record_of([field_of("a", "long"), field_of("b", "string")])
LIST = {"type": "array", "elementType": INNER, "containsNull": True}
MAP = {"type": "map", "keyType": "string", "valueType": "double", "valueContainsNull": True}


def one(sql: str) -> Any:
    with duckdb.connect() as database:
        return database.execute(f"SELECT {sql}").fetchall()[0][0]


def test_names_and_texts_are_quoted() -> None:
    assert one("1 AS " + identifier('a "b" ; c')) == 1
    assert one(literal("it's")) == "it's"


@pytest.mark.parametrize("kind", ["boolean", "byte", "decimal(9,2)", "timestamp", "timestamp_ntz", "binary", LIST, MAP])
def test_each_type_is_a_type_of_duckdb(kind: ColumnType) -> None:
    assert one(f"CAST(NULL AS {sql_type(kind)})") is None


@pytest.mark.parametrize(
    "kind",
    ["interval", record_of([]), record_of([field_of("a", "long"), field_of("A", "long")])],
)
def test_a_type_that_duckdb_lacks_is_refused(kind: ColumnType) -> None:
    with pytest.raises(ValueError, match=r"type|record"):
        sql_type(kind)


def test_the_same_type_is_read_unchanged() -> None:
    assert read_as('"x"', INNER, INNER) == '"x"'


def test_a_value_without_a_cast_is_null() -> None:
    assert one(read_as("'12'", "string", "long")) == 12
    assert one(read_as("'twelve'", "string", "long")) is None
    assert one(read_as("12", "long", MAP)) is None


def test_fields_of_records_match_by_name_also_in_lists() -> None:
    wanted = record_of([field_of("b", "string"), field_of("a", "string"), field_of("new", "double")])
    assert one(read_as("{'a': 1, 'b': 'x'}", INNER, wanted)) == {"b": "x", "a": "1", "new": None}
    assert one(read_as(f"CAST(NULL AS {sql_type(INNER)})", INNER, wanted)) is None
    wanted_list = {**LIST, "elementType": wanted}
    assert one(read_as("[{'a': 1, 'b': 'x'}, NULL]", LIST, wanted_list)) == [{"b": "x", "a": "1", "new": None}, None]
