"""Base class of screens: periodic refresh while visible, status lines, prompts and actions."""

import time
from collections.abc import Sequence
from functools import partial
from typing import TYPE_CHECKING, Any, ClassVar, Final, TypeVar

from rich.cells import cell_len
from rich.style import Style
from textual import events, on
from textual.app import ComposeResult
from textual.binding import BindingType
from textual.containers import Vertical
from textual.screen import Screen
from textual.widgets import Input, Static

from pulsarbox.cleaning import clean
from pulsarbox.tui.actions.action_table import BY_NAME, PLACES, for_row, named
from pulsarbox.tui.actions.dry_run import is_dry
from pulsarbox.tui.actions.key_bindings import bindings
from pulsarbox.tui.actions.operation import default_of
from pulsarbox.tui.actions.replay_operations import JOBS
from pulsarbox.tui.feed import FeedError, ViewSnapshot, aside, real
from pulsarbox.tui.screens.trouble import ScreenFacts, trouble_line
from pulsarbox.tui.widgets import command_lines, numbers
from pulsarbox.tui.widgets.bars import Line, Part, tabs, vitals
from pulsarbox.tui.widgets.key_hints import MARK, OPEN, PRESSED, hint_line

if TYPE_CHECKING:
    from pulsarbox.tui.actions.action_table import Action
    from pulsarbox.tui.actions.operation import OperationSpec, Request, Row, Values
    from pulsarbox.tui.app import Top

T = TypeVar("T")

_TITLES: Final = {name: title for name, title, _, _ in PLACES}
_PAST: Final = ("earlier", "later", "live")
"""Actions hinted in history."""
_COMMAND_HINT: Final = "command: sub clear, topics, theme, quit ..."


class TopScreen(Screen[None]):
    """A screen with two lines at the top, a body, and two lines at the bottom."""

    BINDINGS: ClassVar[list[BindingType]] = bindings()
    DEFAULT_CSS = """
    TopScreen { background: $background; }
    TopScreen #trouble { height: auto; max-height: 3; padding: 0 1; background: $error 15%; color: $text-error;
                         text-style: bold; }
    TopScreen #trouble:nocolor { background: $foreground; color: $background; }
    TopScreen #trouble:ansi { background: ansi_default; text-style: bold reverse; }
    TopScreen #body { height: 1fr; }
    """
    place: ClassVar[str] = ""
    """Name in ``action_table.PLACES``; for a subordinate screen, that of its main screen."""
    kind: ClassVar[str] = ""
    """Kind of its rows, which determines the available actions."""
    hinted: ClassVar[Sequence[str]] = ("filter", "sort", "menu", "copy", "time travel", "pause", "help", "quit")
    """Actions hinted in the last line, which fit into 80 columns."""
    hinted_wide: ClassVar[Sequence[str]] = ()
    """Further hints for wider terminals, the most important ones first."""
    opens: ClassVar[str] = ""
    """Name of what enter opens, for its hint; empty for none."""

    def __init__(self) -> None:
        super().__init__()
        self.latest: Any = None
        self.trouble: FeedError | None = None
        self.answered = 0.0
        self.remedy = ""
        """Action to select in the menu of the row, which opens with the first response; empty for none."""
        self._asking = False
        self._again = False
        self._asked = 0
        self._was_seen = False
        self._dry_runs: list[str] = []
        """IDs of the dry runs that were started last."""
        self._hints = Line(key="hints")

    @property
    def top(self) -> "Top":
        """The application."""
        app: Any = self.app
        found: Top = app
        return found

    def compose(self) -> ComposeResult:
        """See textual.screen.Screen."""
        first = Line(key="vitals")
        if self.top.label is not None:
            colors = Style(color=self.top.label.ink, bgcolor=self.top.label.ground, bold=True)
            first.dress = Style(reverse=True, bold=True) if self.top.no_color else colors
        yield first
        yield Line(key="tabs")
        if self.top.guide is not None:
            from pulsarbox.tui.widgets.tour_guide import GuideStrip

            yield GuideStrip(self.top.guide)
        with Vertical(id="body"):
            yield from self.body()
        yield Line(key="told")
        yield self._hints

    def body(self) -> ComposeResult:
        """Compose the body between the lines."""
        yield from ()

    # Queries

    def on_mount(self) -> None:
        """Start; not for overriding, because Textual calls this method of every class in the hierarchy."""
        self.begin()

    def begin(self) -> None:
        """Start the periodic refresh."""
        self._timer = self.set_interval(self.top.interval, self._tick)
        self.set_interval(1.0, self._second)

    def on_screen_resume(self, event: events.ScreenResume) -> None:
        """Refresh when the screen becomes visible."""
        if not self._was_seen:
            self._was_seen = True
            event.refresh_styles = False  # it has just been styled on creation
        self.ask_again()
        self.top.ask_vitals()
        self.refresh_status_lines()

    @property
    def is_seen(self) -> bool:
        """Whether no other screen or dialog covers it."""
        return self.top.active_screen is self

    @property
    def is_whole(self) -> bool:
        """Whether all its parts are mounted. During shutdown, a response may arrive after they are removed."""
        return self.is_attached and self.is_mounted and self._hints in self.children

    def _tick(self) -> None:
        if self.is_seen and not self.top.paused and not self._asking and self.top.at is None:
            self.ask_again()

    def repaced(self) -> None:
        """Apply a changed refresh interval."""
        self._timer.stop()
        self._timer = self.set_interval(self.top.interval, self._tick)

    def _second(self) -> None:
        if self.is_seen:
            self.refresh_status_lines()

    def ask_again(self) -> None:
        """Query the box now. A response still pending is outdated and not shown."""
        self._asked += 1
        if self._asking:
            self._again = True
            return
        self._asking = True
        work: Any = self._ask  # called by the worker: a coroutine object would be left if the app exits
        self.run_worker(work, group="asking", exclusive=False)

    async def _ask(self) -> None:
        try:
            while True:
                self._again = False
                number = self._asked
                try:
                    answer = await aside(self.load())
                except FeedError as trouble:
                    if number == self._asked:
                        self.failed(trouble)
                else:
                    if answer is None and self.top.lost is not None:  # nothing was requested, and the box is lost
                        self.failed(self.top.lost)
                    elif self.is_whole and number == self._asked:
                        self.arrived(answer)
                if not self._again:
                    break
        finally:
            self._asking = False
        if self.top.at is not None and self.is_whole:
            self.refresh_status_lines()

    def load(self) -> Any:
        """Return a function that queries all data of this screen. It runs in another thread."""
        return lambda: None

    def arrived(self, answer: Any) -> None:
        """Process a response."""
        was, self.trouble = self.trouble, None
        if not self.answered:
            for each in self.query(Static):  # on the first screen, they keep colours from before the styling
                each.notify_style_update()
                each.refresh()
        self.answered = time.monotonic()
        if was is not None:
            self.query("#trouble").set(display=False)
        if was is not None and was.is_gone:
            self.top.notify("The box is reachable again.", timeout=4)
        self.latest = answer
        if isinstance(answer, ViewSnapshot):
            self.top.update_vitals(answer)
        self.show(answer)
        self.refresh_status_lines()
        if self.remedy:
            remedy, self.remedy = self.remedy, ""
            self.run_worker(self._menu(remedy), group="dialog")

    def failed(self, trouble: FeedError) -> None:
        """Process an error, and keep showing the last data."""
        self.trouble = trouble
        if not self.is_whole:
            return
        text = trouble_line(trouble, self.facts_of_trouble())
        told = next(iter(self.query("#trouble").results(Static)), None)
        if told is None:
            self.mount(Static(text, id="trouble", markup=False), before="#body")
        else:
            told.update(text)
            told.display = True
        self.unanswered(trouble)
        self.refresh_status_lines()

    def facts_of_trouble(self) -> ScreenFacts:
        """Return the state of this screen for the texts of an error."""
        age = time.monotonic() - self.answered if self.answered else None
        return ScreenFacts(self.top.feed.label, _TITLES.get(self.place, "This screen"), self.top.at is not None, age)

    def show(self, answer: Any) -> None:
        """Draw a response."""

    def unanswered(self, trouble: FeedError) -> None:
        """React to an error."""

    # Lines

    def refresh_status_lines(self) -> None:
        """Update the lines at the top and bottom."""
        if not self.is_whole:
            return
        width = self.size.width
        label = self.top.label
        self.query_one("#vitals", Line).put(
            vitals(self.top.feed.label, self.top.vitals, width, label.text if label else ""), self._badges()
        )
        self.query_one("#tabs", Line).put(tabs(self.app.current_mode, width))
        names = self.hints_now()
        first = 0 if self.top.at is None else len(_PAST)
        self._hints.put(hint_line(names, self._further_hints(names), width, self.opens_now(), first))
        self.query_one("#told", Line).put(self.status_line())
        if self.top.guide is not None:
            if self.is_current:
                self.top.guide.opened(type(self).__name__, in_the_past=self.top.at is not None)
            guide: Any = self.query_one("#guide")
            guide.turn()

    def hints_now(self) -> list[str]:
        """Return the hinted actions, without those that do not apply to the row.

        In history, its keys come first, in place of actions on what is there now.
        """
        rows = self.rows_chosen()
        names = [name for name in self.hinted if not rows or BY_NAME[name].fits(rows[0])]
        if not (self.actions_for(rows[0]) if rows else for_row(self.kind)):
            names = [name for name in names if name != "menu"]
        return names if self.top.at is None else [*_PAST, *(name for name in names if BY_NAME[name].has_past)]

    def opens_now(self) -> str:
        """Return the name of what enter opens now; empty for nothing."""
        return self.opens if self.rows_chosen() else ""

    def can_mark(self) -> bool:
        """Whether there are rows to mark for an action."""
        return False

    def _further_hints(self, names: Sequence[str]) -> list[str]:
        """Return the hints that apply beside ``names``, the most important ones first."""
        rows = self.rows_chosen()
        more = [OPEN] if self.opens_now() else []
        for name in self.hinted_wide:
            is_apt = self.can_mark() if name == MARK else name not in names and self.applies(name, rows)
            more += [name] if is_apt else []
        return more

    def applies(self, name: str, rows: "Sequence[Row]") -> bool:
        """Return whether an action hinted on wide terminals applies to what is shown."""
        return bool(rows) and BY_NAME[name].fits(rows[0]) and (self.top.at is None or BY_NAME[name].has_past)

    def _badges(self) -> list[Part]:
        top = self.top
        badges: list[Part] = []
        if top.read_only:
            badges.append((" read-only ", "badge", ""))
        if top.at is not None:
            if self._asking:  # the shown data is still of another time
                badges.append((" asking ", "dim", ""))
            badges.append((f" ◀ {numbers.moment(top.at)} ", "badge", "live"))
        elif top.paused:
            badges.append((" paused ", "badge", "pause"))
        else:
            age = time.monotonic() - self.answered if self.answered else 0.0
            if self.answered and age > 2 * top.interval + 1:
                badges.append((f" stale {numbers.seconds(round(age))} ", "badge", "refresh"))
            elif not self.answered and self.trouble is None:
                badges.append((" asking ", "dim", ""))
        clock = top.vitals.get("virtualClock")
        if clock:
            badges.append((f" clock +{numbers.seconds(clock / 1000)} ", "badge", ""))
        parts = [part for badge in badges for part in (badge, (" ", "plain", ""))]
        if not top.paused and top.at is None:  # otherwise nothing is refreshed
            parts.append((f"every {numbers.seconds(top.interval)} ", "dim", ""))
        return parts

    def status_line(self) -> list[Part]:
        """Return the status line about the cursor's row, by default the equivalent command."""
        line = self.command_line()
        return [(" y ", "key", "copy"), (line, "dim", "copy")] if line else []

    def with_command(self, message: Sequence[Part]) -> list[Part]:
        """Return a message for the status line, and the equivalent command behind it if there is room for both."""
        whole = [*message, ("  ", "plain", ""), *TopScreen.status_line(self)]
        has_room = sum(cell_len(text) for text, _, _ in whole) <= self.size.width
        return whole if has_room and len(whole) > len(message) + 1 else list(message)

    def command_line(self) -> str:
        """Return the command equivalent to this screen or the cursor's row, empty for none."""
        return ""

    # Actions

    def check_action(self, action: str, parameters: tuple[object, ...]) -> bool | None:
        """Disable action keys in an input field, where they are text."""
        return not (action == "act" and isinstance(self.focused, Input))

    def action_act(self, name: str) -> None:
        """Run an action by name."""
        self.act(name)

    @on(Line.Clicked)
    def _clicked(self, event: Line.Clicked) -> None:
        if event.action in PRESSED:
            self.app.simulate_key(PRESSED[event.action])
            return
        self.act(event.action)

    def act(self, name: str) -> None:
        """Run an action by name, or notify why it is unavailable."""
        action = named(name)
        if action is None:
            self.top.notify(f"'{name}' is not a command: ? lists the commands", severity="warning", markup=False)
            return
        if action.deed is not None:
            self.do_deed(action.deed)
            return
        for holder in (self, self.top):
            method = getattr(holder, action.method, None)
            if method is not None:
                method()
                return
        if any(action.name == place for place in self.top.MODES):
            self.top.go(action.name)
            return
        self.top.notify(f"'{action.name}' is not available on this screen", severity="warning", markup=False)

    def rows_chosen(self) -> "Sequence[Row]":
        """Return the target rows of a deed."""
        return ()

    def do_deed(self, deed: "OperationSpec") -> None:
        """Open the dialog of a deed for the current rows."""
        rows = [row for row in self.rows_chosen() if deed.fits(row)]
        if self.kind not in deed.on or not rows:
            self.top.notify(f"'{deed.name}' has no object on this screen", severity="warning", markup=False)
            return
        if self.top.read_only:
            self.top.notify(
                f"'{deed.name}' changes the box, and the dashboard is read-only", severity="warning", markup=False
            )
            return
        self.run_worker(self._deed(deed, rows), group="deed")

    def do_menu(self) -> None:
        """Open the menu of actions on the row."""
        self.run_worker(self._menu(), group="dialog")

    async def _menu(self, here: str = "") -> None:
        """Open the menu with the action ``here`` selected; not at all if that is unavailable."""
        from pulsarbox.tui.actions.dialogs import ChoiceDialog

        rows = list(self.rows_chosen())
        if not rows and here:
            return
        if not rows:
            self.top.notify("No row is selected", severity="warning")
            return
        title = self.title_of(rows[0]) if len(rows) == 1 else f"{len(rows)} marked rows"
        actions = self.actions_for_all(rows)
        if not actions:
            self.top.notify(f"No action applies to {title}", severity="warning", markup=False)
            return
        options = []
        for action in actions:
            deed = action.deed
            told = ""
            if deed is not None:
                defaults = {field.name: default_of(field, rows[0]) for field in deed.fields}
                told = self.line(*deed.words(rows[0], defaults))
            mark = "! " if deed is not None and deed.danger else "  "
            options.append((action.name, f"{mark}{action.title}", told))
        if here and here not in {name for name, _, _ in options}:
            return
        found = await self.app.push_screen_wait(ChoiceDialog(title, options, here))
        if found is not None:
            self.act_on(found, rows)

    def actions_for(self, row: "Row") -> "list[Action]":
        """Return the actions that apply to a row, without those that change the box if it is read-only."""
        return [
            each
            for each in for_row(self.kind)
            if each.fits(row) and (each.deed is None or (each.deed.fits(row) and not self.top.read_only))
        ]

    def actions_for_all(self, rows: "Sequence[Row]") -> "list[Action]":
        """Return the actions that apply to rows: to several ones only those that change the box, or compare two."""
        if len(rows) == 1:
            return self.actions_for(rows[0])
        found = {action.name for row in rows for action in self.actions_for(row) if action.deed is not None}
        found |= {"difference"} if len(rows) == 2 else set()
        return [action for action in for_row(self.kind) if action.name in found]

    def act_on(self, name: str, rows: "Sequence[Row]") -> None:
        """Run an action on the rows for which the menu was opened, even if the cursor has moved."""
        action = next(each for each in for_row(self.kind) if each.name == name)
        if action.deed is None:
            self.act(name)
        elif self.top.read_only:
            self.top.notify(
                f"'{name}' changes the box, and the dashboard is read-only", severity="warning", markup=False
            )
        else:
            fitting = [row for row in rows if action.deed.fits(row)]
            self.run_worker(self._deed(action.deed, fitting), group="deed")

    def title_of(self, row: "Row") -> str:
        """Return the title of a row."""
        return "  of  ".join(str(row[key]) for key in ("subscription", "topic") if row.get(key))

    def row_meant(self) -> "Row | None":
        """Return the row for an action on a single row, None without one."""
        rows = self.rows_chosen()
        return rows[0] if rows else None

    def do_messages(self) -> None:
        """Browse the messages of the row."""
        row = self.row_meant()
        if row is not None and row.get("topic"):
            self.top.open("messages.browser:Browser", real(row, "topic"), real(row, "subscription"))
        else:
            self.top.notify("Select a row with a topic first", severity="warning")

    def do_cursor_map(self) -> None:
        """Open the cursor map of the subscription."""
        self._open_map("CursorMapScreen")

    def do_key_map(self) -> None:
        """Open the key map of the subscription."""
        self._open_map("KeyMapScreen")

    def _open_map(self, name: str) -> None:
        row = self.row_meant()
        if row is not None and name == "KeyMapScreen" and row.get("type") != "Key_Shared":
            told = f"The key map needs a Key_Shared subscription; this one is {row.get('type') or 'of unknown type'}"
            self.top.notify(told, severity="warning", markup=False)
        elif row is None or self.kind != "subscription":
            self.top.notify("Select a subscription first: 3 lists them", severity="warning")
        else:
            self.top.open(f"maps:{name}", row)

    async def _deed(self, deed: "OperationSpec", rows: "Sequence[Row]") -> None:
        from pulsarbox.tui.actions.dialogs import OperationDialog

        dialog = OperationDialog(deed, rows, self.top.target)
        asked = await self.app.push_screen_wait(dialog)
        if asked and await self.carry_out(deed.title, asked) and self._dry_runs:
            await self._offer(deed, rows, dialog.confirmed, self._dry_runs[-1])

    async def _offer(self, deed: "OperationSpec", rows: "Sequence[Row]", values: "Values", job: str) -> None:
        """Show the result of a dry run, and offer the operation for real."""
        from pulsarbox.tui.actions import dry_run
        from pulsarbox.tui.actions.dry_run_dialog import RUN, DryRunDialog

        try:
            told = await dry_run.finished(self.top.feed, job)
        except FeedError as trouble:
            self.top.notify(
                str(trouble), title="The result of the dry run is unknown", severity="warning", markup=False
            )
            return
        if told is None or not self.is_seen:
            result = "The dry run takes longer; press 0 for its progress" if told is None else dry_run.result_of(told)
            self.top.notify(result, title=f"Dry run: {deed.title}", timeout=10, markup=False)
            return
        dialog = DryRunDialog(clean(dry_run.result_of(told)), dry_run.real_run(told))
        if await self.app.push_screen_wait(dialog) == RUN:
            await self._deed(dry_run.for_real(deed, values), rows)

    async def carry_out(self, title: str, asked: "Sequence[Request]") -> bool:
        """Send the requests in order; stop and notify at the first error. Return whether all succeeded."""
        done = 0
        jobs: list[str] = []
        self._dry_runs = []
        for request in asked:
            try:
                told = await aside(partial(self.top.feed.ask, *request))
            except FeedError as trouble:
                before = f" ({done} of {len(asked)} completed)" if len(asked) > 1 else ""
                self.top.notify(
                    f"{trouble}{before}", title=f"Failed: {title}", severity="error", timeout=10, markup=False
                )
                return False
            done += 1
            if request.target == JOBS and isinstance(told, dict):
                jobs.append(str(told.get("id")))
                self._dry_runs += jobs[-1:] if is_dry(request) else []
        what = "done" if not jobs else f"job {', '.join(jobs)} started; press 0 for its progress"
        if not self._dry_runs:  # the dialog with the result says more
            self.top.notify(f"{title}: {what}" + (f" ({done})" if done > 1 else ""), timeout=4, markup=False)
        self.ask_again()
        return True

    # Prompts

    def open_prompt(self, kind: str, value: str = "", hint: str = "") -> None:
        """Open the input line, with a hint while it is empty."""
        from pulsarbox.tui.widgets.prompt import PromptLine

        lines = self.query(PromptLine)
        line = lines.first() if lines else PromptLine()
        if not lines:  # created on demand, to keep the start fast
            self.mount(line, before="#told")
        line.open(kind, value, hint)
        self.set_focus(line.input)  # now: the next keys are for it

    def close_prompt(self) -> None:
        """Close the input line."""
        self.query_one("#prompt-line").display = False
        self.focus_body()

    def focus_body(self) -> None:
        """Focus the first focusable widget of the body."""
        for each in self.query("#body *"):
            if each.can_focus:
                self.set_focus(each)
                return
        self.set_focus(None)

    @on(Input.Submitted, "Prompt")
    def _submitted(self, event: Input.Submitted) -> None:
        prompt: Any = event.input
        self.close_prompt()
        if prompt.kind == ":":
            if event.value.strip():
                self.act(event.value.strip().removeprefix(":"))
        else:
            self.filtered(event.value.strip())

    def filtered(self, text: str) -> None:
        """Apply a filter."""

    # Common actions

    def do_command(self) -> None:
        """Open the command line."""
        self.open_prompt(":", hint=_COMMAND_HINT)

    def do_refresh(self) -> None:
        """Query the box now."""
        self.ask_again()

    def do_time_travel(self) -> None:
        """Ask for a time in history."""
        self.run_worker(self.top.travel(), group="dialog")

    def do_copy(self) -> None:
        """Copy the equivalent command."""
        from pulsarbox.tui.actions.dialogs import copy

        line = self.command_line()
        if line:
            copy(self, line)

    def do_back(self) -> None:
        """Close this screen unless it is a main one."""
        if len(self.app.screen_stack) > 1:
            self.app.pop_screen()

    def line(self, *words: str) -> str:
        """Return a command line for this box."""
        return command_lines.with_target(words, self.top.target)
