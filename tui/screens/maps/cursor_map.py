"""Cursor map of a subscription."""

from collections.abc import Callable, Mapping, Sequence
from typing import Any, ClassVar, Final

from rich.text import Text
from textual.app import ComposeResult
from textual.containers import Horizontal, Vertical, VerticalScroll

from pulsarbox.tui.actions.operation import short
from pulsarbox.tui.feed import FeedError, real
from pulsarbox.tui.screens.base import TopScreen
from pulsarbox.tui.screens.maps.log_map import cells_per_line, cursor_facts, drawn, ledgers_of, ranges_of, scale_of
from pulsarbox.tui.screens.maps.subscription_maps import bar_lines, check_recorded, map_target, map_title
from pulsarbox.tui.screens.trouble import ScreenFacts
from pulsarbox.tui.widgets.panel import EDGES, FRAME, TextPanel, in_a_row, in_columns, lines_of
from pulsarbox.tui.widgets.table import Row

_BUCKETS_MAX: Final = 2000
"""Maximum number of buckets of a response."""
_WIDE: Final = 160
"""Columns from which the log has room beside the cursor."""
_CURSOR: Final = 40
"""Columns of the panel of the cursor beside the log."""
_MARK_DELETE: Final = "acknowledged up to mark-delete"
_LISTED: Final = 3
"""Lines of the lists below the map, at least."""


class CursorMapScreen(TopScreen):
    """Map of the whole topic, first to last entry: acknowledged, in flight, delayed and waiting parts."""

    DEFAULT_CSS = """
    CursorMapScreen #above, CursorMapScreen #log, CursorMapScreen #cursor { height: auto; }
    CursorMapScreen.-wide #above { layout: horizontal; }
    CursorMapScreen.-wide #cursor { width: 40; height: 100%; }
    CursorMapScreen.-wide #log { width: 1fr; }
    CursorMapScreen #below { height: 1fr; min-height: 5; }
    CursorMapScreen #below TextPanel { width: 1fr; height: 100%; }
    """
    place: ClassVar[str] = "subscriptions"
    kind: ClassVar[str] = "subscription"
    hinted: ClassVar[Sequence[str]] = ("menu", "messages", "copy", "pause", "back", "help", "quit")

    def __init__(self, row: Row) -> None:
        super().__init__()
        self.row = row
        self._last = ""
        """The last position of the log, as far as it is known."""

    def body(self) -> ComposeResult:
        """Compose the panels: cursor and log, and below them the acknowledgements and the ledgers."""
        with VerticalScroll():
            with Vertical(id="above"):
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
        self.query_one("#log", TextPanel).retitle(f"Log: {map_title(self.row)}", self._log_width + EDGES)

    @property
    def _log_width(self) -> int:
        """Columns of a line of the map."""
        return max(self.size.width - (_CURSOR if self.size.width >= _WIDE else 0) - EDGES, 20)

    @property
    def _map_lines(self) -> int:
        """Lines of the map, more on high screens."""
        return min(max(self.query_one("#body").size.height // 3, 1), max(_BUCKETS_MAX // self._log_width, 1))

    def load(self) -> Callable[[], Any]:
        """Return a function that queries one bucket per cell."""
        check_recorded(self.top.at)
        feed = self.top.feed
        buckets = min(cells_per_line(self._log_width, self._last) * self._map_lines, _BUCKETS_MAX)
        target = f"{map_target('cursor', self.row)}?buckets={buckets}"
        return lambda: feed.ask("GET", target)

    def show(self, answer: Any) -> None:
        """Draw the map."""
        if not isinstance(answer, Mapping):
            raise FeedError("the response is not a map", 502)
        self._last = str(answer.get("lastConfirmed") or "")
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
        is_wide = width >= _WIDE
        self.set_class(is_wide, "-wide")
        facts = cursor_facts(told)
        cursor = in_columns(facts, _CURSOR - EDGES, colors) if is_wide else in_a_row(facts, width - EDGES, colors)
        log = drawn(told.get("buckets") or (), self._log_width, colors, bar_lines(high))
        self.query_one("#cursor", TextPanel).put(cursor, _MARK_DELETE)
        self.query_one("#log", TextPanel).put(log, scale_of(told))
        above = max(lines_of(cursor), lines_of(log)) if is_wide else lines_of(cursor) + lines_of(log) + FRAME
        lines = max(high - above - 2 * FRAME, _LISTED)
        left, right = width // 2 - EDGES, width - width // 2 - EDGES
        self.query_one("#ranges", TextPanel).put(ranges_of(told, left, lines, colors))
        self.query_one("#ledgers", TextPanel).put(ledgers_of(told, right, lines, colors))

    def rows_chosen(self) -> Sequence[Row]:
        """Return the subscription."""
        return [self.row]

    def do_messages(self) -> None:
        """Browse the messages of the subscription."""
        self.top.open("messages.browser:Browser", real(self.row, "topic"), real(self.row, "subscription"))

    def command_line(self) -> str:
        """Return the command that shows the holes."""
        return self.line("sub", "holes", short(self.row), real(self.row, "subscription"))
