"""Extraction of entries from stored batches: verified, and decompressed if necessary."""

from collections.abc import Callable, Sequence
from struct import Struct, calcsize, unpack
from typing import Final, NamedTuple

from pulsarbox.errors import EntryDamaged, PersistenceError
from pulsarbox.protocol.checksum import crc32c, extend_bytes
from pulsarbox.storage.compression.decoder import RestUnpacker
from pulsarbox.storage.format import (
    BATCH_HEADER,
    COMPACTED_PREFIX,
    ENTRY_HEADER,
    INDEX_SEGMENT,
    RECORD_PREFIX,
    EntryFlag,
    RecordKind,
)
from pulsarbox.storage.record import CHECKSUM_PREFIX, MAGIC, Compressed, DecompressionError, NotNow, compressed_as

ROWS_MAX: Final = 4096
BYTES_MAX: Final = 4 << 20
"""Size limit of one answer, with ROWS_MAX."""
_MARKER: Final = EntryFlag.MARKER
_CHECKSUM: Final = EntryFlag.CHECKSUM
_OWN_CHECKSUM: Final = EntryFlag.OWN_CHECKSUM
_KINDS: Final = _CHECKSUM | _OWN_CHECKSUM | _MARKER
_ENTRY: Final = RecordKind.ENTRY
_header: Final = Struct(">BBHIQQ64xII").unpack_from
"""Fields of ENTRY_HEADER used here: kind, flags, both sizes, ledger, entry, checksum, codec."""
assert calcsize(">BBHIQQ64xII") == ENTRY_HEADER.size
_head: Final = CHECKSUM_PREFIX.unpack_from
_record: Final = Struct(">BBHIQQ64xIIHI").unpack_from
"""The same, plus the prefix of an entry with a checksum, for headers of the current length."""
_RECORD_BYTES: Final = calcsize(">BBHIQQ64xIIHI")
assert ENTRY_HEADER.size + CHECKSUM_PREFIX.size == _RECORD_BYTES
_HEADER_BYTES: Final = ENTRY_HEADER.size
_segment: Final = INDEX_SEGMENT.unpack_from
_SEGMENT_BYTES: Final = INDEX_SEGMENT.size

Entry = tuple[int, int, bytes]
"""Ledger, entry, and the bytes as the client sent them, verified."""
Run = tuple[int, int, Sequence[int]]
"""Consecutive entries of one batch: its position, the first entry, and the offset of each entry's record."""


class NotInPlace(PersistenceError):
    """Entries cannot be read in place; the message says why."""


def runs_of_row(first: int, row: memoryview, entry: int) -> list[Run]:
    """Return the runs of an index row from ``entry`` on; none if the row ends before.

    Unlike storage.entry_index.unpack_row, builds no object per run: if topics interleave, each run is a single entry.

    Raises ValueError and IndexError for a damaged row.
    """
    words = unpack(f">{len(row) // 4}I", row)
    found: list[Run] = []
    at = 0
    while at < len(words):
        count = words[at + 2]
        end = at + 3 + count
        if not count or end > len(words):
            raise ValueError(f"{count} offsets in {len(row)} bytes")
        if first + count > entry:
            begin = at + 3 + max(entry - first, 0)
            found.append((words[at] << 32 | words[at + 1], max(entry, first), words[begin:end]))
        at = end
        first += count
    return found


def position_in_row(first: int, row: memoryview, entry: int) -> int:
    """Return the position of the batch with ``entry``; -1 if the index row ends before. Raises as ``runs_of_row``."""
    at = 0
    while at < len(row):
        position, count = _segment(row, at)
        at += _SEGMENT_BYTES + 4 * count
        if not count or at > len(row):
            raise ValueError(f"{count} offsets in {len(row)} bytes")
        first += count
        if first > entry:
            return int(position)
    return -1


class _Pending(NamedTuple):
    """Entry to decompress: its index in the list, and fields of its header."""

    at: int
    compressed: Compressed
    flags: int
    checksum: int


class Extractor:
    """Entries collected for one answer."""

    __slots__ = ("_first", "_ledger", "_pending", "found", "last", "next", "open", "size")

    def __init__(self, ledger: int, first: int, last: int) -> None:
        self.next = first
        self.open = True
        self._first = first
        self._ledger = ledger
        self.last = last
        self.found: list[Entry] = []
        self._pending: list[_Pending] = []
        self.size = 0

    def extract(self, runs: list[Run], value_at: Callable[[int], memoryview | None]) -> None:
        """Collect from these runs, which begin with the next entry, until the answer is full."""
        for position, first, offsets in runs:
            value = value_at(position)
            wanted = offsets[: self.last - first + 1]
            try:
                if value is None:
                    raise PersistenceError(f"batch {position} is missing")
                self.extract_at(value, wanted)
            except EntryDamaged as error:
                self._end(error)
            except Exception as error:  # contradicts the index; C code raises struct.error
                self._end(EntryDamaged(self._ledger, self.next, first + len(offsets) - 1, str(error)))
            if self.next > self.last or self.size >= BYTES_MAX or len(self.found) >= ROWS_MAX:
                self.open = False
            if not self.open:
                return

    def _end(self, error: EntryDamaged) -> None:
        self.open = False
        if not self.found:
            raise error

    def extract_at(self, value: memoryview | bytes, offsets: Sequence[int]) -> None:
        """Collect the next entries from records at ``offsets``. Raises EntryDamaged, PersistenceError, struct.error."""
        ledger, found, entry = self._ledger, self.found, self.next
        append = found.append
        size = 0
        try:
            for offset in offsets:
                kind, flags, header_size, body_size, its_ledger, its_entry, checksum, codec = _header(value, offset)
                start = offset + header_size
                body = bytes(value[start : start + body_size])
                if its_entry != entry or its_ledger != ledger or kind != _ENTRY or len(body) != body_size:
                    raise PersistenceError(f"the index points to entry {its_ledger}:{its_entry}")
                if codec:
                    compressed = compressed_as(value, offset)
                    assert compressed is not None
                    self._pending.append(_Pending(len(found), compressed, flags, checksum))
                    size += compressed.size
                elif flags & _CHECKSUM:
                    if extend_bytes(0, body[6:]) != checksum or _head(body) != (MAGIC, checksum):
                        raise _damaged(ledger, entry)
                elif flags & _OWN_CHECKSUM and extend_bytes(0, body) != checksum:
                    raise _damaged(ledger, entry)
                size += body_size
                if flags & _MARKER:
                    body = b""
                append((ledger, entry, body))
                entry += 1
        finally:
            self.next = entry
            self.size += size

    @property
    def rows(self) -> int:
        """The number of entries, including markers."""
        return self.next - self._first

    def entries(self, unpacker: RestUnpacker) -> list[Entry]:
        """Return the entries, decompressed and without markers, up to the first damaged one.

        Raises EntryDamaged if the first one is damaged, and NotInPlace.
        """
        if self._pending:
            try:
                self._unpack(unpacker)
            except EntryDamaged as error:
                self.next = error.first
                del self.found[error.first - self._first :]
                if not self.found:
                    raise
        return [entry for entry in self.found if entry[2]]

    def _unpack(self, unpacker: RestUnpacker) -> None:
        groups: dict[tuple[bytes, int], list[_Pending]] = {}
        damage: EntryDamaged | None = None
        for each in self._pending:
            groups.setdefault((each.compressed.tag, each.compressed.dictionary), []).append(each)
        for (tag, dictionary), group in groups.items():
            packed = [self.found[each.at][2] for each in group]
            bodies: Sequence[bytes | EntryDamaged]
            try:
                bodies = unpacker.unpack(tag, dictionary, packed, [each.compressed.size for each in group])
            except NotNow as error:
                raise NotInPlace(f"{error}. Set option pluginsDir to the directory of the plugins") from error
            except DecompressionError:
                bodies = [self._unpacked(unpacker, each) for each in group]
            for each, body in zip(group, bodies, strict=True):
                ledger, entry, _ = self.found[each.at]
                if isinstance(body, EntryDamaged) or not _is_whole(each, body):
                    found = body if isinstance(body, EntryDamaged) else _damaged(ledger, entry)
                    if damage is None or found.first < damage.first:
                        damage = found
                else:
                    self.found[each.at] = (ledger, entry, body)
        if damage is not None:
            raise damage

    def _unpacked(self, unpacker: RestUnpacker, pending: _Pending) -> bytes | EntryDamaged:
        ledger, entry, packed = self.found[pending.at]
        tag, size, dictionary = pending.compressed
        try:
            return unpacker.unpack(tag, dictionary, [packed], [size])[0]
        except DecompressionError as error:
            return EntryDamaged(ledger, entry, entry, str(error))


def take_batch(value: bytes, takings: dict[int, Extractor]) -> tuple[int, int]:
    """Collect a whole batch's entries of some ledgers; return the counts of its records and of those collected.

    A ledger leaves ``takings`` once it is complete, or if a record is not its next entry or is damaged. Raises
    PersistenceError and struct.error for malformed records.
    """
    at, size = BATCH_HEADER.size, len(value)
    seen = taken = 0
    while at + _RECORD_BYTES <= size:
        begin = at
        kind, flags, header_size, body_size, ledger, entry, checksum, codec, magic, crc = _record(value, at)
        if header_size < RECORD_PREFIX.size:
            raise PersistenceError(f"invalid header size: {header_size} bytes")
        start = at + header_size
        at = start + body_size
        seen += 1
        if kind != _ENTRY or (taking := takings.get(ledger)) is None or entry < taking.next:
            continue
        if entry > taking.next or at > size:
            del takings[ledger]
            continue
        if flags & _KINDS == _CHECKSUM and not codec and header_size == _HEADER_BYTES:
            body = value[start:at]
            if crc != checksum or magic != MAGIC or extend_bytes(0, body[6:]) != checksum:
                del takings[ledger]  # damaged
                continue
            taking.found.append((ledger, entry, body))
            taking.next = entry + 1
        else:
            try:
                taking.extract_at(value, (begin,))
            except EntryDamaged:
                del takings[ledger]
                continue
        taken += 1
        if entry >= taking.last:
            del takings[ledger]
    return seen, taken


def _is_whole(pending: _Pending, body: bytes) -> bool:
    if pending.flags & _CHECKSUM:
        return crc32c(body[6:]) == pending.checksum and _head(body) == (MAGIC, pending.checksum)
    return not pending.flags & _OWN_CHECKSUM or crc32c(body) == pending.checksum


def compacted(entries: list[Entry]) -> list[Entry]:
    """Return entries of a compacted ledger under their original IDs."""
    size = COMPACTED_PREFIX.size
    return [(*COMPACTED_PREFIX.unpack_from(body)[:2], body[size:]) for _, _, body in entries]


def _damaged(ledger: int, entry: int) -> EntryDamaged:
    return EntryDamaged(ledger, entry, entry, "its bytes do not match its checksum")
