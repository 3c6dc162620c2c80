"""The panels above the table of the storage screen."""

from itertools import product
from typing import Any

import pytest
from rich.text import Text
from textual.widgets import Static

from pulsarbox.tui.screens import storage
from pulsarbox.tui.screens.storage import divided
from pulsarbox.tui.screens.store_facts import brief, refusal, store_facts
from pulsarbox.tui.widgets.panel import in_a_row, in_columns, lines_of
from tests.unit.tui.driving import SMALL, WIDE, Driver, dashboard
from tests.unit.tui.fake import STORE, FakeBox
from tests.unit.tui.framing import framed
from tests.unit.tui.screens.maps.test_key_bar import COLORS

SIZES = (SMALL, (120, 40), (200, 50))
GIB = 1 << 30


def test_numbers_of_the_store_stand_beside_each_other_where_there_is_room() -> None:
    facts = store_facts(STORE)
    told = in_a_row(brief(facts), 400, COLORS).plain
    assert told.startswith("disk free 74.5 GiB of 251 GiB (30%)   receipt p99 8.4 ms   commit p99 8.4 ms   failed")
    assert "entries" not in told and "cache hit rate 97%" in told and "reserve held" in told
    assert lines_of(in_a_row(brief(facts), 40, COLORS)) > 3
    assert [each.label for each in facts.journal][:3] == ["commits", "failed commits", "checkpoint lag"]
    assert not any(map(len, store_facts({}))) and store_facts({"checkpointLag": 5}).lines == 1


@pytest.mark.parametrize(
    ("free", "total", "is_low"),
    [(GIB, 100 * GIB, True), (3 * GIB, 100 * GIB, False), (GIB, 10 * GIB, False), (GIB, None, True)],
)
def test_little_free_space_is_an_alarm_as_in_the_diagnosis(free: int, total: int | None, is_low: bool) -> None:
    (found,) = store_facts({"diskFree": free, "diskTotal": total}).space
    assert found.alarm == ("bad" if is_low else "") and found.told[0].startswith("! ") == is_low


def test_alarms_have_a_sign() -> None:
    facts = store_facts(STORE | {"commitsFailed": 3, "reserveHeld": False})
    journal = in_columns(facts.journal, 36, COLORS).plain
    assert "failed commits                   ! 3" in journal.split("\n")
    assert "reserve ▲ missing" in in_a_row(facts.space, 200, COLORS).plain
    assert refusal({"refusal": "full\x1b"}) == "! The box refuses messages: full\\x1b" and not refusal(STORE)


@pytest.mark.parametrize("room", range(-3, 40))
def test_panels_of_the_store_leave_the_table_its_lines(room: int) -> None:
    for wanted in product((0, 3, 6, 10), (0, 4), (0, 9, 30)):
        given = divided(room, *wanted)
        assert given.total <= max(room, 0)
        assert all(0 <= lines <= most for lines, most in zip(given[:3], wanted, strict=True))
        assert given.directories >= max(min(wanted[2], room - 1 - 2), 0), "directories come before all facts but a line"
        assert given.facts or not wanted[0] or room < 1, "a line of the facts is always there"
        assert given.has_framed_directories or room < 6, "the border stays as long as three lines fit inside"
        assert given.space in (0, wanted[1])
        if not given.is_framed:
            assert room < min(wanted[0], 3) + 2 + (wanted[2] + 2 if wanted[2] else 0), "borders go where lines lack"


async def test_panels_are_laid_out_only_for_new_texts(monkeypatch: pytest.MonkeyPatch) -> None:
    async with dashboard(size=WIDE, place="storage") as driver:
        await driver.until(lambda: "disk free" in driver.text() and "█ live" in driver.text())
        screen, updated, update = driver.screen, list[tuple[str | None, bool]](), Static.update

        def counted(self: Static, text: Any, *, layout: bool = True) -> None:
            updated.append((self.id, layout))
            update(self, text, layout=layout)

        monkeypatch.setattr(Static, "update", counted)
        screen._draw()
        assert not updated
        rows, *others = screen._shown
        screen._shown = rows._replace(totals=rows.totals | {"commits": 1}), *others
        screen._draw()
        assert updated == [("journal", False)], "a number changes no layout"


@pytest.mark.parametrize("size", SIZES, ids=lambda size: f"{size[0]}x{size[1]}")
async def test_texts_are_inside_of_borders_and_the_table_has_its_rows(size: tuple[int, int]) -> None:
    async with dashboard(size=size, place="storage") as driver:
        await driver.until(lambda: "█ live" in driver.text())
        panels = framed(driver)
        assert {"Journal", "Latency", "Space"} <= set(panels) and ("Decompression cache" in panels) == (size[0] > 80)
        assert {panels[name].y for name in ("Journal", "Latency")} == {2}
        assert (panels["Space"].y == 2) == (size[0] >= storage._FOUR), "beside the numbers where there is room"
        assert "disk free 74.5 GiB of 251 GiB (30%)   volumes 4, 256 MiB   reserve held" in driver.text()
        assert bar_of(driver) == panels["Space"].width - 4, "the bar has the whole width"
        assert all(f"volumes/0000000{at}" in driver.text() for at in range(4))
        assert not {"…", "group", "unpacked"} & set(driver.text().split())


async def test_the_bar_has_as_many_lines_as_its_legend_leaves() -> None:
    for height, lines in ((50, 3), (18, 2), (17, 1)):
        async with dashboard(size=(160, height), place="storage") as driver:
            await driver.until(lambda: "disk free" in driver.text() and "volumes/00000003" in driver.text())
            assert "█ live 57.2 MiB" in driver.text()
            assert sum("░░░░" in line for line in driver.lines()) == lines


async def test_on_a_narrow_terminal_numbers_stand_in_lines_above_the_space() -> None:
    async with dashboard(size=(40, 24), place="storage") as driver:
        await driver.until(lambda: "live 57.2 MiB (22%)" in driver.text() and "volumes/" in driver.text())
        assert "receipt p99 8.4 ms" in driver.text() and "failed commits 0" in driver.text()
        assert driver.text().count("disk free") == 1 and "Space" in framed(driver)
        assert "Latency" not in driver.text()
        await driver.pilot.resize_terminal(*SMALL)
        await driver.until(lambda: "Latency" in driver.text() and "receipt p99" not in driver.text())


async def test_a_refusal_is_above_all_numbers() -> None:
    box = FakeBox()
    box.store |= {"refusal": "the disk has less than 64 MiB " + "and so on " * 9, "commitsFailed": 2}
    async with dashboard(box, SMALL, place="storage") as driver:
        await driver.until(lambda: "█ live" in driver.text())
        lines = driver.lines()
        assert lines[2].startswith(" ! The box refuses messages: the disk has less than 64 MiB")
        assert "! 2 " in driver.text() and lines[3].startswith("   ") and lines[4].startswith("╭─ Journal")
        assert all(f"volumes/0000000{at}" in driver.text() for at in range(4))


def bar_of(driver: Driver) -> int:
    """Cells of the bar of the space."""
    text = Text(next(line for line in driver.lines() if "██" in line)).plain
    return sum(text.count(sign) for sign in "█▓▒░»")


async def test_the_filter_and_the_order_apply_to_the_volumes_but_not_to_the_space() -> None:
    box = FakeBox()
    answer = box._view
    box._view = lambda name, query: answer(name, {} if name == "storage" else query)  # type: ignore[method-assign]
    async with dashboard(box, WIDE, place="storage", passing="/0-3|nothing") as driver:
        await driver.until(lambda: "No row matches the filter" in driver.text())
        space = bar_of(driver)
        await driver.filter('state == "sealed" and liveBytes > 0')
        await driver.until(lambda: driver.table.count == 2)
        assert "2 of 4" in driver.text() and bar_of(driver) == space
        driver.screen.sort_by(next(each for each in driver.table.columns if each.key == "name"))
        driver.screen.do_reverse()
        await driver.until(lambda: driver.text().find("00000002") < driver.text().find("00000001"))
