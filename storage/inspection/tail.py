"""Sums and rows of the log of one volume, verifying only what decoding requires."""

import json
import struct
from collections.abc import Iterator

from pulsarbox.errors import PersistenceError
from pulsarbox.storage.catalog import sequence_key
from pulsarbox.storage.format import DELETED, META_HEADER, RecordKind
from pulsarbox.storage.inspection.box import OpenEnvironment
from pulsarbox.storage.inspection.child import Line
from pulsarbox.storage.inspection.holdings import Holdings
from pulsarbox.storage.inspection.scan import StoredEntries, batches, entry_ids, records
from pulsarbox.storage.record import SequenceId, unpack_record


class Tail:
    """Contents of a log: entries by ledger, rows written after the mark, and bytes after it."""

    def __init__(self, mark: int, *, everything: bool) -> None:
        """Reads from the start with ``everything``, otherwise from after the mark."""
        self.mark = mark
        self.stored = StoredEntries()
        self.rows: list[tuple[bytes, bytes | None]] = []
        self.lag_bytes = 0
        self._from = 0 if everything else mark + 1

    def read(self, env: OpenEnvironment, name: str) -> Iterator[Line]:
        """Read the log; damaged batches are skipped."""
        _, last = env.extent()
        for chunk in batches(env, self._from, last):
            for position, value in chunk:
                if position > self.mark:
                    self.lag_bytes += len(value)
                try:
                    self._take(position, value)
                except (PersistenceError, struct.error):
                    continue
            yield ["at", name, chunk[-1][0] + 1]

    def apply_to(self, holdings: Holdings) -> None:
        """Replay the rows; invalid ones are skipped."""
        for key, value in self.rows:
            try:
                holdings.apply(key, value, replayed=True)
            except PersistenceError:
                continue

    def _take(self, position: int, value: bytes) -> None:
        for offset, kind, flags, header_size, body_size in records(value):
            if kind == RecordKind.ENTRY:
                ledger_id, entry_id = entry_ids(value, offset)
                self.stored.add(ledger_id, entry_id, header_size + body_size)
            elif kind == RecordKind.META and position > self.mark:
                key_size = META_HEADER.unpack_from(value, offset)[4]
                body = offset + header_size
                key = value[body : body + key_size]
                self.rows.append((key, None if flags & DELETED else value[body + key_size : body + body_size]))
            elif kind == RecordKind.SEQUENCE and position > self.mark:
                record = unpack_record(value, offset)
                assert isinstance(record, SequenceId)
                row = {"highest": record.highest, "published": record.published}
                packed = None if record.forgotten else json.dumps(row).encode()
                self.rows.append((sequence_key(record.topic_id, record.producer).encode(), packed))
