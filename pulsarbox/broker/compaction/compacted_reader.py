"""Reading the compacted view: what a consumer with readCompacted gets in place of the log, up to the horizon.

Entries have the IDs they were published with. A reader that has started on a view reads it to its end, even if a
newer view appears, and then continues in the log, so it misses no deletion. Only if the log has been trimmed beyond
that point does it continue in the next view.

Acknowledgements are stored in the subscription's cursor, as always. Mark-delete passes messages that are not in the
view together with the next one that is. For ledgers trimmed from the log, the cursor has separate ranges of entries
acknowledged out of order (``in_view``). If such ledgers are before mark-delete, the subscription stores its progress
separately (``Behind``).
"""

import logging
from collections import deque
from collections.abc import Callable
from functools import partial
from typing import Protocol

from pulsarbox.broker.compaction.topic_compaction import TopicCompaction
from pulsarbox.broker.services import HasCatalog, HasCommits, HasQuarantine, HasReadLimits, HasReads, HasTimers
from pulsarbox.broker.subscription.consumer import HeldEntry
from pulsarbox.clock import Now
from pulsarbox.errors import EntryDamaged
from pulsarbox.protocol.metadata import parse_entry
from pulsarbox.storage.catalog import cursor_key
from pulsarbox.storage.compacted_ledger import Behind, CompactedView, unpack_compacted
from pulsarbox.storage.cursor import ManagedCursor
from pulsarbox.storage.format import EntryFlag
from pulsarbox.storage.record import Entry, Position

log = logging.getLogger(__name__)

RETRY_SECONDS = 1.0
"""Pause after a failed read."""
MAX_OUTSTANDING = 50_000
"""Maximum unacknowledged entries that a non-durable subscription tracks."""

At = tuple[int, int]


class ViewServices(HasCatalog, HasCommits, HasTimers, HasReads, HasReadLimits, HasQuarantine, Protocol):
    """The services of the broker that read a compacted view."""


class CompactedReading:
    """Reads the compacted view for one subscription, on behalf of its EntrySource."""

    def __init__(
        self, compaction: TopicCompaction, cursor: ManagedCursor, services: ViewServices, ready: Callable[[Now], None]
    ) -> None:
        self._compaction = compaction
        self._cursor = cursor
        self._ledger = cursor.ledger
        self._catalog = services.catalog
        self._commits = services.commits
        self._timers = services.timers
        self._reads = services.reads
        self._bounds = services.bounds
        self._quarantine = services.quarantine
        self._ready = ready
        self.behind: Behind | None = None
        """Progress in the part of the view before mark-delete that the log no longer has; None if there is none."""
        self._behind_changed = False
        self._moved = False
        """Whether the cursor has changes that were not passed to the commit."""
        self._view: CompactedView | None = None
        """The view being read."""
        self._index = -1
        """The next entry of the view to read; -1 while searching for it."""
        self._ahead: deque[tuple[Entry, int, int]] = deque()
        """Entries read ahead, each with its published size and its number in the view."""
        self._outstanding: deque[tuple[At, int, int]] = deque()
        """Passed entries with their totals, in order; mark-delete advances over them as they are acknowledged."""
        self._acked: set[At] = set()
        """The acknowledged entries in ``_outstanding``."""
        self._left: dict[At, int] = {}
        """For batches in ``_outstanding``: a bit for each message that is not compacted out."""
        self.resized: dict[At, int] = {}
        """Published sizes of entries in the last ``take`` that are smaller in the view."""
        self.reading = False
        self._generation = 0
        self._starved = False

    @property
    def inside(self) -> bool:
        """Whether a view is being read."""
        return self._view is not None

    def start_at(self, position: Position, mark: Position) -> None:
        """Start at ``position``, the first wanted entry, with the cursor's mark-delete at ``mark``."""
        before = Position(position.ledger_id, position.entry_id - 1)
        self._set_behind(Behind(before, mark) if before < mark and self._compaction.view is not None else None)
        self._forget_in_view()

    def restore(self, behind: Behind | None) -> None:
        """Restore the progress stored in the cursor's row."""
        self.behind = behind
        self._forget_in_view()

    def _forget_in_view(self) -> None:
        """Drop out-of-order acknowledgements that the progress already covers."""
        if self._cursor.in_view:
            self._cursor.forget_in_view(self._cursor.mark_delete if self.behind is None else self.behind.through)
            self._moved = True

    def _set_behind(self, behind: Behind | None) -> None:
        if behind != self.behind:
            self.behind = behind
            self._behind_changed = True

    # Positions

    def rewind(self) -> Position:
        """Start over at the first unacknowledged entry and return its position."""
        self.leave()
        self._outstanding.clear()
        self._acked.clear()
        self._left.clear()
        self.resized.clear()
        start = self._ledger.next(*self._cursor.mark_delete)
        if self.behind is not None:
            through = self.behind.through
            start = Position(through.ledger_id, through.entry_id + 1)
        self._enter(start)
        return self._ledger.next(start.ledger_id, start.entry_id - 1) if not self.inside else start

    def leave(self) -> None:
        """Stop reading the view."""
        if self._view is not None:
            self._compaction.unpin(self._view, self)
            self._view = None
        self._ahead.clear()
        self._generation += 1
        self.reading = self._starved = False

    def has(self, position: Position) -> bool:
        """Return whether to read from a view: one is being read, or the log is trimmed at ``position``."""
        if self._view is None and position < self._ledger.first_position():
            self._enter(position)
        return self._view is not None

    def _enter(self, start: Position) -> None:
        """Start reading the view at the first entry from ``start`` on, if the horizon is not before it."""
        view = self._compaction.view
        if view is None or start > view.horizon:
            return
        self._view = view
        self._compaction.pin(view, self)
        self._index = 0
        if start.ledger_id >= 0 and view.entries:
            self._index = -1
            self._find(start, 0, view.entries)

    def _find(self, start: Position, low: int, high: int) -> None:
        """Binary-search the first entry from ``start`` on; its number in the view is from ``low`` to ``high``."""
        if low == high:
            self._index = low
            return
        view, middle, generation = self._view, (low + high) // 2, self._generation
        assert view is not None
        self.reading = True

        def found(entries: list[Entry], error: Exception | None, now: Now) -> None:
            if generation != self._generation:
                return
            self.reading = False
            if error is not None:
                if isinstance(error, EntryDamaged):
                    self._find(start, low, middle)  # rather a few entries too many, which are then skipped
                    self._ready(now)
                else:
                    self._failed(error, now, lambda _: self._find(start, low, high))
                return
            at = unpack_compacted(entries[0]).entry
            if (at.ledger_id, at.entry_id) >= start:
                self._find(start, low, middle)
            else:
                self._find(start, middle + 1, high)
            if self._index >= 0:
                self._ready(now)

        self._reads.ask(view.ledger_id, middle, middle, 1, found)

    def _failed(self, error: Exception, now: Now, again: Callable[[Now], None]) -> None:
        log.error("subscription %s cannot read the compacted view: %s", self._cursor.name, error)
        generation = self._generation

        def retry(when: Now) -> None:
            if generation == self._generation:
                again(when)
                self._ready(when)

        self._timers.at(now.monotonic + RETRY_SECONDS, retry)

    # Take

    def next_entries(
        self, max_entries: int, max_messages: int, max_bytes: int | None, at: Position, now: Now
    ) -> tuple[list[Entry], Position]:
        """Do as EntrySource.next_entries from ``at``; also return the next position, in the log once not ``inside``."""
        taken: list[Entry] = []
        self.resized.clear()
        enough = self._bounds.read_bytes if max_bytes is None else min(max_bytes, self._bounds.read_bytes)
        while len(taken) < max_entries and max_messages > 0:
            if not self._ahead:
                if self._is_at_end():
                    at = self._end()
                break
            entry, size, _ = self._ahead[0]
            if taken and len(entry.body) > enough:
                break
            self._ahead.popleft()
            position = Position(entry.ledger_id, entry.entry_id)
            acked = position < at or self._is_acked(position)
            if position >= at:
                self._pass(position, entry.total_messages, entry.total_bytes, acked=acked)
                at = Position(position.ledger_id, position.entry_id + 1)
            if acked:
                continue
            if size != len(entry.body):
                self.resized[position] = size
            if entry.flags & EntryFlag.BATCH:
                self._note_left(entry)
            taken.append(entry)
            max_messages -= entry.num_messages
            enough -= len(entry.body)
        self._starved = self._starved or not taken
        self.schedule_write(now)
        self.prepare()
        return taken, at

    def _is_at_end(self) -> bool:
        return self._view is not None and not self.reading and self._index >= self._view.entries

    def prepare(self) -> None:
        """Read ahead."""
        view = self._view
        bounds = self._bounds
        if view is None or self.reading or not 0 <= self._index < view.entries:
            return
        if len(self._ahead) < max(bounds.read_entries // 2, 1):
            self.reading = True
            last = min(self._index + bounds.read_entries, view.entries) - 1
            answer = partial(self._answer, self._generation)
            self._reads.ask(view.ledger_id, self._index, last, bounds.read_bytes, answer)

    def _answer(self, generation: int, entries: list[Entry], error: Exception | None, now: Now) -> None:
        if generation != self._generation:
            return
        self.reading = False
        if isinstance(error, EntryDamaged):
            self._quarantine.report(error, now)
            self._index = error.last + 1
        elif error is not None:
            self._failed(error, now, lambda _: None)
            return
        else:
            self._index = entries[-1].entry_id + 1
            for entry in entries:
                original, size = unpack_compacted(entry)
                self._ahead.append((original, size, entry.entry_id))
        if self._starved:
            self._starved = False
            self._ready(now)

    def _end(self) -> Position:
        """Finish the view, and return the log position after its horizon."""
        view = self._view
        assert view is not None
        if not self._outstanding or self._outstanding[-1][0] < view.horizon:
            self._pass(view.horizon, view.messages, view.bytes, acked=True)
        self.leave()
        return Position(view.horizon.ledger_id, view.horizon.entry_id + 1)

    # Acknowledge

    def _is_acked(self, position: At) -> bool:
        if not self.claims(position):
            return self._cursor.is_acked(*position)
        behind = self.behind
        return (behind is not None and position <= behind.through) or self._cursor.in_view.covers(*position)

    def _pass(self, position: Position, messages: int, size: int, *, acked: bool) -> None:
        """Note that reading has passed an entry."""
        if acked and not self._outstanding:
            self._advance_to(position, messages, size)
            return
        if len(self._outstanding) >= MAX_OUTSTANDING and not self._cursor.durable:
            self._popped()
        self._outstanding.append((position, messages, size))
        if acked:
            self._acked.add(position)

    def _note_left(self, entry: Entry) -> None:
        """Note the messages present in a batch: compacted-out ones will never be acknowledged."""
        indexes = parse_entry(entry.body, verify=False).metadata.compacted_batch_indexes
        if indexes:
            self._left[(entry.ledger_id, entry.entry_id)] = sum(1 << index for index in indexes)

    def ack_sets(self, entries: list[Entry]) -> dict[At, tuple[int, int]]:
        """Return ack sets for batches to be sent of which only some messages are wanted.

        Clients based on the C++ client ignore the compacted-out mark; with an ack set they do not pass such a message
        to a reader. A consumer would then never acknowledge the batch, so it gets an empty message, as from Pulsar.
        """
        found: dict[At, tuple[int, int]] = {}
        for entry in entries:
            position = entry.ledger_id, entry.entry_id
            partly = self._cursor.ack_sets.get(position)
            left = -1 if self._cursor.durable else self._left.get(position, -1)
            if partly is not None or left != -1:
                unacked = partly[1] if partly is not None else -1
                found[position] = entry.num_messages, unacked & left & (1 << entry.num_messages) - 1
        return found

    def unacked(self, position: At, bits: int) -> int:
        """Return the messages present in a batch that an acknowledgement leaves unacknowledged."""
        return bits & self._left.get(position, -1)

    def claims(self, position: At) -> bool:
        """Return whether an entry is no longer in the log and so not covered by the cursor's own ranges.

        Its ledger may have been trimmed before an earlier one, because all subscriptions at that time had acknowledged
        it.
        """
        if self.behind is not None and position <= self.behind.up_to:
            return True
        return position > self._cursor.mark_delete and position[0] not in self._ledger.ledgers

    def acknowledged(self, position: At) -> None:
        """Note an acknowledged entry; if ``claims`` covers it, record it in the cursor's view ranges."""
        if self.claims(position) and not self._is_acked(position):
            self._cursor.acknowledge_in_view(*position)
            self._moved = True
        if not self._outstanding:
            return
        if self._outstanding[0][0] <= position <= self._outstanding[-1][0]:
            self._acked.add(position)
        self._settle()

    def acknowledged_through(self, position: At) -> None:
        """Note a cumulative acknowledgement."""
        outstanding = self._outstanding
        last: tuple[At, int, int] | None = None
        while outstanding and outstanding[0][0] <= position:
            last = self._popped()
        behind = self.behind
        if behind is not None and position > behind.through:  # it may have been sent before a restart and not since
            self._set_behind(behind._replace(through=Position(*position)) if position <= behind.up_to else None)
            self._forget_in_view()
        if last is not None and (behind is None or last[0] > behind.up_to):
            self._advance_to(*last)
        self._settle()

    def _settle(self) -> None:
        outstanding = self._outstanding
        last: tuple[At, int, int] | None = None
        while outstanding and (outstanding[0][0] in self._acked or self._is_acked(outstanding[0][0])):
            last = self._popped()
        if last is not None:
            self._advance_to(*last)

    def _popped(self) -> tuple[At, int, int]:
        first = self._outstanding.popleft()
        self._acked.discard(first[0])
        self._left.pop(first[0], None)
        return first

    def _advance_to(self, position: At, messages: int, size: int) -> None:
        """Advance to an entry of the view: everything up to it is acknowledged or not in the view."""
        behind = self.behind
        if behind is not None:
            if position <= behind.up_to:
                self._set_behind(behind._replace(through=Position(*position)))
                self._forget_in_view()
                return
            self._set_behind(None)
        if self._cursor.acknowledge_through(Position(*position), messages, size):
            self._moved = True
        self._forget_in_view()

    def schedule_write(self, now: Now) -> None:
        """Schedule writing of changes."""
        cursor, commits = self._cursor, self._commits
        if self._moved:
            self._moved = False
            commits.cursor_changed(cursor, now)
        if self._behind_changed:
            self._behind_changed = False
            key = cursor_key(self._ledger.topic_id, cursor.cursor_id)
            row = self._catalog.get(key) if cursor.durable else None
            if row is not None:
                row.pop("compacted", None)
                commits.put_row(key, row if self.behind is None else row | {"compacted": self.behind.row})

    def trimmed(self, mark: Position) -> None:
        """Record progress for a non-durable subscription whose log now starts at ``mark``."""
        through = self._cursor.mark_delete if self.behind is None else self.behind.through
        self._set_behind(Behind(through, mark))

    def corrected(self, held: dict[At, HeldEntry]) -> None:
        """Correct the sizes of sent entries to their published sizes."""
        for position, size in self.resized.items():
            if position in held:
                held[position] = held[position]._replace(size=size)
