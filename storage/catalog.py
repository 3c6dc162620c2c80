"""The rows of the metadata: what exists, by key. JSON values, so that a dead directory can be read by eye.

::

    ids                                     {"next": the next id, "boot": starts so far}
    tenant/<tenant>                         the tenant's info, as in the Admin API
    namespace/<tenant>/<namespace>          the namespace's policies, as in the Admin API
    partitions/<topic name>                 {"partitions": n, "properties": {}}
    topic/<topic name>                      {"id": n, "created": ms, "properties": {}}
    schema/<topic name>/<version, 16 hex>   the schema
    ledger/<topic id>/<ledger id>           see ``ledger_row``
    cursor/<topic id>/<cursor id>           {"name": subscription, "properties": {}, "created": ms}
    acks/<cursor id>                        the cursor's mark-delete, as a record (of version 1: all that it has)
    acks/<cursor id>/<ledger id>/<chunk>    what it has beyond in a chunk of a ledger's entries, as records: ranges,
                                            partly acknowledged batches, redelivery counts. The chunk in 8 hex

Ids of topics, ledgers and cursors come from one counter and are sixteen hex digits in keys, so that keys sort by them.
The rows of acknowledgements are written by checkpoints only.
"""

import json
from collections.abc import Iterator
from typing import Any, Final

from sortedcontainers import SortedDict

from pulsarbox.storage.journal import Batch
from pulsarbox.storage.ledger import LedgerInfo, ManagedLedger
from pulsarbox.storage.record import Meta, pack_meta

Row = dict[str, Any]

IDS: Final = "ids"

_AFTER_ALL: Final = "\U0010ffff"


def tenant_key(tenant: str) -> str:
    """Key of a tenant's row."""
    return f"tenant/{tenant}"


def namespace_key(namespace: str) -> str:
    """Key of the row of ``tenant/namespace``."""
    return f"namespace/{namespace}"


def partitions_key(topic: str) -> str:
    """Key of the row of a partitioned topic."""
    return f"partitions/{topic}"


def topic_key(topic: str) -> str:
    """Key of a topic's row."""
    return f"topic/{topic}"


def schema_key(topic: str, version: int) -> str:
    """Key of one version of a topic's schema."""
    return f"schema/{topic}/{version:016x}"


def ledger_key(topic_id: int, ledger_id: int) -> str:
    """Key of a ledger's row."""
    return f"ledger/{topic_id:016x}/{ledger_id:016x}"


def cursor_key(topic_id: int, cursor_id: int) -> str:
    """Key of a durable subscription's row."""
    return f"cursor/{topic_id:016x}/{cursor_id:016x}"


def acks_key(cursor_id: int) -> str:
    """Key of a cursor's mark-delete, and what the keys of its other acknowledgements start with."""
    return f"acks/{cursor_id:016x}"


def acks_chunk_key(cursor_id: int, ledger_id: int, number: int) -> str:
    """Key of a cursor's acknowledgements in one chunk of a ledger."""
    return f"acks/{cursor_id:016x}/{ledger_id:016x}/{number:08x}"


def ledger_row(ledger: ManagedLedger, info: LedgerInfo) -> Row:
    """A ledger's row: its times, its size, the topic's totals before it, and of the last one what stands at its end."""
    row: Row = {
        "created": info.created,
        "closed": info.closed,
        "messages_before": info.messages_before,
        "bytes_before": info.bytes_before,
        "entries": info.entries,
        "size": info.size,
    }
    if info is ledger.current or (info.entries and not ledger.current.entries):
        row |= {
            "messages": ledger.total_messages - info.messages_before,
            "last_batch": ledger.appended_batch,
            "last_publish_time": ledger.appended_publish_time,
        }
    return row


class Catalog:
    """All rows, and those written since the last checkpoint."""

    def __init__(self, rows: dict[str, bytes]) -> None:
        self._rows: SortedDict[str, bytes] = SortedDict(rows)
        self._dirty: dict[str, bytes | None] = {}

    def get(self, key: str) -> Row | None:
        """The row, None where there is none."""
        value = self._rows.get(key)
        return None if value is None else json.loads(value)

    def __contains__(self, key: str) -> bool:
        return key in self._rows

    def keys(self, prefix: str) -> Iterator[str]:
        """The keys that start with ``prefix``, sorted."""
        return iter(list(self._rows.irange(prefix, prefix + _AFTER_ALL)))

    def put(self, batch: Batch, key: str, row: Row | None) -> None:
        """Write a row, or delete it with None; durable with the batch."""
        value = _encode(row)
        batch.add(pack_meta(Meta(key.encode(), value)))
        self.apply(key, value)

    def note(self, key: str, row: Row) -> None:
        """Write a row for the checkpoint alone: the log has its content in other records."""
        self.apply(key, _encode(row))

    def apply(self, key: str, value: bytes | None) -> None:
        """Take a row over as the log has it."""
        self._dirty[key] = value
        if value is None:
            self._rows.pop(key, None)
        else:
            self._rows[key] = value

    def take_dirty(self) -> dict[bytes, bytes | None]:
        """The rows written since the last call, for the checkpoint."""
        rows = {key.encode(): value for key, value in self._dirty.items()}
        self._dirty.clear()
        return rows

    def give_back(self, rows: dict[bytes, bytes | None]) -> None:
        """The checkpoint that these rows were taken for has failed; later writes win."""
        self._dirty = {key.decode(): value for key, value in rows.items()} | self._dirty


def _encode(row: Row | None) -> bytes | None:
    return None if row is None else json.dumps(row, separators=(",", ":")).encode()
