"""Topics, ledgers and subscriptions according to the rows of a box. Pure."""

import json
from typing import Any, NamedTuple

from pulsarbox.errors import PersistenceError
from pulsarbox.storage.delayed_index import chunk_entries, unpack_chunk
from pulsarbox.storage.inspection.transactions import KINDS as TRANSACTIONS
from pulsarbox.storage.inspection.transactions import Transactions
from pulsarbox.storage.record import CursorRecord, unpack_records


class Ledger(NamedTuple):
    """A ledger's row; ``replayed`` if it comes from the log after the checkpoint."""

    topic_id: int
    entries: int
    closed: bool
    replayed: bool


class Holdings:
    """Decoded rows by subject. Apply the checkpoint's rows first, then those of the log after it."""

    def __init__(self) -> None:
        self.rows = 0
        self.topics: dict[int, str] = {}
        self.owners: dict[int, str] = {}
        self.ledgers: dict[int, Ledger] = {}
        self.compacted: set[int] = set()
        """The compacted ledgers among them."""
        self.packages: dict[int, str] = {}
        """Names of packages, by the ledger with their content."""
        self.cursors: dict[int, tuple[int, str]] = {}
        self.acks: set[int] = set()
        self.producers: dict[int, set[str]] = {}
        """Names with stored sequence ids, by topic id."""
        self.partitioned: dict[str, int] = {}
        self.transactions = Transactions()

    def apply(self, key: bytes, value: bytes | None, *, replayed: bool = False) -> None:
        """Apply a row, None if deleted. Raises PersistenceError if it cannot be decoded."""
        try:
            self._apply(key.decode(), value, replayed)
        except (ValueError, KeyError, TypeError, AttributeError, IndexError) as error:
            raise PersistenceError(f"row {key!r} is damaged: {error!r}") from error

    def topic_of(self, ledger_id: int) -> str:
        """Return the topic or the package of a ledger; empty if unknown."""
        if ledger_id in self.packages:
            return self.packages[ledger_id]
        ledger = self.ledgers.get(ledger_id)
        return self.owners.get(ledger_id, "") if ledger is None else self.name_of(ledger.topic_id)

    def name_of(self, topic_id: int) -> str:
        """Return the name of a topic; empty if unknown."""
        return self.topics.get(topic_id) or self.owners.get(topic_id, "")

    def subscriptions(self) -> dict[int, int]:
        """Return the number of durable subscriptions by topic id."""
        counts: dict[int, int] = {}
        for topic_id, _ in self.cursors.values():
            counts[topic_id] = counts.get(topic_id, 0) + 1
        return counts

    def _apply(self, key: str, value: bytes | None, replayed: bool) -> None:
        kind, _, rest = key.partition("/")
        if kind in ("acks", "delayed"):
            if value is not None:
                self._validate_row(kind, rest, value)
            return
        row: Any = None if value is None else json.loads(value)
        if kind == "topic":
            self._apply_topic(rest, row)
        elif kind == "owner":
            _put(self.owners, int(rest, 16), None if row is None else str(row))
        elif kind == "ledger":
            self._apply_ledger(rest, row, replayed)
        elif kind in ("compacted", "compacting"):
            self._apply_compacted(kind, rest, row, replayed)
        elif kind == "packagedata":
            self._apply_package(int(rest, 16), row, replayed)
        elif kind == "cursor":
            topic_id, cursor_id = (int(part, 16) for part in rest.split("/"))
            _put(self.cursors, cursor_id, None if row is None else (topic_id, str(row["name"])))
        elif kind in TRANSACTIONS:
            self.transactions.apply(kind, rest, row)
        elif kind == "sequence":
            self._apply_sequence(rest, row)
        elif kind == "partitions":
            _put(self.partitioned, rest, None if row is None else int(row["partitions"]))

    def _apply_topic(self, name: str, row: Any) -> None:
        if row is not None:
            self.topics[row["id"]] = name
            return
        for number in [each for each, known in self.topics.items() if known == name]:
            del self.topics[number]
            self.transactions.topic_gone(number)

    def _apply_ledger(self, rest: str, row: Any, replayed: bool) -> None:
        topic_id, ledger_id = (int(part, 16) for part in rest.split("/"))
        ledger = None
        if row is not None:
            ledger = Ledger(topic_id, int(row["entries"]), bool(row["closed"]), replayed)
            before = self.ledgers.get(ledger_id)
            if before is not None:  # the log repeats the row, and may close the ledger
                entries = ledger.entries if ledger.closed else before.entries  # no current count while it is open
                ledger = ledger._replace(replayed=before.replayed, entries=entries)
        else:
            self.transactions.ledger_gone(ledger_id)
        _put(self.ledgers, ledger_id, ledger)

    def _apply_compacted(self, kind: str, rest: str, row: Any, replayed: bool) -> None:
        """Apply the row of a compacted ledger, which has a row of one kind or the other, and briefly of both."""
        topic_id, ledger_id = (int(part, 16) for part in rest.split("/"))
        finished = kind == "compacted"
        if row is not None:
            self.compacted.add(ledger_id)
            entries = int(row["entries"]) if finished else 0
            self.ledgers[ledger_id] = Ledger(topic_id, entries, finished, replayed or not finished)
        elif ledger_id in self.ledgers and self.ledgers[ledger_id].closed == finished:
            del self.ledgers[ledger_id]

    def _apply_package(self, ledger_id: int, row: Any, replayed: bool) -> None:
        """Apply the row of a ledger with the content of a package; its entries are known once the upload is over."""
        _put(self.packages, ledger_id, None if row is None else str(row["package"]))
        ledger = None
        if row is not None:
            finished = "entries" in row
            ledger = Ledger(0, int(row.get("entries", 0)), finished, replayed or not finished)
        _put(self.ledgers, ledger_id, ledger)

    def _validate_row(self, kind: str, rest: str, value: bytes) -> None:
        """Validate a row that is not JSON."""
        if kind == "acks":
            cursor_id = int(rest.partition("/")[0], 16)
            _check_acks(cursor_id, value)
            self.acks.add(cursor_id)
        else:
            unpack_chunk(value, chunk_entries(value))

    def _apply_sequence(self, rest: str, row: Any) -> None:
        number, _, producer = rest.partition("/")
        producers = self.producers.setdefault(int(number, 16), set())
        if row is None:
            producers.discard(producer)
        else:
            int(row["highest"]), int(row["published"])
            producers.add(producer)


def _put(table: dict[Any, Any], key: object, value: object | None) -> None:
    if value is None:
        table.pop(key, None)
    else:
        table[key] = value


def _check_acks(cursor_id: int, value: bytes) -> None:
    try:
        for _, record in unpack_records(value):
            if not isinstance(record, CursorRecord) or record.cursor_id != cursor_id:
                raise PersistenceError(f"acknowledgements of cursor {cursor_id:x} hold {type(record).__name__}")
    except Exception as error:
        raise ValueError(f"acknowledgements of cursor {cursor_id:x} cannot be read: {error}") from error
