"""ManagedCursor against a dict of what is left, and its journal against itself."""

from __future__ import annotations

from hypothesis import given
from hypothesis import strategies as st

from pulsarbox.storage.cursor import ManagedCursor
from pulsarbox.storage.ledger import ManagedLedger
from pulsarbox.storage.record import Acked, BatchAcked, Entry, MarkDelete, Position, unpack_records

LEDGERS = ((1, 4), (3, 1), (4, 0), (7, 6), (9, 3))
"""Ids of the ledgers of the topic, and their entries."""


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


class Pair:
    """A cursor, what it should say, and a copy that only sees its journal."""

    def __init__(self) -> None:
        self.ledger, self.entries = topic()
        self.cursor = ManagedCursor(5, "sub", self.ledger)
        self.copy = ManagedCursor(5, "sub", self.ledger)
        self.reset(0)
        self.write()

    def reset(self, index: int) -> None:
        if index == 0:
            self.cursor.reset(self.ledger.first_position(), 0, 0)
        else:
            entry = self.entries[index - 1]
            self.cursor.reset(entry.position, entry.total_messages, entry.total_bytes)
        self.left = {e.position: (1 << e.num_messages) - 1 for e in self.entries[index:]}

    def one(self, index: int) -> None:
        e = self.entries[index]
        self.cursor.acknowledge(*e.position, e.num_messages, len(e.body), e.total_messages, e.total_bytes)
        self.left.pop(e.position, None)

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

    def write(self) -> None:
        records = b"".join(self.cursor.take_changes())
        for _, record in unpack_records(records):
            assert isinstance(record, MarkDelete | Acked | BatchAcked)
            self.copy.replay(record)

    def check(self, cursor: ManagedCursor) -> None:
        sizes = {e.position: len(e.body) for e in self.entries}
        assert cursor.backlog_messages == sum(bits.bit_count() for bits in self.left.values())
        assert cursor.backlog_entries == len(self.left)
        assert cursor.backlog_bytes == sum(sizes[position] for position in self.left)
        assert {e.position for e in self.entries if not cursor.is_acked(*e.position)} == self.left.keys()
        expected = min(self.left, default=self.ledger.next(*self.ledger.last_confirmed))
        assert cursor.next_unacked(Position(-1, -1)) == expected


def records(cursor: ManagedCursor) -> set[str]:
    return {str(record) for _, record in unpack_records(cursor.pack())}


indexes = st.integers(0, sum(count for _, count in LEDGERS) - 1)
steps = st.one_of(
    st.tuples(st.just("one"), indexes),
    st.tuples(st.just("some"), indexes, st.integers(0, 15)),
    st.tuples(st.just("through"), indexes),
    st.tuples(st.just("reset"), indexes),
    st.tuples(st.just("write")),
)


@given(st.lists(steps, max_size=40))
def test_backlogs_are_what_is_left_and_the_journal_repeats_the_cursor(
    history: list[tuple[str, int] | tuple[str, int, int] | tuple[str]],
) -> None:
    pair = Pair()
    for name, *arguments in history:
        getattr(pair, name)(*arguments)
        pair.check(pair.cursor)
    pair.write()
    pair.check(pair.copy)
    assert records(pair.copy) == records(pair.cursor)
    again = ManagedCursor(5, "sub", pair.ledger)
    for _, record in unpack_records(pair.cursor.pack()):
        assert isinstance(record, MarkDelete | Acked | BatchAcked)
        again.replay(record)
    pair.check(again)


def test_nothing_is_written_twice() -> None:
    pair = Pair()
    pair.one(3)
    assert pair.cursor.take_changes()
    assert pair.cursor.take_changes() == []
