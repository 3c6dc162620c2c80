"""Sticky hash ranges chosen by consumers, and Pulsar's errors for invalid ones."""

import pytest

from pulsarbox.broker.dispatch.selectors.sticky_ranges import RangeConflict, StickyRangesSelector
from pulsarbox.errors import ConsumerAssignError
from tests.unit.broker.dispatch.selectors.consumers import Someone, sticky


def test_each_has_what_it_named() -> None:
    selector = StickyRangesSelector[Someone]()
    a, b = sticky("a", (0, 9), (20, 29)), sticky("b", (30, 65535), (10, 10))
    assert selector.add(a) == []
    assert selector.add(b) == []
    assert [selector.select(slot) for slot in (1, 9, 10, 11, 19, 20, 29, 30, 65535)] == [
        a,
        a,
        b,
        None,
        None,
        a,
        a,
        b,
        b,
    ]
    assert selector.ranges() == {a: [(0, 9), (20, 29)], b: [(10, 10), (30, 65535)]}
    selector.remove(a)
    assert [selector.select(slot) for slot in (1, 10, 25)] == [None, b, None]
    selector.add(sticky("c", (0, 9), (11, 29)))


def test_neighbouring_ranges_are_shown_as_one() -> None:
    selector = StickyRangesSelector[Someone]()
    a = sticky("a", (5, 9), (1, 4))
    selector.add(a)
    assert selector.ranges() == {a: [(1, 9)]}


@pytest.mark.parametrize(
    ("consumer", "text"),
    [
        (Someone("a"), "Must specify key shared meta for consumer."),
        (sticky("a"), "Ranges for KeyShared policy must not be empty."),
        (sticky("a", (1, 2), (9, 8)), "Fixed hash range start > end for range: [9,8]"),
        (sticky("a", (5, 9), (1, 5)), "Consumer's own ranges conflict: [1,5] overlaps with [5,9]"),
        (sticky("a", (1, 3), (1, 3)), "Consumer's own ranges conflict: [1,3] overlaps with [1,3]"),
    ],
)
def test_ranges_that_cannot_be_meant(consumer: Someone, text: str) -> None:
    selector = StickyRangesSelector[Someone]()
    with pytest.raises(ConsumerAssignError) as refusal:
        selector.add(consumer)
    assert (str(refusal.value), refusal.value.server_error) == (text, 19)
    assert selector.ranges() == {}


@pytest.mark.parametrize("wanted", [(0, 10), (20, 30), (12, 13), (0, 100), (10, 20), (20, 20)])
def test_ranges_that_somebody_has(wanted: tuple[int, int]) -> None:
    selector = StickyRangesSelector[Someone]()
    holder = sticky("holder", (10, 20))
    selector.add(holder)
    with pytest.raises(RangeConflict) as refusal:
        selector.add(sticky("late", (200, 300), wanted))
    assert str(refusal.value) == "Range conflict with consumer Consumer{holder}"
    assert refusal.value.holder is holder
    assert selector.select(250) is None, "nothing of the refused is kept"
    selector.remove(holder)
    assert selector.add(sticky("late", (200, 300), wanted)) == []
