"""Answers to reads, the same for every engine: which entries are included, where the list ends, when it is an error."""

import struct
from collections.abc import Callable, Iterable
from typing import Final

from pulsarbox.errors import EntryDamaged, PersistenceError
from pulsarbox.protocol.checksum import extend_bytes
from pulsarbox.storage.compression.decompressed_cache import DecompressedCache
from pulsarbox.storage.engine import ReadRequest
from pulsarbox.storage.entry_index import IndexSegment
from pulsarbox.storage.format import ENTRY_HEADER, RECORD_PREFIX, EntryFlag, RecordKind
from pulsarbox.storage.record import (
    MAGIC,
    Compressed,
    DecompressionError,
    Entry,
    NotNow,
    Unpacker,
    damaged,
    stored_entry,
    verify_entry,
)

_usual: Final = struct.Struct(">BBHIQQQQQQq16xIIIIHI").unpack_from
"""ENTRY_HEADER without the transaction id, then the first six bytes of an entry with a checksum."""
_HEADER_BYTES: Final = ENTRY_HEADER.size
assert struct.calcsize(">BBHIQQQQQQq16xIIIIHI") == _HEADER_BYTES + 6
_ENTRY: Final = int(RecordKind.ENTRY)
_CHECKSUM: Final = EntryFlag.CHECKSUM
new_entry: Final = tuple.__new__
"""A NamedTuple's own constructor takes three times as long."""


class EntryMissing(PersistenceError):
    """The store does not have the entry."""


class Answer:
    """The entries of a read so far. An engine feeds it segments until it is no longer ``open``."""

    __slots__ = (
        "_compressed",
        "_ledger_id",
        "_left_out",
        "_room",
        "_unpacked",
        "_unpacker",
        "entries",
        "last",
        "next_entry",
        "open",
    )

    def __init__(
        self, request: ReadRequest, unpacker: Unpacker | None = None, unpacked: DecompressedCache | None = None
    ) -> None:
        """``unpacked`` caches decompressed entries."""
        self._unpacker = unpacker
        self._unpacked = DecompressedCache(0) if unpacked is None else unpacked
        self._compressed: dict[int, Compressed] = {}
        """Entries still to decompress, by index in ``entries``, so that many are decompressed at once."""
        self._ledger_id = request.ledger_id
        self.last = request.last
        self._room = request.max_bytes
        self._left_out = list(reversed(request.left_out))
        self.entries: list[Entry] = []
        self.next_entry = request.first
        self.open = True
        if request.first > request.last:
            raise PersistenceError(f"read of ledger {request.ledger_id} from {request.first} to {request.last}")

    def collect(self, segments: Iterable[IndexSegment], value_at: Callable[[int], bytes | memoryview]) -> None:
        """Take entries from ``segments``, which start at ``next_entry``; ``value_at`` returns their batches.

        Raises EntryDamaged if the first entry of the answer is damaged; a later damaged entry closes the answer.
        """
        try:
            try:
                self._collect_all(segments, value_at)
            finally:
                self._unpack()
        except (EntryDamaged, NotNow):
            self.open = False
            if not self.entries:
                raise

    def _collect_all(self, segments: Iterable[IndexSegment], value_at: Callable[[int], bytes | memoryview]) -> None:
        for segment in segments:
            try:
                self._collect_from(segment, value_at)
            except EntryDamaged:
                self.open = False
                if not self.entries:
                    raise
            except (PersistenceError, struct.error) as error:
                self.open = False
                if not self.entries:
                    # If the batch does not match the index, none of its entries can be located.
                    last = segment.first_entry + len(segment.offsets) - 1
                    raise EntryDamaged(self._ledger_id, self.next_entry, last, str(error)) from error
            if not self.open:
                return

    def _collect_from(self, segment: IndexSegment, value_at: Callable[[int], bytes | memoryview]) -> None:
        first, offsets = segment.first_entry, segment.offsets
        end = min(first + len(offsets), self.last + 1)
        value: bytes | memoryview | None = None
        while (border := self._border(end) if self._left_out else end) > self.next_entry:
            if value is None:
                value = value_at(segment.position)
            for offset in offsets[self.next_entry - first : border - first]:
                if not self._collect_plain(value, offset) and not self._collect_one(value, offset):
                    self.open = False
                    return
        self.open = self.next_entry <= self.last

    def _border(self, end: int) -> int:
        """Skip what is left out; return the end of the wanted run that follows, at most ``end``."""
        left_out = self._left_out
        while left_out and left_out[-1][0] <= self.next_entry:
            self.next_entry = max(self.next_entry, left_out.pop()[1] + 1)
        return min(end, left_out[-1][0]) if left_out else end

    def nothing_more(self) -> None:
        """Close the answer: no engine has the next entry. Raises EntryMissing if it is the first."""
        self.open = False
        if not self.entries:
            raise EntryMissing(f"entry {self._ledger_id}:{self.next_entry} does not exist")

    def _collect_plain(self, value: bytes | memoryview, offset: int) -> bool:
        """Take an entry of the common form: sent with a checksum, uncompressed, whole, and within the limit.

        ``_collect_one`` handles every form.
        """
        try:
            (kind, flags, header_size, body_size, ledger_id, entry_id, messages, size, published, appended, deliver_at,
             count, key_hash, checksum, codec, magic, sent) = _usual(value, offset)  # fmt: skip
        except struct.error:  # shorter than that
            return False
        start = offset + _HEADER_BYTES
        if (
            kind != _ENTRY
            or header_size != _HEADER_BYTES
            or codec
            or not flags & _CHECKSUM
            or entry_id != self.next_entry
            or ledger_id != self._ledger_id
            or magic != MAGIC
            or sent != checksum
            or (body_size > self._room and self.entries)
        ):
            return False
        body = bytes(value[start : start + body_size])
        if len(body) != body_size or extend_bytes(0, body[6:]) != checksum:
            return False
        self.entries.append(
            new_entry(Entry, (ledger_id, entry_id, flags, count, messages, size, key_hash, published, appended,
                              deliver_at, checksum, body))
        )  # fmt: skip
        self._room -= body_size
        self.next_entry = entry_id + 1
        return True

    def _collect_one(self, value: bytes | memoryview, offset: int) -> bool:
        kept = self._unpacked.get(self._ledger_id, self.next_entry)
        if kept is not None:
            return self._collect_cached(kept)
        body_size = RECORD_PREFIX.unpack_from(value, offset)[3]
        if self.entries and body_size > self._room:
            return False
        entry, compressed = stored_entry(value, offset)
        if entry.ledger_id != self._ledger_id or entry.entry_id != self.next_entry:
            raise PersistenceError(f"the index points to entry {entry.ledger_id}:{entry.entry_id}")
        if compressed is None:
            verify_entry(entry)
        elif self.entries and compressed.size > self._room:
            return False
        else:
            body_size = compressed.size
            self._compressed[len(self.entries)] = compressed
        self.entries.append(entry)
        self._room -= body_size
        self.next_entry += 1
        return True

    def _collect_cached(self, entry: Entry) -> bool:
        size = len(entry.body)
        if self.entries and size > self._room:
            return False
        self.entries.append(entry)
        self._room -= size
        self.next_entry += 1
        return True

    def _unpack(self) -> None:
        """Decompress the compressed entries. Raises EntryDamaged or NotNow; the list then ends before that entry."""
        if not self._compressed:
            return
        waiting, self._compressed = self._compressed, {}
        groups: dict[tuple[bytes, int], list[int]] = {}
        for at, compressed in waiting.items():
            groups.setdefault((compressed.tag, compressed.dictionary), []).append(at)
        failed: dict[int, Exception] = {}
        for places in groups.values():
            try:
                self._unpack_all(places, waiting)
            except (DecompressionError, NotNow):
                failed |= self._unpack_until(places, waiting)
        for at in waiting:
            if at >= min(failed, default=len(self.entries)):
                break
            entry = self.entries[at]
            try:
                verify_entry(entry)
            except EntryDamaged as error:
                failed[at] = error
            else:
                self._unpacked.store(entry)
        if failed:
            self._end_before(min(failed), failed[min(failed)], waiting[min(failed)].size)

    def _unpack_until(self, places: list[int], waiting: dict[int, Compressed]) -> dict[int, Exception]:
        """Decompress one by one up to the first failure; return its index and cause."""
        for at in places:
            try:
                self._unpack_all([at], waiting)
            except (DecompressionError, NotNow) as error:
                return {at: error}
        return {}

    def _end_before(self, at: int, failure: Exception, size: int) -> None:
        bad = self.entries[at]
        self.next_entry = bad.entry_id
        del self.entries[at:]
        if isinstance(failure, DecompressionError):
            raise damaged(bad, str(failure), size) from failure
        raise failure

    def _unpack_all(self, places: list[int], waiting: dict[int, Compressed]) -> None:
        entries = self.entries
        first = waiting[places[0]]
        if self._unpacker is None:
            raise NotNow(f"entry {self._ledger_id}:{entries[places[0]].entry_id} is compressed")
        packed = [entries[at].body for at in places]
        bodies = self._unpacker.unpack(first.tag, first.dictionary, packed, [waiting[at].size for at in places])
        for at, body in zip(places, bodies, strict=True):
            entries[at] = entries[at]._replace(body=body)
