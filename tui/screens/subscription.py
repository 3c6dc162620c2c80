"""Subscription screen: cause of no delivery, advice, graphs and consumers."""

from collections.abc import Callable, Mapping, Sequence
from typing import Any, ClassVar, Final

from rich.style import Style
from rich.text import Text
from textual import events
from textual.app import ComposeResult
from textual.containers import Horizontal, Vertical

from pulsarbox.cleaning import clean
from pulsarbox.tui import views
from pulsarbox.tui.actions.box_queries import WIDE
from pulsarbox.tui.actions.operation import short
from pulsarbox.tui.feed import Feed, FeedError, RowQuery, ViewSnapshot, aside, real
from pulsarbox.tui.screens.topics import quoted
from pulsarbox.tui.screens.trouble import ScreenFacts
from pulsarbox.tui.screens.view import ViewScreen
from pulsarbox.tui.widgets import numbers
from pulsarbox.tui.widgets.columns import cause_look, subscription_title
from pulsarbox.tui.widgets.graphs.graph import Graph, Graphs
from pulsarbox.tui.widgets.graphs.graph_past import SECONDS, STEP, GraphPast
from pulsarbox.tui.widgets.local_rows import chosen
from pulsarbox.tui.widgets.panel import labeled
from pulsarbox.tui.widgets.styles import ink_of
from pulsarbox.tui.widgets.table import Row, Table
from pulsarbox.tui.widgets.wrapping import HangingText

_SEARCHED_MAX: Final = 1000
"""Maximum number of consumers searched for a pattern."""


_DRAWN: Final = ("inRate", "outRate", "backlog")
_NARROW: Final = 60
"""Columns of a terminal below which graphs are one below the other, if it is at least half as high."""
_GRAPHS: Final = 7
"""Lines that the graphs may have on every terminal; the facts and a row of the table come first."""
_TITLE_INDENT: Final = 2
_NEVER: Final = -1
_NAMES: Final = 10
"""Cells of the names of facts."""
_FRAMES: Final = 20
"""Recorded samples that the graphs begin with."""

_TREND_MS: Final = 3000
"""Milliseconds between two values of a trend."""

Recorded = list[tuple[int, Row]]
"""Recorded rows of the subscription with their times (ms since 1970), oldest first."""


def _of_trend(now: int, row: Row) -> Recorded:
    """Return the trend of the backlog, which the box keeps without a history."""
    trend = row.get("trend") or ()
    return [(now - (len(trend) - at) * _TREND_MS, {"backlog": value}) for at, value in enumerate(trend)]


def recorded(feed: Feed, query: RowQuery, end: int) -> Recorded:
    """Return what the box has recorded of a subscription in the minutes before; nothing if it records no history."""
    begin = end - SECONDS * 1000
    try:
        told = feed.ask("GET", f"/pulsarbox/v1/history?from={begin}&to={end}&limit={_FRAMES}")
        times = told.get("frames") or () if isinstance(told, dict) else ()
        found = [feed.view(query._replace(at=time)) for time in times[:_FRAMES]]
    except FeedError:
        return []
    return [(each.now, each.rows[0]) for each in found if each.rows]


class SubscriptionDetails(ViewScreen):
    """Details of one subscription, and a table of its consumers."""

    DEFAULT_CSS = """
    SubscriptionDetails #facts { height: auto; max-height: 75%; padding: 0 1; border: round $edge;
                                 border-title-color: $text; border-title-style: bold;
                                 border-subtitle-color: $text-muted; }
    SubscriptionDetails #facts Vertical { height: auto; width: 1fr; }
    SubscriptionDetails #more { display: none; width: 50; padding-left: 1; }
    SubscriptionDetails.-wide #more { display: block; }
    /* Shares as the bounds of both: Textual gives too much where one meets its maximum and the other its minimum. */
    SubscriptionDetails #graphs { height: 7fr; }
    SubscriptionDetails #beside { height: 4fr; }
    """
    view: ClassVar[views.TableView] = views.CLIENTS
    place: ClassVar[str] = "subscriptions"
    kind: ClassVar[str] = "subscription"
    opens: ClassVar[str] = "connection"
    noun: ClassVar[str] = "consumer"
    hinted: ClassVar[Sequence[str]] = ("menu", "messages", "cursor map", "key map", "copy", "back", "help", "quit")

    def __init__(self, row: Row) -> None:
        super().__init__()
        self.row = row
        self._about = f"topic == {quoted(real(row, 'topic'))} and subscription == {quoted(real(row, 'subscription'))}"
        self._past = GraphPast(_DRAWN)
        self._past_of: int | None = _NEVER
        """Time of history (ms since 1970) for which the past was queried; None: now."""

    def body(self) -> ComposeResult:
        """Compose facts, graphs and consumers."""
        with Horizontal(id="facts"):
            with Vertical():
                yield HangingText(self._title(self.row), _TITLE_INDENT, key="called")
                yield HangingText(self._facts(self.row), key="about")
            yield HangingText("", key="more")
        yield Graphs(
            Graph("inRate", "Published", "rate", "primary", "/s"),
            Graph("outRate", "Delivered", "rate", "success", "/s"),
            Graph("backlog", "Backlog", "count", "warning"),
            across=3,
        )
        yield from super().body()

    def on_resize(self, event: events.Resize) -> None:
        """Make the graphs higher on high terminals, and list them on narrow ones, where their names would not fit."""
        graphs, (width, height) = self.query_one(Graphs), event.size
        graphs.across = 1 if width < _NARROW <= 2 * height else 3
        self.set_class(width >= WIDE, "-wide")
        graphs.styles.max_height = max(height // 3 if graphs.across == 1 else height // 4, _GRAPHS)

    def begin(self) -> None:
        """Start with the table of consumers."""
        super().begin()
        self.query_one("#facts").border_title = "Subscription"
        table = self.table
        table.border_title = "Consumers"
        table.set_columns(column for column in table.columns if column.key not in ("kind", "topic", "subscription"))

    def load(self) -> Callable[[], Any]:
        """Return a function that queries the subscription and its consumers."""
        feed, at, query = self.top.feed, self.top.at, self.query_now()
        self._question = query
        mine = RowQuery("subscriptions", None, True, 0, 1, self._about, at)
        is_pattern = self.filter.startswith(("/", "!"))  # cannot be combined with an expression, so applied locally
        both = f"{self._about} and ({self.filter})" if self.filter and not is_pattern else self._about
        theirs = query._replace(filter=both)
        passes = self.passes()

        def consumers() -> ViewSnapshot:
            if not is_pattern:
                return feed.view(theirs)
            return chosen(query, feed.view(theirs._replace(columns=(), offset=0, limit=_SEARCHED_MAX)).rows, passes)

        def ask() -> tuple[ViewSnapshot, ViewSnapshot | FeedError]:
            first = feed.view(mine)
            try:
                return first, consumers()
            except FeedError as trouble:
                if trouble.is_gone:
                    raise
                return first, trouble

        return ask

    def facts_of_trouble(self) -> ScreenFacts:
        """Return the state of this screen: in history only its consumers are missing."""
        return super().facts_of_trouble()._replace(title="Consumers")

    def show(self, answer: Any) -> None:
        """Draw the subscription and its consumers."""
        first, consumers = answer
        self.top.update_vitals(first)
        if not first.rows:
            self._tell(subscription_title(self.row), "This subscription no longer exists.")
            self.table.show((), 0, 0)
            self.show_no_counts()
            return
        self.row = first.rows[0]
        more = _further_facts(self.row, first.now, self.app.theme_variables)
        self._tell(self._title(self.row), self._facts(self.row), more)
        if self._past_of != self.top.at:
            self._past_of, self._past = self.top.at, GraphPast(_DRAWN)
            self._past.replace(_of_trend(first.now, self.row))
            self.run_worker(self._learn_past(first.now), group="past", exclusive=True)
        self._past.add(first.now, self.row)
        self.values_at = first.now
        self._draw()
        table = self.table
        if isinstance(consumers, FeedError):
            self.failed(consumers)
            return
        table.empty = self.advising(self.nothing())
        if self.filter and self.row.get("consumers"):
            table.empty = (
                f"No consumer matches the filter: {clean(self.filter)}  ({self.key_of('back')}: clear the filter)"
            )
        table.show(consumers.rows, consumers.offset, consumers.matching)
        # without a filter, the number of those that are listed: the subscription was queried a moment earlier
        total = self.row.get("consumers") if self.filter else None
        self.show_counts(consumers.matching, total or consumers.matching)

    def nothing(self) -> str:
        """Return the command that starts a consumer."""
        command = self.line("consume", short(self.row), "-s", real(self.row, "subscription"))
        return f"No consumer is connected. Start one: {command}"

    def _draw(self) -> None:
        graphs = self.query_one(Graphs)
        for name in _DRAWN:
            graphs.show(name, self._past.series(name), self.row.get(name), STEP)

    async def _learn_past(self, end: int) -> None:
        """Begin the graphs with what the box has recorded, after the screen is shown."""
        mine = RowQuery("subscriptions", None, True, 0, 1, self._about, None, _DRAWN)
        feed, past = self.top.feed, self._past
        found = await aside(lambda: recorded(feed, mine, end))
        if found and self.is_whole and past is self._past:
            past.replace(found)
            self._draw()

    def _title(self, row: Row) -> str:
        return f"{subscription_title(row)}   ({row.get('type') or 'no type yet'})"

    def _facts(self, row: Row) -> Text:
        return _facts(row, self.advice_on(row), self.app.theme_variables)

    def _tell(self, title: str, about: str | Text, more: str | Text = "") -> None:
        """Update the texts of the upper panel."""
        for key, text in (("#called", title), ("#about", about), ("#more", more)):
            self.query_one(key, HangingText).update(text)

    def can_mark(self) -> bool:
        """Return that no consumer can be marked: actions here are on the subscription."""
        return False

    def rows_chosen(self) -> Sequence[Row]:
        """Return the subscription as the target of deeds; the clients screen has those on consumers."""
        return [self.row]

    def title_of(self, row: Row) -> str:
        """Return the name of the subscription."""
        return subscription_title(row)

    def opened(self, row: Row) -> None:
        """Show the connection of the consumer on the clients screen."""
        self.top.open("clients:Clients", f"connection == {quoted(real(row, 'connection'))}")

    def command_line(self) -> str:
        """Return the command that explains the backlog."""
        return self.line("quota", "explain", short(self.row), real(self.row, "subscription"))

    def past_command(self) -> str:
        """Return the command that prints the subscription at the time of history."""
        return self.past_line("subscriptions", "--once", "--filter", self._about)

    def row_meant(self) -> Row | None:
        """Return the subscription."""
        return self.row


def _facts(row: Row, remedy: str, colors: Mapping[str, str]) -> Text:
    """Return the facts about a subscription, one per line with its name. ``colors`` are the variables of the theme."""
    cause, look = row.get("causeText") or row.get("cause") or "-", Table.looks[cause_look(row) or "plain"]
    backlog = (numbers.counted(row.get("backlog"), "message"), numbers.change_in_words(row.get("change")))
    told = [
        ("cause", str(cause)),
        ("advice", remedy),
        (
            "backlog",
            f"{', '.join(filter(None, backlog))}"
            f", oldest {numbers.seconds(row.get('oldest'))}{numbers.drain_in_words(dict(row))}",
        ),
        (
            "delivery",
            f"{numbers.count(row.get('unacked'))} unacknowledged; "
            f"{numbers.count(row.get('delayed'))} delayed; {numbers.counted(row.get('consumers'), 'consumer')}",
        ),
    ]
    text = labeled((f"{name:<{_NAMES}}{fact}" for name, fact in told if fact), colors)
    text.stylize(ink_of(colors, look.ink) + Style(bold=look.bold), _NAMES, _NAMES + len(str(cause)))
    return text


def _further_facts(row: Row, now: int, colors: Mapping[str, str]) -> Text:
    """Return the facts for which only wide terminals have room, one per line with its name."""
    oldest, since, loaded = row.get("oldest"), row.get("causeSince"), row.get("loaded")
    told = [
        ("published", "" if row.get("inRate") is None else f"{numbers.rate(row['inRate'])}/s"),
        ("delivered", "" if row.get("outRate") is None else f"{numbers.rate(row['outRate'])}/s"),
        ("oldest", f"published {numbers.moment(now - oldest * 1000)}" if oldest and now else ""),
        (
            "cause",
            f"since {numbers.moment(since)}, {numbers.span((now - since) / 1000)}" if since and now > since else "",
        ),
        ("topic", "" if loaded is None else "loaded" if loaded else "not loaded"),
    ]
    return labeled((f"{name:<{_NAMES + 1}}{fact}" for name, fact in told if fact), colors)
