"""Areas of a treemap: they fill the rectangle, do not overlap, and are in proportion."""

import random

import pytest

from pulsarbox.tui.widgets.columns import KINDS
from pulsarbox.tui.widgets.graphs.treemap import Tile, Treemap, areas, named


@pytest.mark.parametrize("size", [(80, 20), (120, 36), (200, 46), (5, 3), (1, 1), (40, 1)])
def test_areas_fill_the_rectangle_without_overlaps(size: tuple[int, int]) -> None:
    chance = random.Random(4)
    for count in (1, 2, 3, 10, 100):
        values = sorted((chance.paretovariate(1) for _ in range(count)), reverse=True)
        cells = [
            (x, y)
            for area in areas(values, *size)
            for x in range(area.x, area.x + area.width)
            for y in range(area.y, area.y + area.height)
        ]
        assert len(cells) == len(set(cells)) == size[0] * size[1]


def test_areas_are_in_proportion_and_largest_first() -> None:
    found = {each.number: each.width * each.height for each in areas([4.0, 2.0, 1.0, 1.0], 80, 20)}
    assert found == {0: 800, 1: 400, 2: 200, 3: 200}
    assert areas([5.0, 0.0, 0.0], 10, 4) == [(0, 0, 0, 10, 4)]
    assert areas([], 10, 4) == [] and areas([1.0], 0, 4) == []


def test_values_without_room_are_left_out() -> None:
    found = areas([1.0] * 1000, 40, 10)
    assert 0 < len(found) < 1000 and len({each.number for each in found}) == len(found)


@pytest.mark.parametrize(
    ("room", "label"), [(13, "emails-sender"), (12, "email…sender"), (6, "em…der"), (5, "em…er"), (4, ""), (0, "")]
)
def test_a_name_is_whole_or_visibly_shortened_or_left_out(room: int, label: str) -> None:
    assert Tile("emails-sender", 1.0, "1").label_in(room) == label


def test_names_that_begin_equally_differ_in_every_tile() -> None:
    for share in (None, 0.9, 1.2):
        for room in range(5, 12):
            labels = [Tile(f"orders-{at}", 1.0, "1", share).label_in(room) for at in range(10, 100)]
            assert len(set(labels)) == 90 and all(len(label) <= room for label in labels), (share, room, labels[:3])


@pytest.mark.parametrize("size", [(80, 20), (120, 36), (200, 46), (12, 3), (7, 2)])
def test_tiles_without_room_for_a_name_become_one(size: tuple[int, int]) -> None:
    chance = random.Random(5)
    for count in (1, 2, 5, 40, 100):
        values = sorted((chance.paretovariate(0.7) for _ in range(count)), reverse=True)
        tiles = [Tile(f"orders-{at}", value, str(value)) for at, value in enumerate(values)]
        shown, found, own = named(tiles, *size, str)
        assert list(shown[:own]) == tiles[:own] and len(shown) == len(found) == own + (own < count)
        assert [each.number for each in found] == list(range(len(shown)))
        assert all(shown[each.number].label_in(each.width - 1) for each in found)
        if own < count:
            assert shown[-1].name == f"+{count - own} more" and shown[-1].value == pytest.approx(sum(values[own:]))


@pytest.mark.parametrize(
    ("share", "label", "look"),
    [(None, "a", "cool"), (0.79, "a", "cool"), (0.8, "▲ a", "warm"), (0.99, "▲ a", "warm"), (1.0, "! a", "hot")],
)
def test_a_share_has_the_severity_and_sign_of_the_table_of_topics(share: float | None, label: str, look: str) -> None:
    tile = Tile("a", 1.0, "1", share)
    assert (tile.label_in(9), tile.look) == (label, look)
    if share is not None:
        column = KINDS["share"](share, {}, 12)[1]
        assert {"good": "cool", "warn": "warm", "bad": "hot"}[column] == tile.look


def test_without_room_for_any_name_tiles_have_none() -> None:
    shown, found, own = named([Tile("orders", 1.0, "1")] * 3, 3, 3, str)
    assert (len(shown), len(found), own) == (3, 3, 3)
    assert named([], 80, 20, str) == ([], [], 0) and named([Tile("orders", 1.0, "1")], 0, 0, str).areas == []


def test_the_share_follows_the_name_where_the_value_does_not_fit() -> None:
    shown = Treemap()
    shown.limit = "of the quota"
    tile = Tile("orders", 1.0, "1,234,567", 0.85)
    assert shown._values_of(tile, 20) == ["1,234,567", "85% of the quota"]
    assert shown._values_of(tile, 9) == ["1,234,567", "85%"] and shown._values_of(tile, 8) == ["85%"]
    assert shown._values_of(tile._replace(share=None), 8) == []
