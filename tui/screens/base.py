"""Base class of screens: periodic refresh while visible, status lines, prompts and actions."""

import time
from collections.abc import Sequence
from functools import partial
from typing import TYPE_CHECKING, Any, ClassVar, Final, TypeVar

from rich.style import Style
from textual import events, on
from textual.app import ComposeResult
from textual.binding import Binding, BindingType
from textual.containers import Vertical
from textual.screen import Screen
from textual.suggester import SuggestFromList
from textual.widgets import Input, Static

from pulsarbox.cleaning import clean
from pulsarbox.tui.actions.action_table import BY_NAME, CONTENT, REGISTRY, for_row, named
from pulsarbox.tui.actions.dry_run import is_dry
from pulsarbox.tui.actions.operation import default_of
from pulsarbox.tui.actions.replay_operations import JOBS
from pulsarbox.tui.feed import FeedError, ViewSnapshot, aside, real
from pulsarbox.tui.widgets import command_lines, numbers
from pulsarbox.tui.widgets.bars import Line, Part, hints, tabs, vitals

if TYPE_CHECKING:
    from pulsarbox.tui.actions.operation import OperationSpec, Request, Row, Values
    from pulsarbox.tui.app import Top

T = TypeVar("T")


def bindings(kind: str = "") -> list[BindingType]:
    """Return the default key bindings of all actions, which users may override by name.

    Those of a screen with one message are separate: ``kind`` is ``CONTENT`` for these only.
    """
    return [
        Binding(
            action.keys,
            f"act('{action.name}')",
            action.title,
            show=False,
            id=action.name.replace(" ", "-"),
            priority=True,  # keeps keys in the order in which they are typed
        )
        for action in REGISTRY
        if action.keys and (action.on == (CONTENT,)) == (kind == CONTENT)
    ]


class Prompt(Input, inherit_css=False):
    """Input line for a filter or command. Has its own short CSS, because that of Input takes long to parse."""

    COMPONENT_CLASSES: ClassVar[set[str]] = Input.COMPONENT_CLASSES

    DEFAULT_CSS = """
    Prompt { height: 1; width: 100%; padding: 0 1; display: none; background: $panel; color: $foreground;
             overflow: auto auto; scrollbar-size: 0 0; pointer: text; }
    Prompt > .input--cursor, Prompt > .input--selection { text-style: reverse; }
    Prompt > .input--placeholder, Prompt > .input--suggestion { color: $text-disabled; }
    Prompt:ansi > .input--placeholder, Prompt:ansi > .input--suggestion { color: ansi_default; text-style: dim; }
    """
    BINDINGS: ClassVar[list[BindingType]] = [Binding("escape", "leave", "Back", show=False)]

    def __init__(self) -> None:
        super().__init__(id="prompt")
        self.kind = ""

    def open(self, kind: str, value: str, hint: str) -> None:
        """Open the line for a filter (``/``) or a command (``:``), with a hint while it is empty."""
        words = [action.name for action in REGISTRY] if kind == ":" else []
        self.kind = kind
        self.suggester = SuggestFromList(words) if words else None
        self.placeholder = hint
        self.display = True
        self.value = value
        self.cursor_position = len(value)

    def action_leave(self) -> None:
        """Close the line without input."""
        screen = self.screen
        assert isinstance(screen, TopScreen)
        screen.close_prompt()


NO_DATA: Final = "no data yet; press r to ask again"
"""Text of an empty panel if the box has not answered yet."""
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
        self.run_worker(self._ask(), group="asking", exclusive=False)

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
                    if self.is_whole and number == self._asked:
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
        text = (
            f"✕ {trouble}" if not trouble.is_gone else f"✕ cannot connect to {self.top.feed.label}: {trouble}; retrying"
        )
        if self.answered and trouble.is_gone:
            text += f". Showing data from {numbers.seconds(time.monotonic() - self.answered)} ago."
        if trouble.status in (401, 403):
            text += "  (authenticate with --token-file or a context; docs/security.md)"
        told = next(iter(self.query("#trouble").results(Static)), None)
        if told is None:
            self.mount(Static(text, id="trouble", markup=False), before="#body")
        else:
            told.update(text)
            told.display = True
        self.unanswered(trouble)
        self.refresh_status_lines()

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
        self._hints.put(hints(self.hints_now()))
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
        return names if self.top.at is None else [*_PAST, *(name for name in names if BY_NAME[name].has_past)]

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
        actions = [
            each
            for each in for_row(self.kind)
            if each.fits(rows[0]) and (each.deed is None or (each.deed.fits(rows[0]) and not self.top.read_only))
        ]
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
        title = self.title_of(rows[0]) if len(rows) == 1 else f"{len(rows)} marked rows"
        found = await self.app.push_screen_wait(ChoiceDialog(title, options, here))
        if found is not None:
            self.act_on(found, rows)

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
            self.run_worker(self._deed(action.deed, rows), group="deed")

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
        from pulsarbox.tui.actions.dialogs import ChoiceDialog

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
        result = clean(dry_run.result_of(told))
        options = [("back", "Back", result), ("run", f"{deed.title}, now for real", result)]
        if await self.app.push_screen_wait(ChoiceDialog("Result of the dry run", options)) == "run":
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
        dry = " as a dry run, which changes nothing" if self._dry_runs else ""
        what = "done" if not jobs else f"job {', '.join(jobs)} started{dry}; press 0 for its progress"
        self.top.notify(f"{title}: {what}" + (f" ({done})" if done > 1 else ""), timeout=4, markup=False)
        self.ask_again()
        return True

    # Prompts

    def open_prompt(self, kind: str, value: str = "", hint: str = "") -> None:
        """Open the input line, with a hint while it is empty."""
        prompts = self.query(Prompt)
        prompt = prompts.first() if prompts else Prompt()
        if not prompts:  # created on demand, to keep the start fast
            self.mount(prompt, before="#told")
        prompt.open(kind, value, hint)
        self.set_focus(prompt)  # now: the next keys are for it

    def close_prompt(self) -> None:
        """Close the input line."""
        self.query_one(Prompt).display = False
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
        prompt = event.input
        assert isinstance(prompt, Prompt)
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
