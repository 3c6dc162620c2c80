"""Axes of a graph: time and maximum at any width with room for them."""

import pytest
from rich.style import Style

from pulsarbox.tui.widgets import numbers
from pulsarbox.tui.widgets.graphs.graph import Graph


def drawn(width: int, peak: float | None, form: str = "count", end: str = "now", height: int = 7) -> list[str]:
    graph = Graph("backlog", "Backlog", form, "warning")
    if peak is not None:
        graph.show([0.0] * 599 + [peak], peak)
    looks = [graph.line(y, width, height, lambda name: Style.null(), end) for y in range(height)]
    return ["".join(segment.text for segment in segments) for segments in looks]


@pytest.mark.parametrize(
    ("peak", "width", "wanted"),
    [
        (772.0, 60, "╰ 10 min ago ────────────── 5 min ──────────────────── now ╯"),
        (772.0, 20, "╰ 10 min ago ─ now ╯"),
        (548_483.0, 18, "╰10 min ago ─ now╯"),
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
        assert "10 min ago" in lower and "now" in lower


def test_the_end_in_history_takes_precedence_over_the_beginning() -> None:
    for width in range(18, 60):
        lower = drawn(width, 772.0, end="11-24 04:34")[-1]
        assert "11-24 04:34" in lower and ("10 min ago" in lower) == (width > 24)


def test_a_graph_without_values_has_no_axes() -> None:
    assert drawn(40, None)[1:] == [f"│{chr(0x2800) * 38}│"] * 5 + [f"╰{'─' * 38}╯"]
