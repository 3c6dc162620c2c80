"""Axes of a graph: time and maximum at any width with room for them."""

from unittest import mock

import pytest
from rich.style import Style
from textual.geometry import Size

from pulsarbox.tui.widgets import numbers
from pulsarbox.tui.widgets.graphs.graph import Graph, Graphs


def drawn(width: int, peak: float | None, form: str = "count", end: str = "now", height: int = 7) -> list[str]:
    graph = Graph("backlog", "Backlog", form, "warning")
    if peak is not None:
        graph.show([0.0] * 599 + [peak], peak)
    looks = [graph.line(y, width, height, lambda name: Style.null(), end) for y in range(height)]
    return ["".join(segment.text for segment in segments) for segments in looks]


@pytest.mark.parametrize(
    ("peak", "width", "wanted"),
    [
        (772.0, 60, "╰ -10 min ──────────────────── -5 min ──────────────── now ╯"),
        (772.0, 36, "╰ -10 min ──────── -5 min ──── now ╯"),
        (772.0, 20, "╰ -10 min ──── now ╯"),
        (548_483.0, 18, "╰ -10 min ── now ╯"),
        (772.0, 17, "╰10 min  max 772╯"),
        (548_483.0, 17, "╰─── max 548,483╯"),
        (548_483.0, 12, "╰──────────╯"),
    ],
)
def test_the_lower_edge_has_the_time_or_else_the_maximum(peak: float, width: int, wanted: str) -> None:
    assert drawn(width, peak)[-1] == wanted


@pytest.mark.parametrize("form", ["count", "rate", "milliseconds"])
@pytest.mark.parametrize("peak", [0.0, 7.0, 999.0, 13_042.0, 548_483.0, 1.24e9])
def test_graphs_have_both_axes_from_18_columns(peak: float, form: str) -> None:
    for width in range(18, 120):
        upper, *rows, lower = drawn(width, peak, form)
        assert {len(line) for line in (upper, *rows, lower)} == {width}
        assert rows[0][1:9].split(" \u2800")[0].strip() == getattr(numbers, form)(peak)[:7].strip()
        assert rows[-1][1:].lstrip().startswith("0 ")
        assert " -10 min " in lower and "now" in lower


def test_the_end_in_history_takes_precedence_over_the_beginning() -> None:
    for width in range(18, 60):
        lower = drawn(width, 772.0, end="11-24 04:34")[-1]
        assert " 11-24 04:34 " in lower
        assert (" -10 min " in lower) == (width >= 24) and (" -10m " in lower) == (21 <= width < 24)


def test_the_half_is_in_the_middle_of_an_even_number_of_rows_too() -> None:
    for height, row in ((9, 4), (10, 5)):
        lines = drawn(60, 1000.0, height=height)
        assert [at for at, line in enumerate(lines) if line[1:9] == "    500 "] == [row]


def test_a_graph_without_values_says_so_and_has_no_axes() -> None:
    blank = f"│{' ' * 38}│"
    assert drawn(40, None)[1:] == [blank, blank, f"│{'no data':^38}│", blank, blank, f"╰{'─' * 38}╯"]


def test_graphs_beside_each_other_all_have_their_units_or_none_whatever_the_values() -> None:
    graphs = Graphs(
        Graph("in", "Published", "rate", "primary", "/s"), Graph("out", "Out", "rate", "success", "/s"), across=2
    )
    for width, has_units in ((40, False), (60, True)):
        for value in (1.0, 12_345.0):
            for key in ("in", "out"):
                graphs.show(key, [value], value)
            with (
                mock.patch.object(Graphs, "size", Size(width, 5)),
                mock.patch.object(Graphs, "look", return_value=Style.null()),
            ):
                line = graphs.render_line(0).text
            assert line.count("/s") == (2 if has_units else 0)


def test_rows_of_graphs_fill_the_height() -> None:
    graphs = Graphs(*(Graph(str(at), "Published", "rate", "primary") for at in range(3)), across=1)
    with mock.patch.object(Graphs, "size", Size(40, 16)):
        places = [graphs._place(at) for at in range(3)]
    assert [place.y for place in places] == [0, *(place.bottom for place in places[:-1])]
    assert places[-1].bottom == 16
