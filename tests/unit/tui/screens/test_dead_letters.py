"""Groups of dead letters by reason, and the shapes of an unfolded one."""

from typing import Any

from pulsarbox.tui.feed import RowQuery
from pulsarbox.tui.screens.dead_letters import reasons_of
from pulsarbox.tui.widgets.row_details import DetailPanel
from tests.unit.tui.driving import WIDE, Driver, dashboard
from tests.unit.tui.fake import GROUP, FakeBox, dead_letters

TEXT = GROUP | {"fingerprint": "aaaaaaaaaaaa", "shape": "text", "count": 30}
REFUSED = GROUP | {"fingerprint": "bbbbbbbbbbbb", "reason": "refused\x1b", "count": 20}
GROUPS: list[dict[str, Any]] = [GROUP, TEXT, REFUSED]
QUERY = RowQuery("groups", "count", True)
WHOLE = (
    'reason == "timeout after # s" and origin == "persistent://public/default/orders-0" and subscription == "billing"'
)


def told(query: RowQuery = QUERY, unfolded: tuple[str, ...] = (), word: str = "") -> list[tuple[int, str]]:
    def passes(row: Any) -> bool:
        return word in f"{row['reason']} {row['shape']}"

    found = reasons_of(query, GROUPS, passes, unfolded, {"topic": "t"})
    assert found.matching == len(found.rows) + query.offset
    return [(row["count"], row["reason"]) for row in found.rows]


def first_group() -> str:
    row = reasons_of(QUERY, GROUPS, lambda row: True, (), {}).rows[0]
    return str(row["group"])


def test_a_reason_is_one_row_until_it_is_unfolded() -> None:
    assert told() == [(42, "▸ timeout after # s"), (20, "  refused\\x1b")]
    whole = [(42, "▾ timeout after # s"), (30, "    text"), (12, "    {amount, customer, id}"), (20, "  refused\\x1b")]
    assert told(unfolded=(first_group(),)) == whole
    assert told(QUERY._replace(offset=1), (first_group(),)) == whole[1:]


def test_order_applies_to_reasons_and_a_filter_to_their_shapes() -> None:
    assert [count for count, _ in told(QUERY._replace(sort="reason", descending=False))] == [20, 42]
    assert told(word="text") == [(42, "▸ timeout after # s")], "a reason stays whole"
    assert told(word="refused") == [(20, "  refused\\x1b")]
    assert told(word="nowhere") == []


async def test_replay_means_the_reason_or_the_shape_of_the_cursor() -> None:
    box = FakeBox()
    box.rows["deadletters"][:] = [dead_letters(0)]
    box.answers["GET", "/pulsarbox/v1/dlq/public/default/orders-0-billing-DLQ/groups"]["groups"] = [GROUP, TEXT]
    async with dashboard(box, WIDE, place="deadletters") as driver:
        await driver.press("enter")
        await driver.at("Groups")
        assert "▸ timeout after # s" in driver.text() and "enter shows its 2 payload shapes" in driver.text()
        await driver.press("R")
        await driver.at("OperationDialog", answered=False)
        assert driver.screen.values["filter"] == WHOLE
        await driver.press("escape")
        await driver.at("Groups")
        await driver.press("enter")
        await driver.until(lambda: "▾ timeout after # s" in driver.text())
        await driver.press("down", "R")
        await driver.at("OperationDialog", answered=False)
        assert driver.screen.values["filter"] == 'fingerprint == "aaaaaaaaaaaa"'
        await driver.press("escape")
        await driver.at("Groups")
        await driver.press("up", "enter")
        await driver.until(lambda: "▸ timeout after # s" in driver.text())
        await driver.press("b")
        await driver.at("Browser")
        assert any("filter=reason" in target for _, target, _ in box.asked)


def test_a_reason_counts_once_also_if_it_is_unfolded() -> None:
    for unfolded in ((), (first_group(),)):
        found = reasons_of(QUERY, GROUPS, lambda row: "text" in str(row["shape"]), unfolded, {})
        assert (found.totals["matching"], found.totals["total"]) == (1, 2)


def test_without_several_shapes_reasons_begin_at_their_heading() -> None:
    found = reasons_of(QUERY, [GROUP, REFUSED], lambda row: True, (), {})
    assert [row["reason"] for row in found.rows] == ["refused\\x1b", "timeout after # s"]


async def test_details_have_the_whole_reason_and_shape_and_the_table_each_once() -> None:
    box = FakeBox()
    box.rows["deadletters"][:] = [dead_letters(0)]
    box.answers["GET", "/pulsarbox/v1/dlq/public/default/orders-0-billing-DLQ/groups"]["groups"] = [GROUP, TEXT]
    async with dashboard(box, (200, 50), place="deadletters") as driver:
        await driver.press("enter")
        await driver.at("Groups")
        await driver.until(lambda: details_of(driver)[:2] == ["timeout after # s", ""])
        assert "shape         2 shapes" in details_of(driver)
        await driver.press("enter")
        await driver.until(lambda: driver.table.count == 3)
        await driver.press("down")
        await driver.until(lambda: "shape         text" in details_of(driver))
        assert details_of(driver)[0] == "timeout after # s"
        (line,) = [line for line in driver.lines() if line[1] == ">"]
        assert line[: driver.table.outer_size.width].split().count("text") == 1


def details_of(driver: Driver) -> list[str]:
    lines: DetailPanel = driver.screen.query_one("#values", DetailPanel)
    return lines.text.split("\n")
