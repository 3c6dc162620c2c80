"""Cursor map and key map of a subscription."""

from collections.abc import Callable, Mapping, Sequence
from typing import Any, ClassVar, Final

from textual.app import ComposeResult
from textual.containers import Horizontal, Vertical, VerticalScroll

from pulsarbox.cleaning import clean
from pulsarbox.client.admin import path_of, subscription_segment
from pulsarbox.tui import views
from pulsarbox.tui.actions.operation import short, topic_of
from pulsarbox.tui.feed import FeedError, RowQuery, real
from pulsarbox.tui.screens.base import TopScreen
from pulsarbox.tui.screens.key_bar import drawn, key_bar
from pulsarbox.tui.screens.log_map import cells_per_line, cursor_facts, ledgers_of, ranges_of, scale_of
from pulsarbox.tui.screens.log_map import drawn as drawn_log
from pulsarbox.tui.screens.topics import quoted as text_of
from pulsarbox.tui.screens.view import ViewScreen
from pulsarbox.tui.widgets.bars import Part
from pulsarbox.tui.widgets.columns import Column, short_topic
from pulsarbox.tui.widgets.local_rows import chosen
from pulsarbox.tui.widgets.panel import EDGES, FRAME, TextPanel, in_a_row, in_columns, lines_of
from pulsarbox.tui.widgets.table import Row

_BUCKETS_MAX: Final = 2000
"""Maximum number of buckets of a response."""
_WIDE: Final = 160
"""Columns from which the log has room beside the cursor."""
_CURSOR: Final = 40
"""Columns of the panel of the cursor beside the log."""
_BARS: Final = ((40, 3), (30, 2))
"""Lines of a screen from which bars have more lines than one, and how many."""
_MARK_DELETE: Final = "acknowledged up to mark-delete"
_LISTED: Final = 3
"""Lines of the lists below the map, at least."""


def _target(kind: str, row: Row) -> str:
    _, _, tenant, namespace, local = path_of(topic_of(row)).split("/")
    return f"/pulsarbox/v1/maps/{kind}/{tenant}/{namespace}/{local}/{subscription_segment(real(row, 'subscription'))}"


def _title(row: Row) -> str:
    return f"{row.get('subscription')} of {short_topic(str(row.get('topic')))}"


def bar_lines(height: int) -> int:
    """Return the lines of a bar on a screen of this height."""
    return next((lines for least, lines in _BARS if height >= least), 1)


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
        self.query_one("#log", TextPanel).retitle(f"Log: {_title(self.row)}", self._log_width + EDGES)

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
        feed = self.top.feed
        buckets = min(cells_per_line(self._log_width, self._last) * self._map_lines, _BUCKETS_MAX)
        target = f"{_target('cursor', self.row)}?buckets={buckets}"
        return lambda: feed.ask("GET", target)

    def show(self, answer: Any) -> None:
        """Draw the map."""
        if not isinstance(answer, Mapping):
            raise FeedError("the response is not a map", 502)
        self._last = str(answer.get("lastConfirmed") or "")
        self._draw(answer)

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
        log = drawn_log(told.get("buckets") or (), self._log_width, colors, bar_lines(high))
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


_KEYS: Final = views.TableView(
    "keys",
    (
        Column("key", "KEY", 16, "text", 0, grow=True, meaning="the key; for some, only the slot is known"),
        Column("slot", "SLOT", 6, "count", 2, meaning="the hash of the key"),
        Column(
            "stands",
            "STATE",
            9,
            "state",
            1,
            meaning="stuck, waiting: messages wait for an acknowledgement, or a consumer; draining: moving; in flight",
        ),
        Column("waiting", "WAITING", 8, "count", 0, meaning="messages behind the unacknowledged one"),
        Column("unacked", "UNACKED", 8, "count", 1, meaning="dispatched and not acknowledged"),
        Column("name", "HELD BY", 14, "text", 0, grow=True, meaning="consumer of the key"),
        Column("since", "SINCE", 11, "moment", 1, meaning="earliest possible start of the state"),
        Column("behind", "BLOCKED BY", 14, "text", 3, meaning="first unacknowledged message"),
    ),
    ("slot",),
    "waiting",
    ("key", "name", "stands"),
    "No keys are assigned. Publish a message with a key: pulsarbox produce hello 'Hello, world' --key customer-1",
    example='stands == "stuck" and waiting > 10',
)


class KeyMapScreen(ViewScreen):
    """Hash ranges of consumers, and the keys that are stuck, draining or busiest.

    A consumer that holds a stuck key can be disconnected here, so that its messages go to another consumer.
    """

    DEFAULT_CSS = """
    KeyMapScreen #consumers { max-height: 60%; }
    """
    view: ClassVar[views.TableView] = _KEYS
    place: ClassVar[str] = "subscriptions"
    kind: ClassVar[str] = "client"
    hinted: ClassVar[Sequence[str]] = ("menu", "filter", "sort", "copy", "back", "help", "quit")

    def __init__(self, row: Row) -> None:
        super().__init__()
        self.row = row

    def body(self) -> ComposeResult:
        """Compose the consumers and the keys."""
        yield TextPanel("Hash ranges", key="consumers")
        yield from super().body()

    def begin(self) -> None:
        """Start with the name of the subscription in the border."""
        super().begin()
        self.query_one("#consumers", TextPanel).retitle(f"Hash ranges: {_title(self.row)}")

    def load(self) -> Callable[[], Any]:
        """Return a function that queries the map, and the client IDs of its consumers, needed to disconnect them."""
        feed, target, query, passes = self.top.feed, _target("keys", self.row), self.query_now(), self.passes()
        width = max(self.size.width - EDGES, 20)
        mine = (
            f"topic == {text_of(real(self.row, 'topic'))} and subscription == {text_of(real(self.row, 'subscription'))}"
        )

        def ask() -> Any:
            told = feed.ask("GET", target)
            if not isinstance(told, Mapping):
                raise FeedError("the response is not a map", 502)
            who = {str(row.get("name")): row for row in feed.view(RowQuery("clients", limit=1000, filter=mine)).rows}
            keys = keys_of(told, who)
            return told, keys, key_bar(told, keys, width), chosen(query, keys, passes)

        return ask

    def show(self, answer: Any) -> None:
        """Draw consumers and keys."""
        told, keys, bar, snapshot = answer
        height = bar_lines(self.size.height)
        self.query_one("#consumers", TextPanel).put(drawn(told, bar, keys, self.app.theme_variables, height))
        super().show(snapshot)

    def status_line(self) -> list[Part]:
        """Return what a stuck key waits for."""
        row = self.table.pointed
        if row is None or row.get("stands") not in ("stuck", "waiting"):
            return super().status_line()
        stands = f"has not acknowledged {row['behind']}" if row.get("behind") else "is not receiving"
        what = f" {row.get('name')} {stands}; x: disconnect it (messages are redelivered)"
        return self.with_command([(what, "warn", "menu")])

    def command_line(self) -> str:
        """Return the command that explains the backlog."""
        return self.line("quota", "explain", short(self.row), real(self.row, "subscription"))


def keys_of(told: Mapping[str, Any], who: Mapping[str, Mapping[str, Any]]) -> list[Mapping[str, Any]]:
    """Return the reported keys with their clients, each once, in the order stuck and waiting, draining, in flight.

    A key is stuck if its messages wait behind an unacknowledged one, and waiting if they wait for a consumer.
    """
    found: dict[Any, Mapping[str, Any]] = {}
    for name, stands in (("stuck", "stuck"), ("draining", "draining"), ("busiest", "in flight")):
        for each in told.get(name) or ():
            holder = each.get("holder") or each.get("consumer") or each.get("owner")
            client = who.get(clean(str(holder)), {})
            row = {"id": client.get("id"), "kind": client.get("kind"), "address": client.get("address"), **each}
            is_waiting = each.get("waiting") and not each.get("behind") and stands != "draining"
            found.setdefault(each.get("slot"), {**row, "name": holder, "stands": "waiting" if is_waiting else stands})
    return list(found.values())
