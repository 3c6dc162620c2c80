"""The map of the log of a topic, its legend, and the lists below it."""

import random
from typing import Any

import pytest

from pulsarbox.tui.screens.maps import log_map
from pulsarbox.tui.screens.maps.log_map import (
    STATES,
    counts_of,
    drawn,
    in_columns,
    ledgers_of,
    ranges_of,
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


@pytest.mark.parametrize("width", [40, 76, 160])
@pytest.mark.parametrize("count", [1, 30, 76, 77, 900])
def test_the_map_fits_and_its_legend_has_the_signs_and_the_entries(width: int, count: int) -> None:
    buckets = buckets_of(count)
    lines = drawn(buckets, width, COLORS, 2).plain.split("\n")
    assert all(len(line.rstrip()) <= width for line in lines)
    if count <= width:
        cells, legend = lines[0], " ".join(lines[3:])
        assert lines[0] == lines[1] and len(lines[0]) == width, "the bar has the whole width"
        assert lines[2].startswith("3:0") and lines[2].endswith(f"3:{count * 7 - 1}") and len(lines[2]) == width
        assert [cells[at] for at in range(width)] == [
            SIGNS[state_of(buckets[at * count // width])] for at in range(width)
        ]
    else:
        rows = [line for line in lines if line.lstrip().startswith("3:")]
        cells, legend = "".join(line.split()[1] for line in rows), " ".join(lines[len(rows) :])
        assert cells == "".join(SIGNS[state_of(each)] for each in buckets)
        assert all(line.split()[0] in {each["first"] for each in buckets} for line in rows)
    assert all(f"{sign} {meaning}" in legend for _, sign, meaning, _ in STATES if sign in cells)
    counts = counts_of(buckets)
    assert sum(counts.values()) == count * 7
    shown = {name: f"{numbers.count(value)} ({numbers.percent(value / count / 7)})" for name, value in counts.items()}
    assert all(f"{meaning} {shown[name]}" in legend for name, _, meaning, _ in STATES if name in shown)


def test_an_empty_log_names_the_command_that_publishes() -> None:
    empty = drawn((), 76, COLORS).plain
    assert empty.endswith(": pulsarbox produce hello 'Hello, world'") and len(empty) <= 76
    assert scale_of({"buckets": []}) == ""
    assert scale_of({"bucketEntries": 40}) == "40 entries per cell"
    assert scale_of(CURSOR_MAP) == "1 entry per cell"


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
    assert ledgers_of(CURSOR_MAP, 60, 5, COLORS).plain == "12  100 entries  9.77 KiB  open"


@pytest.mark.parametrize("size", SIZES, ids=lambda size: f"{size[0]}x{size[1]}")
async def test_panels_of_the_cursor_map(size: tuple[int, int]) -> None:
    box = FakeBox()
    box.answers["GET", "/pulsarbox/v1/maps/cursor/public/default/orders-0/billing"] = long_log
    async with dashboard(box, size, place="subscriptions") as driver:
        await opened(driver)
        panels = framed(driver)
        assert set(panels) == {"Cursor", "Log: billing of orders-0", "Acknowledged beyond mark-delete", "Ledgers"}
        cursor, log, ranges, ledgers = panels.values()
        assert (cursor.y == log.y) == (size[0] >= 160) and ranges.y == ledgers.y
        assert max(each.bottom for each in panels.values()) == size[1] - 2, "no lines are left empty"
        assert max(each.right for each in panels.values()) == size[0]
        assert log.height - 6 >= (6, 8, 8)[SIZES.index(size)], "the log has several lines"
        text = driver.text()
        assert "mark-delete" in text and "in 400 ledgers" in text and " more " in text and "entries per cell" in text


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
    text = " ".join(drawn(buckets, 100, COLORS).plain.split())
    assert "acknowledged 8,345 (91%)" in text and f"in flight 798 ({numbers.percent(798 / 9143)})" in text


def test_every_entry_is_counted_once() -> None:
    overlapping = [{"entries": 10, "acknowledged": 9, "inFlight": 4, "delayed": 3}, {"entries": 5, "delayed": 2}]
    assert counts_of(overlapping) == {"acknowledged": 9, "inFlight": 1, "delayed": 2, "waiting": 3}
    assert sum(counts_of(buckets_of(300)).values()) == 300 * 7
