"""The dashboard application: its screens, their shared state, and navigation."""

import gc
import importlib
import os
from collections.abc import Callable, Mapping, Sequence
from functools import partial
from itertools import chain
from typing import TYPE_CHECKING, Any, ClassVar, Final

from textual.app import App, ScreenStackError
from textual.binding import Binding, BindingType
from textual.filter import Monochrome, NoColor
from textual.screen import Screen

from pulsarbox.tui.actions.action_table import BY_NAME, CONTENT, PLACES
from pulsarbox.tui.actions.box_queries import of_vitals
from pulsarbox.tui.actions.key_bindings import Keys, chosen_keys, key_or_command, working_keys
from pulsarbox.tui.feed import Feed, FeedError, ViewSnapshot, aside
from pulsarbox.tui.position_input import now_ms, past
from pulsarbox.tui.preferences import Preferences
from pulsarbox.tui.themes import DARK, OURS, REPLACED, edges, grays, grounds, muted
from pulsarbox.tui.widgets.box_label import Label
from pulsarbox.tui.widgets.styles import Looks

if TYPE_CHECKING:
    from rich.terminal_theme import TerminalTheme
    from textual.notifications import SeverityLevel

    from pulsarbox.tui.widgets.tour_guide import TourGuide

INTERVAL: Final = 0.5
"""Default refresh interval in seconds. Faster updates are hard to follow by eye."""
_VITALS_SECONDS: Final = 2.0
_COLLECTED_SECONDS: Final = 1.0
"""Delay of garbage collection after start, until the first screen is shown."""
_TIMELESS: Final = ("clusterName", "virtualClock")
"""Values of the top line that are the same at all times."""
_SEVERITIES: Final = {"warning": "Warning", "error": "Error"}
INTERVAL_MIN: Final = 0.1
INTERVAL_MAX: Final = 60.0

SCREENS: Final[dict[str, str]] = {
    "overview": "overview:Overview",
    "topics": "topics:TopicsScreen",
    "subscriptions": "subscriptions:Subscriptions",
    "quotas": "quotas:Quotas",
    "deadletters": "dead_letters:DeadLettersScreen",
    "clients": "clients:Clients",
    "storage": "storage:Storage",
    "plugins": "plugins:PluginsScreen",
    "events": "events:EventsScreen",
    "jobs": "jobs:JobsScreen",
    "pipelines": "pipelines:PipelinesScreen",
}
"""Module and class of each screen, below ``pulsarbox.tui.screens``; imported on first use."""


def _collect() -> None:
    """Enable garbage collection, excluding the objects created at start."""
    gc.freeze()
    gc.enable()


def made(name: str, *args: Any, **options: Any) -> Screen[Any]:
    """Create a screen of ``SCREENS`` by name, or another one by ``module:Class``."""
    module, _, cls = SCREENS.get(name, name).partition(":")
    screen = getattr(importlib.import_module(f"pulsarbox.tui.screens.{module}"), cls)(*args, **options)
    assert isinstance(screen, Screen)
    return screen


class Top(App[None]):
    """``pulsarbox top``."""

    TITLE = "pulsarbox"
    ENABLE_COMMAND_PALETTE = True
    MODES: ClassVar[dict[str, str | Callable[[], Screen[Any]]]] = {name: partial(made, name) for name in SCREENS}
    DEFAULT_MODE = "overview"
    BINDINGS: ClassVar[list[BindingType]] = [
        Binding("ctrl+q", "quit", show=False),
        Binding("f2", "turn(1)", show=False, priority=True),  # also in dialogs
        Binding("f3", "turn(-1)", show=False, priority=True),
    ]
    CSS = """
    Toast { max-width: 90%; padding: 0 1; background: $surface; }
    Toast.-information { border: round $text-success; }
    Toast.-warning { border: round $text-warning; }
    Toast.-error { border: round $text-error; }
    ToastRack { margin-bottom: 3; }
    ModalScreen ToastRack { dock: top; margin-bottom: 0; }
    VerticalScroll { scrollbar-size-vertical: 1; }
    OptionList { scrollbar-size-vertical: 1; }
    OptionList:nocolor > .option-list--option-highlighted { background: $foreground; color: $background;
      text-style: bold; }
    OptionList:ansi:nocolor > .option-list--option-highlighted { text-style: bold underline; }
    Input:ansi:nocolor > .input--selection, TextArea:ansi:nocolor > .text-area--selection { text-style: reverse; }
    """

    _has_theme = False
    _has_panicked = False

    def __init__(
        self,
        feed: Feed,
        *,
        kept: Preferences | None = None,
        interval: float = INTERVAL,
        read_only: bool = False,
        at: int | None = None,
        passing: str = "",
        place: str = "overview",
        target: Sequence[str] = (),
    ) -> None:
        """``target`` has the command line options that name the box, ``passing`` the filter of the first screen."""
        self.__dict__["DEFAULT_MODE"] = place  # avoids creating another screen first
        super().__init__()
        self.feed = feed
        self.kept = kept or Preferences(None)
        chosen = chosen_keys(self.kept)
        self._keys, self._keys_on_content = working_keys("", chosen), working_keys(CONTENT, chosen)
        self.interval = interval
        self.at = at
        self.filter = passing
        self.target = tuple(target)
        self._label: Label | None = None
        self.guide: TourGuide | None = None
        """Guide of the tour, shown on every screen."""
        self.parent_pid: int | None = None
        """Process that displays this one to a user, if any. The dashboard exits when that process ends."""
        self.ahead = 0
        """Offset of the box's clock in milliseconds. History uses the clock of the box."""
        self.paused = False
        self.marked_message: tuple[str, str, str] | None = None
        """Topic, subscription and ID of the message with which another one is to be compared."""
        self.vitals: dict[str, Any] = {}
        self.lost: FeedError | None = None
        """Why the last request for the vital numbers had no response, None if it had one."""
        self._given_read_only = read_only
        self._is_box_read_only = False
        self._vitals_at: int | None = None
        """Time in history of the vital numbers, None if they are live."""
        self._step = 0
        self._since = 0
        self._vitals_asked = False
        self._is_dressed = False
        self._set_theme()

    def _set_theme(self) -> None:
        """Set the theme before the first drawing, because a later change parses all styles again."""
        for theme in (*OURS, *REPLACED):
            self.register_theme(theme)
        known = self.available_themes
        theme = self.kept.checked(
            "theme", "a theme: T shows the next one", lambda value: isinstance(value, str) and value in known
        )
        self.set_reactive(App.theme, theme or DARK.name)
        self._refresh_truecolor_filter(self.ansi_theme)  # it was created for the initial theme
        self._has_theme = True
        self.stylesheet.set_variables(self.get_css_variables())

    def _refresh_truecolor_filter(self, theme: "TerminalTheme") -> None:
        """See textual.app.App. With NO_COLOR, also use the filter that fits the theme.

        Textual keeps that of its initial theme, whose grays turn the colors of the terminal into black.
        """
        super()._refresh_truecolor_filter(theme)
        if self.no_color:
            others = [each for each in self._filters if not isinstance(each, (Monochrome, NoColor))]
            self._filters = [*others, NoColor() if self.native_ansi_color else Monochrome()]

    def keys_on(self, kind: str) -> Keys:
        """Return the keys of actions on the screens with a kind of rows."""
        return self._keys_on_content if kind == CONTENT else self._keys

    @property
    def label(self) -> Label | None:
        """Label of the box, shown above every screen. Its color is also that of all panels."""
        return self._label

    @label.setter
    def label(self, label: Label | None) -> None:
        self._label = label
        self.stylesheet.set_variables(self.get_css_variables())

    def get_css_variables(self) -> dict[str, str]:
        """See textual.app.App. Skips the initial theme, which is never shown."""
        if not self._has_theme:
            return {}
        self.theme_variables = super().get_css_variables()
        label = None if self.no_color else self._label  # as gray, its color may be that of the background
        self.theme_variables |= edges(self.theme_variables, self.current_theme, label)
        self.theme_variables |= grounds(self.theme_variables) | muted(self.theme_variables)
        if self.no_color:
            self.theme_variables |= grays(self.theme_variables, self.current_theme)
        return self.theme_variables

    def refresh_css(self, animate: bool = True) -> None:
        """See textual.app.App. Does nothing while the first screen is created, which is then styled as a whole."""
        if self._is_dressed:
            # Textual notifies only widgets whose own styles change, and does not know the looks of their parts.
            for screen in chain.from_iterable(self._screen_stacks.values()):
                for each in screen.query("*"):
                    if isinstance(each, Looks):
                        each.notify_style_update()
                        each.refresh()
            super().refresh_css(animate)

    def on_mount(self) -> None:
        """Set the timers."""
        self._is_dressed = True
        self.set_interval(_VITALS_SECONDS, self.ask_vitals)
        if self.parent_pid is not None:
            self.set_interval(1.0, self._end_with_parent)
        if not gc.isenabled():
            self.set_timer(_COLLECTED_SECONDS, _collect)
        self.kept.listen(lambda note: self.notify(note, severity="warning", markup=False))

    def action_command_palette(self) -> None:
        """Open the palette of actions, except above a dialog, which has none."""
        from pulsarbox.tui.actions.action_palette import ActionPalette

        if hasattr(self.screen, "act"):
            self.push_screen(ActionPalette())

    def notify(
        self, message: str, *, title: str = "", severity: "SeverityLevel" = "information", **options: Any
    ) -> None:
        """See textual.app.App. Adds the severity as a title if there is none, because colors alone say nothing."""
        super().notify(message, title=title or _SEVERITIES.get(severity, ""), severity=severity, **options)

    # Shared state of screens

    def update_vitals(self, snapshot: ViewSnapshot) -> None:
        """Update the vital numbers, clock and read-only state from a response."""
        if not snapshot.received:  # built locally from a list, without data about the box
            return
        self.lost = None
        if snapshot.query.at is None:  # history does not contain them
            self.vitals["virtualClock"] = snapshot.virtual_clock
            self.ahead = snapshot.virtual_clock or 0
            self._is_box_read_only = snapshot.read_only
        if snapshot.query.at == self.at:  # otherwise the user has gone to another time meanwhile
            self.vitals.update({name: value for name, value in snapshot.totals.items() if value is not None})
            if snapshot.query.view == "overview":
                self._vitals_at = self.at

    @property
    def read_only(self) -> bool:
        """Whether actions are disabled: by the user, by the box, or because the screen shows history."""
        return self._given_read_only or self._is_box_read_only or self.at is not None

    @read_only.setter
    def read_only(self, value: bool) -> None:
        self._given_read_only = value

    def _end_with_parent(self) -> None:
        if os.getppid() != self.parent_pid:
            os._exit(0)  # no terminal to restore, and no user to notify

    @property
    def has_failed(self) -> bool:
        """Whether the dashboard ended with an error."""
        return self._has_panicked or bool(self.return_code)

    def panic(self, *renderables: Any) -> None:
        """See textual.app.App. Records the failure, because the exit code stays 0."""
        self._has_panicked = True
        super().panic(*renderables)

    @property
    def active_screen(self) -> Any:
        """The active screen, None during shutdown."""
        try:
            return self.screen
        except ScreenStackError:
            return None

    def ask_vitals(self) -> None:
        """Refresh the top line on screens other than the overview. In history, ask once for each time."""
        is_current = self.paused if self.at is None else self._vitals_at == self.at
        busy = is_current or getattr(self.active_screen, "place", "") in ("", "overview")
        if not busy and not self._vitals_asked:
            self._vitals_asked = True
            work: Any = self._learn_vitals  # called by the worker: a coroutine object would be left if the app exits
            self.run_worker(work, group="vitals")

    async def _learn_vitals(self) -> None:
        at, was = self.at, self.lost
        try:
            self.update_vitals(await aside(partial(self.feed.view, of_vitals(at))))
        except FeedError as trouble:  # a screen that queries the box by itself reports others
            self.lost = trouble if trouble.is_gone else None
            if self.lost is None and at == self.at:
                self._vitals_at = at
        finally:
            self._vitals_asked = False
        screen = self.active_screen
        if at != self.at:
            self.ask_vitals()
        if (self.lost is None) != (was is None) and hasattr(screen, "ask_again"):
            screen.ask_again()
        if hasattr(screen, "refresh_status_lines"):
            screen.refresh_status_lines()

    def action_turn(self, steps: int) -> None:
        """Turn to another step of the tour, and show its screen."""
        guide = self.guide
        if guide is None:
            return
        before = guide.at
        guide.turn(steps)
        from pulsarbox.tui.widgets.tour_guide import show_step

        if guide.at == before or not show_step(self, guide.at):
            self.refreshed()

    def go(self, name: str) -> None:
        """Switch to a main screen; screens opened there before stay open. On the current one, close those above it."""
        if name == self.current_mode:
            while len(self.screen_stack) > 1:
                self.pop_screen()
        else:
            self.switch_mode(name)

    def open(self, name: str, *args: Any, **options: Any) -> None:
        """Open a screen on top of the current one."""
        self.push_screen(made(name, *args, **options))

    def open_remedy(self, screen: tuple[str, Any], remedy: str) -> None:
        """Open a screen with its argument, and the menu of its row with this action selected, empty for no menu."""
        opened: Any = made(*screen)
        opened.remedy = remedy
        self.push_screen(opened)

    def do_pause(self) -> None:
        """Pause or resume refreshing."""
        self.paused = not self.paused
        self.refreshed()

    def do_faster(self) -> None:
        """Halve the refresh interval."""
        self._ask_every(self.interval / 2)

    def do_slower(self) -> None:
        """Double the refresh interval."""
        self._ask_every(self.interval * 2)

    def _ask_every(self, seconds: float) -> None:
        self.interval = min(max(seconds, INTERVAL_MIN), INTERVAL_MAX)
        for screen in self.screen_stack:
            repaced = getattr(screen, "repaced", None)
            if repaced is not None:
                repaced()
        self.refreshed()

    def do_theme(self) -> None:
        """Switch to the next theme."""
        names = [theme.name for theme in OURS] + sorted(set(self.available_themes) - {theme.name for theme in OURS})
        self.theme = names[(names.index(self.theme) + 1) % len(names)] if self.theme in names else names[0]
        self.kept.set("theme", self.theme)
        self.call_next(self.refreshed)  # maps are texts with colors, also while refreshing is paused
        self.notify(f"theme: {self.theme}", timeout=2)

    def do_quit(self) -> None:
        """Quit the dashboard."""
        self.exit()

    def do_help(self) -> None:
        """Show the help."""
        from pulsarbox.tui.actions.dialogs import TextDialog
        from pulsarbox.tui.actions.help_text import help_text

        screen: Any = self.screen
        meanings = getattr(screen, "meanings", lambda: "")()
        text, *beside = help_text(screen.kind, meanings, self.size.width, screen.offers, screen.keys)
        self.push_screen(TextDialog("Help", text, beside=beside))

    # History

    def do_earlier(self) -> None:
        """Go back one step in history."""
        self._travel_by(-1)

    def do_later(self) -> None:
        """Go forward one step in history."""
        self._travel_by(1)

    def do_much_earlier(self) -> None:
        """Go back ten steps in history."""
        self._travel_by(-10)

    def do_much_later(self) -> None:
        """Go forward ten steps in history."""
        self._travel_by(10)

    def do_live(self) -> None:
        """Return from history to live data."""
        if self.at is not None:
            self._go_to(None)

    def box_now(self) -> int:
        """Return the current time by the clock of the box, in ms since 1970."""
        return now_ms() + self.ahead

    def instant(self, text: str) -> int:
        """Parse a typed time of history by the clock of the box. Raises Wrong."""
        return past(text, self.box_now())

    def _go_to(self, at: int | None) -> None:
        """Show a time of history, or live data. The numbers of another time are not shown."""
        if at != self.at:
            self.vitals = {name: self.vitals[name] for name in _TIMELESS if name in self.vitals}
            self._vitals_at = None
        self.at = at
        self.refreshed()
        self.ask_vitals()

    def _travel_by(self, steps: int) -> None:
        if self.at is None:
            back, *arrows = (key_or_command(self._keys, name) for name in ("time travel", "earlier", "later"))
            self.notify(f"{back} goes back in time; then {' and '.join(arrows)} step", timeout=3)
            return
        at = self.at + steps * (self._step or 10_000)
        if at < self._since:
            at = self._since
            self.notify("Nothing was recorded before that time", timeout=3)
        self._go_to(None if at >= self.box_now() else at)

    async def _has_history(self) -> bool:
        """Query where the recorded history begins. Return whether there is one; notify the user if not."""
        try:
            told = await aside(lambda: self.feed.ask("GET", "/pulsarbox/v1/history"))
            if not isinstance(told, Mapping) or not told.get("from"):
                raise FeedError("nothing is recorded yet")
        except FeedError as trouble:
            self.notify(f"History is unavailable: {trouble}", severity="warning", markup=False)
            return False
        self._step, self._since = int(told.get("step") or 10_000), int(told["from"])
        return True

    async def travel_back(self, milliseconds: int, is_wanted: Callable[[], bool]) -> None:
        """Go back from now, at most to the begin of the recorded history, if that is still wanted then."""
        if await self._has_history() and is_wanted():
            self._go_to(max(self.box_now() - milliseconds, self._since))

    async def travel(self) -> None:
        """Ask for a time within the recorded history and go there."""
        if not await self._has_history():
            return
        from pulsarbox.tui.actions.dialogs import Question
        from pulsarbox.tui.widgets.numbers import instant as written

        hint = f"-8h, 03:12, 2026-11-21T10:00; empty: now\nRecorded since {written(self._since)[:16]}"
        question = Question("Go to a time", hint, "", lambda text: text and self.instant(text))
        found = await self.push_screen_wait(question)
        if found is None:
            return
        at = self.instant(found) if found.strip() else None
        if at is not None and at < self._since:
            at = self._since
            self.notify("No records that early: showing the earliest", severity="warning")
        self._go_to(at)

    def refreshed(self) -> None:
        """Refresh the active screen."""
        screen: Any = self.screen
        if hasattr(screen, "ask_again"):
            screen.ask_again()
            screen.refresh_status_lines()


assert {name for name, _, _, _ in PLACES} == set(SCREENS)
assert all(name in BY_NAME for name in SCREENS)
