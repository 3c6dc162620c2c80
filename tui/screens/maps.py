"""Cursor map and key map of a subscription."""

from collections import Counter
from collections.abc import Callable, Mapping, Sequence
from typing import Any, ClassVar, Final

from rich.text import Text
from textual.app import ComposeResult
from textual.containers import VerticalScroll
from textual.widgets import Static

from pulsarbox.cleaning import clean
from pulsarbox.client.admin import path_of, subscription_segment
from pulsarbox.tui import views
from pulsarbox.tui.actions.operation import short, topic_of
from pulsarbox.tui.feed import FeedError, RowQuery, real
from pulsarbox.tui.screens.base import TopScreen
from pulsarbox.tui.screens.key_bar import drawn, ink, key_bar
from pulsarbox.tui.screens.topics import quoted as text_of
from pulsarbox.tui.screens.view import ViewScreen
from pulsarbox.tui.widgets import numbers
from pulsarbox.tui.widgets.bars import Part
from pulsarbox.tui.widgets.columns import Column, short_topic
from pulsarbox.tui.widgets.local_rows import chosen
from pulsarbox.tui.widgets.table import Row

_ROWS_MAX: Final = 6
"""Lines of the cursor map; with 150 cells each, about a thousand buckets."""


def _target(kind: str, row: Row) -> str:
    _, _, tenant, namespace, local = path_of(topic_of(row)).split("/")
    return f"/pulsarbox/v1/maps/{kind}/{tenant}/{namespace}/{local}/{subscription_segment(real(row, 'subscription'))}"


def _title(row: Row) -> str:
    return f"{row.get('subscription')}  of  {short_topic(str(row.get('topic')))}"


STATES: Final = (
    ("acknowledged", "█", "acknowledged", "text-success"),
    ("mixed", "▒", "partially acknowledged", "text-success"),
    ("inFlight", "»", "in flight", "text-warning"),
    ("delayed", "·", "delayed, not due yet", "text-secondary"),
    ("waiting", "░", "waiting", "text-muted"),
)
"""States of a cell in the order of the legend: name, sign, meaning, colour."""


def state_of(bucket: Mapping[str, Any]) -> str:
    """Return the state of a bucket. In flight and delayed take precedence over waiting."""
    entries = bucket.get("entries") or 0
    acknowledged = bucket.get("acknowledged") or 0
    if bucket.get("inFlight"):
        return "inFlight"
    if entries and acknowledged >= entries:
        return "acknowledged"
    if (bucket.get("delayed") or 0) + acknowledged >= entries > 0 and bucket.get("delayed"):
        return "delayed"
    return "mixed" if acknowledged else "waiting"


class CursorMapScreen(TopScreen):
    """Map of the whole topic, first to last entry: acknowledged, in flight, delayed and waiting parts."""

    DEFAULT_CSS = """
    CursorMapScreen VerticalScroll { padding: 0 2; }
    CursorMapScreen Static { height: auto; }
    """
    place: ClassVar[str] = "subscriptions"
    kind: ClassVar[str] = "subscription"
    hinted: ClassVar[Sequence[str]] = ("menu", "messages", "copy", "pause", "back", "help", "quit")

    def __init__(self, row: Row) -> None:
        super().__init__()
        self.row = row

    def body(self) -> ComposeResult:
        """Compose one text."""
        with VerticalScroll():
            yield Static("", id="map", markup=False)

    def load(self) -> Callable[[], Any]:
        """Return a function that queries one bucket per cell."""
        feed, buckets = self.top.feed, max(self.size.width - 6, 20) * _ROWS_MAX
        target = f"{_target('cursor', self.row)}?buckets={buckets}"
        return lambda: feed.ask("GET", target)

    def show(self, answer: Any) -> None:
        """Draw the map."""
        if not isinstance(answer, Mapping):
            raise FeedError("the response is not a map", 502)
        self.query_one("#map", Static).update(self._drawn(answer, max(self.size.width - 6, 20)))

    def _drawn(self, told: Mapping[str, Any], width: int) -> Text:
        variables = self.app.theme_variables
        inks = {name: ink(variables, variable) for name, _, _, variable in STATES}
        signs = {name: sign for name, sign, _, _ in STATES}
        buckets = list(told.get("buckets") or ())
        text = Text(f"{_title(self.row)}\n\n", style="bold")
        text.append(
            f"mark-delete   {told.get('markDelete') or '-'}   everything up to here is acknowledged\n", style="not bold"
        )
        text.append(f"last          {told.get('lastConfirmed') or '-'}\n", style="not bold")
        text.append(f"entries       {numbers.count(told.get('entries'))}", style="not bold")
        text.append(f"   in {numbers.counted(told.get('ledgersTotal'), 'ledger')}\n", style="not bold")
        text.append(f"backlog       {numbers.counted(told.get('backlog'), 'message')}\n\n", style="not bold")
        if not buckets:
            text.append("The log is empty.\n", style="not bold")
        for at in range(0, len(buckets), width):
            for bucket in buckets[at : at + width]:
                state = state_of(bucket)
                text.append(signs[state], style=inks[state])
            text.append("\n")
        text.append("\n")
        counts = Counter(map(state_of, buckets))
        for name, sign, meaning, _ in STATES:
            text.append(f"{sign * 2} ", style=inks[name])
            share = numbers.percent(counts[name] / len(buckets)) if buckets else "-"
            text.append(f"{meaning:<24} {share:>4}\n", style="not bold")
        ranges = list(told.get("ranges") or ())
        if ranges:
            text.append("\nacknowledged beyond mark-delete\n", style="bold")
            listed = "   ".join(f"{ledger}:{first}-{last}" for ledger, first, last in ranges[:60])
            text.append(listed + ("   ..." if len(ranges) > 60 else "") + "\n", style="not bold")
        return text

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
    "No keys are assigned.",
    example='stands == "stuck" and waiting > 10',
)


class KeyMapScreen(ViewScreen):
    """Hash ranges of consumers, and the keys that are stuck, draining or busiest.

    A consumer that holds a stuck key can be disconnected here, so that its messages go to another consumer.
    """

    DEFAULT_CSS = """
    KeyMapScreen #consumers { height: auto; max-height: 60%; padding: 0 2 1 2; }
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
        yield Static("", id="consumers", markup=False)
        yield from super().body()

    def load(self) -> Callable[[], Any]:
        """Return a function that queries the map, and the client IDs of its consumers, needed to disconnect them."""
        feed, target, query, passes = self.top.feed, _target("keys", self.row), self.query_now(), self.passes()
        width = max(self.size.width - 6, 20)
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
        text = Text(f"{_title(self.row)}\n\n", style="bold")
        text.append(drawn(told, bar, keys, self.app.theme_variables))
        text.rstrip()
        self.query_one("#consumers", Static).update(text)
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
