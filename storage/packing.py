"""What is left of a batch once the ledgers that are no more are taken out of it. Pure."""

import struct
from collections.abc import Callable

from pulsarbox.errors import PersistenceError
from pulsarbox.protocol.checksum import crc32c
from pulsarbox.storage.format import BATCH_HEADER, ENTRY_HEADER, FORMAT_VERSION, RECORD_PREFIX, RecordKind
from pulsarbox.storage.journal import Run
from pulsarbox.storage.record import check_batch

_ENTRY = RecordKind.ENTRY
_RECORDS_MORE = 0xFFFF


def pack_batch(value: bytes | memoryview, alive: Callable[[int], bool]) -> tuple[bytes, dict[int, Run]] | None:
    """The batch ``value`` with nothing but the entries of ledgers that are ``alive``, and their runs.

    None where no such entry is in it. Entries keep their bytes, damaged bodies included: those have checksums of
    their own. Raises PersistenceError where the batch is damaged elsewhere.
    """
    check_batch(value)
    view = memoryview(value)
    end = len(view)
    records: list[memoryview] = []
    headers: list[memoryview] = []
    runs: dict[int, Run] = {}
    offset = size = BATCH_HEADER.size
    try:
        while offset < end:
            kind, _, header_size, body_size = RECORD_PREFIX.unpack_from(view, offset)
            length = header_size + body_size
            if kind == _ENTRY:
                ledger_id, entry_id = ENTRY_HEADER.unpack_from(view, offset)[4:6]
                if alive(ledger_id):
                    run = runs.get(ledger_id)
                    if run is None:
                        run = runs[ledger_id] = Run(entry_id)
                    run.offsets.append(size)
                    records.append(view[offset : offset + length])
                    headers.append(view[offset : offset + header_size])
                    size += length
            offset += length
    except struct.error as error:
        raise PersistenceError(f"batch is damaged: {error}") from error
    if not records:
        return None
    wall = BATCH_HEADER.unpack_from(view)[5]
    checksum = crc32c(b"".join(headers))
    header = BATCH_HEADER.pack(FORMAT_VERSION, 0, _RECORDS_MORE, size - BATCH_HEADER.size, checksum, wall)
    return b"".join([header, *records]), runs
