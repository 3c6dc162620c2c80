"""Edges of a graph: in narrow ones, the maximum stays longer than the time span."""

import pytest
from rich.style import Style

from pulsarbox.tui.widgets.graph import Graph


def edge(peak: float, width: int) -> str:
    graph = Graph("backlog", "Backlog", "count", "warning")
    graph.show([0.0] * 599 + [peak], peak)
    return "".join(segment.text for segment in graph.line(5, width, 6, lambda name: Style.null()))


@pytest.mark.parametrize(
    ("peak", "width", "wanted"),
    [
        (772.0, 20, "╰10 min ─── max 772╯"),
        (548_483.0, 20, "╰────── max 548,483╯"),
        (548_483.0, 19, "╰───── max 548,483╯"),
        (548_483.0, 12, "╰──────────╯"),
    ],
)
def test_the_maximum_is_shown_as_long_as_it_fits(peak: float, width: int, wanted: str) -> None:
    assert edge(peak, width) == wanted
