"""Overview screen: the diagnosis, graphs of rates, backlog and latency, and short tables."""

from collections.abc import Callable, Mapping, Sequence
from typing import Any, ClassVar, Final

from textual import events, on
from textual.app import ComposeResult
from textual.containers import Horizontal, Vertical

from pulsarbox.tui import views
from pulsarbox.tui.actions.action_table import BY_NAME
from pulsarbox.tui.actions.backlogs_behind import BacklogsBehind, backlogs_behind
from pulsarbox.tui.actions.box_queries import BUSIEST, PANELS, WIDE, Panel, of_numbers, of_panel, panels
from pulsarbox.tui.actions.diagnosis import CALM, BoxFinding, OverviewFacts, diagnosed
from pulsarbox.tui.feed import FeedError, ViewSnapshot, real
from pulsarbox.tui.screens.base import TopScreen
from pulsarbox.tui.screens.trouble import no_rows
from pulsarbox.tui.widgets import command_lines, numbers
from pulsarbox.tui.widgets.bars import Line, Part, reasons
from pulsarbox.tui.widgets.box_facts import PROBLEMS, BoxFacts
from pulsarbox.tui.widgets.columns import cause_look
from pulsarbox.tui.widgets.diagnosis_list import DiagnosisList
from pulsarbox.tui.widgets.graphs.graph import Graph, Graphs
from pulsarbox.tui.widgets.table import Row, Table

_NUMBERS: Final = 0
_BEHIND: Final = 5
_TURNS: Final = ({_NUMBERS}, {1, 2}, {_NUMBERS}, {1, 3, 4, _BEHIND})
"""Queries of each refresh: the numbers, the panels from 1, and the backlogs behind those of the first panel. The box
samples once a second; quotas and dead letters change rarely, so they are queried every fourth time."""
_ALL: Final = {_NUMBERS, 1, 2, 3, 4, _BEHIND}
_HIGH: Final = 30
"""Lines of a terminal from which the diagnosis has a border, and the graphs are in two rows."""
_LOW: Final = 18
"""Lines of a terminal below which there is no room for the graphs."""
_FINDINGS: Final = (3, 8)
"""Lines of the diagnosis on a high terminal, at least and at most."""
_BACKLOGS: Final = 12
"""Lines of the backlogs that the diagnosis leaves them, with their frame."""
_FRAME: Final = 2
_LOWER: Final = (5, 13)
_LOWER_SHARE: Final = 0.24
"""Lines of the lower panels, at least and at most, and their share of the body up to which they have what they need."""
_EMPTY_LINES: Final = 3
"""Lines of the text of an empty panel."""
_NARROW: Final = 60
"""Columns of a terminal below which quotas and dead letters are one below the other, if it is high."""


class Overview(TopScreen):
    """The diagnosis, four graphs and three short tables; on wide terminals also the box and its busiest topics."""

    DEFAULT_CSS = """
    Overview #findings { height: 2; }
    Overview.-high #findings { height: 5; border: round $edge; border-title-color: $text; border-title-style: bold;
                                border-subtitle-color: $text-muted; }
    Overview.-high #findings:focus { border: heavy $edge-focus; }
    /* Shares as the bounds of both: Textual gives too much where one meets its maximum and the other its minimum. */
    Overview #graphs { height: 5fr; }
    Overview.-high #graphs { height: 8fr; }
    Overview #middle { height: 4fr; min-height: 4; }
    Overview #subscriptions { height: 100%; width: 1fr; }
    Overview #side { display: none; width: 58; height: 100%; }
    Overview #lower { height: 24%; min-height: 5; max-height: 13; }
    Overview #quotas { width: 3fr; }
    Overview #deadletters { width: 2fr; }
    Overview.-wide #side { display: block; }
    Overview.-wide #numbers { display: none; }
    Overview.-unknown #numbers { display: none; }
    Overview.-narrow #lower { layout: vertical; height: 30%; }
    Overview.-narrow #quotas, Overview.-narrow #deadletters { width: 1fr; }
    Overview.-low #graphs, Overview.-low #lower { display: none; }
    """
    AUTO_FOCUS: ClassVar[str | None] = ""
    place: ClassVar[str] = "overview"
    kind: ClassVar[str] = "subscription"
    opens: ClassVar[str] = "open"
    hinted: ClassVar[Sequence[str]] = ("menu", "copy", "time travel", "pause", "help", "quit")
    hinted_wide: ClassVar[Sequence[str]] = ("messages", "cursor map")

    def __init__(self) -> None:
        super().__init__()
        self._count = 0
        self._totals: Mapping[str, Any] = {}
        self._series_end = 0
        """Time of the last values of a stopped box (ms since 1970), 0 of a running one."""
        self._rows: dict[str, Sequence[Row]] = {}
        self._now = 0
        self._behind = BacklogsBehind()
        self._needed = (0, 0)
        """Most lines of findings and of rows in the lower panels so far: panels shrink only on the next visit."""

    def body(self) -> ComposeResult:
        """Compose diagnosis, graphs, numbers and tables."""
        yield DiagnosisList()
        yield Graphs(
            Graph("publishRate", "Published", "rate", "primary", "/s"),
            Graph("deliverRate", "Delivered", "rate", "success", "/s"),
            Graph("backlog", "Backlog", "count", "warning"),
            Graph("p99", "p99 latency", "milliseconds", "secondary"),
            across=2,
        )
        yield Line(key="numbers")
        backlogs, quotas, dead = PANELS
        with Horizontal(id="middle"):
            yield _table(backlogs)
            if self.app.size.width >= WIDE:
                yield from self._side()
        with Horizontal(id="lower"):
            yield _table(quotas)
            yield _table(dead)

    def _side(self) -> ComposeResult:
        """Compose the panels at the side, which narrow terminals never pay for."""
        with Vertical(id="side"):
            yield BoxFacts()
            yield _table(BUSIEST)

    def begin(self) -> None:
        """Start with the focus on the diagnosis."""
        super().begin()
        self.query_one("#subscriptions", Table).sorted_by = ("backlog", True)
        findings = self.query_one(DiagnosisList)
        findings.border_title = "Diagnosis"
        self.set_focus(findings)  # now: keys may follow

    def on_resize(self, event: events.Resize) -> None:
        """Adapt the layout to the size."""
        width, height = event.size.width, event.size.height
        is_wide, is_high = width >= WIDE, height >= _HIGH
        self.set_class(is_high, "-high")
        self.set_class(is_wide, "-wide")
        self.set_class(height < _LOW, "-low")
        self.set_class(is_high and width < _NARROW, "-narrow")
        graphs = self.query_one(Graphs)
        graphs.across = 2 if is_high and not is_wide else 4
        graphs.styles.max_height = 2 * max(height // 6, 6) if graphs.across == 2 else max(height // 5, 5)
        if is_wide and not self.query("#side"):
            self._widen()
        self._needed = (0, 0)
        self.call_after_refresh(self._fit_panels)

    def on_screen_resume(self, event: events.ScreenResume) -> None:
        """Fit the panels to what is there now, as nothing moves under the eyes of the user."""
        self._needed = (0, 0)
        self._fit_panels()

    def _fit_panels(self) -> None:
        """On high terminals, give the lower panels the lines that they need, and the diagnosis some of the others."""
        if not self.is_whole:
            return
        findings, lower = self.query_one(DiagnosisList), self.query_one("#lower")
        if not self.has_class("-high") or self.has_class("-narrow") or not self.answered:
            findings.styles.height = lower.styles.height = None
            return
        rows = max(table.count or _EMPTY_LINES for table in lower.query(Table))
        self._needed = max(self._needed[0], findings.lines_needed), max(self._needed[1], rows)
        body, graphs = self.query_one("#body").size.height, self.query_one(Graphs).outer_size.height
        least, most = _LOWER
        panels = min(max(round(body * _LOWER_SHARE), least), most, max(self._needed[1] + 1 + _FRAME, least))
        room = body - graphs - self.query_one("#numbers").outer_size.height - panels - _FRAME - _BACKLOGS
        lines = max(min(self._needed[0], _FINDINGS[1], room), _FINDINGS[0])
        lower.styles.height, findings.styles.height = panels, lines + _FRAME

    def _widen(self) -> None:
        """Add the panels at the side to a screen that has become wide."""
        self.query_one("#middle").mount(Vertical(BoxFacts(), _table(BUSIEST), id="side"))
        self._count = 0
        self.ask_again()

    def load(self) -> Callable[[], Any]:
        """Return a function that queries numbers and tables in turns; all until the first answer and in history."""
        feed, at = self.top.feed, self.top.at
        turn = _ALL if not (self._count and self.answered) or at is not None else _TURNS[self._count % len(_TURNS)]
        self._count += 1
        shown = panels(self.size.width or self.app.size.width)

        def ask() -> tuple[list[ViewSnapshot | FeedError | None], BacklogsBehind | None]:
            found: list[ViewSnapshot | FeedError | None] = [feed.view(of_numbers(at)) if _NUMBERS in turn else None]
            for number, panel in enumerate(shown, 1):
                try:
                    found.append(feed.view(of_panel(panel, at)) if number in turn else None)
                except FeedError as trouble:
                    if trouble.is_gone:
                        raise
                    found.append(trouble)
            backlogs = found[1]
            if _BEHIND not in turn or not isinstance(backlogs, ViewSnapshot):
                return found, None
            return found, backlogs_behind(feed, len(backlogs.rows), backlogs.matching, at)

        return ask

    def show(self, answer: Any) -> None:
        """Draw diagnosis, graphs, numbers and tables."""
        (first, *tables), behind = answer
        if first is not None:
            self._show_numbers(first)
        for panel, found in zip((*PANELS, BUSIEST), tables, strict=False):
            tables_shown = self.query(f"#{panel.view.name}").results(Table)
            if found is not None:
                for table in tables_shown:
                    self._show_table(panel, table, found)
        if behind is not None:
            self._behind = behind
        self.query_one(DiagnosisList).show(self.diagnosis())
        self._fit_panels()
        if self.top.guide is not None:
            self.top.guide.point(type(self).__name__, self.query_one("#subscriptions", Table))

    def unanswered(self, trouble: FeedError) -> None:
        """Replace the texts of panels that have never been loaded."""
        if not self.answered:
            self.add_class("-unknown")
            for each in (self.query_one(DiagnosisList), *self.query(Table), *self.query(BoxFacts)):
                each.empty = no_rows(trouble, self.facts_of_trouble())
                each.refresh()

    def _show_numbers(self, first: ViewSnapshot) -> None:
        self.top.update_vitals(first)
        self._totals, self._now = first.totals, first.now
        self._series_end, self.values_at = first.series_end, first.series_end or first.now
        graphs = self.query_one(Graphs)
        for name in ("publishRate", "deliverRate", "backlog", "p99"):
            graphs.show(name, first.series.get(name) or (), first.totals.get(name), first.step)
        self.query_one("#numbers", Line).put(_numbers(first.totals))
        self.remove_class("-unknown")
        for facts in self.query(BoxFacts):
            facts.show(first.totals)

    def _show_table(self, panel: Panel, table: Table, found: ViewSnapshot | FeedError) -> None:
        if isinstance(found, FeedError):
            table.empty = no_rows(found, self.facts_of_trouble())
            table.show((), 0, 0)
            return
        view = panel.view
        has_topics = self.top.vitals.get("topics")
        empty = panel.empty if view is not views.SUBSCRIPTIONS or has_topics else view.empty
        table.empty = self._advising(empty)
        table.set_subtitle(_counted(found))
        table.unknown = found.unknown
        table.show(found.rows, 0, len(found.rows))
        self._rows[view.name] = found.rows

    def _advising(self, text: str) -> str:
        """Return a text with the command that it advises for this box, in history without."""
        return self.advising(command_lines.told_with_target(text, self.top.target))

    def diagnosis(self) -> list[BoxFinding]:
        """Return the findings about what is shown."""
        rows = self._rows
        found = diagnosed(
            OverviewFacts(
                self._totals,
                rows.get("subscriptions", ()),
                rows.get("quotas", ()),
                rows.get("deadletters", ()),
                self._now,
                *self._behind,
            )
        )
        return [each._replace(text=self._advising(each.text)) for each in found]

    @on(DiagnosisList.Chosen)
    def _go(self, event: DiagnosisList.Chosen) -> None:
        """Open the screen of a finding with its row, and the menu with its remedy selected."""
        found = event.finding
        if found is None or found.severity == CALM:
            self.query_one("#subscriptions", Table).action_choose()
        elif found.row is None:
            self.top.go(found.screen)
        else:
            self.top.open_remedy(_screen_of(found), self._remedy_of(found))

    def _remedy_of(self, found: BoxFinding) -> str:
        """Return the action that helps; empty if it is not available, as in history or read-only."""
        action = BY_NAME.get(found.remedy)
        if action is None or (action.deed is not None and self.top.read_only):
            return ""
        return found.remedy if self.top.at is None or action.has_past else ""

    @on(DiagnosisList.Moved)
    def _pointed(self) -> None:
        self.refresh_status_lines()

    @on(DiagnosisList.Left)
    def _down(self) -> None:
        self.set_focus(self.query_one("#subscriptions", Table))

    @on(Table.Left)
    def _up(self, event: Table.Left) -> None:
        self.set_focus(self.query_one(DiagnosisList))

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
        """Return the subscription of the cursor as the target of actions: in the diagnosis, that of the finding."""
        findings = self.query_one(DiagnosisList)
        if findings.has_focus:
            found = findings.pointed
            row = found.row if found is not None and found.screen == "subscriptions" else None
        else:
            row = self.pointed()
        return () if row is None else (row,)

    def opens_now(self) -> str:
        """Return what enter opens: the finding, the subscription, or the screen of the table with the focus."""
        focused = self.focused
        if isinstance(focused, DiagnosisList) and focused.pointed is not None and focused.pointed.screen:
            return self.opens
        table = focused if isinstance(focused, Table) else self.query_one("#subscriptions", Table)
        return self.opens if table.pointed is not None else ""

    def do_menu(self) -> None:
        """Open the menu of the subscription; for a finding about something else, do what enter does."""
        findings = self.query_one(DiagnosisList)
        found = findings.pointed
        if findings.has_focus and found is not None and found.screen and not self.rows_chosen():
            findings.action_choose()
        else:
            super().do_menu()

    def status_line(self) -> list[Part]:
        """Return where the selected finding leads, or why the selected subscription gets no messages."""
        findings = self.query_one(DiagnosisList)
        if findings.has_focus and findings.pointed is not None and findings.pointed.screen:
            return self.with_command(_way_to(findings.pointed, self._remedy_of(findings.pointed)))
        row = self.pointed()
        if (
            row is None
            or not row.get("causeText")
            or row.get("cause") in (None, "end-of-log")
            or numbers.keeps_up(dict(row))
        ):
            return self.with_command(reasons(self.query_one("#subscriptions", Table).reasons()))
        cause = (str(row["causeText"]), cause_look(row) or "plain", "")
        return self.with_command([(f" {row.get('subscription')}: ", "dim", ""), cause])

    def command_line(self) -> str:
        """Return the command for a snapshot."""
        return self.line("top", "--once", *self.top.feed.scope_words)

    def past_command(self) -> str:
        """Return the command for a snapshot of the time of history, which is not recorded per tenant."""
        return "" if self.top.feed.scope else self.past_line("--once")

    def advised_command(self) -> str:
        """Return the command that the diagnosis or the empty table with the focus advises."""
        focused = self.focused
        if isinstance(focused, DiagnosisList) and focused.pointed is not None:
            return command_lines.parted(focused.pointed.text)[1]
        if isinstance(focused, Table) and self.answered and not focused.count:
            return command_lines.parted(focused.empty)[1]
        return ""

    def end_of_graphs(self) -> str:
        """See TopScreen. The values of a stopped box are never of now."""
        return numbers.moment(self._series_end) if self._series_end else super().end_of_graphs()


def _screen_of(found: BoxFinding) -> tuple[str, Any]:
    """Return the screen with the row of a finding, and its argument: a row or a filter."""
    from pulsarbox.tui.screens.topics import quoted

    row = found.row or {}
    if found.screen == "subscriptions":
        return "subscription:SubscriptionDetails", row
    if found.screen == "quotas":
        subject, policy = quoted(real(row, "subject")), quoted(real(row, "policy"))
        return "quotas:Quotas", f"subject == {subject} and policy == {policy}"
    return "dead_letters:DeadLettersScreen", f"topic == {quoted(real(row, 'topic'))}"


def _way_to(found: BoxFinding, action: str) -> list[Part]:
    """Return where enter leads from a finding, and the action that it offers there, empty for none."""
    title = _ROWS.get(found.screen, "") if found.row is not None else ""
    title = title or BY_NAME[found.screen].title.removeprefix("Go to: ")
    remedy = f", with '{BY_NAME[action].hint or BY_NAME[action].title}' selected" if action else ""
    return [(" ", "plain", ""), ("enter", "key", ""), (f" opens {title}{remedy}", "plain", "")]


_ROWS: Final = {"subscriptions": "the subscription", "quotas": "the limit", "deadletters": "the topic"}
"""Name of the object that enter opens, for findings about a row, by the screen of the row."""


def _table(panel: Panel) -> Table:
    table = Table(panel.columns, panel.view.identity, key=panel.view.name, classes="panel")
    table.shows_blurred_cursor = False
    table.border_title = panel.title
    table.empty = numbers.LOADING
    return table


def _counted(found: ViewSnapshot) -> str:
    """Return how many rows there are; the panel has the first of them."""
    return numbers.count(found.matching) if found.matching else ""


def _numbers(totals: Any) -> list[Part]:
    parts: list[Part] = [(" ", "plain", "")]
    found = [(each, totals[each.key]) for each in PROBLEMS if totals.get(each.key)]
    # problems first, because a narrow line truncates the rest
    parts += [(f"{each.told(count)}  ", each.look, each.screen) for each, count in found]
    for name in ("topics", "subscriptions", "producers", "consumers", "connections"):
        if totals.get(name) is not None:
            where = {"topics": "topics", "subscriptions": "subscriptions"}.get(name, "clients")
            parts += [(f"{name} ", "dim", where), (f"{numbers.count(totals[name])}  ", "plain", where)]
    if totals.get("diskUsed") is not None:
        parts += [("disk ", "dim", "storage"), (numbers.size(totals["diskUsed"]), "plain", "storage")]
        if totals.get("diskFree") is not None:
            parts.append((f" ({numbers.size(totals['diskFree'])} free)", "plain", "storage"))
    return parts
