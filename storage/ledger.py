"""The managed ledger: the entries of a topic, as a list of ledgers of which the last one grows.

It tracks which entries are appended and which are confirmed (durable). Only the publisher sees an entry between the
two. Positions compare as pairs; ledger ids only increase, so position order is publish order.
"""

from bisect import bisect_right
from typing import Final

from pulsarbox.storage.format import EntryFlag
from pulsarbox.storage.record import Entry, Position

NO_LIMIT: Final = (1 << 64, 0)
"""A limit after every entry."""
new_position: Final = tuple.__new__
"""The keyword constructor of a NamedTuple costs three times as much."""


class LedgerInfo:
    """One ledger of a topic. Times are milliseconds since 1970; ``closed`` is 0 for the open ledger."""

    __slots__ = (
        "bytes_before", "closed", "confirmed", "created", "entries", "hole", "last_batch", "last_publish_time",
        "ledger_id", "messages_before", "size",
    )  # fmt: skip

    def __init__(self, ledger_id: int, created: int, messages_before: int, bytes_before: int) -> None:
        self.ledger_id = ledger_id
        self.created = created
        self.closed = 0
        self.messages_before = messages_before
        """Messages of the topic before this ledger."""
        self.bytes_before = bytes_before
        self.entries = 0
        """Entries appended, confirmed or not."""
        self.confirmed = 0
        """Durable entries."""
        self.size = 0
        """Bytes of the appended entries."""
        self.hole = (0, 0)
        """Messages and bytes of the ledgers directly before it that were deleted while an earlier one remained."""
        self.last_batch = -1
        """Messages in the last entry of a closed ledger (-1: not a batch)."""
        self.last_publish_time = 0
        """Publish time of the last entry of a closed ledger."""


class ManagedLedger:
    """The entries of one topic.

    ``total_messages`` and ``total_bytes`` count appended entries, ``confirmed_messages`` and ``confirmed_bytes``
    durable ones; ``last_confirmed`` is the last durable entry, ``last_batch`` the messages in it (-1: not a batch).
    ``tail`` caches recent confirmed entries, by ledger and entry id. ``current`` is the open ledger; it exists from the
    first ``open_ledger`` or ``restore_ledger`` on.
    """

    # With many topics, publishing is bound by memory latency: slots save one memory access per attribute.
    __slots__ = (
        "_holed", "_order", "appended_batch", "appended_publish_time", "changed", "confirmed_bytes",
        "confirmed_messages", "current", "dropped_entries", "last_append_time", "last_batch", "last_confirmed",
        "last_publish_time", "ledgers", "read_limit", "tail", "topic_id", "total_bytes", "total_messages",
    )  # fmt: skip
    current: LedgerInfo

    def __init__(self, topic_id: int) -> None:
        self.topic_id = topic_id
        self.ledgers: dict[int, LedgerInfo] = {}
        self._order: list[int] = []
        self._holed: list[LedgerInfo] = []
        """Ledgers with a hole before them."""
        self.total_messages = 0
        self.total_bytes = 0
        self.last_confirmed = Position(-1, -1)
        self.last_batch = -1
        self.last_publish_time = 0
        self.last_append_time = 0
        """Append time of the last durable entry (ms since 1970)."""
        self.appended_batch = -1
        """Messages in the last appended entry, -1 if it is not a batch."""
        self.appended_publish_time = 0
        self.confirmed_messages = 0
        self.confirmed_bytes = 0
        self.tail: dict[int, dict[int, Entry]] = {}
        self.dropped_entries = 0
        """Entries of ledgers deleted since the topic was loaded."""
        self.read_limit: tuple[int, int] = NO_LIMIT
        """The first entry of an open transaction: neither it nor later entries are readable."""
        self.changed = False
        """Whether the ledger's rows belong in the next checkpoint; maintained by the group commit."""

    def is_readable(self, position: tuple[int, int]) -> bool:
        """Return whether the entry is durable and before every open transaction."""
        return position <= self.last_confirmed and position < self.read_limit

    @property
    def read_end(self) -> Position:
        """The last readable entry; entry -1 of a ledger for the position before its first. The end for browsing."""
        ledger_id, entry_id = self.read_limit
        return min(self.last_confirmed, Position(ledger_id, entry_id - 1))

    def readable_of(self, info: LedgerInfo) -> int:
        """Return the number of readable entries of a ledger: its first ones."""
        ledger_id, entry_id = self.read_limit
        if info.ledger_id < ledger_id:
            return info.confirmed
        return min(info.confirmed, entry_id) if info.ledger_id == ledger_id else 0

    @property
    def confirmed_entries(self) -> int:
        """Durable entries in all ledgers."""
        return sum(info.confirmed for info in self.ledgers.values())

    @property
    def closed_are_confirmed(self) -> bool:
        """Whether all entries of the closed ledgers are durable."""
        before = self.ledgers[self._order[-2]] if len(self._order) > 1 else None
        return before is None or before.confirmed == before.entries

    @property
    def size(self) -> int:
        """Bytes of the entries in all ledgers."""
        return sum(info.size for info in self.ledgers.values())

    @property
    def end(self) -> Position:
        """Position of the last durable entry ever; the entry may be deleted while earlier ones remain."""
        if self.last_confirmed.ledger_id < self.current.ledger_id and self.current.hole != (0, 0):
            return Position(self.current.ledger_id, -1)
        return self.last_confirmed

    def behind_dropped(self, position: Position) -> tuple[Position, int, int] | None:
        """Return the mark-delete that replaces a position in a deleted ledger, with its message and byte totals.

        None if the ledger exists or never existed.
        """
        at = bisect_right(self._order, position.ledger_id)
        if position.ledger_id in self.ledgers or at == len(self._order):
            return None
        info = self.ledgers[self._order[at]]
        return Position(info.ledger_id, -1), info.messages_before, info.bytes_before

    @property
    def newest(self) -> LedgerInfo | None:
        """The last ledger that has entries."""
        return next((info for i in reversed(self._order) if (info := self.ledgers[i]).entries), None)

    def messages_of(self, info: LedgerInfo) -> int:
        """Return the number of messages in a ledger."""
        at = bisect_right(self._order, info.ledger_id)
        if at == len(self._order):
            return self.total_messages - info.messages_before
        behind = self.ledgers[self._order[at]]
        return behind.messages_before - behind.hole[0] - info.messages_before

    def messages_behind(self, total: int) -> int:
        """Return the durable messages after a message total, without deleted ones."""
        if not self._holed:
            return self.confirmed_messages - total
        return self.confirmed_messages - total - self._dropped_behind(total, 0)

    def bytes_behind(self, total: int) -> int:
        """Return the durable bytes after a byte total, without deleted ones."""
        return self.confirmed_bytes - total - self._dropped_behind(total, 1)

    def _dropped_behind(self, total: int, unit: int) -> int:
        dropped = 0
        for info in self._holed:
            end = info.bytes_before if unit else info.messages_before
            dropped += max(0, min(info.hole[unit], end - total))
        return dropped

    def total_bytes_before(self, size: int) -> int:
        """Return the byte total after which at most ``size`` bytes are stored."""
        total = self.confirmed_bytes - size
        for info in reversed(self._holed):
            if info.bytes_before <= total:
                break
            total -= info.hole[1]
        return total

    def open_ledger(self, ledger_id: int, now_ms: int) -> LedgerInfo:
        """Open a new ledger for the topic; the previous one is closed as of its last entry."""
        assert not self._order or ledger_id > self._order[-1]
        if self._order:
            settled = self.current.entries and self.current.entries == self.current.confirmed
            self.current.closed = min(self.last_append_time or now_ms, now_ms) if settled else now_ms
            if self.current.entries:
                self.current.last_batch, self.current.last_publish_time = (
                    self.appended_batch,
                    self.appended_publish_time,
                )
        info = LedgerInfo(ledger_id, now_ms, self.total_messages, self.total_bytes)
        self.restore_ledger(info)
        return info

    def restore_ledger(self, info: LedgerInfo) -> None:
        """Add a ledger as stored; called with increasing ids."""
        self.ledgers[info.ledger_id] = self.current = info
        self._order.append(info.ledger_id)
        self.set_hole(info, info.hole)
        if self.last_confirmed.ledger_id == -1:
            self.last_confirmed = Position(info.ledger_id, -1)

    def set_hole(self, info: LedgerInfo, hole: tuple[int, int]) -> None:
        """Set the messages and bytes missing directly before a ledger."""
        info.hole = hole
        if hole != (0, 0) and info not in self._holed:
            self._holed.append(info)
            self._holed.sort(key=lambda each: each.ledger_id)

    def append(self, entry: Entry) -> None:
        """Append an entry built for the next id of the current ledger."""
        info = self.current
        assert info.ledger_id == entry.ledger_id and info.entries == entry.entry_id
        info.entries += 1
        info.size += len(entry.body)
        self.total_messages = entry.total_messages
        self.total_bytes = entry.total_bytes
        self.appended_batch = entry.num_messages if entry.flags & EntryFlag.BATCH else -1
        self.appended_publish_time = entry.publish_time

    def confirm(self, entries: list[Entry], *, keep: bool = True) -> None:
        """Mark the oldest unconfirmed entries as durable, in order. ``keep`` adds them to the tail."""
        last = entries[-1]
        ledger_id = last[0]
        if entries[0][0] == ledger_id:  # nearly always; with many topics this dominates the cost of a commit
            if keep:
                self.tail.setdefault(ledger_id, {}).update([(e[1], e) for e in entries])
            info = self.current if self.current.ledger_id == ledger_id else self.ledgers[ledger_id]
            info.confirmed = last[1] + 1
            self._confirmed(last)
            return
        if keep:
            for each in {e[0] for e in entries}:
                self.tail.setdefault(each, {}).update([(e[1], e) for e in entries if e[0] == each])
        self._confirmed(last)
        for ledger_id in self._order[bisect_right(self._order, entries[0].ledger_id) - 1 :]:
            info = self.ledgers[ledger_id]
            info.confirmed = last.entry_id + 1 if ledger_id == last.ledger_id else info.entries
            if ledger_id == last.ledger_id:
                break

    def replay(self, last: Entry, count: int, size: int) -> None:
        """Append and confirm ``count`` entries of ``size`` bytes from the log at recovery; ``last`` is the last one.

        They are not cached in memory.
        """
        info = self.ledgers[last.ledger_id]
        info.entries += count
        info.size += size
        info.confirmed = info.entries
        self.total_messages, self.total_bytes = last.total_messages, last.total_bytes
        self._confirmed(last)
        self.appended_batch, self.appended_publish_time = self.last_batch, self.last_publish_time

    def _confirmed(self, last: Entry) -> None:
        (ledger_id, entry_id, flags, messages, total_messages, total_bytes, _, publish_time, append_time, *_) = last
        self.last_confirmed = new_position(Position, (ledger_id, entry_id))
        self.last_batch = messages if flags & EntryFlag.BATCH else -1
        self.last_publish_time = publish_time
        self.last_append_time = append_time
        self.confirmed_messages = total_messages
        self.confirmed_bytes = total_bytes

    def roll_back(self) -> list[LedgerInfo]:
        """Discard unconfirmed entries; return the ledgers whose rows have changed."""
        self.total_messages = self.confirmed_messages
        self.total_bytes = self.confirmed_bytes
        self.appended_batch, self.appended_publish_time = self.last_batch, self.last_publish_time
        changed = []
        for ledger_id in self._order[bisect_right(self._order, self.last_confirmed.ledger_id) - 1 :]:
            info = self.ledgers[ledger_id]
            given_up = info.entries - info.confirmed
            info.entries = info.confirmed
            if ledger_id == self.last_confirmed.ledger_id:
                if given_up:  # otherwise a hole after it would count
                    info.size = self.confirmed_bytes - info.bytes_before
                if info is not self.current and info.entries:
                    info.last_batch, info.last_publish_time = self.last_batch, self.last_publish_time
            else:
                info.size = 0
                info.messages_before = self.confirmed_messages
                info.bytes_before = self.confirmed_bytes
            changed.append(info)
        return changed

    def drop(self, ledger_id: int) -> LedgerInfo | None:
        """Remove a deleted ledger, other than the open one.

        If an earlier one remains, return the ledger after it, which now has a hole before it.
        """
        assert ledger_id != self._order[-1]
        at = self._order.index(ledger_id)
        info = self.ledgers.pop(ledger_id)
        self.dropped_entries += info.confirmed
        del self._order[at]
        if info in self._holed:
            self._holed.remove(info)
        self.tail.pop(ledger_id, None)
        if self.last_confirmed.ledger_id == ledger_id:
            self._last_dropped(at)
        if not at:
            return None
        behind = self.ledgers[self._order[at]]
        messages, size = info.messages_before - info.hole[0], info.bytes_before - info.hole[1]
        self.set_hole(behind, (behind.messages_before - messages, behind.bytes_before - size))
        return behind

    def _last_dropped(self, at: int) -> None:
        """Move ``last_confirmed`` into a ledger before index ``at`` after its ledger was deleted."""
        infos = [self.ledgers[ledger_id] for ledger_id in reversed(self._order[:at])]
        last = next((info for info in infos if info.confirmed), None)
        self.last_confirmed, self.last_batch = Position(self._order[0], -1), -1
        if last is not None:
            self.last_confirmed = Position(last.ledger_id, last.confirmed - 1)
            self.last_batch = last.last_batch
            self.last_publish_time = last.last_publish_time
        if not self.current.entries:
            self.appended_batch = self.last_batch
            if last is not None:
                self.appended_publish_time = self.last_publish_time

    def forget(self, ledger_id: int, first: int, last: int) -> None:
        """Drop entries from the tail in memory."""
        tail = self.tail.get(ledger_id)
        if tail is not None:
            for entry_id in range(first, last + 1):
                tail.pop(entry_id, None)
            if not tail:
                del self.tail[ledger_id]

    def first_position(self) -> Position:
        """Return the position before the first entry of the topic."""
        return Position(self._order[0], -1)

    def next(self, ledger_id: int, entry_id: int) -> Position:
        """Return the next position, with or without an entry yet; from an unknown ledger, the first one after it."""
        info = self.ledgers.get(ledger_id)
        if info is not None and (entry_id + 1 < info.entries or ledger_id == self._order[-1]):
            return new_position(Position, (ledger_id, entry_id + 1))
        i = bisect_right(self._order, ledger_id)
        while i < len(self._order) - 1 and self.ledgers[self._order[i]].entries == 0:
            i += 1
        if i == len(self._order):
            return Position(self._order[-1], self.ledgers[self._order[-1]].entries)
        return Position(self._order[i], 0)

    def clamp(self, ledger_id: int, entry_id: int) -> Position:
        """Return the nearest position that has or will have an entry, from which reading can start."""
        if (ledger_id, entry_id) > self.last_confirmed:
            return self.next(*self.last_confirmed)
        info = self.ledgers.get(ledger_id)
        if info is None or entry_id < 0:
            i = bisect_right(self._order, ledger_id - (info is not None))
            return self.next(self._order[i], -1)
        return Position(ledger_id, entry_id) if entry_id < info.entries else self.next(ledger_id, entry_id)

    def entries_between(self, after: Position, through: Position) -> int:
        """Return the number of confirmed entries after ``after`` up to ``through``."""
        count = 0
        for ledger_id in self._order[max(0, bisect_right(self._order, after.ledger_id) - 1) :]:
            if ledger_id > through.ledger_id:
                break
            start = after.entry_id + 1 if ledger_id == after.ledger_id else 0
            stop = through.entry_id + 1 if ledger_id == through.ledger_id else self.ledgers[ledger_id].confirmed
            count += max(0, stop - start) if ledger_id >= after.ledger_id else 0
        return count
