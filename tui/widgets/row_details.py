"""Panels beside a table, on wide terminals: all values of the row of the cursor, its trend, and the actions for it."""

from collections.abc import Iterable, Iterator, Mapping, Sequence
from itertools import pairwise
from typing import Any, Final, NamedTuple

from rich.cells import cell_len
from rich.segment import Segment
from textual.app import ComposeResult
from textual.containers import Vertical
from textual.strip import Strip
from textual.widget import Widget

from pulsarbox.tui.views import TableView
from pulsarbox.tui.widgets.columns import BAR, BARS, KINDS, UNKNOWN, UNREAD, Column, is_unread
from pulsarbox.tui.widgets.graphs.graph import Graph, Graphs
from pulsarbox.tui.widgets.panel import FRAME
from pulsarbox.tui.widgets.styles import ColorNames, Looks
from pulsarbox.tui.widgets.table import Row, Table
from pulsarbox.tui.widgets.wrapping import breaks

WIDTH: Final = 52
"""Columns of the panels."""
_INSIDE: Final = WIDTH - 4
_WHOLE: Final = 10_000
"""Width for which no value is shortened."""
_GAP: Final = 2
_KEYS: Final = 4
"""Width of the keys of actions."""
_TREND_SECONDS: Final = 3.0
"""Seconds between two values of a trend."""
_TREND_LINES: Final = 9
"""Lines of the graph of a trend, at least: it gets those that the other panels do not need."""
_ALONE: Final = frozenset({"text", "topic", "topics", "line", "message"})
"""Kinds of texts, which follow their names in lines of their own if they have no room beside them."""
_NO_ROW: Final = "No row is selected."

Part = tuple[str, str]
"""Text and look (a key of ``DetailPanel.looks``)."""
DetailLine = tuple[Part, ...]


class Note(NamedTuple):
    """A sentence about a row, with its name."""

    name: str
    text: str
    look: str = "plain"


class RowTrend(NamedTuple):
    """Name and format of the values of a trend, as for ``Graph``."""

    name: str
    form: str
    color: str
    unit: str = ""
    now: str = ""
    """Key of the current value."""


TRENDS: Final[Mapping[str, RowTrend]] = {
    "topics": RowTrend("Published", "rate", "primary", "/s", "publishRate"),
    "subscriptions": RowTrend("Backlog", "count", "warning", "", "backlog"),
}
"""Trends by the view that has them."""


def details(
    view: TableView, row: Row, unknown: Mapping[str, str], notes: Sequence[Note] = (), width: int = _INSIDE
) -> list[DetailLine]:
    """Return the lines of a row: its whole names, all other values that it has, and notes.

    ``unknown`` has the columns without known values, with the reason. A note replaces the value of its name.
    """
    told = row if isinstance(row, dict) else dict(row)
    headed = [
        column for column in view.columns if column.key in (view.headed or view.identity) and told.get(column.key)
    ]
    lines: list[DetailLine] = [
        ((part, "name"),) for column in headed for part in _wrapped(_cell(column, told)[0], width)
    ]
    if lines:
        lines.append(())
    left_out = {*(column.key for column in headed), *(note.name for note in notes)}
    facts = [fact for column in view.columns if column.key not in left_out for fact in _facts(column, told, unknown)]
    names = max((len(fact.name) for fact in facts), default=0)
    for fact in facts:
        lines += fact.lines(names, width)
    for note in notes:
        lines += [(), ((note.name, "label"),)]
        lines += (((part, note.look),) for part in _wrapped(note.text, width))
    return lines


class _Fact(NamedTuple):
    """A value with its name."""

    name: str
    text: str
    look: str
    is_text: bool

    def lines(self, names: int, width: int) -> Iterator[DetailLine]:
        """Yield the name, as wide as all ``names``, with the value behind it, or below it if there is no room."""
        beside = names + _GAP
        if cell_len(self.text) <= width - beside or not self.is_text:
            yield (self.name.ljust(beside), "label"), (self.text, self.look)
            return
        yield ((self.name, "label"),)
        for part in _wrapped(self.text, width - _GAP):
            yield (" " * _GAP, "plain"), (part, self.look)


def _facts(column: Column, told: dict[str, Any], unknown: Mapping[str, str]) -> Iterator[_Fact]:
    """Yield the value of a column, if the row has it, or why it is unknown. Trends have graphs of their own."""
    if column.kind == "trend":
        return
    name, value, reason = column.title.lower(), told.get(column.key), unknown.get(column.key, "")
    if not reason and column.kind == "age" and is_unread(value, told):
        reason = UNREAD
    if reason and value is None:
        yield _Fact(name, f"{UNKNOWN} {reason}", "dim", is_text=True)
    elif column.key in told:
        text, look = _cell(column, told)
        yield _Fact(name, text.strip(), look, is_text=column.kind in _ALONE)


def _cell(column: Column, told: dict[str, Any]) -> Part:
    """Return a value as the table shows it: bars and texts whole."""
    wide = BAR if column.kind in BARS else _WHOLE
    text, look = KINDS[column.kind](told.get(column.key), told, wide)
    return text, look or "plain"


def _wrapped(text: str, width: int) -> Iterator[str]:
    for line in text.splitlines():
        ends = [0, *breaks(line, width, width), len(line)]
        yield from (line[start:end].rstrip() for start, end in pairwise(ends))


class DetailPanel(Looks, Widget):
    """A panel of lines with looks."""

    DEFAULT_CSS = """
    DetailPanel { height: auto; border: round $edge; padding: 0 1; border-title-color: $text;
                  border-title-style: bold; }
    """
    looks: Mapping[str, ColorNames] = {
        **Table.looks,
        "name": ColorNames("text", bold=True),
        "label": ColorNames("text-muted"),
        "key": ColorNames("accent", bold=True),
    }

    def __init__(self, title: str, *, key: str) -> None:
        super().__init__(id=key)
        self.border_title = title
        self._lines: list[DetailLine] = []

    @property
    def text(self) -> str:
        """The whole text."""
        return "\n".join("".join(text for text, _ in line) for line in self._lines)

    @property
    def needed(self) -> int:
        """Lines of the whole panel, 0 without a text."""
        return len(self._lines) + FRAME if self._lines else 0

    def show(self, lines: list[DetailLine]) -> None:
        """Show these lines. The layout changes with their number only."""
        if lines != self._lines:
            is_higher = len(lines) != len(self._lines)
            self._lines = lines
            self.refresh(layout=is_higher)

    def get_content_height(self, container: Any, viewport: Any, width: int) -> int:
        """See textual.widget.Widget."""
        return max(len(self._lines), 1)

    def render_line(self, y: int) -> Strip:
        """See textual.widget.Widget."""
        parts = self._lines[y] if y < len(self._lines) else ()
        segments = [Segment(text, self.look(look)) for text, look in parts]
        return Strip(segments).adjust_cell_length(self.size.width, self.look("plain"))


class RowDetails(Vertical):
    """The panels: values, trend if the view has one, and actions."""

    DEFAULT_CSS = f"""
    RowDetails {{ width: {WIDTH}; height: 1fr; overflow: hidden hidden; }}
    RowDetails #graphs {{ height: {_TREND_LINES}; }}
    RowDetails #deeds {{ height: 1fr; min-height: 3; }}
    RowDetails.-idle #deeds {{ display: none; }}
    RowDetails.-idle #values {{ height: 1fr; }}
    """

    def __init__(self, view: TableView, noun: str) -> None:
        """``noun`` is the noun for a row, the title of its values."""
        super().__init__(id="details")
        self._view = view
        self._noun = noun
        self._trend = TRENDS.get(view.name)

    def compose(self) -> ComposeResult:
        """See textual.widget.Widget."""
        yield DetailPanel(self._noun.capitalize(), key="values")
        if self._trend is not None:
            yield Graphs(
                Graph("trend", self._trend.name, self._trend.form, self._trend.color, self._trend.unit), across=1
            )
        yield DetailPanel("Actions", key="deeds")

    def show(
        self,
        row: Row | None,
        unknown: Mapping[str, str],
        notes: Sequence[Note],
        deeds: Iterable[tuple[str, str]],
    ) -> None:
        """Show a row, with notes, and the keys and titles of the actions for it."""
        values: list[DetailLine] = [((_NO_ROW, "dim"),)] if row is None else details(self._view, row, unknown, notes)
        self.query_one("#values", DetailPanel).show(values)
        if self._trend is not None:
            now = None if row is None else row.get(self._trend.now)
            past = () if row is None else row.get("trend") or ()
            self.query_one(Graphs).show("trend", past, now, _TREND_SECONDS)
        listed = list(_listed(deeds))
        self.set_class(not listed, "-idle")
        self.query_one("#deeds", DetailPanel).show(listed)
        self._fit()

    def on_resize(self) -> None:
        """Fit the graph into the new height."""
        self._fit()

    def _fit(self) -> None:
        """Give the graph the lines that the other panels do not need. Equal heights cause no layout."""
        others = sum(panel.needed for panel in self.query(DetailPanel))
        self.query("#graphs").set_styles(height=max(self.size.height - others, _TREND_LINES))


def _listed(deeds: Iterable[tuple[str, str]]) -> Iterator[DetailLine]:
    """Yield a line per action. Titles are wrapped behind their keys."""
    for key, title in deeds:
        room = _INSIDE - _KEYS
        for at, part in enumerate(_wrapped(title, room)):
            yield ((key if at == 0 else "").ljust(_KEYS), "key"), (part, "plain")
