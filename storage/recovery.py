"""Recovery of the state at the last durable batch: the checkpoint's rows, then the log after it.

Replay reproduces the live state exactly: records carry results (positions, totals), never instructions whose outcome
depends on when they run. Only topics that occur in the log are loaded.
"""

import json
from array import array

from pulsarbox.errors import PersistenceError
from pulsarbox.storage.catalog import (
    IDS,
    Catalog,
    Row,
    aborted_key,
    acks_key,
    cursor_key,
    delays_key,
    ledger_key,
    open_key,
    pending_key,
    sequence_key,
    topic_key,
    txn_key,
)
from pulsarbox.storage.compacted_ledger import is_kept
from pulsarbox.storage.cursor import ManagedCursor
from pulsarbox.storage.delayed_index import Delays, forget_delays
from pulsarbox.storage.engine import Recovery
from pulsarbox.storage.format import BATCH_HEADER, ENTRY_HEADER, RECORD_PREFIX, EntryField, EntryFlag, RecordKind
from pulsarbox.storage.ledger import LedgerInfo, ManagedLedger
from pulsarbox.storage.record import (
    AckedRange,
    Entry,
    MarkDelete,
    Meta,
    Position,
    Record,
    SequenceId,
    unpack_entry,
    unpack_record,
)
from pulsarbox.storage.sequence_ids import SequenceIds
from pulsarbox.storage.transactions import OpenEntries, TxnId, aborted_of

TRANSACTION = EntryFlag.TRANSACTION
_FLAGS, _LEDGER_ID, _ENTRY_ID = EntryField.FLAGS, EntryField.LEDGER_ID, EntryField.ENTRY_ID
_APPEND_TIME, _DELIVER_AT = EntryField.APPEND_TIME, EntryField.DELIVER_AT


class StoredTopic:
    """Durable state of one topic in memory: ledger, cursors by id, sequence ids, delayed entries, open transactions."""

    def __init__(self, name: str, topic_id: int, catalog: Catalog) -> None:
        self.name = name
        self.topic_id = topic_id
        self.ledger = ManagedLedger(topic_id)
        self.cursors: dict[int, ManagedCursor] = {}
        self.sequences = SequenceIds(topic_id)
        self.delays = Delays(topic_id, catalog)
        self.open = OpenEntries(topic_id, self._limited)
        self.has_aborted = False
        """Whether there are rows of entries of aborted transactions."""
        self._catalog = catalog
        self.in_use = False
        """Whether the topic is in use and must stay in memory."""

    def _limited(self, at: tuple[int, int]) -> None:
        self.ledger.read_limit = at

    def visible_messages(self) -> int:
        """Return the number of readable messages: before the first open transaction, and not of an aborted one."""
        first, readable = next(iter(self.ledger.ledgers.values()), None), self.open.readable
        if first is None:
            return 0
        confirmed = self.ledger.confirmed_messages
        end = confirmed if readable is None else min(readable[1], confirmed)
        runs = aborted_of(self._catalog, self.topic_id) if self.has_aborted else ()
        aborted = sum(run.messages_after - run.messages_before for run in runs if run.messages_after <= end)
        return max(end - first.messages_before, 0) - aborted

    def aborted_after(self, mark: Position, messages: int) -> int:
        """Return the number of aborted messages after a mark-delete position with the given message total."""
        if not self.has_aborted:
            return 0
        ledgers = [each for each in self.ledger.ledgers if each >= mark.ledger_id]
        runs = [run for each in ledgers for run in aborted_of(self._catalog, self.topic_id, each)]
        return sum(max(run.messages_after - max(run.messages_before, messages), 0) for run in runs)

    def skip_aborted(self, cursor: ManagedCursor) -> None:
        """Count aborted entries after the new position of a reset cursor as acknowledged."""
        if self.has_aborted:
            for ledger_id in [each for each in self.ledger.ledgers if each >= cursor.mark_delete.ledger_id]:
                for run in aborted_of(self._catalog, self.topic_id, ledger_id):
                    cursor.skip(run)


class Store:
    """The durable state: all rows through the catalog, and the loaded topics in memory."""

    def __init__(self, recovery: Recovery) -> None:
        self.catalog = Catalog(recovery.rows)
        self.compressed = recovery.compressed
        self.unpacked = recovery.unpacked
        self.topics: dict[int, StoredTopic] = {}
        self.next_position = recovery.next_position
        self.replayed_ledgers: dict[ManagedLedger, None] = {}
        """Ledgers changed by the log after the checkpoint; the next checkpoint must include them."""
        self.replayed_cursors: dict[ManagedCursor, None] = {}
        self.replayed_sequences: dict[SequenceIds, None] = {}
        self.replayed_delays: dict[Delays, None] = {}
        self.replayed_open: dict[OpenEntries, None] = {}
        self.dropped: list[int] = []
        """Ledgers deleted since the last checkpoint."""
        self.replayed_bytes = 0
        self._replayed_runs: dict[int, tuple[int, int, int, int]] = {}
        """First entry, number of entries, bytes, offset of the last one, by ledger, of the batch being replayed."""
        self._delayed: dict[int, tuple[array[int], array[int], array[int]]] = {}
        """Delayed entries of the log by ledger, with times and bytes: sorting them once takes half the time."""
        self._owners: dict[int, StoredTopic] = {}
        for batch in recovery.batches:
            self.replayed_bytes += len(batch)
            self._replay(batch)
        self._replay_delays()
        self._owners.clear()
        for cursor in self.replayed_cursors:
            cursor.absorb()

    def ids(self) -> Row:
        """Return the counter of ids, and of starts."""
        return self.catalog.get(IDS) or {"next": 1, "boot": 0}

    # Topics

    def topic(self, name: str) -> StoredTopic | None:
        """Return the topic, loaded if necessary, or None if it does not exist."""
        row = self.catalog.get(topic_key(name))
        if row is None:
            return None
        return self.topics.get(row["id"]) or self._load(name, row["id"])

    def create(self, name: str, topic_id: int) -> StoredTopic:
        """Create a new topic in memory; the caller writes its rows."""
        stored = self.topics[topic_id] = StoredTopic(name, topic_id, self.catalog)
        return stored

    def forget(self, stored: StoredTopic) -> None:
        """Remove a deleted topic, whose rows are already deleted."""
        self.topics.pop(stored.topic_id, None)

    def unload(self, stored: StoredTopic) -> None:
        """Write a topic back to its rows and unload it. None of its changes may be waiting for a commit."""
        self.note_ledger(stored.ledger)
        for cursor in stored.cursors.values():
            self.note_cursor(cursor)
        self.note_sequences(stored.sequences)
        self.note_delays(stored.delays)
        self.note_open(stored.open)
        self.topics.pop(stored.topic_id, None)

    def note_ledger(self, ledger: ManagedLedger) -> None:
        """Update the rows of the topic's newest ledgers to what is appended."""
        for info in list(ledger.ledgers.values())[-2:]:
            self.catalog.note(ledger_key(ledger.topic_id, info.ledger_id), ledger_row(ledger, info))

    def note_cursor(self, cursor: ManagedCursor) -> None:
        """Update the rows of a cursor's acknowledgements."""
        for key, value in cursor.dirty_rows().items():
            self.catalog.note(key, value)

    def note_sequences(self, sequences: SequenceIds) -> None:
        """Update the rows of a topic's sequence ids to what is appended."""
        for key, row in sequences.dirty_rows().items():
            self.catalog.note(key, row)

    def note_delays(self, delays: Delays) -> None:
        """Update the rows of a topic's delayed entries to what is appended."""
        for key, row in delays.dirty_rows().items():
            self.catalog.note(key, row)

    def note_open(self, entries: OpenEntries) -> None:
        """Update the rows of a topic's open transactions to what is appended."""
        for key, row in entries.dirty_rows().items():
            self.catalog.note(key, row)

    def _load(self, name: str, topic_id: int) -> StoredTopic:
        stored = self.create(name, topic_id)
        for key, value in self.catalog.items(ledger_key(topic_id)):
            restore_ledger(stored.ledger, int(key.rpartition("/")[2], 16), json.loads(value))
        for key, value in self.catalog.items(cursor_key(topic_id)):
            cursor_id = int(key.rpartition("/")[2], 16)
            cursor = stored.cursors[cursor_id] = ManagedCursor(cursor_id, json.loads(value)["name"], stored.ledger)
            for _, packed in self.catalog.items(acks_key(cursor_id)):
                cursor.restore(packed)
        prefix = sequence_key(topic_id)
        rows = {key[len(prefix) :]: json.loads(value) for key, value in self.catalog.items(prefix)}
        if rows:
            stored.sequences.restore(rows)
        for key, value in self.catalog.items(delays_key(topic_id)):
            stored.delays.restore(int(key.rpartition("/")[2], 16), json.loads(value))
        for key, value in self.catalog.items(open_key(topic_id)):
            stored.open.restore(_txn_of(key), json.loads(value))
        stored.has_aborted = next(self.catalog.items(aborted_key(topic_id)), None) is not None
        return stored

    # Log replay

    def _replay(self, batch: bytes) -> None:
        """Apply all records of a verified batch. Only the last entry of each run is decoded; the others are skipped."""
        offset, end = BATCH_HEADER.size, len(batch)
        runs = self._replayed_runs
        while offset < end:
            kind, _, header_size, body_size = RECORD_PREFIX.unpack_from(batch, offset)
            if kind == RecordKind.ENTRY:
                fields = ENTRY_HEADER.unpack_from(batch, offset)
                ledger_id, entry_id, deliver_at = fields[_LEDGER_ID], fields[_ENTRY_ID], fields[_DELIVER_AT]
                if deliver_at > fields[_APPEND_TIME]:
                    delayed = self._delayed.get(ledger_id) or self._new_delayed(ledger_id)
                    delayed[0].append(entry_id)
                    delayed[1].append(deliver_at)
                    delayed[2].append(body_size)
                if fields[_FLAGS] & TRANSACTION:
                    self._replay_open(fields)
                first, count, size, _ = runs.get(ledger_id, (entry_id, 0, 0, 0))
                if first + count != entry_id:
                    raise PersistenceError(f"the log has entry {ledger_id}:{entry_id}, expected {first + count}")
                runs[ledger_id] = (first, count + 1, size + body_size, offset)
            else:
                record = unpack_record(batch, offset)
                if record is not None:
                    self._apply(batch, record)
            offset += header_size + body_size
        self._replay_runs(batch)

    def _replay_runs(self, batch: bytes) -> None:
        for ledger_id, (first, count, size, last) in self._replayed_runs.items():
            stored = self._owner(ledger_id)
            if stored is None:
                continue  # its topic or ledger is already deleted in the checkpoint
            expected = stored.ledger.ledgers[ledger_id].entries
            if first != expected:
                raise PersistenceError(f"the log has entry {ledger_id}:{first}, expected {expected}")
            stored.ledger.replay(unpack_entry(batch, last, verify=False), count, size)
            self.replayed_ledgers[stored.ledger] = None
        self._replayed_runs.clear()

    def _replay_open(self, header: tuple[int, ...]) -> None:
        """Replay an entry of a transaction that was open at the time."""
        txn = TxnId(header[EntryField.TXN_MOST], header[EntryField.TXN_LEAST])
        ledger_id, entry_id = header[_LEDGER_ID], header[_ENTRY_ID]
        row, stored = self.catalog.get(txn_key(*txn)), self._owner(ledger_id)
        if row is not None and row["state"] == "OPEN" and stored is not None:
            messages = header[EntryField.NUM_MESSAGES], header[EntryField.TOTAL_MESSAGES]
            size = header[EntryField.BODY_SIZE], header[EntryField.TOTAL_BYTES]
            stored.open.extend(txn, (ledger_id, entry_id), messages, size)
            self.replayed_open[stored.open] = None

    def _new_delayed(self, ledger_id: int) -> "tuple[array[int], array[int], array[int]]":
        new = self._delayed[ledger_id] = array("Q"), array("Q"), array("I")
        return new

    def _replay_delays(self) -> None:
        for ledger_id, delayed in self._delayed.items():
            stored = self._owner(ledger_id)
            if stored is not None:
                stored.delays.record_all(ledger_id, *delayed)
                self.replayed_delays[stored.delays] = None
        self._delayed.clear()

    def _owner(self, number: int) -> StoredTopic | None:
        """Return the topic that owns a topic id, ledger or cursor, or None if it is deleted."""
        stored = self._owners.get(number)
        if stored is None:
            name = self.catalog.owner(number)
            stored = self.topic(name) if name is not None else None
            if stored is None:
                return None
            self._owners[number] = stored
        known = number in stored.ledger.ledgers or number in stored.cursors or number == stored.topic_id
        return stored if known else None

    def _apply(self, batch: bytes, record: Record) -> None:
        if isinstance(record, Meta):
            self._replay_runs(batch)
            self._apply_row(record.key.decode(), record.value)
            return
        if isinstance(record, SequenceId):
            owner = self._owner(record.topic_id)
            if owner is not None:
                owner.sequences.replay(record)
                self.replayed_sequences[owner.sequences] = None
            return
        assert not isinstance(record, Entry)
        stored = self._owner(record.cursor_id)
        if stored is not None:
            cursor = stored.cursors[record.cursor_id]
            cursor.replay(record)
            if isinstance(record, MarkDelete) and record.reset:
                stored.skip_aborted(cursor)
            self.replayed_cursors[cursor] = None

    def _apply_row(self, key: str, value: bytes | None) -> None:
        kind, _, rest = key.partition("/")
        if kind == "topic" and value is None:
            self._drop_topic(self.catalog.get(key))
        elif kind in ("compacted", "compacting") and value is None and not is_kept(self.catalog, kind, rest):
            self.dropped.append(int(rest.rpartition("/")[2], 16))
        elif kind == "packagedata" and value is None:
            self.dropped.append(int(rest, 16))
        if kind not in ("ledger", "cursor"):
            self.catalog.apply(key, value)
            self._apply_transaction(kind, key, value)
            return
        topic_id, number = (int(part, 16) for part in rest.split("/"))
        name = self.catalog.owner(topic_id)
        stored = None if name is None else self.topic(name)
        self.catalog.apply(key, value)
        if kind == "ledger":
            self._apply_ledger(stored, number, value)
        else:
            self._apply_cursor(stored, number, value)

    def _apply_transaction(self, kind: str, key: str, value: bytes | None) -> None:
        if kind == "txn" and (value is None or json.loads(value)["state"] != "OPEN"):
            self.catalog.delete_all(pending_key(*_txn_of(key)))
        elif kind in ("open", "aborted"):
            stored = self._owner(int(key.split("/")[1], 16))
            if stored is None:
                return
            if kind == "open":
                stored.open.end(_txn_of(key))
                self.replayed_open[stored.open] = None
            elif value is not None:
                *_, ledger, first = key.split("/")
                run = AckedRange(int(ledger, 16), int(first, 16), *json.loads(value)["run"])
                stored.has_aborted = True
                for cursor in stored.cursors.values():
                    cursor.skip(run)
                    self.replayed_cursors[cursor] = None

    def _drop_topic(self, row: Row | None) -> None:
        if row is None:
            return
        self.catalog.delete_all(sequence_key(row["id"]))
        forget_delays(self.catalog, row["id"])
        self.forget_transactions(row["id"])
        self._owners.pop(row["id"], None)
        stored = self.topics.pop(row["id"], None)
        if stored is not None:
            self.replayed_ledgers.pop(stored.ledger, None)
            self.replayed_sequences.pop(stored.sequences, None)
            self.replayed_delays.pop(stored.delays, None)
            self.replayed_open.pop(stored.open, None)

    def forget_transactions(self, topic_id: int) -> None:
        """Delete the rows of a deleted topic's open and aborted entries."""
        self.catalog.delete_all(open_key(topic_id))
        self.catalog.delete_all(aborted_key(topic_id))

    def _apply_ledger(self, stored: StoredTopic | None, ledger_id: int, value: bytes | None) -> None:
        if value is None:
            self.dropped.append(ledger_id)
            if stored is not None:
                stored.delays.drop(ledger_id)
                self.catalog.delete_all(aborted_key(stored.topic_id, ledger_id))
            if stored is not None and len(stored.ledger.ledgers) > 1:  # the last one is deleted with its topic
                self._drop_ledger(stored, ledger_id)
            return
        assert stored is not None
        row = json.loads(value)
        ledger = stored.ledger
        info = ledger.ledgers.get(ledger_id)
        if info is None:
            restore_ledger(ledger, ledger_id, row)
            return
        info.closed = row["closed"]
        ledger.set_hole(info, _hole(row))
        if info.closed:
            info.last_batch, info.last_publish_time = row.get("last_batch", -1), row.get("last_publish_time", 0)
        if not info.entries:  # entries before it were discarded after a failed commit
            info.messages_before, info.bytes_before = row["messages_before"], row["bytes_before"]
            if info is ledger.current:
                ledger.total_messages = ledger.confirmed_messages = info.messages_before
                ledger.total_bytes = ledger.confirmed_bytes = info.bytes_before

    def _drop_ledger(self, stored: StoredTopic, ledger_id: int) -> None:
        if stored.ledger.drop(ledger_id) is not None:
            self.replayed_ledgers[stored.ledger] = None
            for cursor in stored.cursors.values():
                if cursor.forget_ledger(ledger_id):
                    self.replayed_cursors[cursor] = None

    def _apply_cursor(self, stored: StoredTopic | None, cursor_id: int, value: bytes | None) -> None:
        if value is None:
            self.catalog.delete_all(acks_key(cursor_id))
            cursor = stored.cursors.pop(cursor_id, None) if stored is not None else None
            if cursor is not None:
                self.replayed_cursors.pop(cursor, None)
        elif stored is not None and cursor_id not in stored.cursors:
            stored.cursors[cursor_id] = ManagedCursor(cursor_id, json.loads(value)["name"], stored.ledger)


def _txn_of(key: str) -> TxnId:
    """Return the transaction at the end of a key."""
    *_, most, least = key.split("/")
    return TxnId(int(most, 16), int(least, 16))


def ledger_row(ledger: ManagedLedger, info: LedgerInfo) -> Row:
    """Return a ledger's row: its times, size, preceding totals, hole and last entry.

    The row of the last ledger also has its message count and last append time.
    """
    row: Row = {
        "created": info.created,
        "closed": info.closed,
        "messages_before": info.messages_before,
        "bytes_before": info.bytes_before,
        "entries": info.entries,
        "size": info.size,
    }
    if info.hole != (0, 0):
        row["hole"] = list(info.hole)
    if info is ledger.current or info is ledger.newest:
        row |= {
            "messages": ledger.total_messages - info.messages_before,
            "last_batch": ledger.appended_batch,
            "last_publish_time": ledger.appended_publish_time,
            "last_append_time": ledger.last_append_time,
        }
    elif info.entries:
        row |= {"last_batch": info.last_batch, "last_publish_time": info.last_publish_time}
    return row


def _hole(row: Row) -> tuple[int, int]:
    messages, size = row.get("hole", (0, 0))
    return messages, size


def restore_ledger(ledger: ManagedLedger, ledger_id: int, row: Row) -> None:
    """Restore a ledger from its row; its entries are durable."""
    info = LedgerInfo(ledger_id, row["created"], row["messages_before"], row["bytes_before"])
    info.closed = row["closed"]
    info.entries = info.confirmed = row["entries"]
    info.size = row["size"]
    info.hole = _hole(row)
    if info.closed:
        info.last_batch, info.last_publish_time = row.get("last_batch", -1), row.get("last_publish_time", 0)
    ledger.restore_ledger(info)
    messages = info.messages_before + row.get("messages", 0)
    ledger.total_messages = ledger.confirmed_messages = messages
    ledger.total_bytes = ledger.confirmed_bytes = info.bytes_before + info.size
    if info.entries:
        ledger.last_confirmed = Position(ledger_id, info.entries - 1)
        ledger.last_batch = ledger.appended_batch = row.get("last_batch", -1)
        ledger.last_publish_time = ledger.appended_publish_time = row.get("last_publish_time", 0)
        appended = row.get("last_append_time", max(row["closed"], ledger.last_publish_time))
        ledger.last_append_time = max(appended, info.created)
