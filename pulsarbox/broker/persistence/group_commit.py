"""Group commit: the changes of one turn become durable together and release together what waited for them.

One group fills while at most one is being written. Receipts, ack responses and every reply that promises durability
wait in the group that holds the change.

If a commit fails, the entries of that group and of the open one are dropped: their producers get an error for each
message and are closed, so that no later message overtakes a failed one. All other records (acknowledgements, metadata)
go into the next attempt.

Moving a message to a dead letter topic takes an entry there and an acknowledgement here: ``move`` puts both into one
group. The cursor is updated once they are durable, so a failure leaves nothing to undo. A job that puts dead letters
back does the same in reverse.

In an ensemble of data directories, parts of a group complete earlier than others, because they wait for fewer copies.
If a batch cannot get all copies that it asked for, but enough for some of its parts, it stays in the log: the other
parts take effect too, but their messages are rejected.
"""

import logging
from collections.abc import Callable
from itertools import islice

from pulsarbox.broker.compression_policy import CompressionPolicy
from pulsarbox.broker.events import Events
from pulsarbox.broker.persistence.commit_group import Callback, CommitGroup, CommittedTopic, EntryMove, Mover
from pulsarbox.broker.persistence.housekeeping import Housekeeping
from pulsarbox.broker.persistence.replication import CopyNumbers, Replication
from pulsarbox.broker.persistence.tail_cache import TailCache
from pulsarbox.broker.stats.commit_stats import CommitTimes
from pulsarbox.broker.timers import Timers
from pulsarbox.clock import Now
from pulsarbox.config import Settings
from pulsarbox.errors import PersistenceError, StoreFull, TooFewCopies
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


class GroupCommit:
    """The open group, the group in flight, and the objects to write with the next checkpoint."""

    def __init__(
        self,
        store: Store,
        settings: Settings,
        timers: Timers,
        events: Events,
        at_rest: CompressionPolicy,
        now: Now,
        replication: Replication | None = None,
    ) -> None:
        """``replication``: the copies that batches ask for; None with one data directory."""
        self.replication = replication
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
        is_short = bool if replication is None else replication.is_short
        self.housekeeping = Housekeeping(store, settings, timers, events, at_rest, is_short)
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
    def refusal(self) -> str | None:
        """Why entries with the box's number of copies cannot be stored; None if they can."""
        refusal = self.housekeeping.refusal
        if refusal is None and self.replication is not None:
            refusal = self.replication.refusal(self.replication.default)
        return refusal

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
        waiting = group.batch or group.cursors or group.callbacks or group.metadata_callbacks or group.receipts
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

    def after_metadata(self, callback: Callback) -> None:
        """Call back once all metadata changes and acknowledgements so far are durable; entries may be durable later."""
        if self.replication is None:
            self.after_commit(callback)
        else:
            self.open.metadata_callbacks.append(callback)
            self.open.urgent = True

    def copy(
        self,
        entries: list[Entry],
        stored: Callback,
        lost: Callable[[Exception, Now], None],
        copies: CopyNumbers | None = None,
    ) -> None:
        """Write entries of a ledger that no topic appends to; then call ``stored`` or ``lost``.

        Lost entries may be in the log nevertheless: drop their ledger. ``copies``: the box's number if None.
        """
        for entry in entries:
            self.open.batch.add_entry(entry.ledger_id, entry.entry_id, pack_entry(entry), entry.body)
        self.open.copied.append((stored, lost, copies))
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
        if self.replication is not None:
            group.ask_for_copies(self.replication, now)
        if group.sequenced:
            self._pack_sequences(group, now)
        if not batch and not self._ids_changed:
            self.open = CommitGroup(batch.position)
            self.housekeeping.committed(batch.position)  # nothing remains to be logged for earlier batches
            group.send_receipts(now)  # of duplicates that waited for earlier entries
            group.run_callbacks(now)
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

    def copies_durable(self, batch: Batch, copies: int, now: Now) -> None:
        """Complete the parts of the batch in flight that wait for ``copies``, before its commit is complete."""
        group = self.in_flight
        if group is not None and group.batch is batch and self.replication is not None:
            self._complete(group.split_off(copies, self.replication.default), now)

    def committed(self, batch: Batch, now: Now) -> None:
        """Complete a commit: confirm its entries, send receipts, run callbacks and dispatch to consumers."""
        self._complete(self._landed(batch, now), now)

    def _landed(self, batch: Batch, now: Now) -> CommitGroup:
        """End the flight of the batch, which is in the log."""
        group = self.in_flight
        assert group is not None and group.batch is batch
        self.in_flight = None
        self.housekeeping.committed(batch.position)
        if self.replication is not None:
            self.housekeeping.watch_room(now)
        self.times.committed(now.monotonic - group.taken, group.waited(), len(group.receipts), batch.size)
        return group

    def _complete(self, group: CommitGroup, now: Now) -> None:
        """Apply that a group, or a part of one, is durable."""
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
        group.send_receipts(now)
        group.run_callbacks(now)
        for stored, _, _ in group.copied:
            stored(now)
        for topic in group.appended:
            if topic.limits.relative:
                topic.limits.published(now)
            ledgers = topic.ledgers
            if topic.subscriptions or ledgers.trim_due or topic.ledger.total_bytes >= ledgers.unsubscribed.count_at:
                topic.confirmed(now)

    def _stored_in_part(self, batch: Batch, now: Now, copies: int, reason: str) -> None:
        """Complete a commit with fewer copies than its parts asked for.

        The batch stays in the log, so everything in it takes effect. Messages that wait for more copies are rejected,
        though they may be delivered, as after other failures.
        """
        assert self.replication is not None
        wanted = batch.ack_quorum
        text = f"a commit has {copies} of {wanted} copies, messages that wait for more are rejected: {reason}"
        log.error("%s", text)
        self._events.report("too-few-copies", "", text, now, copies=copies, wanted=wanted)
        group = self._landed(batch, now)
        self._complete(group.split_off(copies, self.replication.default), now)
        refusal = PersistenceError(f"The message could not be stored in enough data directories: {reason}")
        lost, group.copied = group.copied, []
        producers = dict.fromkeys(receipt[0] for receipt in group.receipts)
        refused, group.receipts = group.receipts + [each for each in self.open.receipts if each[0] in producers], []
        self.open.receipts = [each for each in self.open.receipts if each[0] not in producers]
        for topic, entries in group.appended.items():
            if topic.copies is not None:
                topic.copies.fell_short(entries)
        self._complete(group, now)
        for _, call, _ in lost:
            call(refusal, now)
        for producer, sequence_id, _, _, _ in refused:
            producer.refuse(sequence_id, refusal, now)
        for producer in producers:
            producer.disconnect(now)

    def failed(self, batch: Batch, now: Now, error: Exception) -> None:
        """Handle a failed commit: drop its entries and retry the other records."""
        group, behind = self.in_flight, self.open
        assert group is not None and group.batch is batch
        copies = max(group.released, error.copies if isinstance(error, TooFewCopies) else 0)
        if copies:  # parts of the batch may be confirmed, so that it cannot be dropped
            self._stored_in_part(batch, now, copies, str(error))
            return
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
        retry.metadata_callbacks = group.metadata_callbacks + behind.metadata_callbacks
        retry.urgent = True
        retry.rows = group.rows or behind.rows
        self.housekeeping.commit_failed(batch.position)
        if isinstance(error, StoreFull):
            self.housekeeping.store_is_full(str(error), now)
        else:
            self._not_before = now.monotonic + RETRY_SECONDS
            self._timers.at(self._not_before, _wake)
            self.housekeeping.watch_room(now)
        refusal = PersistenceError(f"The message could not be stored: {error}")
        for stored in [each.stored for each in group.sequenced | behind.sequenced]:
            stored.sequences.roll_back()
            if stored.in_use:
                self._dirty_sequences[stored.sequences] = None
        for topic in group.appended | behind.appended:
            self._roll_back(topic)
        for _, lost, _ in group.copied + behind.copied:
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


def _wake(now: Now) -> None:
    """Do nothing: the timer only makes the shell call ``take_batch``."""
