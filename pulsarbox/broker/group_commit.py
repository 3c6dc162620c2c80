"""Group commit: what one turn changed becomes durable together, and sets free together what waited for it.

One group gathers while at most one is being written. Receipts, ack responses and every reply that promises durability
wait in the group that holds the change.

When a commit fails, the entries of that group and of the one behind it are given up: their producers get an error for
each message and are closed, so that nothing overtakes what has failed. All other records (acknowledgements, metadata)
go into the next attempt.

A dead letter is an entry and the acknowledgement of another: ``move`` puts both into one group. The cursor is told when
they are durable, so that there is nothing to take back where they are not. A job that puts dead letters back does the
same the other way.
"""

import logging
from collections.abc import Callable
from itertools import islice
from typing import TYPE_CHECKING, Any, Protocol

from pulsarbox.broker.events import Events
from pulsarbox.broker.housekeeping import Housekeeping
from pulsarbox.broker.stats.commit_stats import CommitTimes
from pulsarbox.broker.tail_cache import TailCache
from pulsarbox.broker.timers import Timers
from pulsarbox.clock import Now
from pulsarbox.config import Settings
from pulsarbox.errors import PersistenceError, StoreFull
from pulsarbox.storage.catalog import IDS, Row, aborted_key, acks_key, ledger_key, sequence_key
from pulsarbox.storage.cursor import ManagedCursor
from pulsarbox.storage.delayed_index import Delays, forget_delays
from pulsarbox.storage.format import FORGOTTEN, MOVED, RecordKind
from pulsarbox.storage.journal import Batch
from pulsarbox.storage.ledger import ManagedLedger
from pulsarbox.storage.record import Entry, pack_entry
from pulsarbox.storage.recovery import Store, StoredTopic, ledger_row
from pulsarbox.storage.transactions import OpenEntries

if TYPE_CHECKING:
    from pulsarbox.broker.topic.deduplication import Deduplication
    from pulsarbox.broker.topic.internal_publisher import Posted
    from pulsarbox.broker.topic.producer import Producer
    from pulsarbox.broker.topic.topic import PersistentTopic

log = logging.getLogger(__name__)

Callback = Callable[[Now], None]

LAZY_SECONDS = 0.010
"""How long acknowledgements that nobody waits for may gather before they cost a sync."""
ENOUGH_RECEIPTS = 32
ENOUGH_BYTES = 1 << 20
"""From these on a batch need not wait for the turn to end (measured: messages one by one 5 % faster than at the end of
the turn; with fewer bytes, batched messages 8 % slower)."""
RETRY_SECONDS = 0.1
"""Pause after a failed commit."""
NOTED_AT_ONCE = 500
"""Ledgers, cursors and tables of sequence ids whose rows one turn brings up to date for a checkpoint, 7 us each; more
of them are noted with the batches before."""
_MOVABLE = (RecordKind.ACKED, RecordKind.BATCH_ACKED)
"""Kinds of records that may be marked as moved."""


class Move(Protocol):
    """What one entry, or the messages of a batch, goes to another topic with."""

    def acked(self, cursor_id: int) -> bytes:
        """The record of its acknowledgement, marked as one that is stored with the batch it is in or not at all."""


class Mover(Protocol):
    """Who moves entries, and is to hear what becomes of that."""

    def moved(self, moves: list[Any], now: Now) -> None:
        """They are durable."""

    def not_moved(self, moves: list[Any], now: Now) -> None:
        """They could not be stored."""


class Group:
    """A batch, and what waits for it."""

    __slots__ = (
        "appended", "batch", "callbacks", "copied", "cursors", "lazy_until", "moves", "opened", "receipts", "rows",
        "sequenced",
        "taken", "urgent",
    )  # fmt: skip

    def __init__(self, position: int) -> None:
        self.batch = Batch(position)
        self.receipts: list[tuple[Producer | Posted, int, int, int, int]] = []
        """Producer, sequence id, highest sequence id, ledger, entry. Of a duplicate there is no entry in the batch."""
        self.appended: dict[PersistentTopic, list[Entry]] = {}
        self.sequenced: dict[Deduplication, None] = {}
        """Of topics to which something was published with deduplication."""
        self.cursors: dict[ManagedCursor, None] = {}
        """Cursors with changes to write."""
        self.callbacks: list[Callback] = []
        self.moves: dict[Mover, list[Move]] = {}
        """Messages that go from one topic to another, by who moves them."""
        self.copied: list[tuple[Callback, Callable[[Exception, Now], None]]] = []
        """Who is to hear that the entries are stored which the box has written itself, or that they are not."""
        self.urgent = False
        self.rows = False
        """Rows of the metadata are among the records."""
        self.lazy_until = 0.0
        self.opened = self.taken = 0.0
        """When it was begun and when it was handed out, in seconds of the monotonic clock."""


class GroupCommit:
    """The open group, the one being written, and the checkpoint that is due."""

    def __init__(self, store: Store, settings: Settings, timers: Timers, events: Events) -> None:
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
        """With how many batches more something is noted before the checkpoint that is due; None while none is."""
        self.housekeeping = Housekeeping(store, settings, timers, events)
        self.tail_cache = TailCache(settings.managedLedgerCacheSizeMB << 20)
        self.times = CommitTimes()
        self.open = Group(store.next_position)
        self.in_flight: Group | None = None
        ids = store.ids()
        self._next_id: int = ids["next"]
        self.boot: int = ids["boot"] + 1
        self._ids_changed = True
        # No name that is made with the count of starts may be told before that count is durable.
        self.open.urgent = self.open.rows = True

    @property
    def full(self) -> bool:
        """Whether the open batch is full: then nothing more should be read from clients."""
        return self.open.batch.size >= self._max_batch

    @property
    def is_worth_a_sync(self) -> bool:
        """Whether so much has gathered that more would make a sync hardly cheaper for each."""
        return len(self.open.receipts) >= ENOUGH_RECEIPTS or self.open.batch.size >= ENOUGH_BYTES

    @property
    def metadata_pending(self) -> bool:
        """Whether rows were written that are not durable yet."""
        return self.open.rows or (self.in_flight is not None and self.in_flight.rows)

    @property
    def idle(self) -> bool:
        """Whether nothing waits to be written."""
        group = self.open
        waiting = group.batch or group.cursors or group.callbacks or group.receipts
        return self.in_flight is None and not waiting and self.housekeeping.idle

    # What the state machines call

    def new_id(self) -> int:
        """A fresh id for a topic, a ledger or a cursor; it becomes durable with what is stored under it."""
        self._next_id += 1
        self._ids_changed = True
        return self._next_id - 1

    def put_row(self, key: str, row: Row | None) -> None:
        """Write a row of the metadata, or delete it with None."""
        self._store.catalog.put(self.open.batch, key, row)
        self.open.urgent = self.open.rows = True

    def after_commit(self, callback: Callback) -> None:
        """Call back when everything that is changed so far is durable."""
        self.open.callbacks.append(callback)
        self.open.urgent = True

    def copy(self, entries: list[Entry], stored: Callback, lost: Callable[[Exception, Now], None]) -> None:
        """Write entries of a ledger that is no topic's own, at once; one of the two is called when that has ended."""
        for entry in entries:
            self.open.batch.add_entry(entry.ledger_id, entry.entry_id, pack_entry(entry), entry.body)
        self.open.copied.append((stored, lost))
        self.open.urgent = True

    def ledger_changed(self, ledger: ManagedLedger) -> None:
        """Write the ledger's rows with the next checkpoint. Where ``changed`` says so already, that is known."""
        ledger.changed = True
        self._dirty_ledgers[ledger] = None

    def cursor_changed(self, cursor: ManagedCursor, now: Now) -> None:
        """Write the cursor's changes, at the latest in some milliseconds."""
        if cursor.durable:
            group = self.open
            if not group.cursors:
                group.lazy_until = now.monotonic + LAZY_SECONDS
                if not group.urgent:
                    self._timers.at(group.lazy_until, _wake)
            group.cursors[cursor] = None

    def move(self, cursor: ManagedCursor, mover: Mover, move: Move) -> None:
        """What ``move`` is of is acknowledged with what was just put into the open batch, or not at all."""
        group = self.open
        for record in cursor.take_changes():  # what was before it (the cursor may have been reset) stays before it
            group.batch.add(record)
        self._dirty_cursors[cursor] = None
        group.batch.add(move.acked(cursor.cursor_id))
        group.moves.setdefault(mover, []).append(move)
        group.urgent = True

    def forget_cursor(self, cursor: ManagedCursor) -> None:
        """The cursor is deleted: nothing of it is written any more."""
        self.open.cursors.pop(cursor, None)
        self._dirty_cursors.pop(cursor, None)
        self._store.catalog.delete_all(acks_key(cursor.cursor_id))

    def sequences_changed(self, stored: StoredTopic) -> None:
        """What is known of the topic's producers is not what their rows say; the next checkpoint writes them."""
        self._dirty_sequences[stored.sequences] = None

    def delays_changed(self, delays: Delays) -> None:
        """Write the rows of a topic's delayed entries with the next checkpoint."""
        self._dirty_delays[delays] = None

    def open_changed(self, entries: OpenEntries) -> None:
        """Write the rows of a topic's open transactions with the next checkpoint."""
        self._dirty_open[entries] = None

    def forget_producers(self, stored: StoredTopic, names: list[str]) -> None:
        """Forget the sequence ids of producers; durable with the next commit."""
        for name in names:
            self.open.batch.add(stored.sequences.forget(name))
        self.sequences_changed(stored)
        # A client that is told nothing is known of it starts to count anew: that is to be durable before.
        self.open.urgent = self.open.rows = True

    def drop_ledger(self, ledger: ManagedLedger, ledger_id: int, now: Now) -> None:
        """A ledger of a topic is no more; its disk comes back with the checkpoint after the next."""
        self.put_row(ledger_key(ledger.topic_id, ledger_id), None)
        self._store.topics[ledger.topic_id].delays.drop(ledger_id)
        self._store.catalog.delete_all(aborted_key(ledger.topic_id, ledger_id))
        self.housekeeping.ledger_dropped(ledger_id, now)

    def forget_topic(self, stored: StoredTopic) -> None:
        """The topic is deleted, and all its rows."""
        self._dirty_ledgers.pop(stored.ledger, None)
        self._dirty_sequences.pop(stored.sequences, None)
        self._dirty_delays.pop(stored.delays, None)
        self._store.catalog.delete_all(sequence_key(stored.topic_id))
        forget_delays(self._store.catalog, stored.topic_id)
        self._dirty_open.pop(stored.open, None)
        self._store.forget_transactions(stored.topic_id)
        self._store.forget(stored)

    def unload(self, stored: StoredTopic) -> None:
        """Let a topic be rows again. Nothing of it may be waiting for a commit."""
        self._dirty_ledgers.pop(stored.ledger, None)
        for cursor in stored.cursors.values():
            self._dirty_cursors.pop(cursor, None)
        self._dirty_sequences.pop(stored.sequences, None)
        self._dirty_delays.pop(stored.delays, None)
        self._dirty_open.pop(stored.open, None)
        self._store.unload(stored)

    def waits_for(self, cursor: ManagedCursor) -> bool:
        """Whether changes of the cursor are still to be packed."""
        return cursor in self.open.cursors

    def ask_checkpoint(self) -> None:
        """Write a checkpoint with the next batch, however little there is to write."""
        self.housekeeping.ask_checkpoint()

    # What the shell calls, through the broker

    def take(self, now: Now) -> Batch | None:
        """The next batch to commit; None while one is being written or nothing is due."""
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
            self.open = Group(batch.position)
            self.housekeeping.committed(batch.position)  # nothing is left to be said of what was before
            _send_receipts(group, now)  # of duplicates that had to wait for what came before them
            _run(group.callbacks, now)
            return self.take(now) if self.open.urgent else None  # what they changed is due at once
        if self._ids_changed:
            self._store.catalog.put(batch, IDS, {"next": self._next_id, "boot": self.boot})
            self._ids_changed = False
        batch.wall = now.wall
        if self.housekeeping.appended(batch.size) and self._is_noted():
            self._checkpoint(batch.position)
            if group.moves:  # its rows do not have what the cursors are to hear of: the next batch says that once more
                self.housekeeping.needs(batch.position + 1)
        group.taken = now.monotonic
        self.in_flight = group
        self.open = Group(batch.position + 1)
        self.open.opened = now.monotonic
        return batch

    def _pack_cursors(self, group: Group) -> None:
        topics = self._store.topics
        for cursor in list(group.cursors):
            stored = topics.get(cursor.ledger.topic_id)
            if stored is None or stored.cursors.get(cursor.cursor_id) is not cursor:
                del group.cursors[cursor]  # deleted, and an answer to an older read has changed it since
                continue
            for record in cursor.take_changes():
                group.batch.add(record)
        self._dirty_cursors.update(group.cursors)

    def _pack_sequences(self, group: Group, now: Now) -> None:
        # Once a topic: deduplication that was turned off and on again stands there twice.
        for stored in dict.fromkeys(each.stored for each in group.sequenced):
            if stored.in_use:  # it may have been deleted since
                for record in stored.sequences.take_changes(now.wall):
                    group.batch.add(record)
                self._dirty_sequences[stored.sequences] = None

    def _is_noted(self) -> bool:
        """A checkpoint is due: whether what is left to be noted is little enough for the turn that makes it.

        Else some of it is noted now, what changed longest ago first. What changes again is noted again; where that is
        as much as was noted, the checkpoint is made all the same when everything had its turn.
        """
        left = self._notes_left
        if left is None:
            many = len(self._dirty_ledgers) + len(self._dirty_cursors) + len(self._dirty_sequences)
            left = (many - 1) // NOTED_AT_ONCE
        if left <= 0:
            self._notes_left = None
            return True
        self._notes_left = left - 1
        self.housekeeping.ask_checkpoint()  # it does not wait for something else to be written
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
            self._store.unload(stored)  # it was in memory for the sake of the log alone
        self.housekeeping.made(position)

    def committed(self, batch: Batch, now: Now) -> None:
        """The batch is durable: confirm its entries, send what waited, let the consumers have them."""
        group = self.in_flight
        assert group is not None and group.batch is batch
        self.in_flight = None
        self.housekeeping.committed(batch.position)
        self.times.committed(now.monotonic - group.taken, _waited(group), len(group.receipts), batch.size)
        self.times.sample(group.appended, now)
        # Topics without subscriptions are passed by here and below: with 1000 topics of an entry each, asking them
        # would cost 5 and 4 % of all that publishing costs the core (measured: 0.4 and 0.3 us of 9).
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
        """The batch is not stored, nothing of it: give up its entries, try the rest again."""
        group, behind = self.in_flight, self.open
        assert group is not None and group.batch is batch
        log.error("a commit of %d bytes failed, its messages are refused: %s", batch.size, error)
        text = f"a commit of {batch.size:,} bytes failed, its messages are refused: {error}"
        self._events.tell("commit-failed", "", text, now, bytes=batch.size)
        self.times.failed += 1
        self.in_flight = None
        retry = self.open = Group(batch.position)
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

    def _roll_back(self, topic: "PersistentTopic") -> None:
        changed = topic.ledger.roll_back()
        if not topic.stored.in_use:
            return  # deleted since
        if topic.stored.open:
            ledger = topic.ledger
            topic.stored.open.roll_back(ledger.last_confirmed, (ledger.confirmed_messages, ledger.confirmed_bytes))
            self.open_changed(topic.stored.open)
        if topic.stored.delays.roll_back(topic.ledger.last_confirmed):
            self.delays_changed(topic.stored.delays)
            topic.backlog.full_at = 0  # the next entry has it judged anew
        for info in changed:
            self.put_row(ledger_key(topic.ledger.topic_id, info.ledger_id), ledger_row(topic.ledger, info))


def _other_records(batch: Batch) -> list[bytes]:
    """The records of a batch that do not go with an entry; an entry stands as two parts, its header and its bytes."""
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


def _waited(group: Group) -> float:
    """How many seconds the oldest entry of a group waited until the group was handed out.

    Entries know the wall clock alone, which may have been moved meanwhile: no longer than the group was open.
    """
    for entries in group.appended.values():
        waited = (group.batch.wall - entries[0].append_time) / 1000
        return min(max(waited, 0.0), group.taken - group.opened)
    return 0.0


def _send_receipts(group: Group, now: Now) -> None:
    for producer, sequence_id, highest_sequence_id, ledger_id, entry_id in group.receipts:
        producer.receipt(sequence_id, highest_sequence_id, ledger_id, entry_id, now)


def _run(callbacks: list[Callback], now: Now) -> None:
    for callback in callbacks:
        callback(now)


def _wake(now: Now) -> None:
    """A timer that only makes the shell look for a batch that has fallen due."""
