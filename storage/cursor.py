"""The managed cursor: what one subscription has acknowledged.

Mark-delete says that everything up to it is acknowledged. Behind it stand the individually acknowledged ranges, and for
batches of which only some messages are acknowledged the set of those that are not. There is no limit on either.
"""

from pulsarbox.storage.ledger import ManagedLedger
from pulsarbox.storage.ranges import RangeSet
from pulsarbox.storage.record import (
    Acked,
    AckedRange,
    BatchAcked,
    MarkDelete,
    Position,
    pack_acked,
    pack_batch_acked,
    pack_mark_delete,
)


class ManagedCursor:
    """Acknowledgements of one subscription on one topic.

    Changes gather until ``take_changes`` packs them for the journal. A cursor that is not durable has the same
    arithmetic, and its changes are never asked for.
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
        self.ranges: dict[int, RangeSet] = {}
        self.batch_acks: dict[Position, tuple[int, int]] = {}
        """Partly acknowledged batches: messages in it, and a bit for each that is not acknowledged."""
        self._moved = False
        self._reset = False
        self._fresh: list[AckedRange] = []
        self._fresh_batches: set[Position] = set()

    # Reading

    def is_acked(self, ledger_id: int, entry_id: int) -> bool:
        """Whether the entry is acknowledged."""
        if (ledger_id, entry_id) <= self.mark_delete:
            return True
        ranges = self.ranges.get(ledger_id)
        return ranges is not None and entry_id in ranges

    def next_unacked(self, position: Position) -> Position:
        """The first position from ``position`` on that is not acknowledged."""
        if position <= self.mark_delete:
            position = self.ledger.next(*self.mark_delete)
        while True:
            ranges = self.ranges.get(position.ledger_id)
            gap = position.entry_id if ranges is None else ranges.first_gap(position.entry_id)
            if gap == position.entry_id:
                return position
            position = self.ledger.next(position.ledger_id, gap - 1)

    @property
    def backlog_messages(self) -> int:
        """Confirmed messages that are not acknowledged."""
        acked = sum(r.messages_after - r.messages_before for ranges in self.ranges.values() for r in ranges)
        partly = sum(count - unacked.bit_count() for count, unacked in self.batch_acks.values())
        return self.ledger.confirmed_messages - self.mark_messages - acked - partly

    @property
    def backlog_entries(self) -> int:
        """Confirmed entries that are not acknowledged; a partly acknowledged batch counts as one."""
        acked = sum(r.last - r.first + 1 for ranges in self.ranges.values() for r in ranges)
        return self.ledger.entries_between(self.mark_delete, self.ledger.last_confirmed) - acked

    @property
    def backlog_bytes(self) -> int:
        """Bytes of the confirmed entries that are not acknowledged."""
        acked = sum(r.bytes_after - r.bytes_before for ranges in self.ranges.values() for r in ranges)
        return self.ledger.confirmed_bytes - self.mark_bytes - acked

    # Acknowledging

    def acknowledge(
        self, ledger_id: int, entry_id: int, messages: int, size: int, total_messages: int, total_bytes: int
    ) -> bool:
        """Acknowledge one entry of ``messages`` messages and ``size`` bytes; the totals include it.

        False where it was acknowledged already.
        """
        mark = self.mark_delete
        if ledger_id == mark[0] and entry_id == mark[1] + 1:
            self._mark(Position(ledger_id, entry_id), total_messages, total_bytes)
            if self.ranges:
                self._absorb()
            if self.batch_acks:
                self.batch_acks.pop(Position(ledger_id, entry_id), None)
            return True
        return self._acknowledge_out_of_order(
            AckedRange(
                ledger_id,
                entry_id,
                entry_id,
                total_messages - messages,
                total_messages,
                total_bytes - size,
                total_bytes,
            )
        )

    def _acknowledge_out_of_order(self, acked: AckedRange) -> bool:
        if self.is_acked(acked.ledger_id, acked.first):
            return False
        self.batch_acks.pop(Position(acked.ledger_id, acked.first), None)
        if self.ledger.next(*self.mark_delete) == (acked.ledger_id, acked.first):
            self._mark(Position(acked.ledger_id, acked.last), acked.messages_after, acked.bytes_after)
            self._absorb()
            return True
        self.ranges.setdefault(acked.ledger_id, RangeSet()).add(acked)
        last = self._fresh[-1] if self._fresh else None
        if last is not None and last.ledger_id == acked.ledger_id and last.last + 1 == acked.first:
            self._fresh[-1] = last._replace(
                last=acked.last, messages_after=acked.messages_after, bytes_after=acked.bytes_after
            )
        else:
            self._fresh.append(acked)
        return True

    def acknowledge_batch(self, position: Position, messages: int, unacked: int) -> bool:
        """Acknowledge the messages of a batch that have no bit in ``unacked``; True where none is left.

        The caller then acknowledges the entry.
        """
        if self.is_acked(*position):
            return False
        before = self.batch_acks.get(position)
        left = unacked & (before[1] if before else (1 << messages) - 1)
        if not left:
            return True
        if before is None or left != before[1]:
            self.batch_acks[position] = (messages, left)
            self._fresh_batches.add(position)
        return False

    def acknowledge_through(self, position: Position, total_messages: int, total_bytes: int) -> bool:
        """Acknowledge everything up to ``position``, whose totals are given; False where it was already."""
        if position <= self.mark_delete:
            return False
        self._mark(position, total_messages, total_bytes)
        self._drop_behind_mark()
        self._absorb()
        return True

    def reset(self, position: Position, total_messages: int, total_bytes: int) -> None:
        """Forget every acknowledgement after ``position`` and make it the mark-delete."""
        self._mark(position, total_messages, total_bytes)
        self._reset = True
        self.ranges.clear()
        self.batch_acks.clear()
        self._fresh.clear()
        self._fresh_batches.clear()

    def _mark(self, position: Position, total_messages: int, total_bytes: int) -> None:
        self.mark_delete = position
        self.mark_messages = total_messages
        self.mark_bytes = total_bytes
        self._moved = True

    def _absorb(self) -> None:
        """Move mark-delete over the ranges that it has come to touch."""
        while self.ranges:
            following = self.ledger.next(*self.mark_delete)
            ranges = self.ranges.get(following.ledger_id)
            acked = ranges.take(following.entry_id) if ranges is not None else None
            if acked is None or ranges is None:
                return
            if not ranges:
                del self.ranges[following.ledger_id]
            self._mark(Position(acked.ledger_id, acked.last), acked.messages_after, acked.bytes_after)

    def _drop_behind_mark(self) -> None:
        mark = self.mark_delete
        for ledger_id in [i for i in self.ranges if i <= mark.ledger_id]:
            if ledger_id == mark.ledger_id:
                self.ranges[ledger_id].drop_through(mark.entry_id)
            if ledger_id < mark.ledger_id or not self.ranges[ledger_id]:
                del self.ranges[ledger_id]
        for position in [p for p in self.batch_acks if p <= mark]:
            del self.batch_acks[position]

    # The journal

    def take_changes(self) -> list[bytes]:
        """What changed since the last call, packed as records."""
        records = []
        if self._moved:
            mark = MarkDelete(self.cursor_id, self.mark_delete, self.mark_messages, self.mark_bytes, self._reset)
            records.append(pack_mark_delete(mark))
        fresh = [r for r in self._fresh if (r.ledger_id, r.last) > self.mark_delete]
        if fresh:
            records.append(pack_acked(Acked(self.cursor_id, tuple(fresh))))
        records += [
            pack_batch_acked(BatchAcked(self.cursor_id, position, *self.batch_acks[position]))
            for position in sorted(self._fresh_batches)
            if position in self.batch_acks
        ]
        self._moved = self._reset = False
        self._fresh.clear()
        self._fresh_batches.clear()
        return records

    def pack(self) -> bytes:
        """The whole cursor as records, for the checkpoint."""
        mark = MarkDelete(self.cursor_id, self.mark_delete, self.mark_messages, self.mark_bytes, reset=True)
        records = [pack_mark_delete(mark)]
        records += [pack_acked(Acked(self.cursor_id, tuple(ranges))) for ranges in self.ranges.values()]
        records += [
            pack_batch_acked(BatchAcked(self.cursor_id, position, *partly))
            for position, partly in self.batch_acks.items()
        ]
        return b"".join(records)

    def replay(self, record: MarkDelete | Acked | BatchAcked) -> None:
        """Apply a record of the log or of the checkpoint."""
        if isinstance(record, MarkDelete):
            self.mark_delete = record.position
            self.mark_messages = record.total_messages
            self.mark_bytes = record.total_bytes
            if record.reset:
                self.ranges.clear()
                self.batch_acks.clear()
            self._drop_behind_mark()
        elif isinstance(record, Acked):
            for acked in record.ranges:
                ranges = self.ranges.setdefault(acked.ledger_id, RangeSet())
                ranges.add(acked)
                for position in [p for p in self.batch_acks if p.ledger_id == acked.ledger_id and p.entry_id in ranges]:
                    del self.batch_acks[position]
        else:
            self.batch_acks[record.position] = (record.num_messages, record.ack_set)
