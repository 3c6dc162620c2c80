"""ManagedCursor compared with a dict of unacknowledged entries, and its journal with its checkpoint rows."""

from __future__ import annotations

from collections.abc import Iterable, Iterator

import pytest
from hypothesis import given
from hypothesis import strategies as st

from pulsarbox.storage import acknowledged_ranges, entry_map
from pulsarbox.storage.catalog import acks_key
from pulsarbox.storage.cursor import ManagedCursor
from pulsarbox.storage.ledger import LedgerInfo, ManagedLedger
from pulsarbox.storage.record import (
    CursorRecord,
    Entry,
    Position,
    unpack_records,
)

LEDGERS = ((1, 4), (3, 1), (4, 0), (7, 6), (9, 3))
"""Ledger IDs of the topic, with their numbers of entries."""


def topic() -> tuple[ManagedLedger, list[Entry]]:
    ledger = ManagedLedger(1)
    entries = []
    for ledger_id, count in LEDGERS:
        ledger.open_ledger(ledger_id, 0)
        for i in range(count):
            messages, body = (ledger_id + i) % 4 + 1, b"x" * (ledger_id * i % 7 + 1)
            totals = ledger.total_messages + messages, ledger.total_bytes + len(body)
            entry = Entry(ledger_id, i, 4, messages, *totals, 0, 0, 0, 0, 0, body)
            ledger.append(entry)
            ledger.confirm([entry])
            entries.append(entry)
    return ledger, entries


def state(cursor: ManagedCursor) -> tuple[object, ...]:
    """The complete state of a cursor."""
    mark = (cursor.mark_delete, cursor.mark_messages, cursor.mark_bytes)
    sums = (cursor.backlog_messages, cursor.backlog_entries, cursor.backlog_bytes)
    return mark, sums, list(cursor.ranges), dict(cursor.batch_acks), dict(cursor.redeliveries)


def replay(cursor: ManagedCursor, log: Iterable[bytes]) -> None:
    for _, record in unpack_records(b"".join(log)):
        assert isinstance(record, CursorRecord)
        cursor.replay(record)


def restored(ledger: ManagedLedger, rows: dict[str, bytes]) -> ManagedCursor:
    cursor = ManagedCursor(5, "sub", ledger)
    for key in sorted(rows):
        cursor.restore(rows[key])
    return cursor


def update(rows: dict[str, bytes], dirty: dict[str, bytes | None]) -> None:
    for key, value in dirty.items():
        if value is None:
            del rows[key]  # only existing rows are ever deleted
        else:
            rows[key] = value


@pytest.fixture(scope="module", params=[2, 1024])
def chunk_entries(request: pytest.FixtureRequest) -> Iterator[int]:
    """Chunks small enough for few entries to span several, and the real ones."""
    with pytest.MonkeyPatch.context() as patch:
        for module in (acknowledged_ranges, entry_map):
            patch.setattr(module, "CHUNK_ENTRIES", request.param)
        yield request.param


class Pair:
    """A cursor, its expected state, a copy fed only by its journal, and the rows written by checkpoints."""

    def __init__(self) -> None:
        self.ledger, self.entries = topic()
        self.cursor = ManagedCursor(5, "sub", self.ledger)
        self.copy = ManagedCursor(5, "sub", self.ledger)
        self.rows: dict[str, bytes] = {}
        self.log: list[bytes] = []
        """Journal records since the last checkpoint."""
        self.reset(0)
        self.write()

    def reset(self, index: int) -> None:
        if index == 0:
            self.cursor.reset(self.ledger.first_position(), 0, 0)
        else:
            entry = self.entries[index - 1]
            self.cursor.reset(entry.position, entry.total_messages, entry.total_bytes)
        self.left = {e.position: (1 << e.num_messages) - 1 for e in self.entries[index:]}
        self.counts: dict[Position, int] = {}

    def one(self, index: int) -> None:
        e = self.entries[index]
        self.cursor.acknowledge(*e.position, e.num_messages, len(e.body), e.total_messages, e.total_bytes)
        self.left.pop(e.position, None)
        self.counts.pop(e.position, None)

    def some(self, index: int, unacked: int) -> None:
        e = self.entries[index]
        done = self.cursor.acknowledge_batch(e.position, e.num_messages, unacked)
        left = self.left.get(e.position, 0) & unacked
        if e.position in self.left:
            assert done == (left == 0)
            self.left[e.position] = left
        if done:
            self.one(index)

    def through(self, index: int) -> None:
        e = self.entries[index]
        self.cursor.acknowledge_through(e.position, e.total_messages, e.total_bytes)
        self.left = {position: bits for position, bits in self.left.items() if position > e.position}
        self.counts = {position: count for position, count in self.counts.items() if position > e.position}

    def again(self, index: int) -> None:
        position = self.entries[index].position
        self.cursor.redelivered(position)
        if position in self.left:
            self.counts[position] = self.counts.get(position, 0) + 1

    def write(self) -> None:
        changes = self.cursor.take_changes()
        self.log += changes
        replay(self.copy, changes)

    def checkpoint(self) -> None:
        self.write()
        update(self.rows, self.cursor.dirty_rows())
        assert self.cursor.dirty_rows() == {}
        self.log.clear()

    def restart(self) -> None:
        """Continue with a cursor restored from the rows and the log after them."""
        self.write()
        self.cursor = restored(self.ledger, self.rows)
        assert (self.cursor.take_changes(), self.cursor.dirty_rows()) == ([], {})
        replay(self.cursor, self.log)
        assert self.cursor.take_changes() == []

    def check(self, cursor: ManagedCursor) -> None:
        sizes = {e.position: len(e.body) for e in self.entries}
        assert cursor.backlog_messages == sum(bits.bit_count() for bits in self.left.values())
        assert cursor.backlog_entries == len(self.left)
        assert cursor.backlog_bytes == sum(sizes[position] for position in self.left)
        assert cursor.redeliveries == self.counts
        assert all(cursor.redelivery_count(e.position) == self.counts.get(e.position, 0) for e in self.entries)
        whole = {e.position: (e.num_messages, (1 << e.num_messages) - 1) for e in self.entries}
        partly = {at: (whole[at][0], bits) for at, bits in self.left.items() if bits != whole[at][1]}
        assert dict(cursor.batch_acks.items() - whole.items()) == partly
        assert {e.position for e in self.entries if not cursor.is_acked(*e.position)} == self.left.keys()
        expected = min(self.left, default=self.ledger.next(*self.ledger.last_confirmed))
        assert cursor.next_unacked(Position(-1, -1)) == expected


indexes = st.integers(0, sum(count for _, count in LEDGERS) - 1)
steps = st.one_of(
    st.tuples(st.just("one"), indexes),
    st.tuples(st.just("some"), indexes, st.integers(0, 15)),
    st.tuples(st.just("through"), indexes),
    st.tuples(st.just("reset"), indexes),
    st.tuples(st.just("again"), indexes),
    st.tuples(st.sampled_from(["write", "checkpoint", "restart"])),
)


@pytest.mark.usefixtures("chunk_entries")
@given(st.lists(steps, max_size=40))
def test_backlogs_are_what_is_left_and_journal_and_rows_repeat_the_cursor(
    history: list[tuple[str, int] | tuple[str, int, int] | tuple[str]],
) -> None:
    pair = Pair()
    for name, *arguments in history:
        getattr(pair, name)(*arguments)
        pair.check(pair.cursor)
    pair.write()
    pair.check(pair.copy)
    assert state(pair.copy) == state(pair.cursor)
    pair.restart()
    assert state(pair.cursor) == state(pair.copy)
    pair.checkpoint()
    assert state(restored(pair.ledger, pair.rows)) == state(pair.cursor)
    assert pair.copy.dirty_rows() == pair.rows


def test_nothing_is_written_twice() -> None:
    pair = Pair()
    pair.one(3)
    pair.again(4)
    assert pair.cursor.take_changes()
    assert pair.cursor.take_changes() == []
    pair.again(4)
    assert len(pair.cursor.take_changes()) == 1


def test_what_mark_delete_has_passed_is_not_replayed() -> None:
    pair = Pair()
    for index in (1, 3):
        pair.one(index)
    pair.some(2, 1)
    pair.again(2)
    log = pair.cursor.take_changes()
    pair.through(8)
    replay(pair.cursor, log)
    pair.check(pair.cursor)
    assert not (pair.cursor.ranges or pair.cursor.batch_acks or pair.cursor.redeliveries)


def test_a_chunk_that_came_and_went_has_no_row() -> None:
    pair = Pair()
    pair.checkpoint()
    pair.one(1)
    pair.one(0)
    assert list(pair.cursor.dirty_rows()) == [acks_key(5)]
    pair.one(3)
    key = f"{acks_key(5)}/{1:016x}/{0:08x}"
    assert list(pair.cursor.dirty_rows()) == [key]
    pair.one(2)
    assert pair.cursor.dirty_rows()[key] is None


def test_a_cursor_that_is_not_durable_gathers_nothing() -> None:
    ledger, entries = topic()
    cursor = ManagedCursor(5, "reader", ledger, durable=False)
    for e in entries[1::2]:
        cursor.acknowledge(*e.position, e.num_messages, len(e.body), e.total_messages, e.total_bytes)
    for e in entries[2::2]:
        cursor.acknowledge_batch(e.position, e.num_messages, 1)
        cursor.redelivered(e.position)
    assert cursor.ranges and cursor.batch_acks and cursor.redeliveries
    assert (cursor.take_changes(), cursor.dirty_rows()) == ([], {})


# Large numbers

MESSAGES, SIZE = 3, 10
"""Messages and bytes of each entry in the topics below."""


def large_topic(ledgers: int, entries: int) -> ManagedLedger:
    ledger = ManagedLedger(1)
    for ledger_id in range(ledgers):
        info = LedgerInfo(ledger_id, 0, ledger_id * entries * MESSAGES, ledger_id * entries * SIZE)
        info.entries = info.confirmed = entries
        ledger.restore_ledger(info)
    ledger.last_confirmed = Position(ledgers - 1, entries - 1)
    ledger.confirmed_messages = ledgers * entries * MESSAGES
    ledger.confirmed_bytes = ledgers * entries * SIZE
    return ledger


def acknowledge(cursor: ManagedCursor, ledger_id: int, entry_id: int, per_ledger: int) -> None:
    through = ledger_id * per_ledger + entry_id + 1
    assert cursor.acknowledge(ledger_id, entry_id, MESSAGES, SIZE, through * MESSAGES, through * SIZE)


@pytest.mark.parametrize("holes", [40_000, pytest.param(1_000_000, marks=pytest.mark.slow)])
def test_very_many_holes(holes: int) -> None:
    per_ledger = holes // 2
    ledger = large_topic(4, per_ledger)
    cursor = ManagedCursor(5, "sub", ledger)
    cursor.reset(Position(0, -1), 0, 0)
    for i in range(holes):
        ledger_id, entry_id = divmod(i * 387_420_489 % holes * 2 + 1, per_ledger)  # shuffled
        acknowledge(cursor, ledger_id, entry_id, per_ledger)
        if i % (holes // 20) == 0:
            cursor.take_changes()
    backlog = (holes * MESSAGES, holes, holes * SIZE)
    assert len(cursor.ranges) == holes
    assert (cursor.backlog_messages, cursor.backlog_entries, cursor.backlog_bytes) == backlog
    assert cursor.next_unacked(Position(2, 7)) == (2, 8)
    assert cursor.next_unacked(Position(2, per_ledger - 1)) == (3, 0)
    rows: dict[str, bytes] = {}
    update(rows, cursor.dirty_rows())
    assert max(len(value) for value in rows.values()) < 32 << 10

    acknowledge(cursor, 1, 1024, per_ledger)  # joins a range of one chunk with the first range of the next
    dirty = cursor.dirty_rows()
    assert len(dirty) <= 2
    update(rows, dirty)
    acknowledge(cursor, 0, 0, per_ledger)  # advances mark-delete
    dirty = cursor.dirty_rows()
    assert acks_key(5) in dirty and len(dirty) <= 2
    update(rows, dirty)

    again = restored(ledger, rows)
    assert again.dirty_rows() == {}
    assert state(again) == state(cursor)
    cursor.acknowledge_through(Position(2, 4000), *((2 * per_ledger + 4001) * each for each in (MESSAGES, SIZE)))
    assert cursor.mark_delete == (2, 4001)
    assert len(cursor.ranges) == (2 * per_ledger - 4001) // 2
    update(rows, cursor.dirty_rows())
    assert state(restored(ledger, rows)) == state(cursor)


@pytest.mark.parametrize("batches", [16_000, pytest.param(100_000, marks=pytest.mark.slow)])
def test_very_many_partly_acknowledged_batches(batches: int) -> None:
    per_ledger = batches // 4
    ledger = large_topic(4, per_ledger)
    cursor = ManagedCursor(5, "sub", ledger)
    cursor.reset(Position(0, -1), 0, 0)
    for i in range(batches):
        position = Position(*divmod(i * 387_420_489 % batches, per_ledger))
        assert not cursor.acknowledge_batch(position, MESSAGES, 0b101)
        if i % 3 == 0:
            cursor.redelivered(position)
    assert cursor.backlog_messages == batches * (MESSAGES - 1)
    assert cursor.backlog_entries == batches
    rows: dict[str, bytes] = {}
    update(rows, cursor.dirty_rows())
    assert state(restored(ledger, rows)) == state(cursor)

    assert not cursor.acknowledge_batch(Position(1, 5), MESSAGES, 0b110)
    assert cursor.batch_acks.get(Position(1, 5)) == (MESSAGES, 0b100)
    assert cursor.backlog_messages == batches * (MESSAGES - 1) - 1
    dirty = cursor.dirty_rows()
    assert len(dirty) == 1
    update(rows, dirty)
    for entry_id in range(2):
        acknowledge(cursor, 0, entry_id, per_ledger)
    dirty = cursor.dirty_rows()
    assert len(dirty) == 2
    update(rows, dirty)
    cursor.acknowledge_through(Position(1, 4), *((per_ledger + 5) * each for each in (MESSAGES, SIZE)))
    assert len(cursor.batch_acks) == batches - per_ledger - 5
    assert cursor.backlog_messages == (batches - per_ledger - 5) * (MESSAGES - 1) - 1
    update(rows, cursor.dirty_rows())
    assert state(restored(ledger, rows)) == state(cursor)
