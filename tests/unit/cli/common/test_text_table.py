"""Tables, and their fit to a terminal."""

from typing import Any

import pytest

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
        (45, "NAME      EMPTY  COUNT  STATE", []),
        (36, "NAME      COUNT  STATE", ["empty"]),
        (29, "NAME      COUNT", ["empty", "state"]),
        (14, "NAME", ["empty", "count", "state"]),
        (1, "NAME", ["empty", "count", "state"]),
    ],
)
def test_a_table_is_cut_then_loses_columns(width: int | None, head: str, hidden: list[str]) -> None:
    lines, gone = fitted(COLUMNS, ROWS, {}, {"name": 8}, width)
    assert (lines[0], gone) == (head, hidden)
    if width is not None and width > 1:
        assert max(map(len, lines)) <= width


def test_the_end_of_a_path_stays() -> None:
    assert shortened("/a/long/path", 6) == "…/path"
    assert shortened("a long text", 6) == "a lon…"
    assert shortened(12345678, 3) == 12345678


def test_a_file_has_no_width() -> None:
    assert terminal_width() is None
