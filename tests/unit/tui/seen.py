"""Recordings of every screen on the simulated box with a stopped clock: one text file per screen and size.

Some screens are also recorded as SVG in 80 columns, with their colors. ``make screens`` (``python -m
tests.unit.tui.seen``) rewrites the files, and ``git diff`` then shows the changes.
"""

import asyncio
import os
import time
from collections.abc import AsyncGenerator, Callable, Iterator, Sequence
from contextlib import aclosing, contextmanager
from datetime import datetime, tzinfo
from pathlib import Path
from typing import Final
from unittest import mock

from pulsarbox.tui.once import self_contained
from pulsarbox.tui.widgets import numbers
from tests.unit.tui.driving import SMALL, WIDE, Driver, dashboard
from tests.unit.tui.fake import NOW, FakeBox, subscription

FOLDER: Final = Path(__file__).parent / "seen"
SIZES: Final = (SMALL, WIDE)
STEPS: Final = (
    ("overview", ("1",), "Overview"),
    ("topics", ("2",), "TopicsScreen"),
    ("subscriptions", ("3",), "Subscriptions"),
    ("subscription", ("enter",), "SubscriptionDetails"),
    ("cursor-map", ("m",), "CursorMapScreen"),
    ("key-map", ("escape", "K"), "KeyMapScreen"),
    ("browser", ("escape", "b"), "Browser"),
    ("message", ("enter",), "MessageViewer"),
    ("dead-letters", ("4",), "DeadLettersScreen"),
    ("groups", ("enter",), "Groups"),
    ("replay", ("R",), "OperationDialog"),
    ("quotas", ("escape", "5"), "Quotas"),
    ("quota-change", ("enter",), "OperationDialog"),
    ("clients", ("escape", "6"), "Clients"),
    ("storage", ("7",), "Storage"),
    ("plugins", ("8",), "PluginsScreen"),
    ("events", ("9",), "EventsScreen"),
    ("jobs", ("0",), "JobsScreen"),
    ("pipelines", ("P",), "PipelinesScreen"),
    ("pipeline", ("enter",), "TextDialog"),
    ("actions", ("escape", "0", "x"), "ChoiceDialog"),
    ("help", ("escape", "question_mark"), "TextDialog"),
)
"""Name of the file, the keys that lead from the previous screen to this one, and the class of the screen."""

DRAWN: Final = frozenset({"overview", "subscriptions", "dead-letters", "quotas", "events", "actions"})
"""Screens that are also compared as SVG: together they show all colors, without a blinking cursor."""


class _Stopped(datetime):
    """A clock with a constant time."""

    @classmethod
    def now(cls, tz: tzinfo | None = None) -> "_Stopped":
        return cls.fromtimestamp(NOW / 1000, tz)


@contextmanager
def stopped() -> Iterator[None]:
    """Stop the clock of the screens, in UTC."""
    was = os.environ.get("TZ")
    os.environ["TZ"] = "UTC"
    time.tzset()
    try:
        with mock.patch.object(numbers, "datetime", _Stopped):
            yield
    finally:
        if was is None:
            del os.environ["TZ"]
        else:
            os.environ["TZ"] = was
        time.tzset()


def file_of(name: str, size: tuple[int, int]) -> Path:
    return FOLDER / f"{name}-{size[0]}x{size[1]}.txt"


def picture_of(name: str) -> Path:
    return FOLDER / f"{name}.svg"


def drawn(driver: Driver) -> str:
    """The content of the screen as SVG, with its colors."""
    return self_contained(driver.app.export_screenshot(title="pulsarbox top"))


async def walked(
    size: tuple[int, int], steps: Sequence[tuple[str, tuple[str, ...], str]] = STEPS
) -> AsyncGenerator[tuple[str, Driver], None]:
    """Each screen of the steps, once it is open; its content may still be loading."""
    box = FakeBox()
    box.rows["subscriptions"] = [subscription(number, type="Key_Shared") for number in range(40)]
    async with dashboard(box, size, every_frame=True) as driver:  # so that pictures are those of a terminal
        for name, keys, cls in steps:
            await driver.press(*keys)
            await driver.at(cls, answered=False)
            yield name, driver


async def written(size: tuple[int, int], settled: float = 1.0) -> None:
    """Write the files of one size."""
    async for name, driver in walked(size):
        await driver.pilot.pause(settled)
        file_of(name, size).write_text(driver.text() + "\n", "utf-8")
        if size == SMALL and name in DRAWN:
            picture_of(name).write_text(drawn(driver) + "\n", "utf-8")


async def compared(size: tuple[int, int], differs: Callable[[str, str, str], None]) -> None:
    """Wait until each screen matches its file; call ``differs`` for each one that does not."""

    async def compare(driver: Driver, name: str, text: str, look: Callable[[Driver], str]) -> None:
        wanted = text.rstrip("\n")
        try:
            await driver.until(lambda: look(driver).rstrip("\n") == wanted)
        except AssertionError:
            differs(name, wanted, look(driver).rstrip("\n"))

    async with aclosing(walked(size)) as screens:  # an app left open fails later tests
        async for name, driver in screens:
            await compare(driver, name, file_of(name, size).read_text("utf-8"), Driver.text)
            if size == SMALL and name in DRAWN:
                await compare(driver, f"the picture of {name}", picture_of(name).read_text("utf-8"), drawn)


if __name__ == "__main__":
    FOLDER.mkdir(exist_ok=True)
    with stopped():
        for each in SIZES:
            asyncio.run(written(each))
