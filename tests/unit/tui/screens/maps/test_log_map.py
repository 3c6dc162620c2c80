"""The map of the log of a topic, its legend, and the lists below it."""

import random
from typing import Any

import pytest

from pulsarbox.tui.screens.maps import log_map
from pulsarbox.tui.screens.maps.log_map import (
    STATES,
    Grid,
    counts_of,
    drawn,
    grid_of,
    in_columns,
    joined,
    ledgers_of,
    legend_of,
    ranges_of,
    room_of,
    scale_of,
    state_of,
)
from pulsarbox.tui.themes import OURS
from pulsarbox.tui.widgets import numbers
from tests.unit.tui.driving import SMALL, Driver, dashboard
from tests.unit.tui.fake import CURSOR_MAP, FakeBox
from tests.unit.tui.framing import framed
from tests.unit.tui.legibility import wearing
from tests.unit.tui.screens.maps.test_key_bar import COLORS

SIZES = (SMALL, (120, 40), (200, 50))
SIGNS = {name: sign for name, sign, _, _ in STATES}


def buckets_of(count: int, each: int = 7) -> list[dict[str, Any]]:
    """Parts of a log, in random states."""
    chance, found = random.Random(count), []
    for at in range(count):
        acknowledged = chance.choice((0, 0, each, chance.randrange(each)))
        flying = chance.choice((0, 0, each - acknowledged))
        delayed = chance.choice((0, each - acknowledged - flying))
        found.append(
            {
                "first": f"3:{at * each}",
                "last": f"3:{at * each + each - 1}",
                "entries": each,
                "acknowledged": acknowledged,
                "inFlight": flying,
                "delayed": delayed,
            }
        )
    return found


@pytest.mark.parametrize("lines", [1, 9, 34])
@pytest.mark.parametrize("width", [36, 76, 196])
@pytest.mark.parametrize("count", [1, 7, 30, 76, 77, 900])
def test_the_map_fits_and_each_part_of_the_log_has_a_cell_of_the_same_size(count: int, width: int, lines: int) -> None:
    buckets = buckets_of(count)
    room = room_of(buckets, width)
    grid = grid_of(count, room, lines, 3)
    assert grid.across * grid.wide <= room and grid.high <= 3
    shown = drawn(buckets, grid, COLORS).plain.split("\n")
    assert all(len(line.rstrip()) <= width for line in shown)
    assert len(shown) == -(-count // grid.across) * grid.high
    assert len(shown) <= lines or (count > room * lines * 0.8 and grid == Grid(room)), "only if it cannot fit"
    rows = shown[:: grid.high]
    assert [line.split()[0] for line in rows] == [each["first"] for each in buckets[:: grid.across]]
    cells = "".join(line[width - room :] for line in rows)
    assert cells == "".join(SIGNS[state_of(each)] * grid.wide for each in buckets)
    for row in range(0, len(shown), grid.high):
        assert {line[width - room :] for line in shown[row : row + grid.high]} == {shown[row][width - room :]}


def test_few_entries_have_large_cells_and_round_positions() -> None:
    assert grid_of(100, 111, 25, 2) == Grid(10, 11, 2) and grid_of(100, 190, 34, 3) == Grid(10, 19, 3)
    assert grid_of(100, 71, 8, 1) == Grid(20, 3, 1) and grid_of(1, 71, 8, 1) == Grid(1, 71, 1)
    assert grid_of(1999, 190, 34, 3) == Grid(190, 1, 3) and grid_of(5000, 190, 20, 3) == Grid(190)
    assert grid_of(0, 71, 8, 1).wide == 71 and grid_of(3, 4, 0, 1) == Grid(4)


@pytest.mark.parametrize("width", [36, 76, 160])
def test_the_legend_has_the_signs_and_the_entries(width: int) -> None:
    for count in (1, 30, 900):
        buckets = buckets_of(count)
        lines = legend_of(buckets, width, COLORS).plain.split("\n")
        assert all(len(line.rstrip()) <= width for line in lines)
        legend, seen = " ".join(lines), {state_of(each) for each in buckets}
        assert all(f"{sign} {meaning}" in legend for name, sign, meaning, _ in STATES if name in seen)
        counts = counts_of(buckets)
        assert sum(counts.values()) == count * 7
        told = {name: f"{numbers.count(each)} ({numbers.percent(each / count / 7)})" for name, each in counts.items()}
        assert all(f"{meaning} {told[name]}" in legend for name, _, meaning, _ in STATES if name in told)


@pytest.mark.parametrize("size", [(40, 24), (80, 24), (200, 50)])
async def test_an_empty_log_has_the_command_that_publishes_to_its_topic(size: tuple[int, int]) -> None:
    box, command = FakeBox(), "pulsarbox produce orders-0 'Hello, world'"
    box.answers["GET", "/pulsarbox/v1/maps/cursor/public/default/orders-0/billing"] = {**CURSOR_MAP, "buckets": []}
    async with dashboard(box, size, place="subscriptions") as driver:
        await driver.press("m")
        await driver.at("CursorMapScreen")
        await driver.until(lambda: "The log is empty." in driver.text())
        shown = " ".join(" ".join(line.strip("│ ").split()) for line in driver.lines()[:-2])
        assert command in shown and driver.screen.copied_command() == command
    assert not legend_of((), 76, COLORS)


def test_the_scale_has_the_entries_of_a_cell_and_its_size() -> None:
    assert scale_of([], Grid(76)) == ""
    assert scale_of(buckets_of(3, 40), Grid(76)) == "40 entries per cell"
    assert scale_of(buckets_of(3, 1), Grid(10, 11, 2)) == "1 entry per cell of 11x2 characters"


def test_more_parts_than_there_is_room_for_are_joined() -> None:
    buckets = buckets_of(30)
    assert joined(buckets, 30) is buckets
    for most in (29, 15, 14, 1):
        found = joined(buckets, most)
        assert len(found) <= most and found[0]["first"] == "3:0"
        assert sum(each["entries"] for each in found) == 210 and counts_of(found) == counts_of(buckets)
        assert scale_of(found, Grid(9)) == f"{found[0]['entries']} entries per cell"


@pytest.mark.parametrize("lines", [1, 2, 5, 40])
@pytest.mark.parametrize("width", [12, 36, 96])
def test_lists_use_columns_and_count_what_has_no_room(width: int, lines: int) -> None:
    for total in (1, 7, 60, 5000):
        items = [f"12:{at}" for at in range(min(total, 1000))]
        shown = in_columns(items, total, width, lines, COLORS).plain.split("\n")
        assert len(shown) <= max(lines, 2) and all(len(line) <= max(width, 8) for line in shown)
        listed = [word for line in shown for word in line.split() if ":" in word]
        assert sorted(listed) == sorted(items[: len(listed)])
        more = shown[-1].removesuffix(" more").replace(",", "") if shown[-1].endswith("more") else "0"
        assert len(listed) + int(more) == total
        if len(listed) < total:
            assert len(listed) == max(lines - 1, 1) * ((width + 3) // (max(map(len, items)) + 3))


def test_lists_without_entries_say_so() -> None:
    assert "unacknowledged" in ranges_of({}, 40, 5, COLORS).plain and "No ledger" in ledgers_of({}, 40, 5, COLORS).plain
    assert ranges_of({"ranges": [[1, 2, 2], [1, 4, 9]]}, 40, 5, COLORS).plain.split() == ["1:2", "1:4-9"]
    assert ledgers_of(CURSOR_MAP, 60, 5, COLORS).plain.split("\n") == [
        "LEDGER  ENTRIES      SIZE  STATE",
        "    12      100  9.77 KiB  open",
    ]


def test_each_column_of_ledgers_has_headings() -> None:
    told = long_log({"buckets": "9"}, None)
    shown = ledgers_of(told, 96, 5, COLORS).plain.split("\n")
    assert len(shown) == 5 and shown[-1] == f"{400 - 3 * 2} more"
    assert [line.count("ENTRIES") for line in shown] == [2, 0, 0, 0, 0]
    assert [line.count("closed") for line in shown] == [0, 2, 2, 2, 0]
    assert {len(line) for line in (shown[1], shown[2])} == {len(shown[0].rstrip()) + 1}


@pytest.mark.parametrize("size", SIZES, ids=lambda size: f"{size[0]}x{size[1]}")
async def test_panels_of_the_cursor_map(size: tuple[int, int]) -> None:
    box = FakeBox()
    box.answers["GET", "/pulsarbox/v1/maps/cursor/public/default/orders-0/billing"] = long_log
    async with dashboard(box, size, place="subscriptions") as driver:
        await opened(driver)
        panels = framed(driver)
        assert set(panels) == {"Cursor", "Log: billing of orders-0", "Acknowledged beyond mark-delete", "Ledgers"}
        cursor, log, ranges, ledgers = panels.values()
        assert cursor.bottom == log.y and log.bottom == ranges.y == ledgers.y
        assert max(each.bottom for each in panels.values()) == size[1] - 2, "no lines are left empty"
        assert max(each.right for each in panels.values()) == size[0]
        assert log.height > ranges.height, "the log has more lines than the lists, also if these are long"
        text = driver.text()
        assert "mark-delete" in text and "in 400 ledgers" in text and " more " in text and "entries per cell" in text


@pytest.mark.parametrize("size", [(40, 24), *SIZES], ids=lambda size: f"{size[0]}x{size[1]}")
async def test_a_short_log_has_the_lines_that_the_lists_do_not_need(size: tuple[int, int]) -> None:
    async with dashboard(size=size, place="subscriptions") as driver:
        await opened(driver)
        panels = framed(driver)
        heights = {name.partition(":")[0]: panel.height for name, panel in panels.items()}
        assert max(each.bottom for each in panels.values()) == size[1] - 2
        assert heights["Log"] > heights["Ledgers"] or size[1] == 24
        assert heights["Log"] >= size[1] * 0.3 and "12:50-51" in driver.text()
        assert "1 entry per cell" in driver.text()


def long_log(query: Any, body: Any) -> dict[str, Any]:
    """A log of many entries, ranges and ledgers."""
    ledgers = [{"ledger": at, "first": 0, "last": 99, "size": 10_000, "open": at == 399} for at in range(400)]
    ranges = [[300, at * 5, at * 5 + 2] for at in range(1000)]
    parts = {"buckets": buckets_of(int(query["buckets"])), "bucketEntries": 7, "ranges": ranges, "rangesTotal": 4321}
    return CURSOR_MAP | parts | {"ledgers": ledgers, "ledgersTotal": 400}


async def opened(driver: Driver) -> None:
    await driver.press("m")
    await driver.at("CursorMapScreen")
    await driver.until(lambda: "░ waiting" in driver.text())


@pytest.mark.parametrize("theme", [*(each.name for each in OURS), "ansi-dark", "NO_COLOR"])
async def test_maps_are_the_same_text_in_each_theme(theme: str, monkeypatch: pytest.MonkeyPatch) -> None:
    if theme == "NO_COLOR":
        monkeypatch.setenv("NO_COLOR", "1")
    async with dashboard(size=SMALL, place="subscriptions", kept=wearing(theme)) as driver:
        await opened(driver)
        assert "» in flight 10 (10%)" in driver.text() and "░ waiting 42 (42%)" in driver.text()
        assert set(log_map.counts_of(CURSOR_MAP["buckets"]).values()) == {43, 10, 5, 42}  # type: ignore[arg-type]


@pytest.mark.parametrize("cells", [1, 41, 223, 9143])
def test_shares_are_of_entries_and_not_of_cells(cells: int) -> None:
    """Most cells have an entry in flight, but most entries are acknowledged."""
    each, buckets = 9143 // cells, []
    for at in range(cells):
        held = 798 * (at + 1) // cells - 798 * at // cells
        buckets.append(
            {"first": f"3:{at * each}", "entries": each, "acknowledged": each - held, "inFlight": held, "delayed": 0}
        )
    assert counts_of(buckets) == {"acknowledged": 8345, "inFlight": 798, "delayed": 0, "waiting": 0}
    text = " ".join(legend_of(buckets, 100, COLORS).plain.split())
    assert "acknowledged 8,345 (91%)" in text and f"in flight 798 ({numbers.percent(798 / 9143)})" in text


def test_every_entry_is_counted_once() -> None:
    overlapping = [{"entries": 10, "acknowledged": 9, "inFlight": 4, "delayed": 3}, {"entries": 5, "delayed": 2}]
    assert counts_of(overlapping) == {"acknowledged": 9, "inFlight": 1, "delayed": 2, "waiting": 3}
    assert sum(counts_of(buckets_of(300)).values()) == 300 * 7
