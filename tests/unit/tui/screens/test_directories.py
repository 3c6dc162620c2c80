"""Several data directories on the storage screen."""

from typing import Any

import pytest

from pulsarbox.server.http.box.ensemble import document
from pulsarbox.storage.ensemble.status import EnsembleStatus, ScrubStatus
from pulsarbox.storage.ensemble.watch import CopyProgress, copy_map
from pulsarbox.tui.screens.directories import MAP_SECONDS, SINGLE_SECONDS, STATES, CopiesQuery, short_names
from tests.unit.storage.ensemble.fake import LOST, SINCE, FakeEnsemble, member, status
from tests.unit.tui.driving import Driver, dashboard
from tests.unit.tui.fake import FakeBox
from tests.unit.tui.framing import framed

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


def line_of(driver: Driver, start: str) -> str:
    lines = [line.strip("│▸ ") for line in driver.text().split("\n")]
    (found,) = [line for line in lines if line.startswith(start) and " vol" not in line]
    return found


@pytest.mark.parametrize("size", [(80, 24), (120, 40), (200, 50)], ids=lambda size: f"{size[0]}x{size[1]}")
async def test_the_map_of_directories_and_ledgers(size: tuple[int, int]) -> None:
    async with dashboard(box_of(LOST, 8), size, place="storage") as driver:
        await driver.until(lambda: "LEDGERS" in driver.text().upper())
        assert line_of(driver, "disk1 ").endswith("█▶+") and "● active" in line_of(driver, "disk1 ")
        assert line_of(driver, "disk2 ").endswith("!·!") and "✕ lost" in line_of(driver, "disk2 ")
        assert line_of(driver, "disk3 ").endswith("+▶█")
        assert [each for each in LEGEND if each not in driver.text()] == []
        assert "Directories" in framed(driver)
        text = " ".join(driver.text().replace("│", " ").split())
        assert "● 1,204 entries lack a copy; repair 50%" in text
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
        assert "scrub 25%" in driver.text() and "all copies are complete, as of 1m00s ago" in driver.text()
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
        assert (f"{count - 9} more directories: {count - 9} active" in driver.text()) == (count > 8)


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
