"""What the logs of topics say of their keys: what readers of the compacted view are judged by."""

from __future__ import annotations

from collections.abc import Callable

from pulsarbox.names import COMPACTION_SUBSCRIPTION
from pulsarbox.protocol.metadata import parse_entry
from pulsarbox.storage.cursor import ManagedCursor
from pulsarbox.storage.record import Entry, Meta, Position, Record
from tests.simulation.views import MessageKey, message_keys


def is_seen(cursor: ManagedCursor) -> bool:
    """Whether the model knows of a cursor: compaction has one of its own."""
    return cursor.name != COMPACTION_SUBSCRIPTION


class Tables:
    """What the log of each topic says of its keys."""

    def __init__(self) -> None:
        self.compacted: set[int] = set()
        """Ledgers that compactions write to."""
        self.hidden: Callable[[str, Position], bool] = lambda topic, position: False
        """Whether an entry is of a transaction that is not committed."""
        self.log: dict[str, dict[Position, tuple[str | None, list[MessageKey]]]] = {}
        """Key and messages of each entry, by topic; without a key where it is none that stays."""

    def takes(self, record: Record) -> bool:
        """Whether a record is an entry of a compacted ledger: no topic has it."""
        if isinstance(record, Meta) and record.key.startswith(b"compacting/"):
            self.compacted.add(int(record.key.rpartition(b"/")[2], 16))
        return isinstance(record, Entry) and record.ledger_id in self.compacted

    def stored(self, topic: str, record: Entry) -> None:
        """An entry of a topic is durable."""
        metadata = parse_entry(record.body).metadata
        keyed = metadata.HasField("partition_key") and not metadata.HasField("num_messages_in_batch")
        key = metadata.partition_key if keyed else None
        self.log.setdefault(topic, {})[record.position] = key, message_keys(record.body)

    def latest(self, topic: str, through: Position | None = None) -> dict[str, Position]:
        """Of each key the latest entry, up to one."""
        log = self.log.get(topic, {})
        seen = [(at, key) for at, (key, _) in log.items() if through is None or at <= through]
        return {key: at for at, key in seen if key is not None and not self.hidden(topic, at)}
