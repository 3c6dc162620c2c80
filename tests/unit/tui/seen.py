"""What every screen looks like on the box of answers, with its clock stopped: text, one file a screen and size; of some
in 80 columns the SVG besides, which has the colours.

``make screens`` (``python -m tests.unit.tui.seen``) writes them anew; ``git diff`` then shows what has changed.
"""

import asyncio
import os
import time
from collections.abc import AsyncGenerator, Callable, Iterator, Sequence
from contextlib import contextmanager
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
"""Name of a file, the keys that lead there from the one before, and the class of the screen."""

DRAWN: Final = frozenset({"overview", "subscriptions", "dead-letters", "quotas", "events", "actions"})
"""Those that are compared as SVG too: together they have all colours, and no cursor that blinks."""


class _Stopped(datetime):
    """It is always the same time."""

    @classmethod
    def now(cls, tz: tzinfo | None = None) -> "_Stopped":
        return cls.fromtimestamp(NOW / 1000, tz)


@contextmanager
def stopped() -> Iterator[None]:
    """The clock that the screens show stands still, in UTC."""
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
    """What is on the screen, with its colours."""
    return self_contained(driver.app.export_screenshot(title="pulsarbox top"))


async def walked(
    size: tuple[int, int], steps: Sequence[tuple[str, tuple[str, ...], str]] = STEPS
) -> AsyncGenerator[tuple[str, Driver], None]:
    """Every screen of the steps, each once it is there; what it shows may still be under way."""
    box = FakeBox()
    box.rows["subscriptions"] = [subscription(number, type="Key_Shared") for number in range(40)]
    async with dashboard(box, size) as driver:
        for name, keys, cls in steps:
            await driver.press(*keys)
            await driver.at(cls, answered=False)
            yield name, driver


async def written(size: tuple[int, int], settled: float = 1.0) -> None:
    """Files of one size."""
    async for name, driver in walked(size):
        await driver.pilot.pause(settled)
        file_of(name, size).write_text(driver.text() + "\n", "utf-8")
        if size == SMALL and name in DRAWN:
            picture_of(name).write_text(drawn(driver) + "\n", "utf-8")


async def compared(size: tuple[int, int], differs: Callable[[str, str, str], None]) -> None:
    """Wait until each screen is as its file says; ``differs`` is told where one does not become so."""

    async def compare(driver: Driver, name: str, text: str, look: Callable[[Driver], str]) -> None:
        wanted = text.rstrip("\n")
        try:
            await driver.until(lambda: look(driver).rstrip("\n") == wanted)
        except AssertionError:
            differs(name, wanted, look(driver).rstrip("\n"))

    async for name, driver in walked(size):
        await compare(driver, name, file_of(name, size).read_text("utf-8"), Driver.text)
        if size == SMALL and name in DRAWN:
            await compare(driver, f"the picture of {name}", picture_of(name).read_text("utf-8"), drawn)


if __name__ == "__main__":
    FOLDER.mkdir(exist_ok=True)
    with stopped():
        for each in SIZES:
            asyncio.run(written(each))
