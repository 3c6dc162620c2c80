"""Visible entries of a ledger, and the number of rows that encode them."""

from collections.abc import Iterator

import pytest
from hypothesis import given
from hypothesis import strategies as st

from pulsarbox.storage.catalog import Catalog, aborted_key
from pulsarbox.storage.ledger import NO_LIMIT
from pulsarbox.storage.memory_engine import MemoryDisk, MemoryRows
from pulsarbox.storage.record import AckedRange
from pulsarbox.storage.transactions import (
    aborted_of,
    aborted_rows,
    aborted_within,
    last_aborted,
    run_of,
    visible_runs,
)

TOPIC, LEDGER = 1, 5


class CountedRows(MemoryRows):
    """Checkpoint rows that count reads."""

    def __init__(self, disk: MemoryDisk) -> None:
        super().__init__(disk)
        self.read = 0

    def items(self, prefix: bytes, after: bytes = b"") -> Iterator[tuple[bytes, bytes]]:
        for row in super().items(prefix, after):
            self.read += 1
            yield row

    def last(self, prefix: bytes, through: bytes) -> tuple[bytes, bytes] | None:
        self.read += 1
        return super().last(prefix, through)


def run(first: int, last: int, ledger_id: int = LEDGER) -> AckedRange:
    return AckedRange(ledger_id, first, last, first, last + 1, 10 * first, 10 * (last + 1))


def aborted(runs: list[AckedRange], *, stored: bool) -> tuple[Catalog, CountedRows]:
    """A catalog with these aborted transactions, on disk or in memory."""
    disk = MemoryDisk()
    rows = CountedRows(disk)
    catalog = Catalog(rows)
    for key, row in aborted_rows(TOPIC, tuple(runs)).items():
        catalog.note(key, row)
    if stored:
        disk.rows.update({key: value for key, value in catalog.take().items() if value is not None})
        catalog.stored()
    return catalog, rows


lengths = st.lists(st.tuples(st.integers(1, 3), st.integers(1, 3)), max_size=8)


@given(lengths, st.integers(0, 30), st.integers(0, 40), st.one_of(st.none(), st.integers(0, 40)), st.booleans())
def test_it_is_seen_what_is_neither_aborted_nor_behind_what_is_open(
    holes: list[tuple[int, int]], first: int, end: int, limit: int | None, stored: bool
) -> None:
    runs, at = [run(0, 2, LEDGER - 1), run(0, 2, LEDGER + 1)], 0
    for seen, hidden in holes:
        runs.append(run(at + seen, at + seen + hidden - 1))
        at += seen + hidden
    catalog, _ = aborted(runs, stored=stored)
    within = aborted_within(catalog, TOPIC, LEDGER, first, end)
    limits = NO_LIMIT if limit is None else (LEDGER, limit)
    found = [i for a, b in visible_runs(LEDGER, first, end, limits, within) for i in range(a, b)]
    gone = {i for each in runs if each.ledger_id == LEDGER for i in range(each.first, each.last + 1)}
    assert found == [i for i in range(first, end) if i not in gone and (limit is None or i < limit)]
    last = last_aborted(catalog, TOPIC, LEDGER, first)
    assert last == max((each for each in runs if each.ledger_id == LEDGER and each.first <= first), default=None)


def test_nothing_is_seen_of_ledgers_behind_an_open_transaction() -> None:
    assert list(visible_runs(LEDGER, 0, 9, (LEDGER - 1, 7), [])) == []
    assert list(visible_runs(LEDGER, 0, 9, (LEDGER + 1, 0), [])) == [(0, 9)]


def test_a_deleted_row_is_not_the_last() -> None:
    catalog, _ = aborted([run(0, 1), run(4, 5), run(8, 9)], stored=True)
    catalog.note(aborted_key(TOPIC, LEDGER, 8), None)
    assert last_aborted(catalog, TOPIC, LEDGER, 20) == run(4, 5)
    catalog.note(aborted_key(TOPIC, LEDGER, 6), {"run": [7, 6, 8, 60, 80]})
    assert last_aborted(catalog, TOPIC, LEDGER, 20) == run(6, 7)
    assert [each.first for each in aborted_of(catalog, TOPIC)] == [0, 4, 6]
    catalog.note(aborted_key(TOPIC, LEDGER, 0), None)
    assert last_aborted(catalog, TOPIC, LEDGER, 3) is None


@pytest.mark.parametrize("at", [0, 5_000, 9_990])
def test_only_the_rows_are_read_that_are_asked_for(at: int) -> None:
    catalog, rows = aborted([run(i, i) for i in range(0, 10_000, 2)], stored=True)
    assert len(list(aborted_within(catalog, TOPIC, LEDGER, at, at + 10))) == 5
    assert rows.read <= 8
    assert last_aborted(catalog, TOPIC, LEDGER, at + 1) == run(at, at)
    assert rows.read <= 9


def test_a_row_says_which_entries() -> None:
    (row,) = aborted_rows(TOPIC, (run(3, 7),)).items()
    assert run_of((row[0], b'{"run": [7, 3, 8, 30, 80]}')) == run(3, 7)
