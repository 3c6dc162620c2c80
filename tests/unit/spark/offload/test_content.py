"""Checksums of columns are independent of row grouping, and differ for other rows."""

from itertools import pairwise
from typing import Any

import pyarrow as pa
from hypothesis import given, settings
from hypothesis import strategies as st

from pulsarbox.spark.offload.content import ColumnChecksums
from tests.tools.campaigns import examples

SCHEMA = pa.schema(
    [
        ("number", pa.int32()),
        ("bytes", pa.binary()),
        ("text", pa.string()),
        ("truth", pa.bool_()),
        ("real", pa.float64()),
        ("at", pa.timestamp("us", tz="UTC")),
        ("price", pa.decimal128(9, 2)),
        ("map", pa.map_(pa.string(), pa.string())),
        ("list", pa.list_(pa.int64())),
        ("record", pa.struct([("a", pa.int64()), ("b", pa.list_(pa.string()))])),
    ]
)
NUMBERS = st.none() | st.integers(0, 3)
TEXTS = st.none() | st.text("ab", max_size=2)
ROWS = st.lists(
    st.fixed_dictionaries(
        {
            "number": NUMBERS,
            "bytes": st.none() | st.binary(max_size=2),
            "text": TEXTS,
            "truth": st.none() | st.booleans(),
            "real": st.none() | st.sampled_from([0.0, 1.5]),
            "at": NUMBERS,
            "price": st.none() | st.decimals(0, 9, places=2),
            "map": st.none() | st.lists(st.tuples(st.text("ab", min_size=1, max_size=2), TEXTS), max_size=2),
            "list": st.none() | st.lists(NUMBERS, max_size=2),
            "record": st.none() | st.fixed_dictionaries({"a": NUMBERS, "b": st.none() | st.lists(TEXTS, max_size=2)}),
        }
    ),
    max_size=12,
)


def checksums(rows: list[Any], cuts: list[int]) -> dict[str, str]:
    content = ColumnChecksums()
    table = pa.Table.from_pylist(rows, SCHEMA)
    edges = sorted({0, len(rows), *(cut % (len(rows) + 1) for cut in cuts)})
    for first, end in pairwise(edges):
        content.feed(table.slice(first, end - first))
    assert content.rows == len(rows)
    return content.checksums()


@settings(max_examples=examples(40))
@given(rows=ROWS, one=st.lists(st.integers(0, 20)), other=st.lists(st.integers(0, 20)))
def test_the_layout_does_not_matter(rows: list[Any], one: list[int], other: list[int]) -> None:
    assert checksums(rows, one) == checksums(rows, other)


@settings(max_examples=examples(40))
@given(rows=ROWS, other=ROWS)
def test_other_rows_have_other_checksums(rows: list[Any], other: list[Any]) -> None:
    table, second = (pa.Table.from_pylist(each, SCHEMA) for each in (rows, other))
    if rows and other:
        one, two = checksums(rows, []), checksums(other, [])
        for name in SCHEMA.names:
            assert (one[name] == two[name]) == (table[name].to_pylist() == second[name].to_pylist()), name
