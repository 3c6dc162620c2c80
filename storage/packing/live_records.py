"""Extraction of the live records of a batch, and reassembly into a batch. Pure."""

import struct
from collections.abc import Callable, Sequence
from typing import Any

from pulsarbox.errors import PersistenceError
from pulsarbox.protocol.checksum import crc32c
from pulsarbox.storage.format import (
    BATCH_HEADER,
    BATCH_VERSION,
    ENTRY_HEADER,
    RECORD_PREFIX,
    RecordKind,
)
from pulsarbox.storage.journal import JournalRun
from pulsarbox.storage.record import check_batch

_ENTRY = RecordKind.ENTRY
_RECORDS_MORE = 0xFFFF
Alive = Callable[[int, int], Any]
"""Decides whether to keep an entry of a ledger: a false value drops it, any other value is attached to it."""


class LiveRecord:
    """The record of a kept entry: its header and its body as they are to be stored."""

    __slots__ = ("body", "entry_id", "header", "ledger_id", "of", "size")

    def __init__(self, ledger_id: int, entry_id: int, header: bytes, body: memoryview | bytes, of: Any = None) -> None:
        self.ledger_id = ledger_id
        self.entry_id = entry_id
        self.header = header
        self.body = body
        self.size = len(header) + len(body)
        """Bytes of the original record."""
        self.of = of
        """The value that ``Alive`` returned for it."""


def live_entries(value: bytes | memoryview, alive: Alive) -> list[LiveRecord]:
    """Return the entries of a batch that are ``alive``, in order.

    Their bytes are kept even if damaged, since entries have separate checksums. Raises PersistenceError if the batch is
    damaged elsewhere.
    """
    check_batch(value)
    view = memoryview(value)
    end = len(view)
    found: list[LiveRecord] = []
    offset = BATCH_HEADER.size
    try:
        while offset < end:
            kind, _, header_size, body_size = RECORD_PREFIX.unpack_from(view, offset)
            body = offset + header_size
            if kind == _ENTRY:
                ledger_id, entry_id = ENTRY_HEADER.unpack_from(view, offset)[4:6]
                of = alive(ledger_id, entry_id)
                if of:
                    record = bytes(view[offset:body]), view[body : body + body_size]
                    found.append(LiveRecord(ledger_id, entry_id, *record, of))
            offset = body + body_size
    except struct.error as error:
        raise PersistenceError(f"batch is damaged: {error}") from error
    return found


def put_together(entries: Sequence[LiveRecord], wall: int) -> tuple[bytes, list[tuple[int, JournalRun]]]:
    """Build a batch of these entries, committed at ``wall``; return it with its runs and their ledgers.

    A ledger has several runs if entries between them are left out.
    """
    parts: list[bytes | memoryview] = []
    for each in entries:
        parts += (each.header, each.body)
    size = sum([len(part) for part in parts])
    checksum = crc32c(b"".join([each.header for each in entries]))
    header = BATCH_HEADER.pack(BATCH_VERSION, 0, _RECORDS_MORE, size, checksum, wall)
    return b"".join([header, *parts]), runs_from(entries, BATCH_HEADER.size)


def runs_from(entries: Sequence[LiveRecord], offset: int) -> list[tuple[int, JournalRun]]:
    """Return the runs of entries whose records begin at ``offset`` of a batch, and their ledgers."""
    runs: list[tuple[int, JournalRun]] = []
    last: dict[int, JournalRun] = {}
    for each in entries:
        run = last.get(each.ledger_id)
        if run is None or run.first_entry + len(run.offsets) != each.entry_id:
            run = last[each.ledger_id] = JournalRun(each.entry_id)
            runs.append((each.ledger_id, run))
        run.offsets.append(offset)
        offset += len(each.header) + len(each.body)
    return runs


def wall_of(value: bytes | memoryview) -> int:
    """Return the commit time of a batch."""
    return int(BATCH_HEADER.unpack_from(value)[5])
