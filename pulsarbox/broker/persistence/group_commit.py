"""Group commit: the changes of one turn become durable together and release together what waited for them.

One group fills while at most one is being written. Receipts, ack responses and every reply that promises durability
wait in the group that holds the change.

If a commit fails, the entries of that group and of the open one are dropped: their producers get an error for each
message and are closed, so that no later message overtakes a failed one. All other records (acknowledgements, metadata)
go into the next attempt.

Moving a message to a dead letter topic takes an entry there and an acknowledgement here: ``move`` puts both into one
group. The cursor is updated once they are durable, so a failure leaves nothing to undo. A job that puts dead letters
back does the same in reverse.
"""

import logging
from collections.abc import Callable, Sized
from itertools import islice
from typing import Any, Protocol

from pulsarbox.broker.compression_policy import CompressionPolicy
from pulsarbox.broker.events import Events
from pulsarbox.broker.persistence.housekeeping import Housekeeping
from pulsarbox.broker.persistence.tail_cache import TailCache
from pulsarbox.broker.stats.commit_stats import CommitTimes, Traffic
from pulsarbox.broker.timers import Timers
from pulsarbox.clock import Now
from pulsarbox.config import Settings
from pulsarbox.errors import PersistenceError, PulsarBoxError, StoreFull
from pulsarbox.storage.catalog import IDS, Row, aborted_key, acks_key, ledger_key, sequence_key
from pulsarbox.storage.cursor import ManagedCursor
from pulsarbox.storage.delayed_index import Delays, forget_delays
from pulsarbox.storage.format import FORGOTTEN, MOVED, RecordKind
from pulsarbox.storage.journal import Batch
from pulsarbox.storage.ledger import ManagedLedger
from pulsarbox.storage.record import Entry, pack_entry
from pulsarbox.storage.recovery import Store, StoredTopic, ledger_row
from pulsarbox.storage.transactions import OpenEntries

log = logging.getLogger(__name__)

Callback = Callable[[Now], None]

LAZY_SECONDS = 0.010
"""How long acknowledgements without a waiting client may accumulate before they cost a sync."""
ENOUGH_RECEIPTS = 32
ENOUGH_BYTES = 1 << 20
"""From these on, the batch is committed before the turn ends.

Measured: 5 % faster for single messages than at the end of the turn; with a lower byte count, 8 % slower for batched
ones.
"""
RETRY_SECONDS = 0.1
"""Pause after a failed commit."""
NOTED_AT_ONCE = 500
"""Dirty ledgers, cursors and sequence tables whose rows one turn may update for a checkpoint, at 7 us each.

If there are more, earlier batches update some of them.
"""
_MOVABLE = (RecordKind.ACKED, RecordKind.BATCH_ACKED)
"""Kinds of records that may carry the MOVED flag."""


class EntryMove(Protocol):
    """An entry, or messages of a batch, on its way to another topic."""

    def acked(self, cursor_id: int) -> bytes:
        """Return the acknowledgement record, flagged to be stored only together with the rest of its batch."""


class Mover(Protocol):
    """Moves entries between topics, and is notified of the outcome."""

    def moved(self, moves: list[Any], now: Now) -> None:
        """Handle that the moves are durable."""

    def not_moved(self, moves: list[Any], now: Now) -> None:
        """Handle that the moves could not be stored."""


class Publisher(Protocol):
    """The publisher of an entry, which learns the outcome of its commit."""

    def receipt(self, sequence_id: int, highest_sequence_id: int, ledger_id: int, entry_id: int, now: Now) -> None:
        """Send the receipt of a durable entry."""

    def refuse(self, sequence_id: int, error: PulsarBoxError, now: Now) -> None:
        """Send the error of an entry that could not be stored."""

    def disconnect(self, now: Now) -> None:
        """Close the publisher after its entries were refused, so that no later one overtakes them."""


class SequencedTopic(Protocol):
    """A topic with sequence IDs that are committed with its entries."""

    stored: StoredTopic

    def confirmed(self) -> None:
        """Confirm the sequence IDs of the batch that became durable."""


class _Limits(Protocol):
    relative: bool

    def published(self, now: Now) -> None: ...


class _Unsubscribed(Protocol):
    count_at: int


class _Ledgers(Protocol):
    trim_due: bool

    @property
    def unsubscribed(self) -> _Unsubscribed: ...


class CommittedTopic(Protocol):
    """A topic whose entries are committed. Its parts are read inline: calls would cost 5 % of publishing."""

    ledger: ManagedLedger
    stored: StoredTopic
    traffic: Traffic

    @property
    def subscriptions(self) -> Sized:
        """Its subscriptions."""

    @property
    def is_consumed(self) -> bool:
        """Whether consumers are connected, so that published messages are worth caching."""

    @property
    def limits(self) -> _Limits:
        """Its limits: ``relative`` ones count published messages."""

    @property
    def ledgers(self) -> _Ledgers:
        """Its ledgers: whether a trim is due, and at which total its unsubscribed messages are counted."""

    def confirmed(self, now: Now) -> None:
        """Dispatch newly confirmed entries."""

    def delays_lost(self) -> None:
        """Handle that delayed entries could not be stored."""


class CommitGroup:
    """A batch and the actions that wait for its commit."""

    __slots__ = (
        "appended", "batch", "callbacks", "copied", "cursors", "lazy_until", "moves", "opened", "receipts", "rows",
        "sequenced",
        "taken", "urgent",
    )  # fmt: skip

    def __init__(self, position: int) -> None:
        self.batch = Batch(position)
        self.receipts: list[tuple[Publisher, int, int, int, int]] = []
        """Producer, sequence ID, highest sequence ID, ledger ID, entry ID; also of duplicates, without an entry."""
        self.appended: dict[CommittedTopic, list[Entry]] = {}
        self.sequenced: dict[SequencedTopic, None] = {}
        """Deduplication state of topics that were published to."""
        self.cursors: dict[ManagedCursor, None] = {}
        """Cursors with changes to write."""
        self.callbacks: list[Callback] = []
        self.moves: dict[Mover, list[EntryMove]] = {}
        """Messages being moved between topics, by mover."""
        self.copied: list[tuple[Callback, Callable[[Exception, Now], None]]] = []
        """Callbacks for entries written by ``copy``: stored, and lost."""
        self.urgent = False
        self.rows = False
        """Whether the batch contains rows of the metadata."""
        self.lazy_until = 0.0
        self.opened = self.taken = 0.0
        """When the group was opened and when it was taken, in seconds of the monotonic clock."""


class GroupCommit:
    """The open group, the group in flight, and the objects to write with the next checkpoint."""

    def __init__(
        self, store: Store, settings: Settings, timers: Timers, events: Events, at_rest: CompressionPolicy, now: Now
    ) -> None:
        self._store = store
        self._events = events
        self._timers = timers
        self._max_batch = settings.journalMaxBatchMbytes << 20
        self._not_before = 0.0
        self._dirty_ledgers = store.replayed_ledgers
        self._dirty_cursors = store.replayed_cursors
        self._dirty_sequences = store.replayed_sequences
        self._dirty_delays = store.replayed_delays
        self._dirty_open = store.replayed_open
        self._notes_left: int | None = None
        """Further batches that update rows before the due checkpoint; None if none is due."""
        self.housekeeping = Housekeeping(store, settings, timers, events, at_rest)
        self.tail_cache = TailCache(settings.managedLedgerCacheSizeMB << 20)
        self.times = CommitTimes(now)
        self.open = CommitGroup(store.next_position)
        self.in_flight: CommitGroup | None = None
        ids = store.ids()
        self._next_id: int = ids["next"]
        self.boot: int = ids["boot"] + 1
        self._ids_changed = True
        # Names derived from the start counter may only be used once the counter is durable.
        self.open.urgent = self.open.rows = True

    @property
    def full(self) -> bool:
        """Whether the open batch is full; the shell then stops reading from clients."""
        return self.open.batch.size >= self._max_batch

    @property
    def is_worth_a_sync(self) -> bool:
        """Whether the open group is large enough that waiting for more would hardly lower the cost per message."""
        return len(self.open.receipts) >= ENOUGH_RECEIPTS or self.open.batch.size >= ENOUGH_BYTES

    @property
    def metadata_pending(self) -> bool:
        """Whether any metadata row is not durable yet."""
        return self.open.rows or (self.in_flight is not None and self.in_flight.rows)

    @property
    def idle(self) -> bool:
        """Whether nothing is waiting to be written."""
        group = self.open
        waiting = group.batch or group.cursors or group.callbacks or group.receipts
        return self.in_flight is None and not waiting and self.housekeeping.idle

    # Called by the state machines

    def new_id(self) -> int:
        """Return a new ID for a topic, ledger or cursor; it becomes durable with the first data stored under it."""
        self._next_id += 1
        self._ids_changed = True
        return self._next_id - 1

    def put_row(self, key: str, row: Row | None) -> None:
        """Write a metadata row, or delete it with None."""
        self._store.catalog.put(self.open.batch, key, row)
        self.open.urgent = self.open.rows = True

    def after_commit(self, callback: Callback) -> None:
        """Call back once all changes so far are durable."""
        self.open.callbacks.append(callback)
        self.open.urgent = True

    def copy(self, entries: list[Entry], stored: Callback, lost: Callable[[Exception, Now], None]) -> None:
        """Write entries of a ledger that no topic appends to; then call ``stored`` or ``lost``."""
        for entry in entries:
            self.open.batch.add_entry(entry.ledger_id, entry.entry_id, pack_entry(entry), entry.body)
        self.open.copied.append((stored, lost))
        self.open.urgent = True

    def ledger_changed(self, ledger: ManagedLedger) -> None:
        """Write the ledger's rows with the next checkpoint. Unnecessary if ``ledger.changed`` is already set."""
        ledger.changed = True
        self._dirty_ledgers[ledger] = None

    def cursor_changed(self, cursor: ManagedCursor, now: Now) -> None:
        """Write the cursor's changes within LAZY_SECONDS."""
        if cursor.durable:
            group = self.open
            if not group.cursors:
                group.lazy_until = now.monotonic + LAZY_SECONDS
                if not group.urgent:
                    self._timers.at(group.lazy_until, _wake)
            group.cursors[cursor] = None

    def move(self, cursor: ManagedCursor, mover: Mover, move: EntryMove) -> None:
        """Acknowledge the moved message in the open batch: together with its new entry, or not at all."""
        group = self.open
        for record in cursor.take_changes():  # earlier changes, such as a reset, must precede it in the log
            group.batch.add(record)
        self._dirty_cursors[cursor] = None
        group.batch.add(move.acked(cursor.cursor_id))
        group.moves.setdefault(mover, []).append(move)
        group.urgent = True

    def forget_cursor(self, cursor: ManagedCursor) -> None:
        """Discard the pending changes and rows of a deleted cursor."""
        self.open.cursors.pop(cursor, None)
        self._dirty_cursors.pop(cursor, None)
        self._store.catalog.delete_all(acks_key(cursor.cursor_id))

    def sequences_changed(self, stored: StoredTopic) -> None:
        """Write the topic's producer sequence IDs with the next checkpoint."""
        self._dirty_sequences[stored.sequences] = None

    def delays_changed(self, delays: Delays) -> None:
        """Write the rows of the topic's delayed entries with the next checkpoint."""
        self._dirty_delays[delays] = None

    def open_changed(self, entries: OpenEntries) -> None:
        """Write the rows of the topic's open transactions with the next checkpoint."""
        self._dirty_open[entries] = None

    def forget_producers(self, stored: StoredTopic, names: list[str]) -> None:
        """Forget the sequence IDs of producers, durably with the next commit."""
        for name in names:
            self.open.batch.add(stored.sequences.forget(name))
        self.sequences_changed(stored)
        # A client that learns that its sequence IDs are unknown starts anew; the removal must be durable before that.
        self.open.urgent = self.open.rows = True

    def drop_ledger(self, ledger: ManagedLedger, ledger_id: int, now: Now) -> None:
        """Delete a ledger of a topic; its disk space is reclaimed after a later checkpoint."""
        self.put_row(ledger_key(ledger.topic_id, ledger_id), None)
        self._store.topics[ledger.topic_id].delays.drop(ledger_id)
        self._store.catalog.delete_all(aborted_key(ledger.topic_id, ledger_id))
        self.housekeeping.ledger_dropped(ledger_id, now)

    def forget_topic(self, stored: StoredTopic) -> None:
        """Delete all rows of a deleted topic."""
        self._dirty_ledgers.pop(stored.ledger, None)
        self._dirty_sequences.pop(stored.sequences, None)
        self._dirty_delays.pop(stored.delays, None)
        self._store.catalog.delete_all(sequence_key(stored.topic_id))
        forget_delays(self._store.catalog, stored.topic_id)
        self._dirty_open.pop(stored.open, None)
        self._store.forget_transactions(stored.topic_id)
        self._store.forget(stored)

    def unload(self, stored: StoredTopic) -> None:
        """Drop the topic's objects from memory, leaving its rows. None of its changes may be waiting for a commit."""
        self._dirty_ledgers.pop(stored.ledger, None)
        for cursor in stored.cursors.values():
            self._dirty_cursors.pop(cursor, None)
        self._dirty_sequences.pop(stored.sequences, None)
        self._dirty_delays.pop(stored.delays, None)
        self._dirty_open.pop(stored.open, None)
        self._store.unload(stored)

    def waits_for(self, cursor: ManagedCursor) -> bool:
        """Whether changes of the cursor are not yet in a batch."""
        return cursor in self.open.cursors

    def ask_checkpoint(self) -> None:
        """Request a checkpoint with the next batch, however little there is to write."""
        self.housekeeping.ask_checkpoint()

    # Called by the shell, through the broker

    def take(self, now: Now) -> Batch | None:
        """Return the next batch to commit; None while one is in flight or nothing is due."""
        group = self.open
        if self.in_flight is not None or now.monotonic < self._not_before:
            return None
        if self.housekeeping.asked:
            self._ids_changed = group.urgent = True
        if not group.urgent and not group.receipts:
            if not group.cursors or (now.monotonic < group.lazy_until and not self.full):
                return None
        batch = group.batch
        self._pack_cursors(group)
        if group.sequenced:
            self._pack_sequences(group, now)
        if not batch and not self._ids_changed:
            self.open = CommitGroup(batch.position)
            self.housekeeping.committed(batch.position)  # nothing remains to be logged for earlier batches
            _send_receipts(group, now)  # of duplicates that waited for earlier entries
            _run(group.callbacks, now)
            return self.take(now) if self.open.urgent else None  # changes made by the callbacks are due at once
        if self._ids_changed:
            self._store.catalog.put(batch, IDS, {"next": self._next_id, "boot": self.boot})
            self._ids_changed = False
        batch.wall = now.wall
        if self.housekeeping.appended(batch.size) and self._is_noted():
            self._checkpoint(batch.position)
            if group.moves:  # its rows lack the moves until the commit: the next batch repeats them
                self.housekeeping.needs(batch.position + 1)
        group.taken = now.monotonic
        self.in_flight = group
        self.open = CommitGroup(batch.position + 1)
        self.open.opened = now.monotonic
        return batch

    def _pack_cursors(self, group: CommitGroup) -> None:
        topics = self._store.topics
        for cursor in list(group.cursors):
            stored = topics.get(cursor.ledger.topic_id)
            if stored is None or stored.cursors.get(cursor.cursor_id) is not cursor:
                del group.cursors[cursor]  # deleted, then changed by the response to an older read
                continue
            for record in cursor.take_changes():
                group.batch.add(record)
        self._dirty_cursors.update(group.cursors)

    def _pack_sequences(self, group: CommitGroup, now: Now) -> None:
        # Once per topic: turning deduplication off and on again leaves two objects for the same topic.
        for stored in dict.fromkeys(each.stored for each in group.sequenced):
            if stored.in_use:  # it may have been deleted since
                for record in stored.sequences.take_changes(now.wall):
                    group.batch.add(record)
                self._dirty_sequences[stored.sequences] = None

    def _is_noted(self) -> bool:
        """Whether few enough dirty objects remain to make the due checkpoint in this turn.

        Otherwise update the rows of some, the longest dirty first. Objects that change again become dirty again. If
        these are as many as were updated, the checkpoint is made anyway after a full round.
        """
        left = self._notes_left
        if left is None:
            many = len(self._dirty_ledgers) + len(self._dirty_cursors) + len(self._dirty_sequences)
            left = (many - 1) // NOTED_AT_ONCE
        if left <= 0:
            self._notes_left = None
            return True
        self._notes_left = left - 1
        self.housekeeping.ask_checkpoint()  # keep the checkpoint due even if nothing else is written
        room = NOTED_AT_ONCE
        for ledger in list(islice(self._dirty_ledgers, room)):
            self._store.note_ledger(ledger)
            ledger.changed = False
            del self._dirty_ledgers[ledger]
            room -= 1
        for cursor in list(islice(self._dirty_cursors, room)):
            self._store.note_cursor(cursor)
            del self._dirty_cursors[cursor]
            room -= 1
        for sequences in list(islice(self._dirty_sequences, room)):
            self._store.note_sequences(sequences)
            del self._dirty_sequences[sequences]
        return False

    def _checkpoint(self, position: int) -> None:
        for ledger in self._dirty_ledgers:
            self._store.note_ledger(ledger)
            ledger.changed = False
        for cursor in self._dirty_cursors:
            self._store.note_cursor(cursor)
        for sequences in self._dirty_sequences:
            self._store.note_sequences(sequences)
        for delays in self._dirty_delays:
            self._store.note_delays(delays)
        for entries in self._dirty_open:
            self._store.note_open(entries)
        self._dirty_ledgers.clear()
        self._dirty_cursors.clear()
        self._dirty_sequences.clear()
        self._dirty_delays.clear()
        self._dirty_open.clear()
        for stored in [each for each in self._store.topics.values() if not each.in_use]:
            self._store.unload(stored)  # it was in memory only because of the log
        self.housekeeping.made(position)

    def committed(self, batch: Batch, now: Now) -> None:
        """Complete a commit: confirm its entries, send receipts, run callbacks and dispatch to consumers."""
        group = self.in_flight
        assert group is not None and group.batch is batch
        self.in_flight = None
        self.housekeeping.committed(batch.position)
        self.times.committed(now.monotonic - group.taken, _waited(group), len(group.receipts), batch.size)
        self.times.sample(group.appended, now)
        # Skip topics without subscriptions here and below: with 1000 topics of one entry each, asking them would cost
        # 5 and 4 % of the core's publishing time (measured: 0.4 and 0.3 us of 9).
        for topic, entries in group.appended.items():
            consumed = bool(topic.subscriptions) and topic.is_consumed
            topic.ledger.confirm(entries, keep=consumed)
            if consumed:
                self.tail_cache.added(topic.ledger, entries)
        for deduplication in group.sequenced:
            deduplication.confirmed()
        for mover, moves in group.moves.items():
            mover.moved(moves, now)
        if group.moves and self.housekeeping.waiting:
            self.open.urgent = True
        _send_receipts(group, now)
        _run(group.callbacks, now)
        for stored, _ in group.copied:
            stored(now)
        for topic in group.appended:
            if topic.limits.relative:
                topic.limits.published(now)
            ledgers = topic.ledgers
            if topic.subscriptions or ledgers.trim_due or topic.ledger.total_bytes >= ledgers.unsubscribed.count_at:
                topic.confirmed(now)

    def failed(self, batch: Batch, now: Now, error: Exception) -> None:
        """Handle a failed commit: drop its entries and retry the other records."""
        group, behind = self.in_flight, self.open
        assert group is not None and group.batch is batch
        log.error("a commit of %d bytes failed, its messages are rejected: %s", batch.size, error)
        text = f"a commit of {batch.size:,} bytes failed, its messages are rejected: {error}"
        self._events.report("commit-failed", "", text, now, bytes=batch.size)
        self.times.count_failure()
        self.in_flight = None
        retry = self.open = CommitGroup(batch.position)
        for part in (*_other_records(group.batch), *_other_records(behind.batch)):
            retry.batch.add(part)
        retry.cursors |= behind.cursors
        retry.callbacks = group.callbacks + behind.callbacks
        retry.urgent = True
        retry.rows = group.rows or behind.rows
        self.housekeeping.commit_failed(batch.position)
        if isinstance(error, StoreFull):
            self.housekeeping.store_is_full(str(error), now)
        else:
            self._not_before = now.monotonic + RETRY_SECONDS
            self._timers.at(self._not_before, _wake)
        refusal = PersistenceError(f"The message could not be stored: {error}")
        for stored in [each.stored for each in group.sequenced | behind.sequenced]:
            stored.sequences.roll_back()
            if stored.in_use:
                self._dirty_sequences[stored.sequences] = None
        for topic in group.appended | behind.appended:
            self._roll_back(topic)
        for _, lost in group.copied + behind.copied:
            lost(refusal, now)
        for producer, sequence_id, _, _, _ in group.receipts + behind.receipts:
            producer.refuse(sequence_id, refusal, now)
        for producer in dict.fromkeys(receipt[0] for receipt in group.receipts + behind.receipts):
            producer.disconnect(now)
        for mover in dict.fromkeys((*group.moves, *behind.moves)):
            mover.not_moved([*group.moves.get(mover, ()), *behind.moves.get(mover, ())], now)

    def _roll_back(self, topic: CommittedTopic) -> None:
        changed = topic.ledger.roll_back()
        if not topic.stored.in_use:
            return  # deleted since
        if topic.stored.open:
            ledger = topic.ledger
            topic.stored.open.roll_back(ledger.last_confirmed, (ledger.confirmed_messages, ledger.confirmed_bytes))
            self.open_changed(topic.stored.open)
        if topic.stored.delays.roll_back(topic.ledger.last_confirmed):
            self.delays_changed(topic.stored.delays)
            topic.delays_lost()
        for info in changed:
            self.put_row(ledger_key(topic.ledger.topic_id, info.ledger_id), ledger_row(topic.ledger, info))


def _other_records(batch: Batch) -> list[bytes]:
    """Return the records of a batch that do not belong to an entry; an entry is two parts, header and body."""
    records = []
    parts = iter(batch.parts)
    for part in parts:
        kind, flags = part[0], part[1]
        if kind == RecordKind.ENTRY:
            next(parts)
        elif kind == RecordKind.SEQUENCE:
            if flags & FORGOTTEN:
                records.append(part)
        elif kind not in _MOVABLE or not flags & MOVED:
            records.append(part)
    return records


def _waited(group: CommitGroup) -> float:
    """Return how many seconds the oldest entry of a group waited until the group was taken.

    Entries have wall-clock times only, and that clock may have been moved: the result is capped at the group's age.
    """
    for entries in group.appended.values():
        waited = (group.batch.wall - entries[0].append_time) / 1000
        return min(max(waited, 0.0), group.taken - group.opened)
    return 0.0


def _send_receipts(group: CommitGroup, now: Now) -> None:
    for producer, sequence_id, highest_sequence_id, ledger_id, entry_id in group.receipts:
        producer.receipt(sequence_id, highest_sequence_id, ledger_id, entry_id, now)


def _run(callbacks: list[Callback], now: Now) -> None:
    for callback in callbacks:
        callback(now)


def _wake(now: Now) -> None:
    """Do nothing: the timer only makes the shell call ``take_batch``."""
