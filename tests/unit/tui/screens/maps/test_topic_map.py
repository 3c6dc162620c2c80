"""Topics as areas."""

from typing import Any, Final

import pytest

from pulsarbox.tui.feed import ShownRow
from pulsarbox.tui.screens.maps.topic_map import TOPICS_MAX, others_of, tiles_of
from pulsarbox.tui.themes import OURS
from pulsarbox.tui.widgets.graphs.treemap import Treemap
from tests.unit.tui.driving import SMALL, dashboard
from tests.unit.tui.fake import FakeBox, topic
from tests.unit.tui.legibility import TERMINAL, least_of, poor_in, wearing

THEMES: Final = [each.name for each in OURS]


def row(name: str, **more: object) -> ShownRow:
    return ShownRow({"topic": f"persistent://public/default/{name}", "backlog": 1, **more})


def test_topics_without_a_share_have_no_area_and_full_quotas_a_mark() -> None:
    rows = [row("b\x1b", backlog=5, quota=0.9), row("a", backlog=7, quota=0.2), row("none", backlog=0)]
    assert [(tile.label_in(9), tile.told, tile.look) for tile in tiles_of(rows, 0)] == [
        *(("a", "7", "cool"), ("▲ b\\x1b", "5", "warm"))
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
        assert line.endswith("MiB y copy"), line


async def test_topics_are_areas_by_backlog_rate_and_size() -> None:
    box = FakeBox()
    box.rows["topics"] = [topic(at, backlog=10 * at, publishRate=float(9 - at), size=at, quota=None) for at in range(9)]
    async with dashboard(box, SMALL, place="topics") as driver:
        await driver.press("M")
        await driver.at("TopicMap")
        await driver.until(lambda: ">orders-8" in driver.text() and "orders-0" not in driver.text())
        assert "━ Topics by backlog (unacknowledged messages)" in driver.text()
        found = [each.style for each in driver.strips()[-3] if "! from 100%" in each.text]
        assert found and found[0] is not None and found[0].color == driver.screen.map.look("hot").color
        await driver.press("down")
        await driver.until(lambda: ">orders-7" in driver.text() and "backlog 70" in driver.told("told"))
        strips = [driver.screen.map.render_line(y) for y in range(driver.screen.map.size.height)]
        edges = ["".join(each.text for each in strip if "▁" in each.text) for strip in strips]
        assert any(edges) and all("orders" not in each for each in edges), "lines between areas, not below names"
        assert not edges[-1], "the border of the panel is the last line"
        await driver.press("s")
        await driver.until(lambda: "publish rate (messages published per second)" in driver.text())
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
        assert f"{40 - merged} of 40 topics" in driver.text() and f"▏+{merged}" in driver.text()
        await driver.press("end")
        await driver.until(lambda: f"lists the {merged} smaller topics" in driver.told("told"))
        assert not driver.screen.rows_chosen()
        await driver.press("enter")
        await driver.at("TopicsScreen")
        await driver.until(lambda: driver.table.count == merged)


@pytest.mark.parametrize("is_known", [True, False])
@pytest.mark.parametrize("size", [SMALL, (200, 50)])
async def test_topics_beyond_the_requested_ones_are_counted(size: tuple[int, int], is_known: bool) -> None:
    box = FakeBox()
    backlogs = [0] * 7 + [10_000_000 // (at + 1) for at in range(313)]
    box.rows["topics"] = [topic(at, backlog=backlog, quota=None) for at, backlog in enumerate(backlogs)]
    box.totals = {"backlog": sum(backlogs)} if is_known else {}
    async with dashboard(box, size, place="topics") as driver:
        await driver.press("M")
        await driver.at("TopicMap")
        await driver.until(lambda: driver.screen.map.tiles)
        shown = driver.screen.map
        all_of = 313 if is_known else TOPICS_MAX
        assert shown.own + shown.merged_count == all_of
        assert sum(tile.value for tile in shown.tiles) == sum(sorted(backlogs)[-all_of:])
        largest = "" if is_known else "the 100 largest of "
        part = f"{shown.own} of " if shown.merged_count else ""
        assert f"   {part}{largest}313 topics" in driver.text()
        assert size != SMALL or part
        if part:
            assert shown.tiles[-1].name == f"+{shown.merged_count} more"
            await driver.press("end")
            await driver.until(lambda: f"lists the {shown.merged_count} smaller topics" in driver.told("told"))
            await driver.press("enter")
            await driver.at("TopicsScreen")
            missing = 313 - shown.own
            await driver.until(lambda: missing <= driver.table.count <= missing + 1)  # the least of the shown ones too


@pytest.mark.parametrize(
    ("matching", "whole", "others"),
    [(2, None, (0, 0)), (2, 30, (0, 0)), (9, 30, (7, 18)), (9, None, (0, 0)), (9, 11, (0, 0))],
)
def test_the_sum_of_other_topics(matching: int, whole: float | None, others: tuple[int, float]) -> None:
    assert others_of(tiles_of([row("a", backlog=7), row("b", backlog=5)], 0), matching, whole) == others


@pytest.mark.parametrize("size", [SMALL, (120, 40), (200, 50)], ids=lambda size: f"{size[0]}x{size[1]}")
@pytest.mark.parametrize("theme", [*(each.name for each in OURS), *TERMINAL, "NO_COLOR"])
async def test_tiles_are_gauges_of_their_quotas(theme: str, size: tuple[int, int], monkeypatch: Any) -> None:
    if theme == "NO_COLOR":
        monkeypatch.setenv("NO_COLOR", "1")
    box = FakeBox()
    box.rows["topics"] = [
        topic(at, backlog=90 - at, quota=quota) for at, quota in enumerate((0.1, 0.5, 0.85, 1.2, None))
    ]
    async with dashboard(box, size, wearing(theme) if theme != "NO_COLOR" else None, place="topics") as driver:
        await driver.press("M")
        await driver.at("TopicMap")
        await driver.until(lambda: ">orders-0" in driver.text())
        lines, text, shown = driver.lines(), driver.text(), driver.screen.map
        assert lines[2].startswith("┏━ Topics by backlog") and lines[-3].endswith("! from 100% ━┛")
        assert all(line[0] + line[-1] == "┃┃" for line in lines[3:-3]), "tiles are inside of the border"
        shares = ("85%", "120%") if size == SMALL else ("85% of the quota", "120% of the quota")
        assert all(told in text for told in ("▲ orders-2", "! orders-3", "10%", *shares))
        first = shown._areas[0]
        sides = [line[1 + first.x] + line[first.x + first.width] for line in lines[3 : 3 + first.height]]
        assert sides == [">▐", *["▌▐"] * (first.height - 1)], "the selected tile has thick sides in each theme"
        looks = [gauge(shown, at) for at in range(5)]
        if theme in TERMINAL:
            assert all(len(grounds) == 1 for grounds, _ in looks[1:])
        else:
            assert [round(share, 1) for _, share in looks[1:]] == [0.5, 0.8, 1.0, 0.0] or size == SMALL
            assert {len(grounds) for grounds, _ in (looks[1], looks[2])} == {2}, "a part of the tile is filled"
            assert len({frozenset(grounds) for grounds, _ in looks[1:4]}) == 3, "each severity has its own ground"
            assert {len(inks_of(shown, at)) for at in range(1, 5)} == {1}, "a text has one color on and beside the fill"
        if theme in THEMES:
            assert not poor_in(driver, shown.region, least_of(theme))


def gauge(shown: Treemap, number: int) -> tuple[set[str], float]:
    """Grounds of a tile, and the filled share of its width."""
    area = shown._areas[number]
    segments = [
        (len(each.text), str(each.style.bgcolor) if each.style else "") for each in shown._segments(area, area.y)
    ]
    last = segments[-1][1]
    filled = sum(width for width, ground in segments if ground != str(shown.look("plain").bgcolor))
    return {ground for _, ground in segments} | {last}, filled / area.width


def inks_of(shown: Treemap, number: int) -> set[str]:
    """Colors of the letters and digits of a tile."""
    area = shown._areas[number]
    segments = [each for y in range(area.y, area.y + area.height) for each in shown._segments(area, y)]
    return {
        str(each.style.color) + str(each.style.bold)
        for each in segments
        if each.style and any(sign.isalnum() for sign in each.text)
    }


@pytest.mark.parametrize("size", [SMALL, (200, 50)])
async def test_an_empty_map_has_the_command_that_publishes_in_its_middle_and_copies_it(size: tuple[int, int]) -> None:
    box, command = FakeBox(), "pulsarbox produce hello 'Hello, world'"
    box.rows["topics"].clear()
    async with dashboard(box, size, place="topics") as driver:
        await driver.press("M")
        await driver.until(lambda: command in driver.text())
        assert all(len(line) <= size[0] and line.count("┃") in (0, 2) for line in driver.lines())
        row, line = next((row, line) for row, line in enumerate(driver.lines()) if command in line)
        inner = line.strip("┃ ")
        assert inner == command and row > 5 and abs(line.index(inner) - (size[0] - len(command)) / 2) <= 1
        assert "quota" not in driver.text(), "there are no areas to explain"
        assert driver.screen.copied_command() == command
        box.rows["topics"].append(topic(1))
        await driver.press("r")
        await driver.until(lambda: "quota" in driver.text() and command not in driver.text())
        assert driver.screen.copied_command() != command


async def test_the_command_of_an_empty_map_names_the_box() -> None:
    box = FakeBox()
    box.rows["topics"].clear()
    async with dashboard(box, SMALL, place="topics", target=["--data-dir", "mybox"]) as driver:
        await driver.press("M")
        await driver.until(lambda: "'Hello, world' --data-dir mybox" in driver.text())
