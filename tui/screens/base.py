"""Base class of screens: periodic refresh while visible, status lines, prompts and actions."""

import time
from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any, ClassVar, Final, TypeVar

from rich.cells import cell_len
from rich.style import Style
from textual import events, on
from textual.app import ComposeResult
from textual.containers import Vertical
from textual.widgets import Input, Static

from pulsarbox.tui.actions.action_table import BY_NAME, CONTENT, PLACES, for_row, named
from pulsarbox.tui.actions.key_bindings import bindings
from pulsarbox.tui.feed import FeedError, ViewSnapshot, aside
from pulsarbox.tui.screens.row_actions import RowActions
from pulsarbox.tui.screens.trouble import ScreenFacts, trouble_line
from pulsarbox.tui.widgets import command_lines, numbers
from pulsarbox.tui.widgets.bars import Line, Part, fitted, tabs, vitals
from pulsarbox.tui.widgets.key_hints import MARK, OPEN, PRESSED, hint_line

if TYPE_CHECKING:
    from pulsarbox.tui.actions.action_table import Action
    from pulsarbox.tui.actions.operation import Row
    from pulsarbox.tui.widgets.prompt import Prompt

T = TypeVar("T")

_TITLES: Final = {name: title for name, title, _, _ in PLACES}
_PAST: Final = ("earlier", "later", "live")
"""Actions hinted in history."""
_RETRY: Final = "refresh"
"""Action hinted while the box does not answer, or answers with an error."""
_PAUSE: Final = "pause"
_COMMAND_HINT: Final = "command: sub clear, topics, theme, quit …"


class TopScreen(RowActions):
    """A screen with two lines at the top, a body, and two lines at the bottom."""

    DEFAULT_CSS = """
    TopScreen { background: $background; }
    TopScreen #trouble { height: auto; max-height: 5; padding: 0 1; background: $error 15%; color: $text-error;
                         text-style: bold; }
    TopScreen #trouble:nocolor { background: $foreground; color: $background; }
    TopScreen #trouble:ansi { background: ansi_default; text-style: bold reverse; }
    TopScreen #body { height: 1fr; }
    """
    place: ClassVar[str] = ""
    """Name in ``action_table.PLACES``; for a subordinate screen, that of its main screen."""
    hinted: ClassVar[Sequence[str]] = ("filter", "sort", "menu", "copy", "time travel", "pause", "help", "quit")
    """Actions hinted in the last line, which fit into 80 columns."""
    hinted_wide: ClassVar[Sequence[str]] = ()
    """Further hints for wider terminals, the most important ones first."""
    opens: ClassVar[str] = ""
    """Name of what enter opens, for its hint; empty for none."""

    def __init__(self) -> None:
        super().__init__()
        self._bind()
        self.latest: Any = None
        self.trouble: FeedError | None = None
        self.answered = 0.0
        self.values_at = 0
        """Time of the last values by the clock of the box (ms since 1970), 0 without any."""
        self.remedy = ""
        """Action to select in the menu of the row, which opens with the first response; empty for none."""
        self._asking = False
        self._again = False
        self._asked = 0
        self._was_seen = False
        self._hints = Line(key="hints")

    def _bind(self) -> None:
        """Bind the user's keys to the actions; the same keys of base classes no longer work.

        A keymap of Textual is no alternative: it is the same for all screens, so that a chosen key would replace one of
        the screen with a message, and it cannot bind actions without default keys.
        """
        for each in bindings(self.keys):
            self._bindings.key_to_bindings[each.key] = [each]

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
            self.values_at = answer.now
        self.show(answer)
        self.refresh_status_lines()
        if self.remedy:
            remedy, self.remedy = self.remedy, ""
            self.run_worker(self.menu(remedy), group="dialog")

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
        top = self.top
        age = time.monotonic() - self.answered if self.answered else None
        interval = top.interval if top.at is None and not top.paused else None
        title = _TITLES.get(self.place, "This screen")
        return ScreenFacts(top.feed.label, title, top.at is not None, age, interval, keys=self.keys)

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
        shown = vitals(self.top.feed.label, self.top.vitals, width, label.text if label else "")
        if self._is_lost:  # these are the numbers of the last answer
            shown = [(text, "stale" if look == "plain" else look, action) for text, look, action in shown]
        self.query_one("#vitals", Line).put(shown, self._badges())
        self.query_one("#tabs", Line).put(tabs(self.app.current_mode, width, self.keys))
        self.show_end_of_graphs()
        prompt = self._prompt
        if prompt is not None:
            self._hints.put(prompt.hints)
            self.query_one("#told", Line).put(())
        else:
            status = self.status_line()
            has_copy = any(part[1:] == ("key", "copy") for part in fitted(status, (), width))
            first = self._first_hints()
            taken = {*first, *(["copy"] if has_copy else [])}
            names = [*first, *(name for name in self.hints_now() if name not in taken)]
            more = self._further_hints(names)
            words = self._words_now()
            hinted = hint_line(names, more, width, self.opens_now(), len(first), words, self.keys)
            self._hints.put(hinted)
            is_missing = not has_copy and self.copied_command() and "copy" not in {action for _, _, action in hinted}
            self.query_one("#told", Line).put(status, self.copy_hint if is_missing else ())
        if self.top.guide is not None:
            if self.is_current:
                self.top.guide.opened(type(self).__name__, in_the_past=self.top.at is not None)
            guide: Any = self.query_one("#guide")
            guide.turn()

    def hints_now(self) -> list[str]:
        """Return the hinted actions, without those that do not apply to the row, or in history to what is there now."""
        rows = self.rows_chosen()
        names = [name for name in self.hinted if self._applies_to(BY_NAME[name], rows)]
        idle = {"menu"} if not (rows and self.actions_for(rows[0])) else set[str]()
        idle |= {"copy"} if not self.copied_command() else set()
        names = [name for name in names if name not in idle]
        return [name for name in names if self.top.at is None or BY_NAME[name].has_past]

    def _first_hints(self) -> Sequence[str]:
        """Return the actions whose hints come first: the keys of history, or those that end trouble or a pause."""
        if self.top.at is not None:
            return _PAST
        return [_RETRY] * (self.trouble is not None) + [_PAUSE] * self.top.paused

    def _applies_to(self, action: "Action", rows: "Sequence[Row]") -> bool:
        """Return whether an action applies to the chosen rows, or to the one of the cursor if it does not change it."""
        row = self.row_meant() if action.deed is None else next(iter(rows), None)
        return not action.needs_row if row is None else action.fits(row)

    def _words_now(self) -> Mapping[str, str]:
        """Return the words of hinted actions that now do something else than their usual word says."""
        return {_RETRY: "retry", _PAUSE: "resume" if self.top.paused else "pause"}

    @property
    def _prompt(self) -> "Prompt | None":
        """The input line, if the keys are its text."""
        focused: Any = self.focused
        return focused if getattr(focused, "id", "") == "prompt" else None

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
        action = BY_NAME[name]
        return self._applies_to(action, rows) and (self.top.at is None or action.has_past)

    @property
    def _is_lost(self) -> bool:
        """Whether the box cannot be reached."""
        return self.top.lost is not None or (self.trouble is not None and self.trouble.is_gone)

    def end_of_graphs(self) -> str:
        """Return the time at the right end of graphs: now, or that of their last values if these are not renewed."""
        is_now = self.top.at is None and not self.top.paused and not self._is_lost
        time = self.values_at or self.top.at
        return "now" if is_now or not time else numbers.moment(time)

    def show_end_of_graphs(self) -> None:
        """Update the time at the right end of all graphs."""
        graphs: Any
        for graphs in self.query("#graphs"):
            graphs.show_end(self.end_of_graphs())

    def _badges(self) -> list[Part]:
        top = self.top
        badges: list[Part] = []
        if top.read_only:
            badges.append((" read-only ", "badge", ""))
        if top.at is not None:
            if self._asking:  # the shown data is still of another time
                badges.append((f" {numbers.LOADING} ", "dim", ""))
            badges.append((f" ◀ {numbers.moment(top.at)} ", "badge", "live"))
        elif top.paused:
            badges.append((" paused ", "badge", "pause"))
        elif self._is_lost:
            badges.append((" no connection ", "badge", "refresh"))
        else:
            age = time.monotonic() - self.answered if self.answered else 0.0
            if self.answered and age > 2 * top.interval + 1:
                badges.append((f" stale {numbers.seconds(round(age))} ", "badge", "refresh"))
            elif not self.answered and self.trouble is None:
                badges.append((f" {numbers.LOADING} ", "dim", ""))
        clock = top.vitals.get("virtualClock")
        if clock:
            badges.append((f" clock +{numbers.seconds(clock / 1000)} ", "badge", ""))
        parts = [part for badge in badges for part in (badge, (" ", "plain", ""))]
        if not top.paused and top.at is None:  # otherwise nothing is refreshed
            parts.append((f"every {numbers.seconds(top.interval)} ", "dim", ""))
        return parts

    def status_line(self) -> list[Part]:
        """Return the status line about the cursor's row, by default the equivalent command."""
        line = self.copied_command()
        return [self.copy_hint[0], (line, "dim", "copy")] if line else []

    def with_command(self, message: Sequence[Part]) -> list[Part]:
        """Return a message for the status line, and the command behind it if there is room for both."""
        command = TopScreen.status_line(self)
        if not message:
            return command
        whole = [*message, ("  ", "plain", ""), *command]
        has_room = sum(cell_len(text) for text, _, _ in whole) < self.size.width
        return whole if has_room and command else list(message)

    @property
    def copy_hint(self) -> Sequence[Part]:
        """The hint at the end of the status line, if the last line has no room for it."""
        return (f" {self.key_of('copy')} ", "key", "copy"), ("copy ", "dim", "copy")

    def copied_command(self) -> str:
        """Return the command that ``y`` copies, empty for none: the one that an empty table advises comes first."""
        if self.top.at is not None:
            return self.past_command()
        return self.advised_command() or self.command_line()

    def command_line(self) -> str:
        """Return the command equivalent to this screen or the cursor's row, empty for none."""
        return ""

    def advised_command(self) -> str:
        """Return the command that an empty table advises, empty for none."""
        return ""

    def past_command(self) -> str:
        """Return the command that prints what is shown of history, empty for none. Only few commands have a time."""
        return ""

    def past_line(self, *words: str) -> str:
        """Return the command line of ``top`` with these arguments for the time of history that is shown."""
        at = [] if self.top.at is None else command_lines.at_moment(self.top.at)
        return self.line("top", *words, *at, *self.top.feed.scope_words)

    def advising(self, text: str) -> str:
        """Return the text of an empty table; in history without its advice, because that is about what is there now."""
        return text if self.top.at is None else command_lines.without_advice(text)

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

    def offers(self, action: "Action") -> bool:
        """Return whether this screen has an action, if maybe not for each of its rows."""
        if action.on and self.kind not in action.on:
            return False
        if action.name == "menu":
            return self.kind != CONTENT and bool(for_row(self.kind))
        is_here = any(hasattr(holder, action.method) for holder in (self, self.top))
        return is_here or action.deed is not None or action.name in self.top.MODES

    def act(self, name: str) -> None:
        """Run an action by name, or notify why it is unavailable."""
        action = named(name)
        if action is None:
            self.top.notify(
                f"'{name}' is not a command: {self.key_of('help')} lists the commands", severity="warning", markup=False
            )
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
        self.refresh_status_lines()

    def close_prompt(self) -> None:
        """Close the input line."""
        self.query_one("#prompt-line").display = False
        self.focus_body()
        self.refresh_status_lines()

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
        """Copy the equivalent command, or the one that an empty table advises."""
        from pulsarbox.tui.actions.dialogs import copy

        line = self.copied_command()
        if line:
            copy(self, line)

    def do_back(self) -> None:
        """Close this screen unless it is a main one."""
        if len(self.app.screen_stack) > 1:
            self.app.pop_screen()
