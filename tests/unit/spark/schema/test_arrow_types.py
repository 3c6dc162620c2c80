"""Column types as Arrow types: the same as pyspark's own conversion."""

import pytest
from hypothesis import given
from hypothesis import strategies as st
from pyspark.sql.pandas.types import to_arrow_schema
from pyspark.sql.types import StructType

from pulsarbox.spark.schema.arrow_types import arrow_schema, arrow_type
from pulsarbox.spark.schema.column_types import ColumnField, ColumnType, field_of, record_of

PLAIN = (
    "boolean", "byte", "short", "integer", "long", "float", "double", "string", "binary", "date", "timestamp",
    "timestamp_ntz", "decimal(20,0)", "decimal(9,2)",
)  # fmt: skip


def columns(kinds: list[ColumnType]) -> list[ColumnField]:
    return [field_of(f"c{at}", kind) for at, kind in enumerate(kinds)]


def nested(inner: st.SearchStrategy[ColumnType]) -> st.SearchStrategy[ColumnType]:
    return st.one_of(
        inner.map(lambda each: {"type": "array", "elementType": each, "containsNull": True}),
        inner.map(lambda each: {"type": "map", "keyType": "string", "valueType": each, "valueContainsNull": False}),
        st.lists(inner, max_size=3).map(
            lambda some: record_of([field_of(f"f{at}", each) for at, each in enumerate(some)])
        ),
    )


@given(st.lists(st.recursive(st.sampled_from(PLAIN), nested, max_leaves=6), max_size=4))
def test_each_type_is_the_one_that_spark_converts_to(kinds: list[ColumnType]) -> None:
    fields = columns(kinds)
    spark = to_arrow_schema(StructType.fromJson({"type": "struct", "fields": fields}), timezone="UTC")
    assert arrow_schema(fields) == spark


@pytest.mark.parametrize("kind", ["interval", "decimal", {"type": "udt"}])
def test_an_unknown_type_is_refused(kind: ColumnType) -> None:
    with pytest.raises(ValueError, match="unknown column type"):
        arrow_type(kind)
