"""Area graphs of braille dots, with two values per cell and four steps per line.

A braille cell is U+2800 plus a bit per dot; each dot column is one value, filled from below.
"""

from collections.abc import Callable, Sequence
from typing import Final

from rich.segment import Segment
from rich.style import Style
from textual.geometry import Region
from textual.strip import Strip
from textual.widget import Widget

from pulsarbox.tui.widgets import numbers
from pulsarbox.tui.widgets.styles import ColorNames, Looks

_LEFT: Final = (0x00, 0x40, 0x44, 0x46, 0x47)
_RIGHT: Final = (0x00, 0x80, 0xA0, 0xB0, 0xB8)
_DOTS: Final = 4


def resampled(values: Sequence[float | None], points: int) -> list[float]:
    """Resample values to at most this many points, keeping the maximum of each interval."""
    known = [value or 0.0 for value in values]
    if len(known) <= points:
        return known
    step = len(known) / points
    return [max(known[int(at * step) : max(int((at + 1) * step), int(at * step) + 1)]) for at in range(points)]


def area(values: Sequence[float | None], width: int, height: int, top: float | None = None) -> list[str]:
    """Return lines of braille, top first. ``top`` is the value at the upper edge, by default the maximum."""
    points = resampled(values, width * 2)
    highest = top if top is not None else max(points, default=0.0)
    steps = height * _DOTS
    scale = steps / highest if highest > 0 else 0.0
    # Every positive value has at least one dot.
    levels = [min(steps, max(round(value * scale), 1 if value > 0 else 0)) for value in points]
    levels = [0] * (width * 2 - len(levels)) + levels
    lines, highest_level = [], max(levels, default=0)
    for row in range(height - 1, -1, -1):
        base = row * _DOTS
        if base >= highest_level:
            lines.append("\u2800" * width)
            continue
        lines.append(
            "".join(
                chr(
                    0x2800
                    + _LEFT[min(max(levels[at] - base, 0), _DOTS)]
                    + _RIGHT[min(max(levels[at + 1] - base, 0), _DOTS)]
                )
                for at in range(0, width * 2, 2)
            )
        )
    return lines


class Graph:
    """One value over time: name, current value and maximum in the heading, the area below."""

    def __init__(self, key: str, name: str, form: str, color: str) -> None:
        """``form`` names the format function of ``numbers``; ``color`` is a colour of the theme."""
        self.key = key
        self.color = color
        self._name = name
        self._form = getattr(numbers, form)
        self._values: list[float | None] = []
        self._now: float | None = None
        self._lines: tuple[tuple[int, int], list[str]] | None = None

    def show(self, values: Sequence[float | None], now: float | None) -> bool:
        """Set the values, newest last. Return whether they have changed."""
        values = list(values)  # a copy, because the caller may change its list
        if (values, now) == (self._values, self._now):
            return False
        self._values, self._now, self._lines = values, now, None
        return True

    def line(self, y: int, width: int, height: int, look: Callable[[str], Style]) -> list[Segment]:
        """Return line ``y`` from the top, exactly ``width`` cells wide."""
        if y == 0:
            return self._heading(width, look)
        if self._lines is None or self._lines[0] != (width, height):
            self._lines = (width, height), area(self._values, width, max(height - 1, 1))
        return [Segment(self._lines[1][y - 1], look(self.color))]

    def _heading(self, width: int, look: Callable[[str], Style]) -> list[Segment]:
        known = [value for value in (*self._values, self._now) if value is not None]
        peak = f"max {self._form(max(known))}" if known else ""
        now = self._form(self._now)
        room = width - len(self._name) - len(now) - 1
        peak = peak if len(peak) < room else ""
        found = [
            Segment(f"{self._name} ", look("name")),
            Segment(now, look("now")),
            Segment(peak.rjust(max(room, 0)), look("name")),
        ]
        return Segment.adjust_line_length(found, width, look("name"))


class Graphs(Looks, Widget):
    """A grid of graphs with ``across`` columns; one widget, because one per graph would multiply the start time."""

    DEFAULT_CSS = """
    Graphs { height: 7; padding: 0 1; }
    """

    def __init__(self, *graphs: Graph, across: int) -> None:
        super().__init__(id="graphs")
        colors = {graph.color: ColorNames(graph.color) for graph in graphs}
        self.looks = {"name": ColorNames("text-muted"), "now": ColorNames("text", bold=True), **colors}
        self.across = across
        self._graphs = graphs

    def show(self, key: str, values: Sequence[float | None], now: float | None) -> None:
        """Set the values of one graph."""
        for at, graph in enumerate(self._graphs):
            if graph.key == key and graph.show(values, now):
                self.refresh(self._place(at))

    def _place(self, at: int) -> Region:
        width, height = self.size
        rows = -(-len(self._graphs) // self.across)
        row, column = divmod(at, self.across)
        room = width - (self.across - 1)  # one cell between two graphs, and two more after each
        left, right = room * column // self.across, room * (column + 1) // self.across
        return Region(left + column, row * (height // rows), max(right - left - 2, 0), height // rows)

    def render_line(self, y: int) -> Strip:
        """See textual.widget.Widget."""
        segments: list[Segment] = []
        ground, x = self.look("name"), 0
        for at, graph in enumerate(self._graphs):
            place = self._place(at)
            if place.y <= y < place.bottom:
                segments.append(Segment(" " * (place.x - x), ground))
                segments += graph.line(y - place.y, place.width, place.height, self.look)
                x = place.right
        return Strip(segments).adjust_cell_length(self.size.width, ground)
