"""Several data directories on the storage screen."""

from typing import Any

import pytest

from pulsarbox.server.http.box.ensemble import document
from pulsarbox.storage.ensemble.status import EnsembleStatus, ScrubStatus
from pulsarbox.storage.ensemble.watch import CopyProgress, copy_map
from pulsarbox.tui.screens.directories import (
    MAP_SECONDS,
    SINGLE_SECONDS,
    STATES,
    Copies,
    CopiesQuery,
    drawn,
    short_names,
)
from tests.unit.storage.ensemble.fake import LOST, SINCE, FakeEnsemble, member, status
from tests.unit.tui.driving import dashboard
from tests.unit.tui.fake import FakeBox
from tests.unit.tui.framing import framed
from tests.unit.tui.legibility import style_of, wearing
from tests.unit.tui.screens.maps.test_key_bar import COLORS

ENSEMBLE = "/pulsarbox/v1/ensemble"
LEGEND = (
    "█ complete",
    "▶ being written",
    "+ being copied",
    "! copy missing here",
    "✕ no intact copy",
    "· elsewhere only",
    "▸ receives new entries",
)


def box_of(now: EnsembleStatus, *open_ledgers: int) -> FakeBox:
    """A box with these directories."""
    box, fake = FakeBox(), FakeEnsemble(now)

    def cells(query: Any, body: Any) -> dict[str, Any]:
        found = copy_map(now, fake.held, int(query["cells"]), lambda ledger: ledger in open_ledgers)
        return found._asdict()

    told = document(now, CopyProgress(SINCE, 1000, 2000), SINCE + 60_000)
    box.answers |= {("GET", ENSEMBLE): told, ("GET", f"{ENSEMBLE}/map"): cells}
    names = [each.name for each in now.members]
    box.rows["storage"] = [{"name": f"{name}/volumes/00000001", "state": "current"} for name in names]
    box.totals["lostDirectories"] = sum(each.state == "lost" for each in now.members)
    return box


@pytest.mark.parametrize("size", [(80, 24), (120, 40), (200, 50)], ids=lambda size: f"{size[0]}x{size[1]}")
async def test_the_map_of_directories_and_ledgers(size: tuple[int, int]) -> None:
    async with dashboard(box_of(LOST, 8), size, place="storage") as driver:
        await driver.until(lambda: "LEDGERS" in driver.text().upper())
        heading = next(line for line in driver.lines() if "DIRECTORY" in line)
        begin = heading.index("3 LEDGERS: 7 TO 9")
        for name, state, cells in (("1", "● active ▸", "█▶+"), ("2", "✕ lost", "!·!"), ("3", "● active ▸", "+▶█")):
            line = next(line for line in driver.lines() if f"disk{name} " in line and f" {state} " in line)
            found = line[begin : size[0] - 1].rstrip()
            wide = len(found) // 3
            assert found == "".join(cell * wide for cell in cells) and size[0] - 5 < begin + len(found) < size[0] - 1
            assert line.startswith(f"│ disk{name} "), "no sign that looks like a cursor"
            (state_at,) = (at for at in range(len(line)) if line.startswith(state, at))
            assert heading.startswith("STATE", state_at)
        assert [each for each in LEGEND if each not in driver.text()] == []
        assert "Directories" in framed(driver)
        text = " ".join(driver.text().replace("│", " ").split())
        assert "▲ 1,204 entries lack a copy; repair 50%" in text
        assert "✕ /disk2: input/output error" in text
        assert "✕ 1 directory lost" in driver.told("vitals")
        assert ("FREE" in text, "ERRORS" in text) == (size[0] >= 100, size[0] >= 160)
        assert "disk3 vol" in text
        assert {len(line) for line in driver.lines()} == {size[0]}
        assert driver.screen.command_line() == "pulsarbox storage members"


async def test_many_directories_in_every_state() -> None:
    states = ("active", "joining", "leaving", "full", "late", "fenced", "lost", "removed")
    scrubbing = ScrubStatus(25, 100, 0, SINCE, 0)
    members = [member(f"/srv/{at}/box", state=state, scrub=scrubbing) for at, state in enumerate(states * 2)]
    async with dashboard(box_of(status(*members)), (120, 40), place="storage") as driver:
        await driver.until(lambda: "joining" in driver.text())
        assert [each for each in states if f"{STATES[each][0]} {each} " not in driver.text()] == []
        assert "scrub 25%" in driver.text() and "all copies are complete; checked 1m00s ago" in driver.text()
        assert "VOLUME" in driver.text()


@pytest.mark.parametrize("count", [8, 40])
async def test_problems_and_the_table_are_visible_in_24_lines(count: int) -> None:
    """Directories without a problem, the legend and numbers leave room for rows."""
    bad = {3: "lost", 5: "full", 7: "late"}
    members = [member(f"/srv/{at:02}/box", state=bad.get(at, "active"), since=SINCE) for at in range(count)]
    async with dashboard(box_of(status(*members)), (80, 24), place="storage") as driver:
        await driver.until(lambda: "DIRECTORY" in driver.text() and "VOLUME" in driver.text())
        assert [each for each in bad.values() if f" {each} " not in driver.text()] == []
        assert len([line for line in driver.lines() if "volumes/00000001" in line]) == 4
        assert (f"{count - 7} more directories: {count - 7} active" in driver.text()) == (count > 8)
        assert "Directories" in framed(driver) and "█ complete" not in driver.text(), "the legend goes first"
        assert driver.lines()[2].startswith(" disk free 74.5 GiB of 251 GiB (30%)   receipt p99")


@pytest.mark.parametrize(
    "theme", ["pulsarbox-dark", "pulsarbox-light", "pulsarbox-contrast", "ansi-dark", "ansi-light"]
)
async def test_the_heading_looks_as_that_of_the_table(theme: str) -> None:
    async with dashboard(box_of(LOST, 8), (120, 40), wearing(theme), place="storage") as driver:
        await driver.until(lambda: "DIRECTORY" in driver.text() and "VOLUME" in driver.text())
        one, other = style_of(driver, "DIRECTORY", "DIRECTORY"), style_of(driver, "VOLUME", "VOLUME")
        assert (one.color, one.bgcolor, one.bold, one.dim) == (other.color, other.bgcolor, other.bold, other.dim)


@pytest.mark.parametrize(
    ("ledgers", "firsts", "heading"),
    [
        (0, [], "NO LEDGERS"),
        (1, [7], "LEDGER 7"),
        (3, [7, 9, 12], "3 LEDGERS: 7 TO 12"),
        (5000, [7, 9], "5,000 LEDGERS FROM 7, 2500.0 PER CELL"),
    ],
)
def test_the_heading_of_the_map_names_its_ledgers(ledgers: int, firsts: list[int], heading: str) -> None:
    copies = Copies({"members": [{"name": "/a"}]}, {"firsts": firsts, "ledgers": ledgers, "rows": {}})
    assert drawn(copies, 160, COLORS | {"text": "auto"}).plain.split("\n")[1].rstrip().endswith(f"  {heading}")


def test_columns_are_two_blanks_apart_and_no_line_is_wider_than_the_screen() -> None:
    members = [{"name": "directory", "state": "removed", "bytesUsed": 1 << 30, "bytesFree": 999 << 20}]
    for width in range(38, 200):
        status = {"members": members, "segment": {"members": ["directory"]}}
        copies = Copies(status, {"firsts": [7], "ledgers": 1, "rows": {"directory": "K"}})
        lines = drawn(copies, width, COLORS | {"text": "auto"}).plain.split("\n")
        assert all(len(line.rstrip()) <= width for line in lines)
        heading, row = lines[1:3]
        titles = ("STATE", *(title for title in ("USED", "FREE", "DEVICE", "SCRUBBED", "ERRORS") if title in heading))
        assert all(f"  {title}" in heading for title in (*titles, "LEDGER 7"))
        assert row.startswith(" directory  · removed ▸  ") and "  ████████" in row


async def test_a_box_with_one_directory_has_no_map() -> None:
    box = FakeBox()
    box.answers["GET", ENSEMBLE] = {"several": False, "members": []}
    async with dashboard(box, place="storage") as driver:
        assert "DIRECTORY" not in driver.text() and "directory" not in driver.told("vitals")
        assert driver.screen.command_line() == "pulsarbox top storage --once"
        driver.screen.ask_again()
        await driver.until(lambda: len([each for each in box.asked if "/top/storage" in each[1]]) > 1)
        assert len([each for each in box.asked if each[1] == ENSEMBLE]) == 1


def test_the_map_is_asked_for_less_often_than_the_states() -> None:
    box, now = box_of(LOST), 0.0
    query = CopiesQuery(box.feed, lambda: now)
    for _ in range(3):
        query.ask(100)
    assert len([each for each in box.asked if "/map" in each[1]]) == 1
    now = MAP_SECONDS
    assert query.ask(100) is not None
    query.ask(120)
    assert len([each for each in box.asked if "/map" in each[1]]) == 3
    del box.answers["GET", ENSEMBLE]
    assert query.ask(100) is None
    box.answers["GET", ENSEMBLE] = document(LOST, CopyProgress(0, 0, 0), SINCE)
    assert query.ask(100) is None
    now += SINGLE_SECONDS
    assert query.ask(100) is not None


def test_names_are_without_what_they_have_in_common() -> None:
    assert short_names(["/mnt/disk1/box", "/mnt/disk2/box"]) == ["disk1", "disk2"]
    assert short_names(["/mnt/a", "/mnt/b/c"]) == ["a", "b/c"]
    assert short_names(["/data"]) == ["data"]
    assert short_names(["/data", "host:6650"]) == ["/data", "host:6650"]
