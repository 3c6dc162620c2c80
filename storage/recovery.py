"""From what the disk holds to the state at the last durable batch: the checkpoint's rows, then the log after it.

Replaying is the same as having lived it: records carry their results (positions, totals), never an instruction whose
outcome depends on when it is carried out.
"""

import json

from pulsarbox.errors import PersistenceError
from pulsarbox.storage.catalog import IDS, Catalog, Row, acks_key
from pulsarbox.storage.cursor import ManagedCursor
from pulsarbox.storage.engine import Recovery
from pulsarbox.storage.ledger import LedgerInfo, ManagedLedger
from pulsarbox.storage.record import Entry, Meta, Position, Record, unpack_batch


class Store:
    """The durable state, in memory: rows, managed ledgers by topic id, cursors by cursor id."""

    def __init__(self, recovery: Recovery) -> None:
        self.catalog = Catalog({key.decode(): value for key, value in recovery.meta.items()})
        self.ledgers: dict[int, ManagedLedger] = {}
        self.cursors: dict[int, ManagedCursor] = {}
        self.next_position = recovery.next_position
        self.replayed_ledgers: dict[ManagedLedger, None] = {}
        """What the log changed behind the checkpoint: the next checkpoint has to hold it."""
        self.replayed_cursors: dict[ManagedCursor, None] = {}
        self._by_ledger_id: dict[int, ManagedLedger] = {}
        for kind in ("ledger/", "cursor/"):
            for key in self.catalog.keys(kind):
                self._exists(key, json.loads(recovery.meta[key.encode()]))
        for cursor in self.cursors.values():
            for key in self.catalog.keys(acks_key(cursor.cursor_id)):
                cursor.restore(recovery.meta[key.encode()])
        for batch in recovery.batches:
            for _, record in unpack_batch(batch):
                self._replay(record)

    def _replay(self, record: Record) -> None:
        if isinstance(record, Entry):
            ledger = self._by_ledger_id.get(record.ledger_id)
            if ledger is None:
                return  # of a topic that is deleted later in the log, or whose deletion the checkpoint holds
            if record.entry_id != ledger.ledgers[record.ledger_id].entries:
                raise PersistenceError(
                    f"the log has entry {record.ledger_id}:{record.entry_id} where"
                    f" {ledger.ledgers[record.ledger_id].entries} should come next"
                )
            ledger.replay(record)
            self.replayed_ledgers[ledger] = None
        elif isinstance(record, Meta):
            key = record.key.decode()
            self.catalog.apply(key, record.value)
            if record.value is None:
                self._is_gone(key)
            else:
                self._exists(key, json.loads(record.value))
        else:
            cursor = self.cursors.get(record.cursor_id)
            if cursor is not None:
                cursor.replay(record)
                self.replayed_cursors[cursor] = None

    def _exists(self, key: str, row: Row) -> None:
        kind, _, rest = key.partition("/")
        if kind == "ledger":
            topic_id, ledger_id = (int(part, 16) for part in rest.split("/"))
            ledger = self.ledgers.setdefault(topic_id, ManagedLedger(topic_id))
            self._by_ledger_id[ledger_id] = ledger
            if ledger_id in ledger.ledgers:
                info = ledger.ledgers[ledger_id]
                info.closed = row["closed"]
                if not info.entries:  # what stood before it was given up with a failed commit
                    info.messages_before, info.bytes_before = row["messages_before"], row["bytes_before"]
                    if info is ledger.current:
                        ledger.total_messages = ledger.confirmed_messages = info.messages_before
                        ledger.total_bytes = ledger.confirmed_bytes = info.bytes_before
            else:
                restore_ledger(ledger, ledger_id, row)
        elif kind == "cursor":
            topic_id, cursor_id = (int(part, 16) for part in rest.split("/"))
            if cursor_id not in self.cursors:
                ledger = self.ledgers.setdefault(topic_id, ManagedLedger(topic_id))
                self.cursors[cursor_id] = ManagedCursor(cursor_id, row["name"], ledger)

    def _is_gone(self, key: str) -> None:
        kind, _, rest = key.partition("/")
        if kind == "ledger":
            topic_id, ledger_id = (int(part, 16) for part in rest.split("/"))
            self._by_ledger_id.pop(ledger_id, None)
            ledger = self.ledgers.pop(topic_id, None)
            if ledger is not None:
                self.replayed_ledgers.pop(ledger, None)
        elif kind == "cursor":
            cursor_id = int(rest.split("/")[1], 16)
            cursor = self.cursors.pop(cursor_id, None)
            if cursor is not None:
                self.replayed_cursors.pop(cursor, None)
            self.catalog.apply(acks_key(cursor_id), None)

    def ids(self) -> Row:
        """The counter of ids, and of starts."""
        return self.catalog.get(IDS) or {"next": 1, "boot": 0}


def restore_ledger(ledger: ManagedLedger, ledger_id: int, row: Row) -> None:
    """Put a ledger back as its row says; its entries are durable."""
    info = LedgerInfo(ledger_id, row["created"], row["messages_before"], row["bytes_before"])
    info.closed = row["closed"]
    info.entries = info.confirmed = row["entries"]
    info.size = row["size"]
    ledger.restore_ledger(info)
    messages = info.messages_before + row.get("messages", 0)
    ledger.total_messages = ledger.confirmed_messages = messages
    ledger.total_bytes = ledger.confirmed_bytes = info.bytes_before + info.size
    if info.entries:
        ledger.last_confirmed = Position(ledger_id, info.entries - 1)
        ledger.last_batch = ledger.appended_batch = row.get("last_batch", -1)
        ledger.last_publish_time = ledger.appended_publish_time = row.get("last_publish_time", 0)
