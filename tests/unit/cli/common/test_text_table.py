"""Tables, and their fit to a terminal."""

from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from pulsarbox.cli.common.text_table import fitted, shortened, table, terminal_width

COLUMNS = ("name", "empty", "count", "state")
ROWS: list[dict[str, Any]] = [
    {"name": "orders", "empty": None, "count": 12, "state": "active"},
    {"name": "/a/long/path/to/x", "empty": "", "count": 3, "state": "lost for long"},
]


def test_cells() -> None:
    assert table(["name"], []) == ["NAME"]
    assert table(["setBy", "lastBatchMs", "topic"], [])[0] == "SET BY  LAST BATCH MS  TOPIC"
    assert table(["a", "b"], [{"a": (), "b": ("x", "y")}]) == ["A  B", "-  x, y"]


@pytest.mark.parametrize(
    ("width", "head", "hidden"),
    [
        (None, "NAME               EMPTY  COUNT  STATE", []),
        (46, "NAME               EMPTY  COUNT  STATE", []),
        (45, "NAME              EMPTY  COUNT  STATE", []),
        (36, "NAME            COUNT  STATE", ["empty"]),
        (30, "NAME      COUNT  STATE", ["empty"]),
        (28, "NAME               COUNT", ["empty", "state"]),
        (14, "NAME", ["empty", "count", "state"]),
        (1, "NAME", ["empty", "count", "state"]),
    ],
)
def test_a_table_is_cut_then_loses_columns(width: int | None, head: str, hidden: list[str]) -> None:
    lines, gone = fitted(COLUMNS, ROWS, {}, {"name": 8}, width)
    assert (lines[0], gone) == (head, hidden)
    if width is not None and width > 7:
        assert max(map(len, lines)) <= width


def test_the_least_important_columns_go_first() -> None:
    assert fitted(COLUMNS, ROWS, {}, {}, 40, ("count", "state")).hidden == ["count"]
    assert fitted(COLUMNS, ROWS, {}, {}, 25, ("count", "state")).hidden == ["count", "state"]
    assert fitted(COLUMNS, ROWS, {}, {}, 40, ("count", "state", "empty")).hidden == ["empty"]
    assert fitted(COLUMNS, [{"name": "a", "count": 1, "state": "s" * 90}], {}, {}, 20).hidden == ["empty", "state"]
    assert fitted(COLUMNS, ROWS, {}, {}, 20, ("name",)).hidden == ["empty", "count", "state"]


@settings(max_examples=50, deadline=None)
@given(
    rows=st.lists(
        st.fixed_dictionaries({name: st.text("aé /\\\x1b\n", max_size=30) | st.integers() for name in COLUMNS}),
        max_size=4,
    ),
    width=st.integers(1, 120),
    cut=st.dictionaries(st.sampled_from(COLUMNS), st.integers(3, 20)),
    least=st.lists(st.sampled_from(COLUMNS)),
)
def test_a_table_fits_or_is_one_column(
    rows: list[dict[str, Any]], width: int, cut: dict[str, int], least: list[str]
) -> None:
    lines, hidden = fitted(COLUMNS, rows, {}, cut, width, least)
    assert max(map(len, lines)) <= width or len(hidden) == len(COLUMNS) - 1
    assert COLUMNS[0] not in hidden


def test_both_ends_of_a_name_and_the_end_of_a_path_stay() -> None:
    assert shortened("/a/long/path", 6) == "…/path"
    assert shortened("a long text", 6) == "a lon…"
    assert shortened("acme/prod/orders-billing-DLQ", 15) == "acme/pr…ing-DLQ"
    assert shortened("retention of namespace acme/prod", 20) == "retention …acme/prod"
    assert shortened("orders", 2) == "o…"


def test_numbers_and_sizes_are_right_aligned_among_empty_cells() -> None:
    rows: list[dict[str, Any]] = [{"n": "a", "size": "1.5 GiB", "rate": None}, {"n": "b", "size": "12 B", "rate": 3}]
    assert table(["n", "size", "rate"], rows) == ["N     SIZE  RATE", "a  1.5 GiB     -", "b     12 B     3"]


def test_a_file_has_no_width() -> None:
    assert terminal_width() is None
