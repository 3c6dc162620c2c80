"""Subscription screen: cause of no delivery, advice, graphs and consumers."""

from collections.abc import Callable, Sequence
from typing import Any, ClassVar, Final

from rich.console import Group
from rich.table import Table as Grid
from rich.text import Text
from textual.app import ComposeResult
from textual.widgets import Static

from pulsarbox.cleaning import clean
from pulsarbox.tui import views
from pulsarbox.tui.actions.advice import advice
from pulsarbox.tui.actions.operation import short
from pulsarbox.tui.feed import FeedError, RowQuery, ViewSnapshot, real
from pulsarbox.tui.screens.topics import quoted
from pulsarbox.tui.screens.view import ViewScreen, how_many
from pulsarbox.tui.widgets import numbers
from pulsarbox.tui.widgets.columns import short_topic
from pulsarbox.tui.widgets.graph import Graph, Graphs
from pulsarbox.tui.widgets.local_rows import chosen
from pulsarbox.tui.widgets.table import Row

_SEARCHED_MAX: Final = 1000
"""Maximum number of consumers searched for a pattern."""


class SubscriptionDetails(ViewScreen):
    """Details of one subscription, and a table of its consumers."""

    DEFAULT_CSS = """
    SubscriptionDetails #facts { height: auto; padding: 0 1; border: round $edge; border-title-color: $text;
                                 border-title-style: bold; border-subtitle-color: $text-muted; }
    SubscriptionDetails #table { min-height: 4; }
    """
    view: ClassVar[views.TableView] = views.CLIENTS
    place: ClassVar[str] = "subscriptions"
    kind: ClassVar[str] = "subscription"
    hinted: ClassVar[Sequence[str]] = ("menu", "messages", "cursor map", "key map", "copy", "back", "help", "quit")

    def __init__(self, row: Row) -> None:
        super().__init__()
        self.row = row
        self._about = f"topic == {quoted(real(row, 'topic'))} and subscription == {quoted(real(row, 'subscription'))}"
        self._past: dict[str, list[float]] = {"backlog": list(row.get("trend") or []), "inRate": [], "outRate": []}

    def body(self) -> ComposeResult:
        """Compose facts, graphs and consumers."""
        yield Static(self._facts(self.row), id="facts", markup=False)
        yield Graphs(
            Graph("inRate", "Published", "rate", "primary", "/s"),
            Graph("outRate", "Delivered", "rate", "success", "/s"),
            Graph("backlog", "Backlog", "count", "warning"),
            across=3,
        )
        yield from super().body()

    def begin(self) -> None:
        """Start with the table of consumers."""
        super().begin()
        table = self.table
        table.border_title = "Consumers"
        table.set_columns(column for column in table.columns if column.key not in ("kind", "topic", "subscription"))

    def load(self) -> Callable[[], Any]:
        """Return a function that queries the subscription and its consumers."""
        feed, at, query = self.top.feed, self.top.at, self.query_now()
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

    def show(self, answer: Any) -> None:
        """Draw the subscription and its consumers."""
        first, consumers = answer
        self.top.update_vitals(first)
        if not first.rows:
            self.query_one("#facts", Static).update(f"{self._called()}\nThis subscription no longer exists.")
            self.table.show((), 0, 0)
            return
        self.row = first.rows[0]
        self.query_one("#facts", Static).update(self._facts(self.row))
        trend = self.row.get("trend")
        for name in ("inRate", "outRate", "backlog"):
            past = self._past[name]
            if name == "backlog" and trend and len(trend) > len(past):
                past[:] = trend
            past.append(self.row.get(name) or 0.0)
            del past[:-600]
            self.query_one(Graphs).show(name, past, self.row.get(name))
        table = self.table
        if isinstance(consumers, FeedError):
            table.empty = str(consumers)
            return
        table.empty = "No consumer is connected."
        if self.filter and self.row.get("consumers"):
            table.empty = f"No consumer matches the filter: {clean(self.filter)}  (esc: clear the filter)"
        table.show(consumers.rows, consumers.offset, consumers.matching)
        self._show_filter(how_many(consumers.matching, self.row.get("consumers") or consumers.matching))

    def _called(self) -> str:
        return f"{self.row.get('subscription')}  of  {short_topic(str(self.row.get('topic')))}"

    def _facts(self, row: Row) -> Group:
        cause = row.get("causeText") or row.get("cause") or "-"
        helps = "" if numbers.keeps_up(dict(row)) else advice(row.get("cause"))
        told = [
            ("cause", str(cause)),
            ("advice", helps),
            (
                "backlog",
                f"{numbers.counted(row.get('backlog'), 'message')}, {numbers.change_in_words(row.get('change'))}"
                f", oldest {numbers.seconds(row.get('oldest'))}, drained {numbers.drain(dict(row))}",
            ),
            (
                "sent",
                f"{numbers.count(row.get('unacked'))} unacknowledged; "
                f"{numbers.count(row.get('delayed'))} not due yet; {numbers.counted(row.get('consumers'), 'consumer')}",
            ),
        ]
        lines = Grid.grid()
        lines.add_column(width=10)
        lines.add_column(overflow="fold")
        for name, text in told:
            if text:
                lines.add_row(Text(name), Text(text))
        return Group(Text(f"{self._called()}   ({row.get('type') or 'no type yet'})"), lines)

    def rows_chosen(self) -> Sequence[Row]:
        """Return the subscription as the target of deeds; the clients screen has those on consumers."""
        return [self.row]

    def title_of(self, row: Row) -> str:
        """Return the name of the subscription."""
        return self._called()

    def opened(self, row: Row) -> None:
        """Show the connection of the consumer on the clients screen."""
        self.top.open("clients:Clients", f"connection == {quoted(real(row, 'connection'))}")

    def command_line(self) -> str:
        """Return the command that explains the backlog."""
        return self.line("quota", "explain", short(self.row), real(self.row, "subscription"))

    def row_meant(self) -> Row | None:
        """Return the subscription."""
        return self.row
