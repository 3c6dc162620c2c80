"""The entry index: runs in memory and rows on disk, compared with a dict."""

from array import array
from bisect import bisect_right

import pytest
from hypothesis import given
from hypothesis import strategies as st

from pulsarbox.errors import PersistenceError
from pulsarbox.storage.entry_index import (
    BYTES_AT_ONCE_MIN,
    ROW_BYTES_MAX,
    ROWS_AT_ONCE_MIN,
    IndexFlush,
    IndexSegment,
    UnindexedRuns,
    pack_rows,
    runs_of,
    unpack_row,
)
from pulsarbox.storage.format import INDEX_KEY
from pulsarbox.storage.journal import Batch, JournalRun
from tests.unit.storage.batches import batch_of

Found = dict[int, tuple[int, int]]


def flatten(segments: list[IndexSegment]) -> Found:
    """Map each entry to its position and offset."""
    found: Found = {}
    for position, first, offsets in segments:
        for number, offset in enumerate(offsets):
            found[first + number] = position, offset
    return found


def run_of(first_entry: int, offsets: list[int]) -> JournalRun:
    run = JournalRun(first_entry)
    run.offsets = array("I", offsets)
    return run


OFFSETS = st.lists(st.integers(0, 2**32 - 1), min_size=1, max_size=12)
HISTORY = st.lists(st.dictionaries(st.integers(0, 3), OFFSETS, max_size=3), max_size=12)


@given(HISTORY, st.integers(0, 3), st.integers(0, 40))
def test_memory_and_rows_say_what_a_dict_says(history: list[dict[int, list[int]]], ledger_id: int, entry: int) -> None:
    runs = UnindexedRuns()
    model: dict[int, Found] = {}
    for position, batch in enumerate(history):
        made = {}
        for ledger, offsets in batch.items():
            known = model.setdefault(ledger, {})
            made[ledger] = run_of(len(known), offsets)
            for offset in offsets:
                known[len(known)] = position, offset
        runs.add(position, made)
    expected = {key: value for key, value in model.get(ledger_id, {}).items() if key >= entry}
    assert flatten(runs.find(ledger_id, entry, 99)) == expected
    assert runs.entries == sum(map(len, model.values()))

    rows = list(runs.rows())
    assert rows == sorted(rows)
    assert find_in(rows, ledger_id, entry) == expected


def find_in(rows: list[tuple[bytes, bytes]], ledger_id: int, entry: int) -> Found:
    at = bisect_right(rows, INDEX_KEY.pack(ledger_id, entry), key=lambda row: row[0]) - 1
    if at < 0:
        return {}
    found_ledger, first = INDEX_KEY.unpack(rows[at][0])
    return flatten(unpack_row(first, rows[at][1], entry)) if found_ledger == ledger_id else {}


@pytest.mark.parametrize("run_length", [1, 2, 700, 5000])
def test_rows_stay_within_one_page(run_length: int) -> None:
    segments = [
        IndexSegment(first, first, array("I", range(first, first + run_length))) for first in range(0, 5000, run_length)
    ]
    rows = list(pack_rows(9, segments))
    assert max(len(row) for _, row in rows) <= ROW_BYTES_MAX
    assert len(rows) <= 5000 * (16 if run_length == 1 else 10) // ROW_BYTES_MAX + 1
    found: Found = {}
    for key, row in rows:
        ledger_id, first = INDEX_KEY.unpack(key)
        assert ledger_id == 9
        found |= flatten(unpack_row(first, row, first))
    assert found == flatten(segments)


@pytest.mark.parametrize(("first", "last"), [(10, 10), (10, 12), (11, 13), (13, 99), (9, 12), (20, 30)])
def test_of_a_row_no_more_is_unpacked_than_is_wanted(first: int, last: int) -> None:
    segments = [
        IndexSegment(1, 10, array("I", [5, 6])),
        IndexSegment(3, 12, array("I", [7])),
        IndexSegment(4, 13, array("I", [8, 9])),
    ]
    ((_, row),) = pack_rows(1, segments)
    every = flatten(segments) if 10 <= first < 15 else {}
    ends = [each for each in segments if each.first_entry <= last]
    reached = {entry for each in ends for entry in range(each.first_entry, each.first_entry + len(each.offsets))}
    expected = {entry: where for entry, where in every.items() if entry >= first and entry in reached}
    assert flatten(unpack_row(10, row, first, last)) == expected


def test_a_gap_begins_a_new_row() -> None:
    segments = [IndexSegment(1, 0, array("I", [1])), IndexSegment(2, 5, array("I", [2]))]
    assert [INDEX_KEY.unpack(key) for key, _ in pack_rows(1, segments)] == [(1, 0), (1, 5)]
    runs = UnindexedRuns()
    runs.add(1, {1: run_of(0, [1])})
    runs.add(2, {1: run_of(5, [2])})
    assert flatten(runs.find(1, 0, 9)) == {0: (1, 1)}
    assert runs.find(1, 3, 9) == []


def test_a_find_is_limited_in_batches() -> None:
    runs = UnindexedRuns()
    for position in range(10):
        runs.add(position, {1: run_of(position, [20])})
    assert list(flatten(runs.find(1, 2, 3))) == [2, 3, 4]


@pytest.mark.parametrize("cut", [1, 4, 11, 13, 15])
def test_a_row_that_is_cut_off_is_damaged(cut: int) -> None:
    ((_, row),) = pack_rows(1, [IndexSegment(1, 0, array("I", [1]))])
    with pytest.raises(PersistenceError, match="damaged"):
        unpack_row(0, row[:cut], 0)


def test_runs_are_read_back_from_a_batch() -> None:
    batch = batch_of(1, [(1, 0, 3), (2, 10, 2)])
    batch.add(b"\xc8\x00\x00\x08\x00\x00\x00\x00")  # an unknown record kind
    assert {ledger: (run.first_entry, run.offsets) for ledger, run in runs_of(batch.value()).items()} == {
        ledger: (run.first_entry, run.offsets) for ledger, run in batch.runs.items()
    }
    assert runs_of(Batch(1).value()) == {}


@pytest.mark.parametrize(
    ("ledgers", "entries", "at_once"),
    [(1, 5_000, BYTES_AT_ONCE_MIN // ROW_BYTES_MAX + 1), (300, 1, ROWS_AT_ONCE_MIN)],
    ids=["one topic", "many topics"],
)
@pytest.mark.parametrize("share", [0.0, 0.5])
def test_a_flush_writes_some_rows_with_each_commit(ledgers: int, entries: int, at_once: int, share: float) -> None:
    runs = UnindexedRuns()
    for position in range(entries):  # one batch each
        runs.add(position, {ledger_id: run_of(position, [position]) for ledger_id in range(ledgers)})
    rows = list(runs.rows())
    flush, written, last = IndexFlush(runs, entries - 1), list[tuple[bytes, bytes]](), False
    while not last:
        some, last = flush.next_rows(share)
        assert len(some) <= int(share * (len(rows) + 1)) + at_once
        assert some or last
        written += some
    assert written == rows
