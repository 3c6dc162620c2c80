"""Area graphs of braille dots: two values a cell beside each other, four steps above each other, no widget library.

A braille cell is U+2800 plus a bit for each dot; the dots of a column stand for one value, filled from below.
"""

from collections.abc import Sequence
from typing import Final

from rich.segment import Segment
from rich.style import Style
from textual.strip import Strip
from textual.widget import Widget

from pulsarbox.tui import figures
from pulsarbox.tui.looks import Looks

_LEFT: Final = (0x00, 0x40, 0x44, 0x46, 0x47)
_RIGHT: Final = (0x00, 0x80, 0xA0, 0xB0, 0xB8)
_DOTS: Final = 4


def resampled(values: Sequence[float | None], points: int) -> list[float]:
    """As many points as there is room for: the newest on the right, the highest of those that share one."""
    known = [value or 0.0 for value in values]
    if len(known) <= points:
        return known
    step = len(known) / points
    return [max(known[int(at * step) : max(int((at + 1) * step), int(at * step) + 1)]) for at in range(points)]


def area(values: Sequence[float | None], width: int, height: int, top: float | None = None) -> list[str]:
    """Lines of braille, the highest first. ``top`` is the value at the upper edge, the highest of all by default."""
    points = resampled(values, width * 2)
    highest = top if top is not None else max(points, default=0.0)
    steps = height * _DOTS
    scale = steps / highest if highest > 0 else 0.0
    # What is there at all has a dot.
    levels = [min(steps, max(round(value * scale), 1 if value > 0 else 0)) for value in points]
    levels = [0] * (width * 2 - len(levels)) + levels
    lines = []
    for row in range(height - 1, -1, -1):
        base = row * _DOTS
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


class Graph(Looks, Widget):
    """One number over time: its name and its value now above, its highest on the right, the area below."""

    DEFAULT_CSS = """
    Graph { height: 1fr; width: 1fr; min-height: 3; padding: 0 2 0 0; }
    Graph .graph--name { color: $text-muted; }
    Graph .graph--now { color: $text; text-style: bold; }
    Graph .graph--area { color: $primary; }
    Graph .graph--peak { color: $text-muted; }
    Graph.-deliver .graph--area { color: $success; }
    Graph.-backlog .graph--area { color: $warning; }
    Graph.-latency .graph--area { color: $secondary; }
    """

    def __init__(self, name: str, form: str, classes: str = "", key: str | None = None) -> None:
        """``form`` is what a value is written with, a function of ``figures``."""
        super().__init__(classes=classes, id=key)
        self.title = name
        self._form = getattr(figures, form)
        self._values: Sequence[float | None] = ()
        self._now: float | None = None
        self._lines: tuple[tuple[int, int], list[str]] | None = None

    def show(self, values: Sequence[float | None], now: float | None) -> None:
        """Draw these values, the newest last."""
        if (values, now) != (self._values, self._now):
            self._values, self._now, self._lines = values, now, None
            self.refresh()

    def render_line(self, y: int) -> Strip:
        """See textual.widget.Widget."""
        width, height = self.size
        if y == 0:
            return self._heading(width)
        if self._lines is None or self._lines[0] != (width, height):
            self._lines = (width, height), area(self._values, width, max(height - 1, 1))
        lines = self._lines[1]
        style = self.get_component_rich_style("graph--area")
        return Strip([Segment(lines[y - 1] if y - 1 < len(lines) else " " * width, style)], width)

    def _heading(self, width: int) -> Strip:
        known = [value for value in (*self._values, self._now) if value is not None]
        peak = f"max {self._form(max(known))}" if known else ""
        now = self._form(self._now)
        room = width - len(self.title) - len(now) - 1
        peak = peak if len(peak) < room else ""
        return Strip(
            [
                Segment(f"{self.title} ", self._style("graph--name")),
                Segment(now, self._style("graph--now")),
                Segment(peak.rjust(max(room, 0)), self._style("graph--peak")),
            ]
        ).adjust_cell_length(width)

    def _style(self, name: str) -> Style:
        return self.get_component_rich_style(name)
