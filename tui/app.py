"""The application: which screens there are, what all of them share, and where one goes from where."""

import gc
import importlib
import os
from collections.abc import Callable, Iterable, Mapping, Sequence
from functools import partial
from textwrap import wrap
from typing import Any, ClassVar, Final

from rich.text import Text
from textual.app import App, ScreenStackError, SystemCommand
from textual.binding import Binding, BindingType
from textual.command import DiscoveryHit, Hit, Hits, Provider
from textual.screen import Screen

from pulsarbox.tui.actions.action_table import BY_NAME, PLACES, REGISTRY, chosen_keys
from pulsarbox.tui.actions.box_queries import of_vitals
from pulsarbox.tui.feed import Feed, Snapshot, Trouble, aside
from pulsarbox.tui.position_input import instant, now_ms
from pulsarbox.tui.preferences import Kept
from pulsarbox.tui.themes import DARK, OURS
from pulsarbox.tui.widgets.box_label import Label

INTERVAL: Final = 0.5
"""Seconds between two questions: twice a second is as fast as eyes are."""
_VITALS_SECONDS: Final = 2.0
_TITLE_WIDTH: Final = 41
"""Of a line of help, so that it has room in 80 columns."""
_COLLECTED_SECONDS: Final = 1.0
"""How long garbage is left alone where it is until the first screen is seen."""
INTERVAL_MIN: Final = 0.1
INTERVAL_MAX: Final = 60.0

SCREENS: Final[dict[str, str]] = {
    "overview": "overview:Overview",
    "topics": "topics:Topics",
    "subscriptions": "subscriptions:Subscriptions",
    "quotas": "quotas:Quotas",
    "deadletters": "dead_letters:DeadLetters",
    "clients": "clients:Clients",
    "storage": "storage:Storage",
    "plugins": "plugins:Plugins",
    "events": "events:Events",
    "jobs": "jobs:Jobs",
    "pipelines": "pipelines:Pipelines",
}
"""Module and class of each, below ``pulsarbox.tui.screens``; imported when it is first gone to."""


def _collect() -> None:
    """From now on, and without looking again and again at all that was there from the beginning."""
    gc.freeze()
    gc.enable()


def made(name: str, *args: Any) -> Screen[Any]:
    """A screen of ``SCREENS``, or one that has no key, by ``module:Class``."""
    module, _, cls = SCREENS.get(name, name).partition(":")
    screen = getattr(importlib.import_module(f"pulsarbox.tui.screens.{module}"), cls)(*args)
    assert isinstance(screen, Screen)
    return screen


class Actions(Provider):
    """The palette: all actions of the registry, with their keys."""

    async def discover(self) -> Hits:
        """All of them."""
        for action in REGISTRY:
            yield DiscoveryHit(
                _shown(action.title, action.shown_keys), partial(self._act, action.name), help=action.name
            )

    async def search(self, query: str) -> Hits:
        """Those that fit."""
        matcher = self.matcher(query)
        for action in REGISTRY:
            text = f"{action.title} ({action.name})"
            score = matcher.match(text)
            if score > 0:
                yield Hit(score, matcher.highlight(text), partial(self._act, action.name), help=action.shown_keys)

    def _act(self, name: str) -> None:
        screen: Any = self.screen
        screen.act(name)


def _shown(title: str, keys: str) -> Text:
    return Text(f"{title}  [{keys}]" if keys else title)


class Top(App[None]):
    """``pulsarbox top``."""

    TITLE = "pulsarbox"
    ENABLE_COMMAND_PALETTE = True
    COMMANDS: ClassVar[set[type[Provider] | Callable[[], type[Provider]]]] = {Actions}
    MODES: ClassVar[dict[str, str | Callable[[], Screen[Any]]]] = {name: partial(made, name) for name in SCREENS}
    DEFAULT_MODE = "overview"
    BINDINGS: ClassVar[list[BindingType]] = [Binding("ctrl+q", "quit", show=False)]
    CSS = """
    Toast { max-width: 90%; }
    ToastRack { margin-bottom: 2; }
    """

    _has_theme = False
    _has_panicked = False

    def __init__(
        self,
        feed: Feed,
        *,
        kept: Kept | None = None,
        interval: float = INTERVAL,
        read_only: bool = False,
        at: int | None = None,
        passing: str = "",
        place: str = "overview",
        target: Sequence[str] = (),
    ) -> None:
        """``target``: the options that name the box on a command line. ``passing``: a filter for the first screen."""
        self.__dict__["DEFAULT_MODE"] = place  # so that no other screen is made first
        super().__init__()
        self.feed = feed
        self.kept = kept or Kept(None)
        self.interval = interval
        self.read_only = read_only
        self.at = at
        self.filter = passing
        self.target = tuple(target)
        self.label: Label | None = None
        """What the box is to those who look at it, over every screen."""
        self.parent_pid: int | None = None
        """The process that shows this to somebody, if any: nobody looks any more when that has ended."""
        self.ahead = 0
        """Milliseconds by which the box's clock is ahead of ours: history is by its clock."""
        self.paused = False
        self.vitals: dict[str, Any] = {}
        self._given_read_only = read_only
        self._step = 0
        self._since = 0
        self._vitals_asked = False
        self._is_dressed = False
        self._dress()

    def _dress(self) -> None:
        """The theme, before anything is drawn: to change it later is to read all styles again."""
        for theme in OURS:
            self.register_theme(theme)
        known = self.available_themes
        theme = self.kept.checked(
            "theme", "a theme: T shows the next one", lambda value: isinstance(value, str) and value in known
        )
        self.set_reactive(App.theme, theme or DARK.name)
        self._has_theme = True
        self.stylesheet.set_variables(self.get_css_variables())

    def get_css_variables(self) -> dict[str, str]:
        """See textual.app.App. Of the theme that it has at first nothing is computed: nobody sees it."""
        return super().get_css_variables() if self._has_theme else {}

    def refresh_css(self, animate: bool = True) -> None:
        """See textual.app.App. Nothing is seen yet while the first screen is made: all of it is styled then."""
        if self._is_dressed:
            super().refresh_css(animate)

    def on_mount(self) -> None:
        """Keys, and what is asked from time to time."""
        self._is_dressed = True
        self.set_keymap(chosen_keys(self.kept))
        self.set_interval(_VITALS_SECONDS, self.ask_vitals)
        if self.parent_pid is not None:
            self.set_interval(1.0, self._end_with_parent)
        if not gc.isenabled():
            self.set_timer(_COLLECTED_SECONDS, _collect)
        self.kept.listen(lambda note: self.notify(note, severity="warning", markup=False))

    def get_system_commands(self, screen: Screen[Any]) -> Iterable[SystemCommand]:
        """None: the palette has our own."""
        return ()

    # What all screens share

    def learn(self, snapshot: Snapshot) -> None:
        """What an answer says of the box as a whole."""
        if not snapshot.received:  # chosen here, from a list: that says nothing of the box
            return
        told = {name: value for name, value in snapshot.totals.items() if value is not None}
        self.vitals.update(told)
        if snapshot.query.at is None:  # history does not tell
            self.vitals["virtualClock"] = snapshot.virtual_clock
            self.ahead = snapshot.virtual_clock or 0
        self.read_only = self._given_read_only or snapshot.read_only

    def _end_with_parent(self) -> None:
        if os.getppid() != self.parent_pid:
            os._exit(0)  # there is no terminal to be left as it was, and nobody to be told

    @property
    def has_failed(self) -> bool:
        """Whether an error has ended the dashboard."""
        return self._has_panicked or bool(self.return_code)

    def panic(self, *renderables: Any) -> None:
        """See textual.app.App, which leaves the exit code at 0."""
        self._has_panicked = True
        super().panic(*renderables)

    @property
    def seen(self) -> Any:
        """The screen; None while the program ends."""
        try:
            return self.screen
        except ScreenStackError:
            return None

    def ask_vitals(self) -> None:
        """The line at the top goes on while other screens than the overview are seen."""
        busy = self.paused or self.at is not None or getattr(self.seen, "place", "") in ("", "overview")
        if not busy and not self._vitals_asked:
            self._vitals_asked = True
            self.run_worker(self._learn_vitals(), group="vitals")

    async def _learn_vitals(self) -> None:
        try:
            self.learn(await aside(lambda: self.feed.view(of_vitals())))
            retell = getattr(self.seen, "retell", None)
            if retell is not None:
                retell()
        except Trouble:  # the screen says so itself
            pass
        finally:
            self._vitals_asked = False

    def go(self, name: str) -> None:
        """To a screen that has a key; what was opened there before stays open behind it."""
        if name == self.current_mode:
            while len(self.screen_stack) > 1:
                self.pop_screen()
        else:
            self.switch_mode(name)

    def open(self, name: str, *args: Any) -> None:
        """A screen on top of this one."""
        self.push_screen(made(name, *args))

    def do_pause(self) -> None:
        """``p``"""
        self.paused = not self.paused
        self.refreshed()

    def do_faster(self) -> None:
        """``+``"""
        self._ask_every(self.interval / 2)

    def do_slower(self) -> None:
        """``-``"""
        self._ask_every(self.interval * 2)

    def _ask_every(self, seconds: float) -> None:
        self.interval = min(max(seconds, INTERVAL_MIN), INTERVAL_MAX)
        for screen in self.screen_stack:
            repaced = getattr(screen, "repaced", None)
            if repaced is not None:
                repaced()
        self.refreshed()

    def do_theme(self) -> None:
        """``T``"""
        names = [theme.name for theme in OURS] + sorted(set(self.available_themes) - {theme.name for theme in OURS})
        self.theme = names[(names.index(self.theme) + 1) % len(names)] if self.theme in names else names[0]
        self.kept.set("theme", self.theme)
        self.notify(f"theme: {self.theme}", timeout=2)

    def do_quit(self) -> None:
        """``q``"""
        self.exit()

    def do_help(self) -> None:
        """``?``"""
        from pulsarbox.tui.actions.dialogs import Reading

        screen: Any = self.screen
        self.push_screen(
            Reading("Help", help_text(getattr(screen, "kind", ""), getattr(screen, "meanings", lambda: "")()))
        )

    # History

    def do_earlier(self) -> None:
        """``←``"""
        self._travel_by(-1)

    def do_later(self) -> None:
        """``→``"""
        self._travel_by(1)

    def do_much_earlier(self) -> None:
        """Ten steps."""
        self._travel_by(-10)

    def do_much_later(self) -> None:
        """Ten steps."""
        self._travel_by(10)

    def do_live(self) -> None:
        """``n``"""
        if self.at is not None:
            self.at = None
            self.refreshed()

    def box_now(self) -> int:
        """What time it is for the box."""
        return now_ms() + self.ahead

    def instant(self, text: str) -> int:
        """A time as it is typed in, by the clock of the box. Raises Wrong."""
        return instant(text, self.box_now())

    def _travel_by(self, steps: int) -> None:
        if self.at is None:
            self.notify("t goes back in time; then the arrows step", timeout=3)
            return
        at = self.at + steps * (self._step or 10_000)
        if at < self._since:
            at = self._since
            self.notify("Nothing was recorded before that", timeout=3)
        self.at = None if at >= self.box_now() else at
        self.refreshed()

    async def travel(self) -> None:
        """Ask where to, within what is recorded."""
        try:
            told = await aside(lambda: self.feed.ask("GET", "/pulsarbox/v1/history"))
            if not isinstance(told, Mapping) or not told.get("from"):
                raise Trouble("nothing is recorded yet")
        except Trouble as trouble:
            self.notify(f"There is no history: {trouble}", severity="warning", markup=False)
            return
        self._step, self._since = int(told.get("step") or 10_000), int(told["from"])
        from pulsarbox.tui.actions.dialogs import Question
        from pulsarbox.tui.widgets.numbers import instant as written

        hint = f"-8h, 03:12, 2026-11-21 10:00; empty: now. Recorded since {written(told['from'])[:16]}"
        question = Question("Go to the time", hint, "", lambda text: text and self.instant(text))
        found = await self.push_screen_wait(question)
        if found is None:
            return
        at = self.instant(found) if found.strip() else None
        if at is not None and at < self._since:
            at = self._since
            self.notify("That is before what is recorded: this is its beginning", severity="warning")
        self.at = at
        self.refreshed()

    def refreshed(self) -> None:
        """What is seen is asked for anew."""
        screen: Any = self.screen
        if hasattr(screen, "ask_again"):
            screen.ask_again()
            screen.retell()


def help_text(kind: str, meanings: str) -> str:
    """All keys, by what they are for; what can be done with the rows of this screen first."""
    parts = []
    fitting = [action for action in REGISTRY if kind and kind in action.on]
    if fitting:
        parts.append("With the row, or with all marked ones (space)\n" + _listed(fitting))
    parts += [
        f"{group}\n" + _listed([each for each in REGISTRY if each.group == group and not each.on])
        for group in ("View", "Screens", "Program")
    ]
    parts.append(
        "In tables\n"
        "  ↑ ↓ j k     up, down; page up, page down, home, end, g, G\n"
        "  enter       open the row; space: mark it\n"
        "  mouse       click: point; twice: open; a heading: sort; the wheel: scroll\n"
        "Keys can be others: top.json in the configuration directory, docs/tui.md"
    )
    if meanings:
        parts.append("Columns\n" + meanings)
    return "\n\n".join(parts)


def _listed(actions: Sequence[Any]) -> str:
    told = (wrap(each.title, _TITLE_WIDTH) for each in actions)
    return "\n".join(
        f"  {each.shown_keys:<7} :{each.name:<13} " + f"\n{' ' * 25}".join(lines)
        for each, lines in zip(actions, told, strict=True)
    )


assert {name for name, _, _, _ in PLACES} == set(SCREENS)
assert all(name in BY_NAME for name in SCREENS)
