"""Key map of a Key_Shared subscription."""

from collections.abc import Callable, Mapping, Sequence
from typing import Any, ClassVar, Final

from rich.text import Text
from textual.app import ComposeResult

from pulsarbox.cleaning import clean
from pulsarbox.tui import views
from pulsarbox.tui.actions.operation import short
from pulsarbox.tui.feed import FeedError, RowQuery, real
from pulsarbox.tui.screens.maps.key_bar import drawn, key_bar
from pulsarbox.tui.screens.maps.subscription_maps import bar_lines, map_target
from pulsarbox.tui.screens.topics import quoted
from pulsarbox.tui.screens.trouble import ScreenFacts, check_recorded
from pulsarbox.tui.screens.view import ViewScreen
from pulsarbox.tui.widgets.bars import Part
from pulsarbox.tui.widgets.columns import Column, state_look, subscription_title
from pulsarbox.tui.widgets.local_rows import chosen
from pulsarbox.tui.widgets.panel import EDGES, TextPanel
from pulsarbox.tui.widgets.table import Row

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
    noun="key",
    headed=("key",),
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
        self.query_one("#consumers", TextPanel).retitle(f"Hash ranges: {subscription_title(self.row)}")

    def load(self) -> Callable[[], Any]:
        """Return a function that queries the map, and the client IDs of its consumers, needed to disconnect them."""
        check_recorded(self.top.at)
        feed, target, query, passes = self.top.feed, map_target("keys", self.row), self.query_now(), self.passes()
        width = max(self.size.width - EDGES, 20)
        mine = (
            f"topic == {quoted(real(self.row, 'topic'))} and subscription == {quoted(real(self.row, 'subscription'))}"
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

    def facts_of_trouble(self) -> ScreenFacts:
        """Return the state of this screen for the texts of an error."""
        return super().facts_of_trouble()._replace(title="The key map")

    def unanswered(self, trouble: FeedError) -> None:
        """Remove what is true only now from a screen of another time."""
        if self.top.at is not None and not trouble.is_gone:
            self.query_one("#consumers", TextPanel).put(Text())
        super().unanswered(trouble)

    def status_line(self) -> list[Part]:
        """Return what a stuck key waits for."""
        row = self.table.pointed
        if row is None or row.get("stands") not in ("stuck", "waiting"):
            return super().status_line()
        stands = f"has not acknowledged {row['behind']}" if row.get("behind") else "is not receiving"
        what = f" {row.get('name')} {stands}; x: disconnect it (messages are redelivered)"
        return self.with_command([(what, state_look(row["stands"]), "menu")])

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
