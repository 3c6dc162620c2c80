"""Area graphs of braille dots in bordered panels, with two values per cell and four steps per line.

A braille cell is U+2800 plus a bit per dot; each dot column is one value, filled from below. The panel has the name and
the current value in its upper edge and the time axis in its lower edge; the value axis is inside, if there is room.
"""

from collections.abc import Callable, Iterator, Sequence
from typing import Final

from rich.segment import Segment
from rich.style import Style
from textual.geometry import Region
from textual.strip import Strip
from textual.widget import Widget

from pulsarbox.tui.widgets import numbers
from pulsarbox.tui.widgets.styles import ColorNames, Looks

_DOTS: Final = 4
WINDOWS: Final = (15, 30, 60, 120, 300, 600)
"""Time spans of a graph in seconds: the shortest that holds all values."""
_HALVES: Final = {30: "15 s", 60: "30 s", 120: "60 s", 600: "5 min"}
"""Middles of time spans, where they are whole numbers."""
_SHADES: Final = (0.45, 0.6, 0.75, 0.9, 1.0)
"""Shares of the color over the background, from the bottom to the top."""
_AXIS: Final = 8
"""Width of the value axis, with a space: it has room for ``123,456`` and ``99.9 ms``."""
_AXIS_FROM: Final = 26
"""Width of a panel from which its value axis has the full width."""
_AXIS_LEAST: Final = 18
"""Width of a panel from which it has a value axis, as narrow as the numbers."""
_MIDDLE_FROM: Final = 36
"""Width of a panel from which its time axis has the middle."""
_NO_VALUES: Final = "no data"


def resampled(values: Sequence[float | None], points: int) -> list[float]:
    """Resample values to this many points: the maximum of each interval, or the same value for several points."""
    known = [value or 0.0 for value in values]
    if not known or not points:
        return [0.0] * points
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
    lines, highest_level = [], max(levels, default=0)
    for line in range(height):
        floor = (height - 1 - line) * _DOTS
        if floor >= highest_level:
            lines.append("\u2800" * width)
            continue
        cells = [min(max(level - floor, 0), _DOTS) for level in levels]
        lines.append(
            "".join(
                chr(0x2800 + numbers.DOTS_LEFT[left] + numbers.DOTS_RIGHT[right])
                for left, right in zip(cells[::2], cells[1::2], strict=True)
            )
        )
    return lines


def window_of(count: int, step: float) -> int:
    """Return the time span in seconds that shows ``count`` values, one every ``step`` seconds."""
    return next((seconds for seconds in WINDOWS if (count - 1) * step <= seconds), WINDOWS[-1])


def within(values: Sequence[float | None], step: float) -> list[float | None]:
    """Return the values of the time span, filled up with None at the beginning."""
    count = round(window_of(len(values), step) / step) + 1
    return [None] * (count - len(values)) + list(values[-count:])


class Graph:
    """One named graph. ``key`` identifies its values, ``form`` their format, ``color`` its theme variable."""

    def __init__(self, key: str, name: str, form: str, color: str, unit: str = "") -> None:
        self.key = key
        self.color = color
        self._name = name
        self._form: Callable[[float | None], str] = getattr(numbers, form)
        self._unit = unit
        self._values: list[float | None] = []
        self._now: float | None = None
        self._step = 1.0
        self._lines: tuple[tuple[int, int], list[str]] | None = None

    def show(self, values: Sequence[float | None], now: float | None, step: float = 1.0) -> bool:
        """Set the values, newest last, one every ``step`` seconds. Return whether they have changed."""
        values = list(values)  # a copy, because the caller may change its list
        if (values, now, step) == (self._values, self._now, self._step):
            return False
        self._values, self._now, self._step, self._lines = values, now, step, None
        return True

    def line(
        self,
        y: int,
        width: int,
        height: int,
        look: Callable[[str], Style],
        end: str = "now",
        *,
        has_unit: bool | None = None,
    ) -> list[Segment]:
        """Return line ``y`` from the top, exactly ``width`` cells wide. ``end`` is the time at the right.

        ``has_unit`` is whether the value has its unit, by default if there is room for it.
        """
        if y == 0:
            return self._upper(width, look, self.has_unit_room(width) if has_unit is None else has_unit)
        if y == height - 1:
            return self._lower(width, look, end)
        inside, rows = max(width - 2, 0), max(height - 2, 1)
        if self._peak is None:
            text = _NO_VALUES if y == (height - 1) // 2 and inside > len(_NO_VALUES) else ""
            found = [Segment("│", look("edge")), Segment(f"{text:^{inside}}", look("axis")), Segment("│", look("edge"))]
            return Segment.adjust_line_length(found, width, look("edge"))
        axis = self._axis(y - 1, rows, self._axis_width(width))
        room = inside - len(axis)
        if self._lines is None or self._lines[0] != (room, height):
            self._lines = (room, height), area(within(self._values, self._step), room, rows)
        found = [
            Segment("│", look("edge")),
            Segment(axis, look("axis")),
            Segment(self._lines[1][y - 1], look(shade(self.color, rows - y, rows))),
            Segment("│", look("edge")),
        ]
        return Segment.adjust_line_length(found, width, look("edge"))

    def _axis_width(self, width: int) -> int:
        """Return the width of the value axis with a space, 0 if there is no room for it."""
        if self._peak is None or width < _AXIS_LEAST:
            return 0
        return _AXIS if width >= _AXIS_FROM else min(len(self._form(self._peak)) + 1, _AXIS)

    def _axis(self, y: int, rows: int, width: int) -> str:
        """Return the value axis: the maximum at the top, half of it in the middle of high graphs, zero below.

        With an even number of rows, the half is at the upper edge of its row, as the maximum is.
        """
        told = ""
        if y == 0:
            told = self._form(self._peak)
        elif y == rows - 1:
            told = "0"
        elif rows >= 5 and y == rows // 2 and self._peak:
            told = self._form(self._peak / 2)
        if len(told) >= width and y != 0:
            told = ""  # a part of a number would be another number
        return f"{told[: width - 1]:>{width - 1}} " if width else ""

    @property
    def _peak(self) -> float | None:
        return max((value for value in self._values if value is not None), default=None)

    def has_unit_room(self, width: int) -> bool:
        """Return whether the upper edge of a panel has room for a usual value with its unit."""
        return len(self._name) + _AXIS + len(self._unit) <= width - 4

    def _upper(self, width: int, look: Callable[[str], Style], has_unit: bool) -> list[Segment]:
        """Return the upper edge with the name and the value. The last words of the name may not fit."""
        now, name, room = self._form(self._now), self._name, width - 4
        if self._now is not None and has_unit:
            now += self._unit
        while name and len(name) + 1 + len(now) > room:
            name = name.rpartition(" ")[0]
        used = len(name) + 1 + len(now)
        found = [
            Segment("╭ ", look("edge")),
            Segment(f"{name} ", look("name")),
            Segment(now, look("now")),
            Segment(f" {'─' * max(room - used, 0)}╮", look("edge")),
        ]
        return Segment.adjust_line_length(found, width, look("edge"))

    def _lower(self, width: int, look: Callable[[str], Style], end: str) -> list[Segment]:
        """Return the lower edge with the time axis; without a value axis, also with the maximum."""
        room = max(width - 2, 0)
        texts = next(texts for texts in self._time_axes(width, end) if len("".join(texts)) <= room)
        gap = room - len("".join(texts))
        axis = self._axis_width(width)  # the values begin behind it
        left = min(max((room + axis) // 2 - len(texts[0]) - len(texts[1]) // 2, 0), gap) if texts[1] else gap
        found = [
            Segment("╰", look("edge")),
            Segment(texts[0], look("axis")),
            Segment("─" * left, look("edge")),
            Segment(texts[1], look("axis")),
            Segment("─" * (gap - left), look("edge")),
            Segment(texts[2], look("axis")),
            Segment("╯", look("edge")),
        ]
        return Segment.adjust_line_length(found, width, look("edge"))

    def _time_axes(self, width: int, end: str) -> Iterator[tuple[str, str, str]]:
        """Yield the texts at the left, in the middle and at the right of the time axis, the best ones first."""
        seconds = window_of(len(self._values), self._step)
        span, middle = numbers.span(seconds), _HALVES.get(seconds, "")
        number, _, unit = span.partition(" ")
        if self._peak is None:  # nothing is drawn
            yield "", "", ""
        if width >= _MIDDLE_FROM and middle:
            yield f" -{span} ", f" -{middle} ", f" {end} "
        if width >= _AXIS_LEAST:
            yield f" -{span} ", "", f" {end} "
            yield f" -{number}{unit[0]} ", "", f" {end} "
            yield "", "", f" {end} "
        else:  # the maximum says more than the time, which is that of the other graphs
            yield f"{span} ", "", f" max {self._form(self._peak)}"
            yield "", "", f" max {self._form(self._peak)}"
        yield "", "", ""


def shade(color: str, height: int, rows: int) -> str:
    """Return the look of a line of a graph, ``height`` lines above the lowest of ``rows``."""
    return f"{color}@{min(height * len(_SHADES) // max(rows, 1), len(_SHADES) - 1) if rows > 1 else len(_SHADES) - 1}"


def shades(color: str) -> dict[str, ColorNames]:
    """Return the looks of all lines of a graph of this color."""
    return {f"{color}@{at}": ColorNames(color, share=share) for at, share in enumerate(_SHADES)}


class Graphs(Looks, Widget):
    """A grid of graphs with ``across`` columns; one widget, because one per graph would multiply the start time."""

    DEFAULT_CSS = """
    Graphs { height: 7; }
    """

    def __init__(self, *graphs: Graph, across: int) -> None:
        super().__init__(id="graphs")
        colors: dict[str, ColorNames] = {}
        for graph in graphs:
            colors |= shades(graph.color)
        self.looks = {
            "name": ColorNames("text-muted", bold=True),
            "now": ColorNames("text", bold=True),
            "axis": ColorNames("text-disabled"),
            "edge": ColorNames("edge"),
            **colors,
        }
        self.across = across
        self.end = "now"
        """Time at the right end of all graphs, for display."""
        self._graphs = graphs

    def show(self, key: str, values: Sequence[float | None], now: float | None, step: float = 1.0) -> None:
        """Set the values of one graph, one every ``step`` seconds."""
        for at, graph in enumerate(self._graphs):
            if graph.key == key and graph.show(values, now, step):
                self.refresh(self._place(at))

    def show_end(self, end: str) -> None:
        """Set the time at the right end."""
        if end != self.end:
            self.end = end
            self.refresh()

    def _place(self, at: int) -> Region:
        width, height = self.size
        rows = -(-len(self._graphs) // self.across)
        row, column = divmod(at, self.across)
        left, right = width * column // self.across, width * (column + 1) // self.across
        upper, lower = height * row // rows, height * (row + 1) // rows
        return Region(left, upper, right - left, lower - upper)

    def render_line(self, y: int) -> Strip:
        """See textual.widget.Widget."""
        segments: list[Segment] = []
        ground, x = self.look("name"), 0
        beside = [(graph, self._place(at)) for at, graph in enumerate(self._graphs)]
        beside = [(graph, place) for graph, place in beside if place.y <= y < place.bottom]
        has_units = all(graph.has_unit_room(place.width) for graph, place in beside)
        for graph, place in beside:
            segments.append(Segment(" " * (place.x - x), ground))
            segments += graph.line(y - place.y, place.width, place.height, self.look, self.end, has_unit=has_units)
            x = place.right
        return Strip(segments).adjust_cell_length(self.size.width, ground)
