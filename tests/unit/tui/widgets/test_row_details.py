"""Details of a row beside the table of wide terminals."""

import pytest
from textual.geometry import Size

from pulsarbox.tui.actions.box_queries import WIDE as WIDE_COLUMNS
from pulsarbox.tui.preferences import Preferences
from pulsarbox.tui.widgets import numbers
from pulsarbox.tui.widgets.columns import KINDS, UNREAD
from pulsarbox.tui.widgets.graphs.graph import Graphs
from pulsarbox.tui.widgets.row_details import DetailPanel, RowDetails
from tests.unit.tui.driving import WIDE, Driver, dashboard
from tests.unit.tui.fake import NOW, FakeBox, subscription, topic

BROAD = (200, 50)


def panel(driver: Driver, name: str) -> str:
    lines: DetailPanel = driver.screen.query_one(f"#{name}", DetailPanel)
    return lines.text


def is_shown(driver: Driver) -> bool:
    return any(each.display for each in driver.screen.query(RowDetails))


async def test_all_values_of_the_row_and_its_actions() -> None:
    async with dashboard(place="subscriptions", size=BROAD) as driver:
        await driver.until(lambda: is_shown(driver) and "1,000" in panel(driver, "values"))
        told = panel(driver, "values").splitlines()
        assert told[:3] == ["orders-0", "billing", ""]
        assert ["delayed", "0"] in [line.split() for line in told], "also of a column without room in the table"
        assert "5 shows the limit; there enter changes it" in told
        assert sum(line.startswith("cause") for line in told) == 1
        assert "b   Browse the messages; nothing is acknowledged" in panel(driver, "deeds").splitlines()
        deeds = panel(driver, "deeds").splitlines()
        assert "    Clear the backlog" in deeds[deeds.index("x   In the menu:") :]
        assert [line[:1] for line in deeds].count("x") == 1, "the key of the menu stands once"
        assert driver.screen.query_one(Graphs).display
        await driver.press("down")
        await driver.until(lambda: panel(driver, "values").startswith("orders-1\nbilling\n"))


async def test_values_stand_in_one_column_beside_their_names() -> None:
    async with dashboard(place="topics", size=BROAD) as driver:
        await driver.until(lambda: is_shown(driver) and "producers" in panel(driver, "values"))
        told = [line for line in panel(driver, "values").splitlines()[2:] if line]
        longest = len("subscriptions")
        assert any(line.startswith("subscriptions  1") for line in told)
        assert all(line[longest : longest + 2] == "  " and line[longest + 2] != " " for line in told), told


async def test_the_graph_has_the_lines_that_the_other_panels_do_not_need() -> None:
    async with dashboard(place="topics", size=BROAD) as driver:
        await driver.until(lambda: is_shown(driver) and panel(driver, "deeds"))
        graph, deeds = driver.screen.query_one(Graphs), driver.screen.query_one("#deeds", DetailPanel)
        await driver.until(lambda: deeds.outer_size.height == len(panel(driver, "deeds").splitlines()) + 2)
        assert graph.size.height > 9 and deeds.region.bottom == driver.table.region.bottom
        await driver.pilot.resize_terminal(BROAD[0], 30)
        await driver.until(lambda: graph.size.height == 9 and deeds.region.bottom == driver.table.region.bottom)


async def test_in_history_the_trend_ends_at_its_time_and_actions_on_what_is_there_now_are_missing() -> None:
    async with dashboard(place="subscriptions", size=BROAD, at=NOW - 3_600_000) as driver:
        await driver.until(lambda: is_shown(driver) and panel(driver, "deeds"))
        await driver.until(lambda: driver.screen.query_one(Graphs).end == numbers.moment(NOW - 3_600_000))
        assert panel(driver, "deeds").splitlines() == ["b   Browse the messages; nothing is acknowledged"]
        assert " now" not in "".join(line[-52:] for line in driver.lines()[3:])
        await driver.press("n")
        await driver.until(lambda: driver.screen.query_one(Graphs).end == "now")
        await driver.until(lambda: "m   Show acknowledged" in panel(driver, "deeds"))


async def test_a_key_has_its_name_as_heading() -> None:
    box = FakeBox()
    box.rows["subscriptions"][0]["type"] = "Key_Shared"
    async with dashboard(box, place="subscriptions", size=BROAD) as driver:
        await driver.press("K")
        await driver.at("KeyMapScreen")
        await driver.until(lambda: is_shown(driver) and panel(driver, "values").startswith("customer-9\n\n"))
        assert "slot        4,711" in panel(driver, "values").splitlines()
        assert panel(driver, "deeds").startswith("x   Disconnect the client"), "a single action needs no heading"
        assert str(driver.screen.query_one("#values").border_title) == "Key"
        await driver.press("end")
        await driver.until(lambda: panel(driver, "values").startswith("slot     12\n"))


async def test_each_line_fits_its_panel() -> None:
    name = "a-" * 60 + "z"
    box = FakeBox()
    box.rows["subscriptions"] = [{**subscription(0), "topic": f"persistent://public/default/{name}"}]
    async with dashboard(box, place="subscriptions", size=BROAD) as driver:
        await driver.until(lambda: is_shown(driver) and name[-9:] in panel(driver, "values"))
        lines = driver.screen.query_one("#values", DetailPanel)
        assert max(map(len, lines.text.splitlines())) <= lines.size.width
        assert lines.text.replace("\n", "").startswith(name), "names are whole"


@pytest.mark.parametrize("place", ["events", "storage"])
async def test_rows_without_actions_have_no_panel_of_actions(place: str) -> None:
    async with dashboard(place=place, size=BROAD) as driver:
        await driver.until(lambda: is_shown(driver) and len(panel(driver, "values").splitlines()) > 3)
        assert not driver.screen.query_one("#deeds").display
        assert driver.screen.query_one(RowDetails).size.height == driver.screen.query_one("#values").outer_size.height


async def test_a_read_only_dashboard_lists_no_action_that_changes_the_box() -> None:
    async with dashboard(place="subscriptions", size=BROAD, read_only=True) as driver:
        await driver.until(lambda: is_shown(driver) and panel(driver, "deeds"))
        assert "Browse the messages" in panel(driver, "deeds")
        assert "Clear the backlog" not in panel(driver, "deeds")


async def test_without_rows_the_table_has_the_whole_width() -> None:
    async with dashboard(place="topics", size=BROAD) as driver:
        await driver.until(lambda: is_shown(driver) and driver.table.count)
        narrow = driver.table.outer_size.width
        await driver.filter("/nothing-matches")
        await driver.until(lambda: not is_shown(driver))
        assert driver.table.outer_size.width > narrow
        await driver.press("escape")
        await driver.until(lambda: is_shown(driver))


async def test_the_panels_can_be_hidden_and_stay_hidden() -> None:
    kept = Preferences(None)
    async with dashboard(place="topics", size=BROAD, kept=kept) as driver:
        await driver.until(lambda: is_shown(driver))
        await driver.press("i")
        await driver.until(lambda: not is_shown(driver))
        await driver.press("2", "3")
        await driver.at("Subscriptions")
        assert not is_shown(driver)
    assert kept.get("details") is False
    async with dashboard(place="topics", size=BROAD, kept=kept) as driver:
        assert not is_shown(driver)
        await driver.press("i")
        await driver.until(lambda: is_shown(driver))
    assert kept.get("details") is None


async def test_other_terminals_have_no_panels() -> None:
    async with dashboard(place="topics", size=WIDE) as driver:
        assert not driver.screen.query(RowDetails)
        await driver.press("i")
        await driver.until(lambda: any(f"{WIDE_COLUMNS} columns" in each for each in driver.said))
        await driver.pilot.resize_terminal(*BROAD)
        await driver.until(lambda: is_shown(driver))
        await driver.pilot.resize_terminal(*WIDE)
        await driver.until(lambda: not is_shown(driver) and driver.app.size == Size(*WIDE))


async def test_a_row_that_does_not_change_is_not_drawn_again() -> None:
    async with dashboard(place="topics", size=BROAD) as driver:
        await driver.until(lambda: is_shown(driver) and len(panel(driver, "values")) > 100)
        values = driver.screen.query_one("#values", DetailPanel)
        drawn: list[bool] = []
        values.refresh = lambda *regions, layout=False, **more: drawn.append(layout)
        before = len(driver.box.asked)
        driver.screen.ask_again()
        await driver.until(lambda: len(driver.box.asked) > before)
        await driver.pilot.pause()
        assert drawn == []


@pytest.mark.parametrize("place", ["topics", "subscriptions"])
async def test_an_age_that_is_not_read_has_a_question_mark_and_the_reason(place: str) -> None:
    box = FakeBox()
    made = topic if place == "topics" else subscription
    box.rows[place] = [
        made(0, backlog=9, oldest=None),
        made(1, backlog=0, oldest=None),
        made(2, backlog=8, oldest=60.0),
    ]
    async with dashboard(box, place=place, size=BROAD) as driver:
        await driver.until(lambda: is_shown(driver) and UNREAD in " ".join(panel(driver, "values").split()))
        assert f"OLDEST ? {UNREAD}" in driver.told("told")
    for row, text in zip(box.rows[place], ("?", "-", "1m"), strict=True):
        assert KINDS["age"](row["oldest"], row, 7)[0].strip().startswith(text), row


async def test_advice_is_what_the_dashboard_can_do() -> None:
    box = FakeBox()
    for options, told in (
        ({}, "5 shows the limit; there enter changes it"),
        ({"read_only": True}, "5 shows the limit"),
        ({"at": NOW - 3_600_000}, ""),
    ):
        async with dashboard(box, BROAD, place="subscriptions", **options) as driver:
            await driver.until(lambda: is_shown(driver) and "the dispatch rate is used up" in panel(driver, "values"))
            lines = panel(driver, "values").splitlines()
            assert [line for line in lines if "limit" in line] == ([told] if told else [])
            assert ("advice" in lines) == bool(told)


async def test_a_subscription_without_a_backlog_has_no_cause_to_explain() -> None:
    box = FakeBox()
    box.rows["subscriptions"] = [
        subscription(0, backlog=0, cause="end-of-log", causeText="all messages have been sent")
    ]
    async with dashboard(box, BROAD, place="subscriptions") as driver:
        await driver.until(lambda: is_shown(driver) and panel(driver, "values").startswith("orders-0"))
        assert "all messages" not in panel(driver, "values") and "no action" not in panel(driver, "values")
