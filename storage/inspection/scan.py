"""Iteration over the log of a volume, by batch and by record."""

import struct
from collections.abc import Iterator
from typing import NamedTuple

from pulsarbox.errors import PersistenceError
from pulsarbox.storage.format import BATCH_HEADER, ENTRY_HEADER, LOG_KEY, RECORD_PREFIX, EntryField, RecordKind
from pulsarbox.storage.inspection.box import OpenEnvironment


class RecordAt(NamedTuple):
    """The offset of a record in a batch value, and the fields of its prefix."""

    offset: int
    kind: int
    flags: int
    header_size: int
    body_size: int

    @property
    def size(self) -> int:
        """Bytes of header and body."""
        return self.header_size + self.body_size


class StoredRun:
    """Consecutive entries of a ledger, and the bytes of their records."""

    __slots__ = ("bytes", "entries", "first")

    def __init__(self, first: int) -> None:
        self.first = first
        self.entries = 0
        self.bytes = 0

    @property
    def end(self) -> int:
        """The first entry id after them."""
        return self.first + self.entries


class StoredEntries:
    """The entries of a volume, by ledger."""

    def __init__(self) -> None:
        self.ledgers: dict[int, list[StoredRun]] = {}

    def add(self, ledger_id: int, entry_id: int, size: int) -> None:
        """Add an entry."""
        known = self.ledgers.get(ledger_id)
        if known is None:
            known = self.ledgers[ledger_id] = [StoredRun(entry_id)]
        elif known[-1].end != entry_id:
            known.append(StoredRun(entry_id))
        known[-1].entries += 1
        known[-1].bytes += size


def batches(env: OpenEnvironment, first: int, last: int) -> Iterator[list[tuple[int, bytes]]]:
    """Yield positions and values of the log, in chunks. Raises PersistenceError if a key is invalid."""
    for chunk in env.chunks(b"log", LOG_KEY.pack(first)):
        found: list[tuple[int, bytes]] = []
        for key, value in chunk:
            if len(key) != LOG_KEY.size:
                raise PersistenceError(f"the log has the key {key!r}")
            position: int = LOG_KEY.unpack(key)[0]
            if position > last:
                break
            found.append((position, value))
        if found:
            yield found
        if len(found) < len(chunk):
            return


def records(value: bytes) -> Iterator[RecordAt]:
    """Yield the records of a batch. Raises PersistenceError if one extends past its end."""
    offset = BATCH_HEADER.size
    size = len(value)
    while offset < size:
        try:
            kind, flags, header_size, body_size = RECORD_PREFIX.unpack_from(value, offset)
        except struct.error as error:
            raise PersistenceError(f"a record is cut off at offset {offset}") from error
        end = offset + header_size + body_size
        if end > size or header_size < RECORD_PREFIX.size:
            raise PersistenceError(f"a record at offset {offset} does not end within its batch")
        if kind == RecordKind.ENTRY and header_size < ENTRY_HEADER.size:
            raise PersistenceError(f"the header of an entry at offset {offset} has {header_size} bytes")
        yield RecordAt(offset, kind, flags, header_size, body_size)
        offset = end


def entry_ids(value: bytes, offset: int) -> tuple[int, int]:
    """Return the ledger and entry ids of the entry record at an offset."""
    fields = ENTRY_HEADER.unpack_from(value, offset)
    return fields[EntryField.LEDGER_ID], fields[EntryField.ENTRY_ID]
