"""The last two lines: the message or command of a row, and as many key hints as fit."""

import pytest
from rich.cells import cell_len

from pulsarbox.tui.actions.action_table import BY_NAME, PLACES
from pulsarbox.tui.widgets.key_hints import MARK, OPEN, hint_line
from tests.gallery.boxes import busy, empty
from tests.unit.tui.driving import SMALL, WIDE, Driver, dashboard
from tests.unit.tui.fake import NOW

HUGE = (200, 50)
NAMES = ("filter", "sort", "menu", "copy", "back", "help", "quit")
MORE = (OPEN, "messages", MARK, "columns", "export")


def told(width: int) -> str:
    return "".join(text for text, _, _ in hint_line(NAMES, MORE, width, "details"))


def test_further_hints_are_those_that_fit_by_importance() -> None:
    usual, was = told(0), 0
    assert "enter" not in usual
    for width in range(len(usual), 200):
        line = told(width)
        assert cell_len(line) <= width and line.endswith("? help  q quit  ")
        assert line.index("copy") < line.index("esc back")
        assert len(line) >= was
        was = len(line)
    assert told(200).startswith(" enter details  / filter")
    assert "b messages  space mark  c columns  e export  esc back" in told(200)


@pytest.mark.parametrize("place", [name for name, *_ in PLACES])
async def test_hints_fit_on_every_screen_and_wide_ones_have_more(place: str) -> None:
    counts = []
    for size in (SMALL, WIDE, HUGE):
        async with dashboard(busy(), size, place=place) as driver:
            await driver.pilot.pause()
            line = driver.told("hints")
            assert line.rstrip().endswith("q quit")
            assert size == SMALL or cell_len(line.rstrip()) <= size[0]
            counts.append(len(line))
    assert counts[0] < counts[1] <= counts[2]


async def hints_of(driver: Driver) -> str:
    driver.screen.refresh_status_lines()
    await driver.pilot.pause()
    return driver.told("hints")


async def test_hints_are_those_of_what_applies() -> None:
    async with dashboard(busy(), HUGE, place="topics") as driver:
        line = await hints_of(driver)
        assert line.startswith(" enter subscriptions  ") and "b messages  M map  space mark" in line
        assert "c columns  e export  i details  ? help" in line
        driver.box.read_only = driver.app.read_only = True
        assert "space mark" not in await hints_of(driver)
        await driver.press("5")
        await driver.at("Quotas")
        assert "enter" not in await hints_of(driver)
    async with dashboard(busy(), WIDE, place="topics") as driver:
        assert "i details" not in await hints_of(driver)
        await driver.press("M")
        await driver.at("TopicMap")
        assert (await hints_of(driver)).startswith(" enter subscriptions  ")
    async with dashboard(empty(), HUGE, place="topics") as driver:
        line = await hints_of(driver)
        assert not any(each in line for each in ("enter", "mark", "export", "i details")) and "c columns" in line


async def test_a_hint_of_a_key_of_the_table_presses_it() -> None:
    async with dashboard(busy(), HUGE, place="topics") as driver:
        for word in ("space", "enter"):
            await driver.pilot.click("#hints", offset=(driver.told("hints").index(word) + 1, 0))
            await driver.pilot.pause()
        await driver.at("Subscriptions")


@pytest.mark.parametrize(
    ("place", "message", "command"),
    [
        ("deadletters", "New messages are lost", "y pulsarbox dlq groups orders-0-billing-DLQ --stored"),
        ("events", "the backlog quota is reached: 30", "y pulsarbox events"),
    ],
)
async def test_the_command_is_beside_the_message_if_there_is_room(place: str, message: str, command: str) -> None:
    for size in (WIDE, (40, 24)):
        async with dashboard(size=size, place=place) as driver:
            line = driver.told("told")
            assert message in line or "enter shows all" in line
            assert (command in line) == (size == WIDE)


async def test_no_remedy_that_changes_the_box_is_offered_read_only_or_in_history() -> None:
    for options in ({}, {"read_only": True}, {"at": NOW - 3_600_000}):
        async with dashboard(busy(), WIDE, **options) as driver:
            screen = driver.screen
            deeds = [each for each in screen.diagnosis() if each.remedy and BY_NAME[each.remedy].deed is not None]
            assert deeds
            for found in deeds:
                assert bool(screen._remedy_of(found)) == (not options)
