"""Panel with the numbers of the box, in two columns, for wide terminals."""

from collections.abc import Callable, Iterator, Mapping, Sequence
from typing import Any, Final, NamedTuple

from rich.segment import Segment
from textual.strip import Strip
from textual.widget import Widget

from pulsarbox.tui.widgets import numbers
from pulsarbox.tui.widgets.styles import ColorNames, Looks

Fact = tuple[str, str, str]
"""Name, value, and look of the value."""
_BAR: Final = 12
MARKS: Final = {"bad": "✕", "warn": "▲"}
"""Marks of severities, as in the diagnosis."""


class CountedProblem(NamedTuple):
    """A number of the box that is a problem unless it is 0."""

    key: str
    """Its name in the response."""
    one: str
    many: str
    """Words behind the number; ``many`` is also the title in the panel, unless there is another one."""
    look: str
    """``bad`` or ``warn``, of its severity."""
    screen: str
    """Name of the screen that shows it."""
    title: str = ""

    def told(self, count: float) -> str:
        """Return the problem in words, with the mark of its severity."""
        return f"{MARKS[self.look]} {numbers.counted(count, self.one, self.many)}"


PROBLEMS: Final = (
    CountedProblem(
        *("lackingCopies", "entry lacks a copy", "entries lack a copy", "warn", "storage"),
        title="entries that lack a copy",
    ),
    CountedProblem("throttled", "rate limit in effect", "rate limits in effect", "warn", "quotas"),
    CountedProblem("unread", "connection not read", "connections not read", "warn", "clients"),
    CountedProblem("suspended", "producer suspended", "producers suspended", "warn", "clients"),
    CountedProblem("deadLetters", "dead letter", "dead letters", "warn", "deadletters"),
)
"""The problems, in order."""


def _counts(totals: Mapping[str, Any], names: Sequence[tuple[str, str]]) -> Iterator[Fact]:
    for key, name in names:
        value = totals.get(key)
        if value is not None:
            yield name, numbers.count(value), "plain" if value else "dim"


def facts(totals: Mapping[str, Any]) -> list[tuple[Fact, ...]]:
    """Return the lines of the panel, each with one or two facts. Values that the box does not know are left out."""
    pairs = [
        *_counts(totals, (("topics", "topics"), ("producers", "producers"))),
        *_counts(totals, (("subscriptions", "subscriptions"), ("consumers", "consumers"))),
        *_counts(totals, (("unacked", "unacknowledged"), ("connections", "connections"))),
    ]
    forms: tuple[tuple[str, str, Callable[[Any], str]], ...] = (
        ("size", "stored", numbers.size),
        ("memory", "memory", numbers.size),
        ("diskUsed", "disk used", numbers.size),
        ("uptime", "up", lambda value: numbers.seconds(value / 1000)),
    )
    pairs += [(name, form(totals[key]), "plain") for key, name, form in forms if totals.get(key) is not None]
    lines: list[tuple[Fact, ...]] = [tuple(pairs[at : at + 2]) for at in range(0, len(pairs), 2)]
    return [*lines, *((each,) for each in _warnings(totals))]


def _warnings(totals: Mapping[str, Any]) -> Iterator[Fact]:
    free, used = totals.get("diskFree"), totals.get("diskUsed")
    if free is not None and used is not None and free + used:
        share = used / (free + used)
        look = "bad" if share >= 0.95 else "warn" if share >= 0.8 else "good"
        yield "disk", f"{numbers.bar(share, _BAR)} {numbers.percent(share)}, {numbers.size(free)} free", look
    for each in PROBLEMS:
        if count := totals.get(each.key):
            yield each.title or each.many, f"{MARKS[each.look]} {numbers.count(count)}", each.look


class BoxFacts(Looks, Widget):
    """The panel."""

    DEFAULT_CSS = """
    BoxFacts { height: auto; min-height: 3; border: round $edge; border-title-color: $text; border-title-style: bold; }
    """
    looks: Mapping[str, ColorNames] = {
        "plain": ColorNames(bold=True),
        "name": ColorNames("text-muted"),
        "dim": ColorNames("text-disabled"),
        "good": ColorNames("text-success"),
        "warn": ColorNames("text-warning", bold=True),
        "bad": ColorNames("text-error", bold=True),
    }

    def __init__(self) -> None:
        super().__init__(id="facts")
        self.border_title = "Box"
        self.empty = numbers.LOADING
        """Text before the first response."""
        self._lines: list[tuple[Fact, ...]] = []

    def show(self, totals: Mapping[str, Any]) -> None:
        """Show these numbers."""
        found = facts(totals)
        if found != self._lines:
            is_higher = len(found) != len(self._lines)
            self._lines = found
            self.refresh(layout=is_higher)

    def get_content_height(self, container: Any, viewport: Any, width: int) -> int:
        """See textual.widget.Widget."""
        return max(len(self._lines), 1)

    def render_line(self, y: int) -> Strip:
        """See textual.widget.Widget."""
        width = self.size.width
        segments = [Segment(" ", self.look("name"))]
        line = self._lines[y] if y < len(self._lines) else ()
        if not self._lines:
            segments.append(Segment(self.empty, self.look("name")))
        for name, value, look in line:
            room = (width - 2) // len(line) - (1 if len(line) > 1 else 0)
            gap = max(room - len(name) - len(value), 1)
            segments += [
                Segment(f"{name}{' ' * gap}", self.look("name")),
                Segment(value, self.look(look)),
                Segment("  ", self.look("name")),
            ]
        return Strip(segments).adjust_cell_length(width, self.look("name"))
