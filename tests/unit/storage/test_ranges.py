"""RangeSet against a set of ints with totals."""

from __future__ import annotations

from itertools import pairwise

from hypothesis import given
from hypothesis import strategies as st

from pulsarbox.storage.ranges import RangeSet
from pulsarbox.storage.record import AckedRange

SIZES = [(i * 7 % 5 + 1, i * 11 % 13 + 1) for i in range(60)]
"""Messages and bytes of each entry."""


def range_of(first: int, last: int) -> AckedRange:
    messages, size = ([sum(each[i] for each in SIZES[:end]) for end in (first, last + 1)] for i in (0, 1))
    return AckedRange(1, first, last, *messages, *size)


ids = st.integers(0, 49)
spans = st.tuples(ids, st.integers(0, 9)).map(lambda span: (span[0], span[0] + span[1]))


def made(pairs: list[tuple[int, int]]) -> tuple[RangeSet, set[int]]:
    ranges, model = RangeSet(), set[int]()
    for first, last in pairs:
        ranges.add(range_of(first, last))
        model |= set(range(first, last + 1))
    return ranges, model


def check(ranges: RangeSet, model: set[int]) -> None:
    listed = list(ranges)
    assert {i for each in listed for i in range(each.first, each.last + 1)} == model
    assert all(before.last + 1 < after.first for before, after in pairwise(listed))
    assert listed == [range_of(each.first, each.last) for each in listed]
    assert len(ranges) == len(listed)


@given(st.lists(spans))
def test_adding_joins_what_touches_and_keeps_the_totals(pairs: list[tuple[int, int]]) -> None:
    ranges, model = made(pairs)
    check(ranges, model)
    assert all((i in ranges) == (i in model) for i in range(60))


@given(st.lists(spans), ids)
def test_the_first_gap_is_the_first_id_that_is_missing(pairs: list[tuple[int, int]], start: int) -> None:
    ranges, model = made(pairs)
    assert ranges.first_gap(start) == next(i for i in range(start, 100) if i not in model)


@given(st.lists(spans), ids)
def test_taking_gives_the_range_that_starts_there(pairs: list[tuple[int, int]], first: int) -> None:
    ranges, model = made(pairs)
    taken = ranges.take(first)
    assert (taken is not None) == (first in model and first - 1 not in model)
    if taken is not None:
        assert taken == range_of(taken.first, taken.last)
        model -= set(range(taken.first, taken.last + 1))
    check(ranges, model)


@given(st.lists(spans), ids)
def test_dropping_forgets_everything_up_to_an_id(pairs: list[tuple[int, int]], through: int) -> None:
    ranges, model = made(pairs)
    ranges.drop_through(through)
    kept = {i for each in ranges for i in range(each.first, each.last + 1)}
    assert kept == {i for i in model if i > through}
