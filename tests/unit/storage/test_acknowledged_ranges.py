"""RangeSet compared with a set of ints with totals."""

from __future__ import annotations

from itertools import pairwise

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from pulsarbox.storage.acknowledged_ranges import CHUNK_ENTRIES, ChunkKey, RangeSet
from pulsarbox.storage.record import AckedRange
from tests.tools.campaigns import examples

SIZES = [(i * 7 % 5 + 1, i * 11 % 13 + 1) for i in range(60)]
"""Messages and bytes of each step."""
START = CHUNK_ENTRIES - 24
"""First entry ID of these tests, close to a chunk boundary."""
STEP = 1
"""Entries per step; the tests count in steps."""


@pytest.fixture(autouse=True, scope="module", params=[1, 300])
def step(request: pytest.FixtureRequest) -> None:
    """Run once with single entries, and once with ranges that span several chunks."""
    global STEP  # noqa: PLW0603
    STEP = request.param


def entry(step: int) -> int:
    return START + step * STEP


def range_of(first: int, last: int) -> AckedRange:
    messages, size = ([sum(each[i] for each in SIZES[:end]) for end in (first, last + 1)] for i in (0, 1))
    return AckedRange(1, entry(first), entry(last + 1) - 1, *messages, *size)


def steps_of(ranges: RangeSet) -> list[tuple[int, int]]:
    return [((each.first - START) // STEP, (each.last - START) // STEP) for each in ranges if each.ledger_id == 1]


ids = st.integers(0, 49)
spans = st.tuples(ids, st.integers(0, 9)).map(lambda span: (span[0], span[0] + span[1]))


def made(pairs: list[tuple[int, int]]) -> tuple[RangeSet, set[int]]:
    ranges, model = RangeSet(set[ChunkKey]().add), set[int]()
    for first, last in pairs:
        ranges.add(range_of(first, last))
        model |= set(range(first, last + 1))
    return ranges, model


def check(ranges: RangeSet, model: set[int]) -> None:
    listed = steps_of(ranges)
    assert {i for first, last in listed for i in range(first, last + 1)} == model
    assert all(before[1] + 1 < after[0] for before, after in pairwise(listed))
    assert list(ranges) == [range_of(*each) for each in listed]
    assert len(ranges) == len(listed)
    assert bool(ranges) == bool(model)
    assert ranges.entries == len(model) * STEP
    assert (ranges.messages, ranges.size) == tuple(sum(SIZES[i][which] for i in model) for which in (0, 1))


@given(st.lists(spans))
def test_adding_joins_what_touches_and_keeps_the_totals(pairs: list[tuple[int, int]]) -> None:
    ranges, model = made(pairs)
    check(ranges, model)
    for i in range(60):
        assert ranges.covers(1, entry(i)) == ranges.covers(1, entry(i + 1) - 1) == (i in model)
        assert not ranges.covers(0, entry(i)) and not ranges.covers(2, entry(i))


def plain_range(first: int, last: int) -> AckedRange:
    """A range of entries with 2 messages and 3 bytes each."""
    return AckedRange(1, first, last, 2 * first, 2 * last + 2, 3 * first, 3 * last + 3)


@given(st.lists(spans), st.lists(ids))
def test_entries_that_are_added_one_by_one_make_the_same_ranges(pairs: list[tuple[int, int]], more: list[int]) -> None:
    touched, expected_touched = set[ChunkKey](), set[ChunkKey]()
    ranges, expected = RangeSet(touched.add), RangeSet(expected_touched.add)
    for first, last in pairs:
        for each in (ranges, expected):
            each.add(plain_range(entry(first), entry(last + 1) - 1))
    for at in map(entry, more):
        new = not expected.covers(1, at)
        if new:
            expected.add(plain_range(at, at))
        assert ranges.add_entry(1, at, 2, 3, 2 * at + 2, 3 * at + 3) == new
        assert list(ranges) == list(expected)
        assert (ranges.entries, ranges.messages, ranges.size) == (expected.entries, expected.messages, expected.size)
    assert touched == expected_touched
    assert all(ranges.pack(each) == expected.pack(each) for each in expected.chunks)
    assert all(ranges.covers(1, entry(i)) == expected.covers(1, entry(i)) for i in range(60))


@given(st.lists(spans), ids)
def test_the_first_gap_is_the_first_id_that_is_missing(pairs: list[tuple[int, int]], start: int) -> None:
    ranges, model = made(pairs)
    assert ranges.first_gap(1, entry(start)) == entry(next(i for i in range(start, 100) if i not in model))
    assert ranges.first_gap(2, entry(start)) == entry(start)


@given(st.lists(spans), ids)
def test_taking_gives_the_range_that_starts_there(pairs: list[tuple[int, int]], first: int) -> None:
    ranges, model = made(pairs)
    assert ranges.take(2, entry(first)) is None
    taken = ranges.take(1, entry(first))
    assert (taken is not None) == (first in model and first - 1 not in model)
    if taken is not None:
        last = (taken.last - START) // STEP
        assert taken == range_of(first, last)
        model -= set(range(first, last + 1))
    check(ranges, model)


@given(st.lists(spans), ids)
def test_dropping_forgets_everything_up_to_an_id(pairs: list[tuple[int, int]], through: int) -> None:
    ranges, model = made(pairs)
    ranges.add(AckedRange(0, entry(55), entry(58), 0, 1, 0, 1))
    beyond = ranges.drop_through(1, entry(through + 1) - 1)
    if {through, through + 1} <= model:
        assert beyond is not None and beyond.last == entry(next(i for i in range(through, 100) if i not in model)) - 1
        through = (beyond.last - START) // STEP
    else:
        assert beyond is None
    check(ranges, {i for i in model if i > through})


@given(st.lists(spans), st.lists(spans))
def test_chunks_that_were_touched_make_the_set_again(pairs: list[tuple[int, int]], more: list[tuple[int, int]]) -> None:
    touched = set[ChunkKey]()
    ranges = RangeSet(touched.add)
    rows: dict[ChunkKey, bytes] = {}
    for part in (pairs, more):
        for first, last in part:
            ranges.add(range_of(first, last))
        rows |= {key: ranges.pack(key) for key in touched}
        touched.clear()
    again = RangeSet(set[ChunkKey]().add)
    for row in rows.values():
        again.load(row)
    assert list(again) == list(ranges)
    assert (again.entries, again.messages, again.size) == (ranges.entries, ranges.messages, ranges.size)
    for row in rows.values():
        again.load(row)
    assert list(again) == list(ranges)
    ranges.clear()
    check(ranges, set())
    assert touched == {key for key, row in rows.items() if row}


def pack_range(acked: AckedRange) -> bytes:
    ranges = RangeSet(set[ChunkKey]().add)
    ranges.add(acked)
    return ranges.pack(next(iter(ranges.chunks)))


OPERATIONS = st.sampled_from(["entry", "next", "range", "take", "drop", "load", "clear"])
near_the_border = st.tuples(st.integers(22, 25), st.integers(0, 1)).map(lambda span: (span[0], span[0] + span[1]))


@settings(max_examples=examples(500))
@given(st.lists(st.tuples(OPERATIONS, near_the_border), max_size=40))
def test_any_history_of_changes_is_that_of_a_set(history: list[tuple[str, tuple[int, int]]]) -> None:
    ranges, model = RangeSet(set[ChunkKey]().add), set[int]()
    last_added = entry(20)
    for what, (first, last) in history:
        at = entry(first)
        if what == "next":  # the most common order of acknowledgements
            at = last_added + 1
        if what == "take" and last_added in model:  # mark-delete removes the range that it has reached
            at = next(each for each in range(last_added, 0, -1) if each - 1 not in model)
        if what in ("entry", "next"):
            assert ranges.add_entry(1, at, 2, 3, 2 * at + 2, 3 * at + 3) == (at not in model)
            model.add(at)
            last_added = at
        elif what == "range":
            ranges.add(plain_range(at, entry(last + 1) - 1))
            model |= set(range(at, entry(last + 1)))
        elif what == "take":
            taken = ranges.take(1, at)
            assert (taken is not None) == (at in model and at - 1 not in model)
            if taken is not None:
                model -= set(range(taken.first, taken.last + 1))
        elif what == "drop":
            beyond = ranges.drop_through(1, at)
            model = {each for each in model if each > (at if beyond is None else beyond.last)}
        elif what == "load" and not {at - 1, at, at + 1} & model:  # rows of one set are never adjacent
            ranges.load(pack_range(plain_range(at, at)))
            model.add(at)
        elif what == "clear":
            ranges.clear()
            model.clear()
        assert {each for found in ranges for each in range(found.first, found.last + 1)} == model
        assert all(before.last + 1 < after.first for before, after in pairwise(ranges))
        assert ranges.entries == len(model)
        assert (ranges.messages, ranges.size) == (2 * len(model), 3 * len(model))


def test_the_end_of_the_first_chunks() -> None:
    ranges = RangeSet(lambda key: None)
    for number in range(3):
        for first in (5, 9):
            at = number * CHUNK_ENTRIES + first
            ranges.add(AckedRange(1, at, at + 1, at, at + 2, at, at + 2))
    assert [ranges.end_of(count) for count in (3, 4)] == [None, None]
    found = ranges.end_of(2)
    assert found is not None
    assert (found.first, found.last, found.messages_after) == (
        CHUNK_ENTRIES + 9,
        CHUNK_ENTRIES + 10,
        CHUNK_ENTRIES + 11,
    )
