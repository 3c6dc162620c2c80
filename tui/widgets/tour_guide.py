"""The five steps of the tour, one at a time, in a strip below the tabs."""

from collections.abc import Mapping
from textwrap import wrap
from typing import Any, Final, NamedTuple

from textual.content import Content
from textual.screen import ModalScreen
from textual.widgets import Static

from pulsarbox.tui.widgets.dialogs.dialog_keys import key_hints
from pulsarbox.tui.widgets.table import Table

LINES_MAX: Final = 5
"""Lines of a step at most, as in the style of ``GuideStrip``."""

PAST_MS: Final = 60_000
"""How far the last step goes back, as far as is recorded."""


class TourStep(NamedTuple):
    """A step of the tour."""

    screen: str
    """Class of the screen that it describes. Opening that screen turns to the step."""
    text: str
    row: Mapping[str, str] = {}
    """Values of the row that it describes, to which the cursor moves; empty to leave the cursor where it is."""
    place: str = ""
    """Main screen on which ``screen`` is, or from which it is opened; empty to stay."""


STEPS: Final = (
    TourStep(
        "Overview",
        "This shop receives 80 orders a second. Shipping falls behind, as the diagnosis shows; its row is selected."
        " Press enter.",
        {"subscription": "shipping"},
        place="overview",
    ),
    TourStep(
        "SubscriptionDetails",
        "Here are the cause of the backlog, its remedy, and the consumer: one, which takes 20 orders a second. m shows"
        " which messages are acknowledged, y copies the command for what you see. Then press 4.",
        place="overview",
    ),
    TourStep(
        "DeadLettersScreen",
        "fraud-check rejects some orders. After two more attempts the box moves them here, exactly once. f groups them"
        " by failure, enter shows them, x replays them. Then press 5.",
        place="deadletters",
    ),
    TourStep(
        "Quotas",
        "Invoices may be published at 25 a second, but their producer sends 60: it waits. x changes a limit while"
        " clients stay connected: try 100. Then press t and type -1m.",
        {"subject": "persistent://shop/eu/invoices", "policy": "publish-rate"},
        place="quotas",
    ),
    TourStep(
        "",
        "This is the past, which the box has recorded for topics, subscriptions, dead letters, quotas and events: ← and"
        " → step through it, n returns. ? lists the keys of a screen, : runs any action by name. q ends the tour;"
        " nothing is kept.",
    ),
)


class TourGuide:
    """The position in the tour."""

    def __init__(self) -> None:
        self.at = 0
        self.is_closed = False
        """Whether the user has closed the last step."""
        self.going_to = ""
        """Class of the screen that ``show_step`` opens, until it is shown."""
        self._pointed: set[int] = set()
        """Steps for which the cursor has been moved."""

    @property
    def text(self) -> str:
        """The step, with its number."""
        return self.content.plain

    @property
    def content(self) -> Content:
        """The step, with its number and the keys that turn to others."""
        following = ("F2", "next" if self.at + 1 < len(STEPS) else "hide")
        keys = key_hints(following, ("F3", "back")) if self.at else key_hints(following)
        return Content.assemble(f"Tour {self.at + 1}/{len(STEPS)}  {STEPS[self.at].text}   ", keys)

    def lines(self, width: int) -> int:
        """Return how many lines the step has on a terminal of this width."""
        return 0 if self.is_closed else min(len(wrap(self.text, width - 2)), LINES_MAX)

    def turn(self, steps: int) -> None:
        """Turn to a later or earlier step. After the last one the tour is closed, and turning back opens it again."""
        if self.is_closed and steps < 0:
            self.is_closed = False
            return
        self.is_closed = self.at == len(STEPS) - 1 and steps > 0
        self.at = min(max(self.at + steps, 0), len(STEPS) - 1)

    def opened(self, screen: str, *, in_the_past: bool) -> None:
        """Turn to the next step if the user has opened what the current one asks for.

        On the way to the screen of a step, other screens may be shown for a moment: they do not count.
        """
        if self.going_to:
            if screen == self.going_to:
                self.going_to = ""
            return
        if self.at + 1 < len(STEPS):
            wanted = STEPS[self.at + 1].screen
            if (wanted == screen) if wanted else in_the_past:
                self.at += 1

    def point(self, screen: str, table: Table) -> None:
        """Select the row of the current step on its screen, once, so that the user can move the cursor on."""
        step = STEPS[self.at]
        if step.row and step.screen == screen and self.at not in self._pointed and table.seek(step.row):
            self._pointed.add(self.at)
            table.screen.set_focus(table)


def show_step(app: Any, at: int) -> bool:
    """Close dialogs, and show the screen of a step as if the user had followed the steps before it.

    Return whether this has changed the screen.
    """
    step = STEPS[at]
    if not step.place:
        if app.at is None:
            app.run_worker(app.travel_back(PAST_MS, lambda: app.guide.at == at))
        return False
    app.do_live()  # which the other steps describe
    while isinstance(app.screen, ModalScreen):
        app.screen.dismiss(None)
    if type(app.screen).__name__ == step.screen:
        return False
    app.go(step.place)
    while len(app.screen_stack) > 1:
        app.pop_screen()
    if type(app.screen).__name__ != step.screen and app.screen.is_mounted:
        table = app.screen.query_one("#subscriptions", Table)
        if table.seek(STEPS[at - 1].row) and table.pointed is not None:
            app.guide.going_to = step.screen
            app.open("subscription:SubscriptionDetails", table.pointed)
        return True
    app.guide.going_to = step.screen if type(app.screen).__name__ == step.screen else ""
    return True


class GuideStrip(Static):
    """Shows the current step."""

    DEFAULT_CSS = """
    GuideStrip { height: auto; max-height: 5; padding: 0 1; background: $accent 20%; color: $foreground; }
    GuideStrip:ansi { background: ansi_default; border-left: thick $accent; padding: 0 1 0 0; }
    """

    def __init__(self, guide: TourGuide) -> None:
        super().__init__(guide.content, id="guide", markup=False)
        self._guide = guide
        self._shown = guide.text

    def turn(self) -> None:
        """Show the current step, if it has changed."""
        self.display = not self._guide.is_closed
        if self._shown != self._guide.text:
            self._shown = self._guide.text
            self.update(self._guide.content)
