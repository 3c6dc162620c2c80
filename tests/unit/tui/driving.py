"""Driver of the dashboard without a terminal: sends keys, and waits for states."""

import asyncio
from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager
from typing import Any

from textual.pilot import Pilot
from textual.strip import Strip
from textual.widgets import Input

from pulsarbox.tui.app import Top
from pulsarbox.tui.preferences import Preferences
from pulsarbox.tui.widgets.bars import Line
from pulsarbox.tui.widgets.table import Table
from tests.unit.tui import headless
from tests.unit.tui.fake import FakeBox

SECONDS = 30.0
WIDE = (160, 50)
SMALL = (80, 24)


class Driver:
    """A running dashboard."""

    def __init__(self, app: Top, pilot: Pilot[None], box: FakeBox) -> None:
        self.app = app
        self.pilot = pilot
        self.box = box

    @property
    def screen(self) -> Any:
        return self.app.screen

    @property
    def table(self) -> Table:
        return self.app.screen.query_one("#table", Table)

    async def press(self, *keys: str) -> None:
        await self.pilot.press(*keys)

    async def type(self, text: str) -> None:
        """Type into the focused widget in one step: single key presses are slow."""
        await self.until(lambda: isinstance(self.app.focused, Input))
        field = self.app.focused
        assert isinstance(field, Input)
        field.value += text
        await self.pilot.pause()

    async def filter(self, text: str) -> None:
        """Replace the filter with this one, using ``/``."""
        await self.press("slash")
        await self.until(lambda: isinstance(self.app.focused, Input))
        field = self.app.focused
        assert isinstance(field, Input)
        field.value = text
        await self.press("enter")

    async def until(self, holds: Callable[[], Any]) -> None:
        """Wait for a condition, and paint. A condition on a missing widget counts as false."""
        await self.wait(holds)
        headless.paint(self.app)

    async def wait(self, holds: Callable[[], Any]) -> None:
        """Wait for a condition without painting: what is on the screen is not looked at yet."""
        loop = asyncio.get_running_loop()
        end = loop.time() + SECONDS
        while True:
            try:
                if holds():
                    return
            except (LookupError, AttributeError):
                pass
            assert loop.time() < end, "never came:\n" + "\n".join(self.text().split("\n")[:30])
            await self.pilot.pause(0.01)

    async def at(self, name: str, answered: bool = True) -> None:
        """Wait until that screen is shown with a response."""
        await self.until(lambda: type(self.screen).__name__ == name and (not answered or self.screen.answered))
        await self.pilot.pause()

    def strips(self) -> list[Strip]:
        """The styled lines on the screen."""
        return headless.strips(self.app)

    def lines(self) -> list[str]:
        """The lines on the screen."""
        width, height = self.app.size
        return [strip.text[:width] for strip in self.strips()][:height]

    def text(self) -> str:
        return "\n".join(line.rstrip() for line in self.lines())

    def told(self, which: str) -> str:
        return self.app.screen.query_one(f"#{which}", Line).text

    @property
    def said(self) -> list[str]:
        """The texts of the notifications."""
        return [each.message for each in self.app._notifications]


@asynccontextmanager
async def dashboard(
    box: FakeBox | None = None,
    size: tuple[int, int] = WIDE,
    kept: Preferences | None = None,
    *,
    every_frame: bool = False,
    toasts: bool = False,
    **options: Any,
) -> AsyncIterator[Driver]:
    """A dashboard of the given size in columns and lines, on a simulated box, without its refresh timer.

    With ``every_frame`` it paints as often as on a terminal, instead of when the driver has waited for a state. With
    ``toasts`` it draws notifications.
    """
    box = box or FakeBox()
    options = {"interval": 60.0} | options
    label, guide = options.pop("label", None), options.pop("guide", None)
    app = Top(box.feed, kept=kept, **options)
    app.label, app.guide = label, guide
    with headless.savings(every_frame=every_frame):
        async with app.run_test(size=size, notifications=toasts) as pilot:
            driver = Driver(app, pilot, box)
            await driver.wait(lambda: (driver.screen.answered or driver.screen.trouble) and not app._vitals_asked)
            await pilot.pause()
            yield driver
            headless.paint(app)
