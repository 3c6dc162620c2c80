"""The managed cursor: the acknowledgements of one subscription.

Everything up to the mark-delete position is acknowledged. Beyond it, the cursor tracks individually acknowledged
ranges, the unacknowledged messages of partly acknowledged batches, and redelivery counts. None of these is limited: the
cost of an acknowledgement, of a log record or of the statistics does not depend on their number.
"""

from collections.abc import Callable

from pulsarbox.storage.acknowledged_ranges import ChunkKey, RangeSet
from pulsarbox.storage.catalog import acks_chunk_key, acks_key
from pulsarbox.storage.entry_map import EntryMap
from pulsarbox.storage.format import IN_VIEW, RECORD_PREFIX, RecordKind
from pulsarbox.storage.ledger import LedgerInfo, ManagedLedger, new_position
from pulsarbox.storage.record import (
    Acked,
    AckedRange,
    BatchAcked,
    CursorRecord,
    MarkDelete,
    Position,
    Redelivered,
    pack_acked,
    pack_acked_body,
    pack_batch_acked,
    pack_mark_delete,
    pack_redelivered,
    unpack_records,
)
from pulsarbox.storage.transaction_acks import ClaimedSets, TransactionAcks


class ManagedCursor:
    """Acknowledgements of one subscription on one topic.

    Changes accumulate until ``take_changes`` packs them for the journal, and ``dirty_rows`` for the checkpoint. A
    non-durable cursor has the same arithmetic and accumulates nothing.
    """

    def __init__(self, cursor_id: int, name: str, ledger: ManagedLedger, durable: bool = True) -> None:
        self.cursor_id = cursor_id
        self.name = name
        self.ledger = ledger
        self.durable = durable
        self.mark_delete = Position(-1, -1)
        self.mark_messages = 0
        """Messages of the topic up to mark-delete."""
        self.mark_bytes = 0
        self._moved = False
        self._reset = False
        self._fresh: list[tuple[int, int, int, int, int, int]] = []
        """Entries acknowledged out of order: the arguments of ``acknowledge`` for each."""
        self._fresh_in_view: list[tuple[int, int]] = []
        self._fresh_batches: set[tuple[int, int]] = set()
        self._fresh_counts: set[tuple[int, int]] = set()
        self._stored_mark = (self.mark_delete, 0, 0)
        """Mark-delete and its totals as stored in their row."""
        self._dirty: set[ChunkKey] = set()
        """Chunks that changed since their rows were taken."""
        self._stored: set[ChunkKey] = set()
        """Chunks that have a row."""
        touch: Callable[[ChunkKey], object] = self._dirty.add if durable else _ignore
        self.ranges = RangeSet(touch)
        self.in_view = RangeSet(touch)
        """Acknowledged entries that only the compacted view still has, while earlier ones are unacknowledged.

        Their totals are not known.
        """
        self.batch_acks: EntryMap[tuple[int, int]] = EntryMap(touch, _messages_and_unacked)
        """Partly acknowledged batches: number of messages, and a bit for each unacknowledged one."""
        self._partly = 0
        """Acknowledged messages of partly acknowledged batches."""
        self.redeliveries: EntryMap[int] = EntryMap(touch, int)
        """Redelivery counts of unacknowledged entries."""
        self.claims: TransactionAcks | None = None
        """Acknowledgements of open transactions; None without any."""
        self._range_chunks = self.ranges.chunks
        self._batch_chunks = self.batch_acks.chunks
        self._count_chunks = self.redeliveries.chunks

    # Queries

    def is_acked(self, ledger_id: int, entry_id: int) -> bool:
        """Return whether the entry is acknowledged."""
        if (ledger_id, entry_id) <= self.mark_delete:
            return True
        if self._range_chunks and self.ranges.covers(ledger_id, entry_id):
            return True
        return ledger_id not in self.ledger.ledgers  # a ledger is deleted once every cursor has acknowledged it

    def is_done_with(self, info: LedgerInfo) -> bool:
        """Return whether every entry of a ledger is acknowledged."""
        mark, last = self.mark_delete, info.entries - 1
        if last < 0 or mark >= (info.ledger_id, last):
            return True
        first = mark.entry_id + 1 if mark.ledger_id == info.ledger_id else 0
        return bool(self._range_chunks) and self.ranges.first_gap(info.ledger_id, first) > last

    @property
    def last_acked(self) -> tuple[int, int]:
        """Ledger and entry of the last acknowledged entry."""
        return max(self.mark_delete, self.ranges.last) if self._range_chunks else self.mark_delete

    def next_unacked(self, position: Position) -> Position:
        """Return the first unacknowledged position from ``position`` on."""
        if position <= self.mark_delete:
            position = self.ledger.next(*self.mark_delete)
        while True:
            gap = self.ranges.first_gap(*position)
            if gap == position.entry_id:
                return position
            position = self.ledger.next(position.ledger_id, gap - 1)

    @property
    def backlog_messages(self) -> int:
        """Confirmed messages that are not acknowledged."""
        return self.ledger.messages_behind(self.mark_messages) - self.ranges.messages - self._partly

    @property
    def backlog_entries(self) -> int:
        """Confirmed entries that are not acknowledged; a partly acknowledged batch counts as one."""
        return self.ledger.entries_between(self.mark_delete, self.ledger.last_confirmed) - self.ranges.entries

    @property
    def backlog_bytes(self) -> int:
        """Bytes of the confirmed entries that are not acknowledged."""
        return self.ledger.bytes_behind(self.mark_bytes) - self.ranges.size

    def redelivery_count(self, position: tuple[int, int]) -> int:
        """Return how often redelivery of the entry was requested."""
        return self.redeliveries.get(position, 0)

    @property
    def ack_sets(self) -> "EntryMap[tuple[int, int]] | ClaimedSets":
        """Batches to deliver in part: number of messages, and a bit for each message to deliver."""
        claims = self.claims
        return self.batch_acks if claims is None else claims.sets

    def is_claimed(self, ledger_id: int, entry_id: int) -> bool:
        """Return whether open transactions have acknowledged the rest of an entry, so that it is not dispatched."""
        return self.claims is not None and self.claims.has((ledger_id, entry_id))

    # Acknowledgement

    def skip(self, run: AckedRange) -> None:
        """Count the entries of an aborted transaction as acknowledged: they are never dispatched.

        The abort is the log record of this; the cursor writes none.
        """
        ledger_id, first, last = run[:3]
        if (ledger_id, last) <= self.mark_delete or ledger_id not in self.ledger.ledgers:
            return
        if (ledger_id, first) <= self.ledger.next(*self.mark_delete):
            self.acknowledge_through(Position(ledger_id, last), run.messages_after, run.bytes_after)
        else:
            self._settle(ledger_id, first, last)
            self.ranges.add(run)

    def acknowledge(
        self, ledger_id: int, entry_id: int, messages: int, size: int, total_messages: int, total_bytes: int
    ) -> bool:
        """Acknowledge one entry of ``messages`` messages and ``size`` bytes; the totals include it.

        False if it was already acknowledged.
        """
        mark = self.mark_delete
        if ledger_id == mark[0] and entry_id == mark[1] + 1:
            self.mark_delete = new_position(Position, (ledger_id, entry_id))
            self.mark_messages = total_messages
            self.mark_bytes = total_bytes
            self._moved = True
            if self._range_chunks:
                self._absorb()
            if self._batch_chunks or self._count_chunks:
                self._settle(ledger_id, entry_id, entry_id)
            return True
        return self._acknowledge_out_of_order(ledger_id, entry_id, messages, size, total_messages, total_bytes)

    def _acknowledge_out_of_order(
        self, ledger_id: int, entry_id: int, messages: int, size: int, total_messages: int, total_bytes: int
    ) -> bool:
        mark = self.mark_delete
        if ledger_id != mark[0]:  # in the same ledger it cannot follow mark-delete: ``acknowledge`` handles that
            if (ledger_id, entry_id) < mark:
                return False
            if self.ledger.next(*mark) == (ledger_id, entry_id):
                self._settle(ledger_id, entry_id, entry_id)
                self._mark(Position(ledger_id, entry_id), total_messages, total_bytes)
                self._absorb()
                return True
        elif entry_id <= mark[1]:
            return False
        if ledger_id not in self.ledger.ledgers:  # a late acknowledgement of a non-durable cursor
            return False
        if not self.ranges.add_entry(ledger_id, entry_id, messages, size, total_messages, total_bytes):
            return False
        if self._batch_chunks or self._count_chunks:
            self._settle(ledger_id, entry_id, entry_id)
        if self.durable:
            self._fresh.append((ledger_id, entry_id, messages, size, total_messages, total_bytes))
        return True

    def acknowledge_batch(self, position: Position, messages: int, unacked: int) -> bool:
        """Acknowledge the messages of a batch that have no bit in ``unacked``; True if none remains.

        The caller then acknowledges the entry.
        """
        if self.is_acked(*position):
            return False
        before = self.batch_acks.get(position)
        left = unacked & (before[1] if before else (1 << messages) - 1)
        if not left:
            return True
        if before is None or left != before[1]:
            self._put_batch(position, messages, left)
            if self.durable:
                self._fresh_batches.add(position)
        return False

    def acknowledge_through(self, position: Position, total_messages: int, total_bytes: int) -> bool:
        """Acknowledge everything up to ``position``, whose totals are given; False if it already was."""
        if position <= self.mark_delete:
            return False
        self._mark(position, total_messages, total_bytes)
        self._drop_behind_mark()
        self._absorb()
        return True

    def acknowledge_in_view(self, ledger_id: int, entry_id: int) -> None:
        """Acknowledge an entry that only the compacted view still has."""
        if self.in_view.add_entry(ledger_id, entry_id, 0, 0, 0, 0) and self.durable:
            self._fresh_in_view.append((ledger_id, entry_id))

    def keep_in_view(self, ledger_id: int, entries: int) -> None:
        """Acknowledge the entries of a deleted ledger that the compacted view may have; earlier ledgers remain."""
        if entries and (ledger_id, entries - 1) > self.mark_delete:
            self.in_view.add(AckedRange(ledger_id, 0, entries - 1, 0, 0, 0, 0))
            self._fresh_in_view.append((ledger_id, entries - 1))

    def forget_in_view(self, through: Position) -> None:
        """Remove entries up to ``through`` from ``in_view``, which is redundant there."""
        beyond = self.in_view.drop_through(*through)
        if beyond is not None:
            self.in_view.add(beyond._replace(first=through.entry_id + 1))

    def redelivered(self, position: tuple[int, int]) -> None:
        """Count one more redelivery of the entry, unless it is acknowledged."""
        if not self.is_acked(*position):
            self.redeliveries.put(position, self.redelivery_count(position) + 1)
            if self.durable:
                self._fresh_counts.add(position)

    def reset(self, position: Position, total_messages: int, total_bytes: int) -> None:
        """Make ``position`` the mark-delete, and discard every later acknowledgement and all redelivery counts."""
        self._mark(position, total_messages, total_bytes)
        self._reset = True
        self._clear()
        self._forget_fresh()

    def _forget_fresh(self) -> None:
        self._fresh.clear()
        self._fresh_in_view.clear()
        self._fresh_batches.clear()
        self._fresh_counts.clear()

    def forget_ledger(self, ledger_id: int) -> bool:
        """Discard the state of a deleted ledger while an earlier one remains; return whether there was any."""
        known = self.ranges.drop_ledger(ledger_id)
        known = self._partly_forgotten(ledger_id) or known
        for fresh in (self._fresh_batches, self._fresh_counts):
            fresh.difference_update([each for each in fresh if each[0] == ledger_id])
        self._fresh = [each for each in self._fresh if each[0] != ledger_id]
        return known

    def _partly_forgotten(self, ledger_id: int) -> bool:
        batches = self.batch_acks.drop_ledger(ledger_id)
        self._partly -= _acked_messages(batches)
        return bool(self.redeliveries.drop_ledger(ledger_id) or batches)

    def _mark(self, position: Position, total_messages: int, total_bytes: int) -> None:
        self.mark_delete = position
        self.mark_messages = total_messages
        self.mark_bytes = total_bytes
        self._moved = True

    def absorb(self) -> None:
        """Move mark-delete over an adjacent range, which a crash can leave after an entry has moved. For replay."""
        if self._range_chunks:
            self._absorb()

    def _absorb(self) -> None:
        """Move mark-delete over the ranges that it now touches."""
        ledger_id, entry_id = self.mark_delete
        acked = self.ranges.take(ledger_id, entry_id + 1)  # most ranges are in the same ledger
        while acked is not None or (acked := self.ranges.take(*self.ledger.next(*self.mark_delete))) is not None:
            ledger_id, _, last, _, messages, _, size = acked
            self.mark_delete = new_position(Position, (ledger_id, last))
            self.mark_messages = messages
            self.mark_bytes = size
            self._moved = True
            info = self.ledger.ledgers.get(ledger_id)
            if info is not None and last + 1 < info.entries:
                return  # ranges of one ledger never touch
            acked = None

    def _drop_behind_mark(self) -> None:
        """Discard the state behind mark-delete; if it is inside a range, move it to the end of that range."""
        if self._batch_chunks:
            self._partly -= _acked_messages(self.batch_acks.drop_through(*self.mark_delete))
        if self._count_chunks:
            self.redeliveries.drop_through(*self.mark_delete)
        if self._range_chunks:
            beyond = self.ranges.drop_through(*self.mark_delete)
            if beyond is not None:
                self.mark_delete = Position(beyond.ledger_id, beyond.last)
                self.mark_messages = beyond.messages_after
                self.mark_bytes = beyond.bytes_after

    def _settle(self, ledger_id: int, first: int, last: int) -> None:
        """Discard batch and redelivery state of fully acknowledged entries."""
        if self._batch_chunks:
            self._partly -= _acked_messages(self.batch_acks.drop(ledger_id, first, last))
        if self._count_chunks:
            self.redeliveries.drop(ledger_id, first, last)

    def _put_batch(self, position: Position, messages: int, unacked: int) -> None:
        before = self.batch_acks.get(position)
        if before is not None:
            self._partly -= _acked_messages([before])
        self._partly += messages - unacked.bit_count()
        self.batch_acks.put(position, 1 << messages | unacked)

    def _clear(self) -> None:
        self.ranges.clear()
        self.in_view.clear()
        self.batch_acks.clear()
        self.redeliveries.clear()
        self._partly = 0

    # Journal

    def take_changes(self) -> list[bytes]:
        """Return what changed since the last call, packed as records."""
        records = []
        if self._moved:
            records.append(self._pack_mark(self._reset))
        behind = (self.mark_delete[0], self.mark_delete[1] + 1)
        fresh = [each for each in self._fresh if each >= behind]  # mark-delete has passed most of them
        if fresh:
            records.append(pack_acked(Acked(self.cursor_id, _joined(fresh))))
        in_view = self.in_view.around(self._fresh_in_view) if self._fresh_in_view else ()
        if in_view:
            records.append(pack_acked(Acked(self.cursor_id, in_view, in_view=True)))
        for each in sorted(self._fresh_batches):
            partly = self.batch_acks.get(each)
            if partly is not None:
                records.append(pack_batch_acked(BatchAcked(self.cursor_id, Position(*each), *partly)))
        counts = [(Position(*each), self.redelivery_count(each)) for each in sorted(self._fresh_counts)]
        counts = [each for each in counts if each[1]]
        if counts:
            records.append(pack_redelivered(Redelivered(self.cursor_id, tuple(counts))))
        self._moved = self._reset = False
        self._forget_fresh()
        return records

    def _pack_mark(self, reset: bool) -> bytes:
        mark = MarkDelete(self.cursor_id, self.mark_delete, self.mark_messages, self.mark_bytes, reset)
        return pack_mark_delete(mark)

    def replay(self, record: CursorRecord) -> None:
        """Apply a record of the log or of a row. State behind mark-delete is ignored."""
        if isinstance(record, MarkDelete):
            self.mark_delete = record.position
            self.mark_messages = record.total_messages
            self.mark_bytes = record.total_bytes
            if record.reset:
                self._clear()
            self._drop_behind_mark()
        elif isinstance(record, Acked) and record.in_view:
            for acked in record.ranges:
                self.in_view.add(acked)
        elif isinstance(record, Acked):
            for acked in record.ranges:
                if (acked.ledger_id, acked.last) > self.mark_delete:
                    self.ranges.add(acked)
                    self._settle(*acked[:3])
        elif isinstance(record, BatchAcked):
            if not self.is_acked(*record.position):
                self._put_batch(record.position, record.num_messages, record.ack_set)
        else:
            for position, count in record.counts:
                if not self.is_acked(*position):
                    self.redeliveries.put(position, count)

    # Checkpoint

    def dirty_rows(self) -> dict[str, bytes | None]:
        """Return the rows that changed since the last call, None for chunks that are now empty."""
        rows: dict[str, bytes | None] = {}
        mark = (self.mark_delete, self.mark_messages, self.mark_bytes)
        if mark != self._stored_mark:
            self._stored_mark = mark
            rows[acks_key(self.cursor_id)] = self._pack_mark(reset=True)
        for key in self._dirty:
            value = self._pack_chunk(key)
            if value:
                self._stored.add(key)
            elif key in self._stored:
                self._stored.remove(key)
            else:
                continue  # created and emptied since the last checkpoint
            rows[acks_chunk_key(self.cursor_id, *key)] = value or None
        self._dirty.clear()
        return rows

    def _pack_chunk(self, key: ChunkKey) -> bytes:
        parts = []
        ranges = self.ranges.pack(key)
        if ranges:
            parts.append(pack_acked_body(self.cursor_id, ranges))
        in_view = self.in_view.pack(key)
        if in_view:
            parts.append(pack_acked_body(self.cursor_id, in_view, IN_VIEW))
        if key in self._batch_chunks:
            for position, partly in self.batch_acks.of_chunk(key):
                parts.append(pack_batch_acked(BatchAcked(self.cursor_id, position, *partly)))
        if key in self._count_chunks:
            counts = self.redeliveries.of_chunk(key)
            parts.append(pack_redelivered(Redelivered(self.cursor_id, tuple(counts))))
        return b"".join(parts)

    def restore(self, value: bytes) -> None:
        """Restore one row of the checkpoint, before any change or replay; mark-delete's row first."""
        offset = 0
        while offset < len(value):
            kind, flags, header_size, body_size = RECORD_PREFIX.unpack_from(value, offset)
            body = offset + header_size
            end = body + body_size
            if kind == RecordKind.ACKED:
                (self.in_view if flags & IN_VIEW else self.ranges).load(value[body:end])
            else:
                for _, record in unpack_records(value[offset:end]):
                    assert isinstance(record, CursorRecord)
                    self.replay(record)
            offset = end
        self._stored |= self._dirty
        self._dirty.clear()
        self._stored_mark = (self.mark_delete, self.mark_messages, self.mark_bytes)


def _joined(entries: list[tuple[int, int, int, int, int, int]]) -> tuple[AckedRange, ...]:
    """Merge entries into ranges; each is ledger, entry, messages, bytes and totals."""
    entries.sort()
    ranges: list[AckedRange] = []
    at = 0
    while at < len(entries):
        ledger_id, first, messages, size, total_messages, total_bytes = entries[at]
        messages_before, bytes_before = total_messages - messages, total_bytes - size
        last = first
        at += 1
        while at < len(entries) and entries[at][1] == last + 1 and entries[at][0] == ledger_id:
            last, (*_, total_messages, total_bytes) = last + 1, entries[at]
            at += 1
        ranges.append(AckedRange(ledger_id, first, last, messages_before, total_messages, bytes_before, total_bytes))
    return tuple(ranges)


def _ignore(key: ChunkKey) -> None:
    pass


def _messages_and_unacked(number: int) -> tuple[int, int]:
    """Decode a partly acknowledged batch: its bit set, below a bit that marks its length."""
    messages = number.bit_length() - 1
    return messages, number ^ 1 << messages


def _acked_messages(batches: list[tuple[int, int]]) -> int:
    return sum(messages - unacked.bit_count() for messages, unacked in batches)
