"""Overview screen: rates, backlog, latency, and short tables of backlogs, quotas and dead letters."""

from collections.abc import Callable, Sequence
from typing import Any, ClassVar, Final

from textual import events, on
from textual.app import ComposeResult
from textual.containers import Horizontal

from pulsarbox.tui import views
from pulsarbox.tui.actions.box_queries import PANELS, Panel, of_numbers, of_panel
from pulsarbox.tui.feed import FeedError, ViewSnapshot
from pulsarbox.tui.screens.base import TopScreen
from pulsarbox.tui.widgets import numbers
from pulsarbox.tui.widgets.bars import Line, Part
from pulsarbox.tui.widgets.graph import Graph, Graphs
from pulsarbox.tui.widgets.styles import ColorNames
from pulsarbox.tui.widgets.table import Row, Table

_NUMBERS: Final = 0
_TURNS: Final = ({_NUMBERS}, {1, 2}, {_NUMBERS}, {1, 3})
"""Queries of each refresh: the numbers, and the panels from 1. The box samples once a second; quotas and dead letters
change rarely, so they are queried every fourth time."""
_ALL: Final = {_NUMBERS, 1, 2, 3}
_WIDE: Final = 180


class Overview(TopScreen):
    """Four graphs and three short tables."""

    DEFAULT_CSS = """
    Overview .panel { border-top: solid $panel-lighten-1; border-title-color: $text-muted; border-title-align: left; }
    Overview #subscriptions { height: 1fr; min-height: 4; }
    Overview #lower { height: 28%; min-height: 5; max-height: 14; }
    Overview #quotas { width: 3fr; }
    Overview #deadletters { width: 2fr; margin-left: 1; }
    """
    AUTO_FOCUS: ClassVar[str | None] = ""
    place: ClassVar[str] = "overview"
    kind: ClassVar[str] = "subscription"
    hinted: ClassVar[Sequence[str]] = ("menu", "subscriptions", "deadletters", "quotas", "time travel", "help", "quit")

    def __init__(self) -> None:
        super().__init__()
        self._count = 0

    def body(self) -> ComposeResult:
        """Compose graphs, numbers and tables."""
        yield Graphs(
            Graph("publishRate", "published/s", "rate", "primary"),
            Graph("deliverRate", "delivered/s", "rate", "success"),
            Graph("backlog", "backlog", "count", "warning"),
            Graph("p99", "receipts p99", "milliseconds", "secondary"),
            across=2,
        )
        yield Line(key="numbers")
        backlogs, quotas, dead = PANELS
        yield _table(backlogs, "loading ...")
        with Horizontal(id="lower"):
            yield _table(quotas, "")
            yield _table(dead, "")

    def begin(self) -> None:
        """Start with the focus on the backlogs."""
        super().begin()
        table = self.query_one("#subscriptions", Table)
        table.sorted_by = ("backlog", True)
        self.set_focus(table)  # now: keys may follow

    def on_resize(self, event: events.Resize) -> None:
        """Adapt the layout of the graphs."""
        height, graphs = event.size.height, self.query_one(Graphs)
        graphs.across = 4 if event.size.width >= _WIDE else 2
        graphs.styles.height = max(height // 4, 4) if graphs.across == 4 else 2 * max(height // 6, 4)

    def load(self) -> Callable[[], Any]:
        """Return a function that queries numbers and tables in turns; all on the first load and in history."""
        feed, at = self.top.feed, self.top.at
        turn = _ALL if not self._count or at is not None else _TURNS[self._count % len(_TURNS)]
        self._count += 1

        def ask() -> list[ViewSnapshot | FeedError | None]:
            found: list[ViewSnapshot | FeedError | None] = [feed.view(of_numbers(at)) if _NUMBERS in turn else None]
            for number, panel in enumerate(PANELS, 1):
                try:
                    found.append(feed.view(of_panel(panel, at)) if number in turn else None)
                except FeedError as trouble:
                    if trouble.is_gone:
                        raise
                    found.append(trouble)
            return found

        return ask

    def show(self, answer: Any) -> None:
        """Draw graphs, numbers and tables."""
        first, *tables = answer
        if first is not None:
            self.top.update_vitals(first)
            graphs = self.query_one(Graphs)
            for name in ("publishRate", "deliverRate", "backlog", "p99"):
                graphs.show(name, first.series.get(name) or (), first.totals.get(name))
            self.query_one("#numbers", Line).put(_numbers(first.totals))
        totals = self.top.vitals
        for panel, found in zip(PANELS, tables, strict=True):
            view = panel.view
            table = self.query_one(f"#{view.name}", Table)
            if found is None:
                continue
            if isinstance(found, ViewSnapshot):
                table.empty = panel.empty if view is not views.SUBSCRIPTIONS or totals.get("topics") else view.empty
                table.show(found.rows, 0, len(found.rows))
            else:
                table.empty = str(found)
                table.show((), 0, 0)

    @on(Table.Chosen)
    def _opened(self, event: Table.Chosen) -> None:
        if event.table.id == "subscriptions":
            self.top.open("subscription:SubscriptionDetails", event.row)
        elif event.table.id is not None:
            self.top.go(event.table.id)

    @on(Table.Moved)
    def _moved(self) -> None:
        self.refresh_status_lines()

    def pointed(self) -> Row | None:
        """Return the subscription of the cursor."""
        return self.query_one("#subscriptions", Table).pointed

    def rows_chosen(self) -> Sequence[Row]:
        """Return the subscription of the cursor as the target of actions."""
        row = self.pointed()
        return () if row is None else (row,)

    def status_line(self) -> list[Part]:
        """Return why the subscription gets no messages."""
        row = self.pointed()
        if (
            row is None
            or not row.get("causeText")
            or row.get("cause") in (None, "end-of-log")
            or numbers.keeps_up(dict(row))
        ):
            return super().status_line()
        return [(f" {row.get('subscription')}: ", "dim", ""), (str(row["causeText"]), "warn", "")]

    def command_line(self) -> str:
        """Return the command for a snapshot."""
        return self.line("top", "--once", *self.top.feed.scope_words)


def _table(panel: Panel, empty: str) -> Table:
    table = Table(panel.columns, panel.view.identity, key=panel.view.name, classes="panel")
    table.looks = {**table.looks, "blurred": ColorNames(ground="background")}
    table.border_title = panel.title
    table.empty = empty
    return table


def _numbers(totals: Any) -> list[Part]:
    parts: list[Part] = [(" ", "plain", "")]
    held, dead = totals.get("throttled"), totals.get("deadLetters")
    if totals.get("lackingCopies"):
        parts.append((f"● {numbers.count(totals['lackingCopies'])} entries lack a copy  ", "bad", "storage"))
    if held:  # problems first, because a narrow line truncates the rest
        parts.append((f"● {held} holding back  ", "warn", "quotas"))
    if totals.get("unread"):
        parts.append((f"● {totals['unread']} connections not read  ", "bad", "clients"))
    if totals.get("suspended"):
        parts.append((f"● {totals['suspended']} producers suspended  ", "warn", "clients"))
    if dead:
        parts.append((f"● {numbers.count(dead)} dead letters  ", "bad", "deadletters"))
    for name in ("topics", "subscriptions", "producers", "consumers", "connections"):
        if totals.get(name) is not None:
            where = {"topics": "topics", "subscriptions": "subscriptions"}.get(name, "clients")
            parts += [(f"{name} ", "dim", where), (f"{numbers.count(totals[name])}  ", "plain", where)]
    if totals.get("diskUsed") is not None:
        parts += [("disk ", "dim", "storage"), (numbers.size(totals["diskUsed"]), "plain", "storage")]
        if totals.get("diskFree") is not None:
            parts.append((f" ({numbers.size(totals['diskFree'])} free)", "plain", "storage"))
    return parts
