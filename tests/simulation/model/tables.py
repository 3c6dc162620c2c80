"""The latest message per key of each topic's log: the reference for readers of the compacted view."""

from __future__ import annotations

from collections.abc import Callable

from pulsarbox.names import COMPACTION_SUBSCRIPTION
from pulsarbox.protocol.metadata import parse_entry
from pulsarbox.storage.cursor import ManagedCursor
from pulsarbox.storage.record import Entry, Meta, Position, Record
from tests.simulation.model.views import MessageKey, message_keys


def is_seen(cursor: ManagedCursor) -> bool:
    """Return whether the model tracks a cursor; the cursor of compaction is excluded."""
    return cursor.name != COMPACTION_SUBSCRIPTION


class Tables:
    """The keys in the log of each topic."""

    def __init__(self) -> None:
        self.compacted: set[int] = set()
        """Ledgers written by compaction."""
        self.hidden: Callable[[str, Position], bool] = lambda topic, position: False
        """Return whether an entry belongs to an uncommitted transaction."""
        self.log: dict[str, dict[Position, tuple[str | None, list[MessageKey]]]] = {}
        """Key and messages of each entry by topic; the key is None for entries that compaction drops."""

    def takes(self, record: Record) -> bool:
        """Return whether a record is an entry of a compacted ledger, which no topic contains."""
        if isinstance(record, Meta) and record.key.startswith(b"compacting/"):
            self.compacted.add(int(record.key.rpartition(b"/")[2], 16))
        return isinstance(record, Entry) and record.ledger_id in self.compacted

    def stored(self, topic: str, record: Entry) -> None:
        """Add a durable entry of a topic."""
        metadata = parse_entry(record.body).metadata
        keyed = metadata.HasField("partition_key") and not metadata.HasField("num_messages_in_batch")
        key = metadata.partition_key if keyed else None
        self.log.setdefault(topic, {})[record.position] = key, message_keys(record.body)

    def latest(self, topic: str, through: Position | None = None) -> dict[str, Position]:
        """Return the latest visible entry of each key, optionally up to a position."""
        log = self.log.get(topic, {})
        seen = [(at, key) for at, (key, _) in log.items() if through is None or at <= through]
        return {key: at for at, key in seen if key is not None and not self.hidden(topic, at)}
