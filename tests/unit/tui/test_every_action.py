"""Every action of the registry, done where it is for by its key or words; every deed up to what the box is asked."""

from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager
from typing import Any, Final

import pytest
from textual.widgets import Input, Static

from pulsarbox.tui.actions.action_table import BY_NAME, PLACES, REGISTRY
from pulsarbox.tui.actions.operation import Deed
from pulsarbox.tui.actions.operations import DEEDS
from pulsarbox.tui.position_input import now_ms
from pulsarbox.tui.screens.base import Prompt
from pulsarbox.tui.widgets import command_lines
from pulsarbox.tui.widgets.table import Table
from tests.unit.tui.driving import WIDE, Driver, dashboard, driven
from tests.unit.tui.fake import FakeBox, dead_letters, job, subscription

WHERE: Final[dict[str, tuple[str, tuple[str, ...], str]]] = {
    "subscription": ("subscriptions", (), "Subscriptions"),
    "topic": ("topics", (), "TopicsScreen"),
    "deadletters": ("deadletters", (), "DeadLettersScreen"),
    "group": ("deadletters", ("enter",), "Groups"),
    "message": ("deadletters", ("b",), "Browser"),
    "quota": ("quotas", (), "Quotas"),
    "client": ("clients", (), "Clients"),
    "job": ("jobs", (), "JobsScreen"),
    "pipeline": ("pipelines", (), "PipelinesScreen"),
}
"""Of a kind of rows: the screen, the keys from there, and the class of the screen that these lead to."""
FITTING: Final = {"job pause": "running", "job resume": "tripped", "job cancel": "paused"}
"""The state of a job that it can be done to."""


@asynccontextmanager
async def rows_of(kind: str, box: FakeBox) -> AsyncIterator[Driver]:
    """Where rows of that kind are, with one that is pointed at."""
    place, keys, cls = WHERE[kind]
    box.rows["deadletters"][:] = [dead_letters(0)]
    box.rows["subscriptions"] = [subscription(number, type="Key_Shared") for number in range(3)]
    async with dashboard(box, WIDE, place=place, interval=20.0) as driver:
        await driver.press(*keys)
        await driver.at(cls)
        await driver.until(lambda: driver.table.pointed is not None)
        yield driver


# Deeds


@pytest.mark.parametrize("kind", sorted({kind for deed in DEEDS for kind in deed.on}))
def test_a_deed_is_asked_for_in_its_dialog_and_then_of_the_box(kind: str) -> None:
    @driven
    async def done() -> None:
        box = FakeBox()
        async with rows_of(kind, box) as driver:
            for deed in DEEDS:
                if kind in deed.on:
                    await made_to_fit(deed, box, driver)
                    await carried_out(deed, box, driver)
                    await driver.at(WHERE[kind][2])

    done()


async def made_to_fit(deed: Deed, box: FakeBox, driver: Driver) -> None:
    state = FITTING.get(deed.name)
    if state is not None:
        box.answers["GET", "/pulsarbox/v1/jobs"] = [job(2, state=state)]
        await driver.press("r")
        await driver.until(lambda: (driver.table.pointed or {}).get("state") == state)


async def carried_out(deed: Deed, box: FakeBox, driver: Driver) -> None:
    """By its key, or its words; its name typed where that is wanted."""
    (row,), before = driver.screen.rows_chosen(), len(box.changes())
    if deed.keys:
        await driver.press(deed.keys)
    else:
        driver.screen.act(deed.name)
    await driver.at("OperationDialog", answered=False)
    dialog = driver.screen
    asked = [(each.method, each.target, each.body) for each in deed.requests(row, dialog.values)]
    assert deed.title in driver.text()
    assert str(dialog.query_one("#line", Static).content) == command_lines.line(*deed.words(row, dialog.values))
    typed = list(dialog.query("#typed").results(Input))
    assert bool(typed) == deed.danger
    for field in typed:
        field.value = field.placeholder
    await driver.press("ctrl+s")
    await driver.until(lambda: box.changes()[before:] == asked)


@pytest.mark.parametrize("kind", sorted({kind for deed in DEEDS for kind in deed.on}))
def test_where_nothing_may_be_changed_no_deed_is_done(kind: str) -> None:
    @driven
    async def refused() -> None:
        box = FakeBox()
        box.read_only = True
        async with rows_of(kind, box) as driver:
            for deed in DEEDS:
                if kind in deed.on:
                    await made_to_fit(deed, box, driver)
                    driver.screen.act(deed.name)
                    refusal = f"'{deed.name}' changes the box, and the dashboard is read-only"
                    await driver.until(lambda refusal=refusal: refusal in driver.said)  # type: ignore[misc]
            assert box.changes() == []

    refused()


# What looks

Check = Callable[[Driver], Any]


def opens(name: str) -> Check:
    return lambda driver: type(driver.screen).__name__ == name


def prompts(kind: str) -> Check:
    return lambda driver: driver.screen.query_one(Prompt).display and driver.screen.query_one(Prompt).kind == kind


def shown_at(driver: Driver) -> int | None:
    return driver.app.at


LOOKS: Final[dict[str, Check]] = {
    "filter": prompts("/"),
    "command": prompts(":"),
    "sort": opens("ChoiceDialog"),
    "menu": opens("ChoiceDialog"),
    "columns": opens("ColumnsDialog"),
    "time travel": opens("Question"),
    "export": opens("Question"),
    "export csv": opens("Question"),
    "help": opens("TextDialog"),
    "go to": opens("Question"),
    "difference": opens("TextDialog"),
    "edit": opens("Editing"),
    "messages": opens("Browser"),
    "cursor map": opens("CursorMapScreen"),
    "key map": opens("KeyMapScreen"),
    "groups": opens("Groups"),
    "copy": lambda driver: driver.app.clipboard.startswith("pulsarbox "),
    "live": lambda driver: driver.app.at is None,
    "clear marks": lambda driver: not driver.table.marked,
    "pause": lambda driver: driver.app.paused,
    "back": lambda driver: not driver.screen.filter,
    "follow": lambda driver: driver.screen.following,
    **{name: lambda driver, name=name: driver.app.current_mode == name for name, _, _, _ in PLACES},  # type: ignore[misc]
    "quit": lambda driver: driver.app._exit,
}
"""What there is once it is done."""
CHANGES: Final[dict[str, Callable[[Driver], Any]]] = {
    "reverse": lambda driver: driver.table.sorted_by,
    "earlier": shown_at,
    "later": shown_at,
    "much earlier": shown_at,
    "much later": shown_at,
    "refresh": lambda driver: len(driver.box.asked),
    "faster": lambda driver: driver.app.interval,
    "slower": lambda driver: driver.app.interval,
    "theme": lambda driver: driver.app.theme,
    "form": lambda driver: driver.screen.form,
}
"""What is another one once it is done."""
IN_HISTORY: Final = ("earlier", "later", "much earlier", "much later", "live")


def test_every_action_is_looked_at() -> None:
    assert {*LOOKS, *CHANGES} == {action.name for action in REGISTRY if action.deed is None}


@pytest.mark.parametrize("kind", [*WHERE])
def test_an_action_does_what_it_says(kind: str) -> None:
    """Those that are for all screens where subscriptions are."""

    @driven
    async def done() -> None:
        async with rows_of(kind, FakeBox()) as driver:
            for name in [*CHANGES, *LOOKS]:
                if (BY_NAME[name].on or ("subscription",))[0] == kind:
                    await prepared(name, driver)
                    await acted(name, driver)
                    await restored(kind, driver)
            assert driver.box.changes() == []

    done()


async def prepared(name: str, driver: Driver) -> None:
    """What has to be there before."""
    if name in IN_HISTORY:
        driver.app.at = now_ms() - 3_600_000
    elif name in ("clear marks", "difference"):
        await driver.press("home", "space", "space")
        await driver.until(lambda: len(driver.table.chosen) == 2)
    elif name == "back":
        await driver.filter("orders-1")
        await driver.until(lambda: driver.screen.filter)


async def acted(name: str, driver: Driver) -> None:
    """By its key, or its words."""
    action, was = BY_NAME[name], CHANGES[name](driver) if name in CHANGES else None
    if action.keys:
        await driver.press(action.keys.split(",")[0])
    else:
        driver.screen.act(name)
    if name in CHANGES:
        await driver.until(lambda: CHANGES[name](driver) != was)
    else:
        await driver.until(lambda: LOOKS[name](driver))


async def restored(kind: str, driver: Driver) -> None:
    """Back where it began."""
    app, (place, _, cls) = driver.app, WHERE[kind]
    app.at, app.paused = None, False
    if app.current_mode != place:
        app.go(place)
    await driver.until(lambda: app.current_mode == place)
    while type(driver.screen).__name__ != cls or not isinstance(app.focused, Table):
        was = (driver.screen, app.focused)
        await driver.press("escape")
        await driver.until(lambda was=was: (driver.screen, app.focused) != was)  # type: ignore[misc]
    driver.table.marked.clear()
