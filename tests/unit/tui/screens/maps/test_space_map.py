"""The space of the volumes as a bar."""

from typing import Any

import pytest

from pulsarbox.tui.feed import Feed, FeedError
from pulsarbox.tui.screens.maps.space_map import (
    KINDS,
    CompressedQuery,
    OffloadedQuery,
    SpaceUse,
    drawn,
    shares,
    space_of,
)
from pulsarbox.tui.widgets import numbers
from tests.unit.tui.driving import SMALL, dashboard
from tests.unit.tui.fake import FakeBox
from tests.unit.tui.screens.maps.test_key_bar import COLORS

TOTALS = {"volumeBytes": 1000, "liveBytes": 500}
ROWS: list[dict[str, Any]] = [{"diskUsed": 900, "liveShare": 0.5}, {"diskUsed": 100, "liveShare": None}]


def test_bytes_are_counted_once() -> None:
    assert space_of(ROWS, TOTALS, 200) == SpaceUse(300, 200, 0, 400, 100)
    assert space_of(ROWS, TOTALS, 900) == SpaceUse(0, 500, 0, 400, 100), (
        "more than is live, as live data has gone since"
    )
    assert space_of(ROWS, {"volumeBytes": 150, "liveBytes": 400}, 0) == SpaceUse(50, 0, 0, 0, 100)
    assert space_of([], {}, 0) is None and space_of([], {"volumeBytes": 0, "liveBytes": 0}, 0) is None


def test_the_offloaded_share_applies_to_compressed_data_too() -> None:
    assert space_of(ROWS, TOTALS, 200, 0.5) == SpaceUse(150, 100, 250, 400, 100)
    assert space_of(ROWS, TOTALS, 900, 1.0) == SpaceUse(0, 0, 500, 400, 100)


@pytest.mark.parametrize(
    ("totals", "share"),
    [
        ({"size": 400, "offloadedSize": 100}, 0.25),
        ({"size": 4, "offloadedSize": 9}, 1.0),
        ({"size": 0}, 0.0),
        ({}, 0.0),
    ],
)
def test_the_offloaded_share_is_that_of_the_overview(totals: dict[str, int], share: float) -> None:
    query = OffloadedQuery(FakeBox().feed)
    assert query.number_in({"totals": totals}) == share
    assert query.number_in([]) == 0.0


@pytest.mark.parametrize("width", [1, 3, 4, 78, 198])
def test_cells_are_in_proportion_and_whatever_there_is_has_one(width: int) -> None:
    for space in (
        SpaceUse(200, 200, 100, 400, 100),
        SpaceUse(1, 0, 0, 10_000, 1),
        SpaceUse(1, 1, 1, 1, 1),
        SpaceUse(5),
    ):
        cells = shares(space, width)
        assert sum(cells) == width
        assert all(bool(cell) <= bool(size) for cell, size in zip(cells, space, strict=True))
        if width >= 5:
            assert all(bool(cell) == bool(size) for cell, size in zip(cells, space, strict=True))
    assert shares(SpaceUse(50, 0, 0, 50, 0), 10) == [5, 0, 0, 5, 0]


@pytest.mark.parametrize("height", [1, 3])
def test_the_legend_has_the_signs_of_the_bar(height: int) -> None:
    for space in (SpaceUse(1 << 30, 1 << 28, 1 << 28, 1 << 29, 0), SpaceUse(5, 1, 1, 1, 1), SpaceUse(1 << 30)):
        lines = drawn(space, 60, COLORS, height).plain.split("\n")
        assert {len(line) for line in lines[:height]} == {60} and len(set(lines[:height])) == 1
        legend = " ".join(lines[height:])
        told = {sign for _, sign, meaning, _ in KINDS if f"{sign} {meaning} " in legend}
        assert told == set(lines[0]), "exactly the kinds in the bar"
        assert f"live {numbers.size(space.live)} ({numbers.percent(space.live / space.total)})" in legend
        assert all(len(line.rstrip()) <= 60 for line in lines)


def test_compressed_bytes_are_asked_for_now_and_then() -> None:
    box, now = FakeBox(), [0.0]
    query = CompressedQuery(box.feed, lambda: now[0])
    assert query.ask() == 0, "the box does not tell"
    box.answers["GET", "/pulsarbox/v1/compression"] = [
        {"codec": "zstd", "stored": 7},
        {"codec": "none", "stored": 100},
        {"codec": "lz4", "stored": 5},
    ]
    assert query.ask() == 0
    now[0] = 31.0
    assert query.ask() == 12 and len(box.asked) == 2
    box.gone, now[0] = "no route", 62.0
    with pytest.raises(FeedError):
        query.ask()
    assert isinstance(box.feed, Feed)


async def test_the_storage_screen_has_the_bar_if_the_box_reports_its_volumes() -> None:
    box = FakeBox()
    async with dashboard(box, SMALL, place="storage") as driver:
        await driver.until(lambda: "█ live 57.2 MiB (22%)" in driver.text() and "░ dead" in driver.text())
