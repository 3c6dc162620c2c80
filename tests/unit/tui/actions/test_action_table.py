"""Every action of the registry, by key or command; every operation up to its request to the box."""

from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager
from typing import Any, Final

import pytest
from textual.widgets import Input, Static

from pulsarbox.tui.actions.action_table import BY_NAME, CONTENT, PLACES, REGISTRY
from pulsarbox.tui.actions.operation import OperationSpec
from pulsarbox.tui.actions.operations import DEEDS
from pulsarbox.tui.position_input import now_ms
from pulsarbox.tui.widgets import command_lines
from pulsarbox.tui.widgets.prompt import Prompt
from pulsarbox.tui.widgets.table import Table
from tests.tools.campaigns import chosen, short
from tests.unit.tui.driving import WIDE, Driver, dashboard
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
"""For each kind of row: the screen, the keys to press there, and the class of the resulting screen."""
IN_SHORT: Final = ("deadletters", "job", "subscription", "topic")
"""Kinds of rows whose operations `make test` carries out; a campaign does so with all."""
FITTING: Final = {"job pause": "running", "job resume": "tripped", "job cancel": "paused"}
"""Job state required by each operation."""


@asynccontextmanager
async def rows_of(kind: str, box: FakeBox) -> AsyncIterator[Driver]:
    """Open the screen with rows of that kind, with one row selected."""
    place, keys, cls = WHERE[kind]
    box.rows["deadletters"][:] = [dead_letters(0)]
    box.rows["subscriptions"] = [subscription(number, type="Key_Shared") for number in range(3)]
    async with dashboard(box, WIDE, place=place, interval=20.0) as driver:
        await driver.press(*keys)
        await driver.at(cls)
        await driver.until(lambda: driver.table.pointed is not None)
        yield driver


# Operations


@pytest.mark.parametrize("kind", chosen(sorted({kind for deed in DEEDS for kind in deed.on}), IN_SHORT.__contains__))
async def test_a_deed_is_asked_for_in_its_dialog_and_then_of_the_box(kind: str) -> None:
    box = FakeBox()
    async with rows_of(kind, box) as driver:
        for deed in DEEDS:
            if kind in deed.on:
                await made_to_fit(deed, box, driver)
                await carried_out(deed, box, driver)
                await driver.at(WHERE[kind][2])


async def made_to_fit(deed: OperationSpec, box: FakeBox, driver: Driver) -> None:
    state = FITTING.get(deed.name)
    if state is not None:
        box.answers["GET", "/pulsarbox/v1/jobs"] = [job(2, state=state)]
        await driver.press("r")
        await driver.until(lambda: (driver.table.pointed or {}).get("state") == state)


async def carried_out(deed: OperationSpec, box: FakeBox, driver: Driver) -> None:
    """Run an operation by its key or command, and type the name of the object if required."""
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
        field.value = dialog._typed
    await driver.press("ctrl+s")
    await driver.until(lambda: box.changes()[before:] == asked)


@pytest.mark.parametrize("kind", short(sorted({kind for deed in DEEDS for kind in deed.on}), 2))
async def test_where_nothing_may_be_changed_no_deed_is_done(kind: str) -> None:
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


# Views

Check = Callable[[Driver], Any]


def opens(name: str) -> Check:
    return lambda driver: type(driver.screen).__name__ == name


def prompts(kind: str) -> Check:
    return lambda driver: driver.screen.query_one(Prompt).has_focus and driver.screen.query_one(Prompt).kind == kind


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
    "difference": opens("MessageDifference"),
    "edit": opens("Editing"),
    "messages": opens("Browser"),
    "cursor map": opens("CursorMapScreen"),
    "key map": opens("KeyMapScreen"),
    "topic map": opens("TopicMap"),
    "groups": opens("Groups"),
    "copy": lambda driver: driver.app.clipboard.startswith("pulsarbox "),
    "live": lambda driver: driver.app.at is None,
    "clear marks": lambda driver: not driver.table.marked,
    "pause": lambda driver: driver.app.paused,
    "row details": lambda driver: any("need a terminal of 170 columns" in each for each in driver.said),
    "back": lambda driver: not driver.screen.filter,
    "follow": lambda driver: driver.screen.following,
    **{name: lambda driver, name=name: driver.app.current_mode == name for name, _, _, _ in PLACES},  # type: ignore[misc]
    "quit": lambda driver: driver.app._exit,
}
"""Condition that holds after the action."""
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
"""Value that changes with the action."""
IN_HISTORY: Final = ("earlier", "later", "much earlier", "much later", "live")


def test_every_action_is_looked_at() -> None:
    """Those of a screen with one message have their own tests."""
    others = [action for action in REGISTRY if action.on != (CONTENT,)]
    assert {*LOOKS, *CHANGES} == {action.name for action in others if action.deed is None}


@pytest.mark.parametrize("kind", short(WHERE, 4))
async def test_an_action_does_what_it_says(kind: str) -> None:
    """Actions available on all screens are tested on the one with subscriptions."""
    async with rows_of(kind, FakeBox()) as driver:
        for name in [*CHANGES, *LOOKS]:
            if (BY_NAME[name].on or ("subscription",))[0] == kind:
                await prepared(name, driver)
                await acted(name, driver)
                await restored(kind, driver)
        assert driver.box.changes() == []


async def prepared(name: str, driver: Driver) -> None:
    """Establish the preconditions of an action."""
    if name in IN_HISTORY:
        driver.app.at = now_ms() - 3_600_000
    elif name in ("clear marks", "difference"):
        await driver.press("home", "space", "space")
        await driver.until(lambda: len(driver.table.chosen) == 2)
    elif name == "back":
        await driver.filter("orders-1")
        await driver.until(lambda: driver.screen.filter)


async def acted(name: str, driver: Driver) -> None:
    """Run an action by its key or command."""
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
    """Return to the initial screen."""
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
