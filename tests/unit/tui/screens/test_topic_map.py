"""Topics as areas."""

from pulsarbox.tui.feed import ShownRow
from pulsarbox.tui.screens.topic_map import tiles_of
from tests.unit.tui.driving import SMALL, dashboard
from tests.unit.tui.fake import FakeBox, topic


def row(name: str, **more: object) -> ShownRow:
    return ShownRow({"topic": f"persistent://public/default/{name}", "backlog": 1, **more})


def test_topics_without_a_share_have_no_area_and_full_quotas_a_mark() -> None:
    rows = [row("b\x1b", backlog=5, quota=0.9), row("a", backlog=7, quota=0.2), row("none", backlog=0)]
    assert [(tile.name, tile.told, tile.look) for tile in tiles_of(rows, 0)] == [
        *(("a", "7", "cool"), ("! b\\x1b", "5", "hot"))
    ]
    assert tiles_of(rows, 1) == []


async def test_a_long_name_leaves_room_for_the_numbers_of_the_topic() -> None:
    box = FakeBox()
    box.rows["topics"] = [topic(0, topic=f"persistent://public/default/first{'-' * 200}last", backlog=70)]
    async with dashboard(box, SMALL, place="topics") as driver:
        await driver.press("M")
        await driver.at("TopicMap")
        await driver.until(lambda: "backlog 70" in driver.told("told"))
        line = driver.told("told").rstrip()
        assert line.startswith(" first-") and "…" in line and "last " in line and len(line) <= SMALL[0]
        assert line.endswith("MiB"), line


async def test_topics_are_areas_by_backlog_rate_and_size() -> None:
    box = FakeBox()
    box.rows["topics"] = [topic(at, backlog=10 * at, publishRate=float(9 - at), size=at, quota=None) for at in range(9)]
    async with dashboard(box, SMALL, place="topics") as driver:
        await driver.press("M")
        await driver.at("TopicMap")
        await driver.until(lambda: ">orders-8" in driver.text() and "orders-0" not in driver.text())
        assert "unacknowledged messages" in driver.told("title")
        (legend,) = [each.style for each in driver.strips()[2] if "backlog quota" in each.text]
        assert legend is not None and legend.color == driver.screen.map.look("hot").color, "as the names of tiles"
        await driver.press("down")
        await driver.until(lambda: ">orders-7" in driver.text() and "backlog 70" in driver.told("told"))
        strips = [driver.screen.map.render_line(y) for y in range(driver.screen.map.size.height)]
        edges = ["".join(each.text for each in strip if each.style and each.style.underline) for strip in strips]
        assert edges[-1] and all("orders" not in each for each in edges), "lines between areas, not below names"
        await driver.press("s")
        await driver.until(lambda: "messages published per second" in driver.told("title"))
        await driver.until(lambda: ">orders-7" in driver.text() and "orders-0" in driver.text())
        await driver.press("home", "enter")
        await driver.at("Subscriptions")
        assert driver.screen.filter == 'topic == "persistent://public/default/orders-0"'


async def test_topics_without_room_for_their_names_are_listed_by_one_area() -> None:
    box = FakeBox()
    box.rows["topics"] = [topic(at, backlog=1 << (40 - at), quota=None) for at in range(40)]
    async with dashboard(box, SMALL, place="topics") as driver:
        await driver.press("M")
        await driver.at("TopicMap")
        await driver.until(lambda: ">orders-0" in driver.text() and driver.screen.map.merged)
        merged = len(driver.screen.map.merged)
        assert f"{40 - merged} of 40 topics" in driver.told("title") and f"▏+{merged}" in driver.text()
        await driver.press("end")
        await driver.until(lambda: f"lists the {merged} smaller topics" in driver.told("told"))
        assert not driver.screen.rows_chosen()
        await driver.press("enter")
        await driver.at("TopicsScreen")
        await driver.until(lambda: driver.table.count == merged)
