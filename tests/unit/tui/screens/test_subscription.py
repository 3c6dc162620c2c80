"""The screen of one subscription: its facts beside each other on wide terminals, and its consumers."""

import pytest

from pulsarbox.tui.widgets.table import Table
from pulsarbox.tui.widgets.wrapping import HangingText
from tests.unit.tui.driving import SMALL, dashboard
from tests.unit.tui.fake import NOW, FakeBox, subscription


def box_with(**more: object) -> FakeBox:
    box = FakeBox()
    box.rows["subscriptions"] = [subscription(0, **more)]
    return box


async def test_a_wide_terminal_has_further_facts_beside_the_text() -> None:
    box = box_with(causeSince=NOW - 600_000, loaded=True)
    async with dashboard(box, (200, 50), place="subscriptions") as driver:
        await driver.press("enter")
        await driver.at("SubscriptionDetails")
        more = driver.screen.query_one("#more", HangingText)
        await driver.until(lambda: more.display and "published  100/s" in driver.text())
        facts = str(more.content).split("\n")
        assert facts[:2] == ["published  100/s", "delivered  88/s"]
        assert facts[2].startswith("oldest     published ") and facts[3].endswith(", 10 min")
        assert facts[4] == "topic      loaded"
        await driver.pilot.resize_terminal(*SMALL)
        await driver.until(lambda: not more.display)


@pytest.mark.parametrize("name", ["billing", "orders-from-all-countries-and-all-shops-" * 4])
async def test_on_narrow_terminals_the_facts_leave_a_row_of_the_consumers(name: str) -> None:
    async with dashboard(box_with(subscription=name), (40, 24), place="subscriptions") as driver:
        await driver.press("enter")
        await driver.at("SubscriptionDetails")
        body, table = driver.screen.query_one("#body"), driver.table
        await driver.until(lambda: table.region.height >= 4 and table.region.bottom == body.region.bottom)


async def test_consumers_are_counted_and_not_marked() -> None:
    box = box_with()
    async with dashboard(box, (200, 50), place="subscriptions") as driver:
        await driver.press("enter")
        await driver.at("SubscriptionDetails")
        count = driver.table.count
        await driver.until(lambda: str(driver.table.border_subtitle).strip() == f"{count}")
        assert count > 1 and "space mark" not in driver.told("hints")


async def test_a_resize_queries_the_box_only_for_other_rows_or_columns() -> None:
    async with dashboard(box_with(), (200, 50), place="subscriptions") as driver:
        await driver.press("enter")
        await driver.at("SubscriptionDetails")
        screen = driver.screen
        asked: list[object] = []
        screen.ask_again = lambda: asked.append(screen.query_now())
        driver.table.post_message(Table.Wanted())
        await driver.pilot.pause()
        assert not asked
        screen.filter = "name == 'c1'"
        driver.table.post_message(Table.Wanted())
        await driver.pilot.pause()
        assert len(asked) == 1


async def test_in_history_the_consumers_are_what_is_not_recorded() -> None:
    async with dashboard(box_with(), (120, 40), place="subscriptions", at=NOW - 60_000) as driver:
        await driver.press("enter")
        await driver.at("SubscriptionDetails")
        await driver.until(lambda: "Consumers are not recorded." in driver.text())


@pytest.mark.parametrize("passing", ["", "name == 'c1'"])
async def test_the_count_of_consumers_stays_while_the_cursor_moves(passing: str) -> None:
    async with dashboard(box_with(), SMALL, place="subscriptions") as driver:
        await driver.press("enter")
        await driver.at("SubscriptionDetails")
        if passing:
            await driver.filter(passing)
        wanted = "1 of 2" if passing else "6"
        edge = driver.lines
        await driver.until(lambda: any(line.endswith(f" {wanted} ━┛") for line in edge()))
        driver.table.post_message(Table.Moved())
        await driver.pilot.pause()
        assert any(line.endswith(f" {wanted} ━┛") for line in edge())
