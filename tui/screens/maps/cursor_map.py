"""Cursor map of a subscription."""

from collections.abc import Callable, Mapping, Sequence
from typing import Any, ClassVar, Final

from rich.text import Text
from textual.app import ComposeResult
from textual.containers import Horizontal, VerticalScroll

from pulsarbox.tui.actions.operation import short
from pulsarbox.tui.feed import FeedError, real
from pulsarbox.tui.screens.base import TopScreen
from pulsarbox.tui.screens.maps.log_map import (
    cells_per_line,
    cursor_facts,
    drawn,
    empty_log,
    grid_of,
    joined,
    ledgers_of,
    legend_of,
    ranges_of,
    room_of,
    scale_of,
)
from pulsarbox.tui.screens.maps.subscription_maps import bar_lines, map_target
from pulsarbox.tui.screens.trouble import ScreenFacts, check_recorded
from pulsarbox.tui.widgets import command_lines
from pulsarbox.tui.widgets.columns import subscription_title
from pulsarbox.tui.widgets.panel import EDGES, FRAME, TextPanel, in_a_row, lines_of
from pulsarbox.tui.widgets.table import Row

_BUCKETS_MAX: Final = 2000
"""Maximum number of buckets of a response."""
_MARK_DELETE: Final = "acknowledged up to mark-delete"
_RANGE: Final = "ledger:first-last"
_LISTED: Final = 3
"""Lines of the lists below the map, at least."""
_POSITION: Final = 10
"""Characters of a position before the last one is known."""
_PARTS: Final = 3
"""Long lists get one of so many parts of the lines of map and lists."""
_OTHERS: Final = 3 * FRAME + 3
"""Lines beside those of the map and the lists until they are known: borders, cursor, and legend."""


class CursorMapScreen(TopScreen):
    """Map of the whole topic, first to last entry: acknowledged, in flight, delayed and waiting parts."""

    DEFAULT_CSS = """
    CursorMapScreen #below { height: 1fr; min-height: 5; }
    CursorMapScreen #below TextPanel { width: 1fr; height: 100%; }
    """
    place: ClassVar[str] = "subscriptions"
    kind: ClassVar[str] = "subscription"
    hinted: ClassVar[Sequence[str]] = ("menu", "messages", "copy", "pause", "back", "help", "quit")

    def __init__(self, row: Row) -> None:
        super().__init__()
        self.row = row
        self._position = _POSITION
        """Characters of the last position of the log."""
        self._map_lines = 0
        """Lines of the map, 0 if unknown."""

    def body(self) -> ComposeResult:
        """Compose the panels: cursor and log, and below them the acknowledgements and the ledgers."""
        with VerticalScroll():
            yield TextPanel("Cursor", key="cursor")
            yield TextPanel("Log", key="log")
            with Horizontal(id="below"):
                yield TextPanel("Acknowledged beyond mark-delete", key="ranges")
                yield TextPanel("Ledgers", key="ledgers")

    def begin(self) -> None:
        """Start with the name of the subscription in the border."""
        super().begin()
        self._name_log()

    def _name_log(self) -> None:
        self.query_one("#log", TextPanel).retitle(f"Log: {subscription_title(self.row)}", self._log_width + EDGES)

    @property
    def _log_width(self) -> int:
        """Columns of a line of the map."""
        return max(self.size.width - EDGES, 20)

    def load(self) -> Callable[[], Any]:
        """Return a function that queries one bucket per cell."""
        check_recorded(self.top.at)
        feed = self.top.feed
        high = self.query_one("#body").size.height
        lines = self._map_lines or _map_lines(high - _OTHERS)
        buckets = min(cells_per_line(self._log_width, self._position) * lines, _BUCKETS_MAX)
        target = f"{map_target('cursor', self.row)}?buckets={buckets}"
        return lambda: feed.ask("GET", target)

    def show(self, answer: Any) -> None:
        """Draw the map."""
        if not isinstance(answer, Mapping):
            raise FeedError("the response is not a map", 502)
        self._position = len(str(answer.get("lastConfirmed") or "")) or _POSITION
        self._draw(answer)

    def facts_of_trouble(self) -> ScreenFacts:
        """Return the state of this screen for the texts of an error."""
        return super().facts_of_trouble()._replace(title="The cursor map")

    def unanswered(self, trouble: FeedError) -> None:
        """Remove what is true only now from a screen of another time."""
        if self.top.at is not None and not trouble.is_gone:
            self.latest = None
            for panel in self.query(TextPanel):
                panel.put(Text())

    def on_resize(self) -> None:
        """Draw the map for the new size, once the layout has it."""
        self.call_after_refresh(self._redraw)

    def _redraw(self) -> None:
        if isinstance(self.latest, Mapping):
            self._name_log()
            self._draw(self.latest)

    def _draw(self, told: Mapping[str, Any]) -> None:
        colors, width, high = self.app.theme_variables, self.size.width, self.query_one("#body").size.height
        buckets = told.get("buckets") or ()
        across = room_of(buckets, self._log_width)
        cursor = in_a_row(cursor_facts(told), width - EDGES, colors)
        legend = legend_of(buckets, self._log_width, colors)
        room = high - 3 * FRAME - lines_of(cursor) - lines_of(legend)
        left, right = width // 2 - EDGES, width - width // 2 - EDGES

        def lists(lines: int) -> tuple[Text, Text]:
            return ranges_of(told, left, lines, colors), ledgers_of(told, right, lines, colors)

        self._map_lines = _map_lines(room, max(map(lines_of, lists(_lists_most(room)))))
        buckets = joined(buckets, across * self._map_lines)
        grid = grid_of(len(buckets), across, self._map_lines, bar_lines(high))
        log = (
            drawn(buckets, grid, colors)
            if buckets
            else empty_log(self._advice(), self._log_width, self._map_lines, colors)
        )
        ranges, ledgers = lists(max(room - lines_of(log), _LISTED))
        log.append("\n" if legend else "").append_text(legend)
        self.query_one("#cursor", TextPanel).put(cursor, _MARK_DELETE)
        self.query_one("#log", TextPanel).put(log, scale_of(buckets, grid))
        self.query_one("#ranges", TextPanel).put(ranges, _RANGE if told.get("ranges") else "", left + EDGES)
        self.query_one("#ledgers", TextPanel).put(ledgers)

    def rows_chosen(self) -> Sequence[Row]:
        """Return the subscription."""
        return [self.row]

    def do_messages(self) -> None:
        """Browse the messages of the subscription."""
        self.top.open("messages.browser:Browser", real(self.row, "topic"), real(self.row, "subscription"))

    def command_line(self) -> str:
        """Return the command that shows the holes."""
        return self.line("sub", "holes", short(self.row), real(self.row, "subscription"))

    def advised_command(self) -> str:
        """Return the command that publishes to an empty log."""
        is_empty = isinstance(self.latest, Mapping) and not self.latest.get("buckets")
        return command_lines.parted(self._advice())[1] if is_empty else ""

    def _advice(self) -> str:
        return f"The log is empty. Publish a message: {self.line('produce', short(self.row), 'Hello, world')}"


def _lists_most(room: int) -> int:
    """Return the lines of the longer list, at most, in a room for the map and the lists."""
    return max(room // _PARTS, _LISTED)


def _map_lines(room: int, listed: int | None = None) -> int:
    """Return the lines of the map. The longer list has ``listed`` lines, None if unknown."""
    return max(room - max(_lists_most(room) if listed is None else listed, _LISTED), 1)
