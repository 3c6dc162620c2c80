"""Values of the replica protocol as bytes: entries, rows, batches, memberships, errors. Pure.

Decoders raise FrameError for bytes that no encoder returns.
"""

import struct
import sys
from array import array
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from typing import Any, Final

from pulsarbox.errors import EntryDamaged, PersistenceError, StoreFull
from pulsarbox.storage.engine import ReadRequest
from pulsarbox.storage.ensemble.member import PackedBatch, Piece
from pulsarbox.storage.ensemble.remote.frames import FrameError
from pulsarbox.storage.entry_read import EntryMissing
from pulsarbox.storage.format import ENTRY_HEADER
from pulsarbox.storage.journal import JournalRun
from pulsarbox.storage.record import Entry, pack_entry, stored_entry

PART_BYTES: Final = 1 << 20
"""Bytes of a part of rows or entries, unless a single one is larger."""
Fields = Mapping[str, Any]
_ROW: Final = struct.Struct(">II")
_NO_VALUE: Final = 0xFFFFFFFF
_LOGGED: Final = struct.Struct(">QI")


# Entries


def encode_entries(entries: Iterable[Entry]) -> bytes:
    """Return entries as the log stores them, uncompressed."""
    return b"".join([part for entry in entries for part in (pack_entry(entry), entry.body)])


def decode_entries(body: bytes) -> list[Entry]:
    """Return the entries in ``encode_entries``. Their checksums are not verified here."""
    entries: list[Entry] = []
    offset = 0
    while offset < len(body):
        try:
            entry, compressed = stored_entry(body, offset)
        except (struct.error, PersistenceError, IndexError):
            raise FrameError("an entry cannot be decoded") from None
        if compressed is not None:
            raise FrameError("an entry is compressed")
        entries.append(entry)
        offset += ENTRY_HEADER.size + len(entry.body)
    return entries


def encode_pieces(pieces: Sequence[Piece]) -> tuple[dict[str, Any], bytes]:
    """Return the positions and sizes of pieces, and their entries."""
    places = [[piece.position, len(piece.entries)] for piece in pieces]
    return {"pieces": places}, encode_entries([entry for piece in pieces for entry in piece.entries])


def decode_pieces(fields: Fields, body: bytes) -> list[Piece]:
    """Return the pieces in ``encode_pieces``."""
    entries = decode_entries(body)
    pieces: list[Piece] = []
    for place in listed(fields, "pieces"):
        position, count = integers(place, 2)
        pieces.append(Piece(position, entries[:count]))
        del entries[:count]
        if count < 1 or len(pieces[-1].entries) != count:
            raise FrameError("the pieces do not match their entries")
    if entries:
        raise FrameError("the pieces do not match their entries")
    return pieces


def portions(pieces: Iterable[Piece]) -> Iterator[list[Piece]]:
    """Yield pieces in portions of about PART_BYTES."""
    portion: list[Piece] = []
    size = 0
    for piece in pieces:
        portion.append(piece)
        size += sum(len(entry.body) + ENTRY_HEADER.size for entry in piece.entries)
        if size >= PART_BYTES:
            yield portion
            portion, size = [], 0
    if portion:
        yield portion


# Rows


def row_portions(rows: Iterable[tuple[bytes, bytes | None]]) -> Iterator[bytes]:
    """Yield rows as bytes, about PART_BYTES at a time."""
    parts: list[bytes] = []
    size = 0
    for key, value in rows:
        parts += [_ROW.pack(len(key), _NO_VALUE if value is None else len(value)), key, value or b""]
        size += len(key) + len(value or b"") + _ROW.size
        if size >= PART_BYTES:
            yield b"".join(parts)
            parts, size = [], 0
    if parts:
        yield b"".join(parts)


def decode_rows(body: bytes) -> list[tuple[bytes, bytes | None]]:
    """Return the rows in a portion; None for the value of a deleted one."""
    rows: list[tuple[bytes, bytes | None]] = []
    at = 0
    while at < len(body):
        key_size, value_size = _unpacked(_ROW, body, at)
        at += _ROW.size
        key = _cut(body, at, key_size)
        at += key_size
        if value_size == _NO_VALUE:
            rows.append((key, None))
        else:
            rows.append((key, _cut(body, at, value_size)))
            at += value_size
    return rows


def stored_rows(body: bytes) -> list[tuple[bytes, bytes]]:
    """Return the rows in a portion that has no deleted ones."""
    return [(key, _present(value)) for key, value in decode_rows(body)]


def _present(value: bytes | None) -> bytes:
    if value is None:
        raise FrameError("a row has no value")
    return value


# The log


def encode_batch(batch: PackedBatch) -> tuple[dict[str, Any], bytes]:
    """Return a batch with the places of its entries."""
    runs = [[ledger_id, run.first_entry, len(run.offsets)] for ledger_id, run in batch.runs.items()]
    offsets = b"".join([_little_endian(run.offsets) for run in batch.runs.values()])
    return {"position": batch.position, "runs": runs}, offsets + batch.value


def decode_batch(fields: Fields, body: bytes) -> PackedBatch:
    """Return the batch in ``encode_batch``."""
    runs: dict[int, JournalRun] = {}
    at = 0
    for each in listed(fields, "runs"):
        ledger_id, first, count = integers(each, 3)
        run = runs[ledger_id] = JournalRun(first)
        run.offsets = _offsets(_cut(body, at, 4 * count))
        at += 4 * count
    value = body[at:]
    if any(not run.offsets or max(run.offsets) >= len(value) for run in runs.values()):
        raise FrameError("an entry is outside of its batch")
    return PackedBatch(integer(fields, "position"), value, runs)


def encode_log(batches: Iterable[tuple[int, bytes]]) -> bytes:
    """Return batches with their positions."""
    return b"".join([part for position, value in batches for part in (_LOGGED.pack(position, len(value)), value)])


def decode_log(body: bytes) -> list[tuple[int, bytes]]:
    """Return the batches in ``encode_log``."""
    batches: list[tuple[int, bytes]] = []
    at = 0
    while at < len(body):
        position, size = _unpacked(_LOGGED, body, at)
        batches.append((position, _cut(body, at + _LOGGED.size, size)))
        at += _LOGGED.size + size
    return batches


def _little_endian(offsets: "array[int]") -> bytes:
    if sys.byteorder == "big":
        offsets = offsets[:]
        offsets.byteswap()
    return offsets.tobytes()


def _offsets(data: bytes) -> "array[int]":
    offsets = array("I")
    offsets.frombytes(data)
    if sys.byteorder == "big":
        offsets.byteswap()
    return offsets


# Requests


def encode_read(request: ReadRequest) -> dict[str, Any]:
    """Return a read request without its ``work``."""
    return {
        "ledger": request.ledger_id,
        "first": request.first,
        "last": request.last,
        "bytes": request.max_bytes,
        "leftOut": request.left_out,
    }


def decode_read(fields: Fields) -> ReadRequest:
    """Return the request in ``encode_read``."""
    ledger_id, first, last, most = (integer(fields, name) for name in ("ledger", "first", "last", "bytes"))
    left_out = tuple((low, high) for low, high in (integers(each, 2) for each in listed(fields, "leftOut")))
    return ReadRequest(0, ledger_id, first, last, most, left_out)


def integer(fields: Fields, name: str) -> int:
    """Return a number of the fields, at least 0."""
    return integers([fields.get(name)], 1)[0]


def listed(fields: Fields, name: str) -> list[Any]:
    """Return a list of the fields."""
    value = fields.get(name)
    if not isinstance(value, list):
        raise FrameError(f"the field {name} is not a list")
    return value


def integers(value: Any, count: int) -> list[int]:
    """Return a list of so many numbers of at most 64 bits, each at least 0."""
    if not isinstance(value, list) or len(value) != count:
        raise FrameError(f"expected {count} numbers")
    if not all(isinstance(each, int) and 0 <= each < 1 << 64 for each in value):
        raise FrameError(f"expected {count} numbers")
    return value


def text(fields: Fields, name: str) -> str:
    """Return a string of the fields."""
    value = fields.get(name)
    if not isinstance(value, str):
        raise FrameError(f"the field {name} is not a string")
    return value


def _unpacked(layout: struct.Struct, body: bytes, at: int) -> tuple[Any, ...]:
    try:
        return layout.unpack_from(body, at)
    except struct.error:
        raise FrameError("a value is cut off") from None


def _cut(body: bytes, at: int, size: int) -> bytes:
    value = body[at : at + size]
    if len(value) != size:
        raise FrameError("a value is cut off")
    return value


# Errors

_ERRORS: Final[dict[str, Callable[[str], Exception]]] = {
    "full": StoreFull,
    "missing": EntryMissing,
    "value": ValueError,
    "persistence": PersistenceError,
}
_KINDS: Final = ((StoreFull, "full"), (EntryMissing, "missing"), (ValueError, "value"))


def encode_error(error: Exception) -> tuple[dict[str, Any], bytes]:
    """Return an error of a request, so that it can be raised at the other side."""
    if isinstance(error, EntryDamaged):
        places = [error.ledger_id, error.first, error.last]
        return {"error": "damaged", "places": places, "text": error.reason, "counts": error.counts}, error.body
    kind = next((kind for known, kind in _KINDS if isinstance(error, known)), "persistence")
    return {"error": kind, "text": str(error)}, b""


def decode_error(fields: Fields, body: bytes) -> Exception:
    """Return the error in ``encode_error``; one of an unknown kind as PersistenceError."""
    what = text(fields, "text")
    if fields.get("error") == "damaged":
        ledger_id, first, last = integers(fields.get("places"), 3)
        counts = fields.get("counts")
        known = None if counts is None else integers(counts, 4)
        return EntryDamaged(
            ledger_id, first, last, what, body, None if known is None else (known[0], known[1], known[2], known[3])
        )
    return _ERRORS.get(text(fields, "error"), PersistenceError)(what)
