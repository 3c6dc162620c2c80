"""The last two lines: the message or command of a row, and as many key hints as fit."""

import re

import pytest
from rich.cells import cell_len

from pulsarbox.tui.actions.action_table import BY_NAME, PLACES
from pulsarbox.tui.widgets import numbers
from pulsarbox.tui.widgets.graphs.graph import Graphs
from pulsarbox.tui.widgets.key_hints import MARK, OPEN, hint_line
from tests.gallery.boxes import busy, empty, files
from tests.unit.tui.driving import SMALL, WIDE, Driver, dashboard
from tests.unit.tui.fake import NOW

HUGE = (200, 50)
NAMES = ("filter", "sort", "menu", "copy", "back", "help", "quit")
MORE = (OPEN, "messages", MARK, "columns", "export")


def told(width: int) -> str:
    return "".join(text for text, _, _ in hint_line(NAMES, MORE, width, "details"))


def test_hints_are_those_that_fit_by_importance() -> None:
    least, was = told(0), 0
    assert least == " esc back  ? help  q quit  "
    for width in range(len(least), 200):
        line = told(width)
        assert cell_len(line) <= width and line.endswith(least[1:])
        assert len(line) >= was
        was = len(line)
        assert "filter" not in line or line.startswith(" enter details  / filter")
        assert "messages" not in line or "y copy  b messages" in line
    assert "b messages  space mark  c columns  e export  esc back" in told(200)


def test_an_action_has_the_word_for_what_it_does_now() -> None:
    line = "".join(text for text, _, _ in hint_line(("refresh", "pause", "quit"), (), 80, "", 1, {"pause": "resume"}))
    assert line == " r refresh  p resume  q quit  "


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
    assert counts[0] <= counts[1] <= counts[2] and counts[0] < counts[2]


async def hints_of(driver: Driver) -> str:
    driver.screen.refresh_status_lines()
    await driver.pilot.pause()
    return driver.told("hints")


async def test_hints_are_those_of_what_applies() -> None:
    async with dashboard(busy(), HUGE, place="topics") as driver:
        line = await hints_of(driver)
        assert line.startswith(" enter subscriptions  ") and "b messages  M map  space mark" in line
        assert "copy" not in line  # the line above has it
        assert "c columns  e export  i side panels  ? help" in line
        driver.box.read_only = driver.app.read_only = True
        assert "space mark" not in await hints_of(driver)
        await driver.press("5")
        await driver.at("Quotas")
        assert "enter" not in await hints_of(driver)
    async with dashboard(busy(), WIDE, place="topics") as driver:
        assert "side panels" not in await hints_of(driver)
        await driver.press("M")
        await driver.at("TopicMap")
        assert (await hints_of(driver)).startswith(" enter subscriptions  ")
    async with dashboard(empty(), HUGE, place="topics") as driver:
        line = await hints_of(driver)
        assert (
            not any(each in line for each in ("enter", "mark", "sort", "actions", "export", "side panels"))
            and "c columns" in line
        )


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


async def test_hints_without_a_row_are_those_of_actions_that_need_none() -> None:
    async with dashboard(empty(), HUGE, place="deadletters") as driver:
        line = await hints_of(driver)
        assert "/ filter" in line and "t time" in line
        assert not any(each in line for each in ("groups", "messages", "replay", "actions", "sort"))


async def test_the_key_to_ask_again_is_hinted_first_while_the_box_does_not_answer() -> None:
    async with dashboard(busy(), SMALL, place="topics") as driver:
        driver.box.gone = "connection refused"
        await driver.press("r")
        await driver.until(lambda: driver.told("hints").startswith(" r retry  "))
        assert "no connection" in driver.told("vitals")
        shown = driver.lines()[0]  # numbers of the last answer: a label without its number is left out
        assert "in 12.3k/s" in shown and not re.search(r" (out|backlog|p99|mem|up) +no connection", shown)
        driver.box.gone = ""
        await driver.press("r")
        await driver.until(lambda: driver.told("hints").startswith(" enter subscriptions  "))
        assert "no connection" not in driver.told("vitals")


@pytest.mark.parametrize("size", [SMALL, WIDE])
async def test_hints_say_resume_while_paused(size: tuple[int, int]) -> None:
    async with dashboard(busy(), size, place="topics") as driver:
        assert ("p pause" in await hints_of(driver)) == (size == WIDE)
        await driver.press("p")
        line = await hints_of(driver)
        assert line.startswith(" p resume  ") and "pause" not in line


@pytest.mark.parametrize(
    ("key", "hints"),
    [("slash", "enter confirm  esc back"), ("colon", "enter confirm  tab complete  esc back")],
)
async def test_the_hints_of_the_input_line_are_shown_while_keys_are_text(key: str, hints: str) -> None:
    async with dashboard(busy(), SMALL, place="topics") as driver:
        await driver.press(key)
        await driver.until(lambda: driver.told("hints").strip() == hints and not driver.told("told").strip())
        await driver.press("escape")
        await driver.until(lambda: "/ filter" in driver.told("hints") and "y pulsarbox" in driver.told("told"))


async def test_the_edge_tells_how_many_rows_are_marked() -> None:
    async with dashboard(busy(), HUGE, place="subscriptions") as driver:
        await driver.press("space", "space")
        await driver.until(lambda: "2 marked of 40" in driver.text() and "u unmark" in driver.told("hints"))
        await driver.press("u")
        await driver.until(lambda: "marked" not in driver.text() and "unmark" not in driver.told("hints"))


async def test_hints_of_actions_on_one_row_are_those_of_the_cursor() -> None:
    async with dashboard(busy(), HUGE, place="subscriptions") as driver:
        assert "K key map" in await hints_of(driver)  # the first row is Key_Shared
        await driver.press("space")
        assert "K key map" not in await hints_of(driver)


CAUSE = "the consumers of the subscription have reached the limit of unacknowledged messages, 50,000 of 50,000"


def last_lines(driver: Driver) -> str:
    return "\n".join(driver.lines()[-2:])


@pytest.mark.parametrize("at", [None, NOW - 3_600_000])
@pytest.mark.parametrize("size", [(40, 24), SMALL, WIDE])
@pytest.mark.parametrize("place", [name for name, *_ in PLACES])
async def test_the_key_that_copies_is_shown_if_there_is_a_command(
    place: str, size: tuple[int, int], at: int | None
) -> None:
    box = busy()
    for row in box.rows["subscriptions"]:
        row["causeText"] = CAUSE
    async with dashboard(box, size, place=place, at=at) as driver:
        await hints_of(driver)
        command = driver.screen.copied_command()
        assert command or at is not None
        assert bool(re.search(r" y (copy|pulsarbox) ", last_lines(driver))) == bool(command)


@pytest.mark.parametrize("width", [80, 120, 160])
async def test_no_command_behind_a_message_is_cut(width: int) -> None:
    box = busy()
    for row in box.rows["subscriptions"]:
        row["causeText"] = (2 * CAUSE)[: width - 12]
    async with dashboard(box, (width, 24), place="subscriptions") as driver:
        assert (2 * CAUSE)[: width - 12] in last_lines(driver) and "pulsarbox" not in last_lines(driver)
        assert "y copy" in driver.told("hints")


async def test_the_reason_for_unknown_numbers_hides_no_key() -> None:
    async with dashboard(files(), SMALL, place="subscriptions") as driver:
        await driver.until(lambda: "DRAINS IN ?" in last_lines(driver))
        assert " y copy" in last_lines(driver) and "pulsarbox" not in last_lines(driver)


async def test_graphs_end_now_or_at_their_last_values() -> None:
    async with dashboard(busy(), HUGE, place="subscriptions") as driver:
        graphs = driver.screen.query_one(Graphs)
        assert graphs.end == "now"
        await driver.press("p")
        await driver.until(lambda: graphs.end == numbers.moment(NOW))
        await driver.press("p")
        await driver.until(lambda: graphs.end == "now")
        for key in ("escape", "enter"):
            await driver.press(key)
            await driver.until(lambda: driver.screen.query_one(Graphs).end == "now")
            driver.box.gone = "connection refused"
            await driver.press("r")
            await driver.until(lambda: driver.screen.query_one(Graphs).end == numbers.moment(NOW))
            driver.box.gone = ""
            await driver.press("r")
            await driver.until(lambda: driver.screen.query_one(Graphs).end == "now")
        await driver.at("SubscriptionDetails")
