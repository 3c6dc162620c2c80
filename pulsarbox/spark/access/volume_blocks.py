"""Blocks of verified entries of many ledgers, in stored order and without an object per entry.

Handles ordinary entries only: sent with a checksum and stored uncompressed. A ledger's walk ends at any other entry,
which ``extractor`` handles.
"""

from bisect import bisect_right
from collections.abc import Iterator, Mapping, Sequence
from struct import Struct, calcsize
from typing import Final, NamedTuple

from pulsarbox.errors import PersistenceError
from pulsarbox.protocol.checksum import extend_bytes
from pulsarbox.storage.format import BATCH_HEADER, ENTRY_HEADER, RECORD_PREFIX, EntryFlag, RecordKind
from pulsarbox.storage.record import MAGIC

FRAME_HEAD: Final = 10
"""Bytes before an entry's metadata: magic number, checksum, metadata size."""
_RECORD: Final = ">IIQQ64xI6sII"
_record: Final = Struct(_RECORD).unpack_from
"""Fields of ENTRY_HEADER used here, then FRAME_HEAD: kind, flags and header size as one word, body size, ledger, entry,
checksum, codec and magic number as one, checksum, metadata size."""
_RECORD_BYTES: Final = calcsize(_RECORD)
_HEADER_BYTES: Final = ENTRY_HEADER.size
assert _HEADER_BYTES + FRAME_HEAD == _RECORD_BYTES
_BATCH_BYTES: Final = BATCH_HEADER.size
_ENTRY: Final = RecordKind.ENTRY
_MIDDLE: Final = bytes(4) + MAGIC.to_bytes(2)
"""No codec, then the magic number."""


def _words(*more: int) -> frozenset[int]:
    """Return the first words of entries with a checksum and these flags, with any of the usual flags."""
    found = {_ENTRY << 24 | EntryFlag.CHECKSUM << 16 | _HEADER_BYTES}
    for flag in (EntryFlag.KEY, EntryFlag.BATCH, EntryFlag.TRANSACTION):
        found |= {word | flag << 16 for word in found}
    return frozenset(word | flag << 16 for word in found for flag in (more or (0,)))


_USUAL: Final = _words()
_MARKERS: Final = _words(EntryFlag.MARKER)


class WantedEntries(NamedTuple):
    """Requested entries of one ledger, with the number of the want."""

    number: int
    first: int
    last: int


class Block(NamedTuple):
    """Entries in stored order, in parallel lists."""

    data: bytes
    """The buffer that holds the entries."""
    numbers: list[int]
    """Number of the want of each entry."""
    entries: list[int]
    metadata: list[bytes]
    bodies: list[int]
    """Two per entry: start and end in ``data`` of the body, which follows the metadata."""
    ledgers: Mapping[int, int]
    """Ledger by want number. The same object for all blocks of a walk."""

    def part(self, begin: int, entries: int, size: int) -> "Block":
        """Return at most ``entries`` entries or ``size`` bytes from ``begin`` on, at least one entry."""
        by_size = bisect_right(self.bodies, self.bodies[2 * begin] + size, 2 * begin) // 2
        end = max(begin + 1, min(begin + entries, by_size))
        if end - begin >= len(self.entries):
            return self
        return self._replace(
            numbers=self.numbers[begin:end],
            entries=self.entries[begin:end],
            metadata=self.metadata[begin:end],
            bodies=self.bodies[2 * begin : 2 * end],
        )

    def each(self) -> dict[int, list[tuple[int, int, bytes]]]:
        """Return the entries by want number: ledger, entry, and the bytes as the client sent them."""
        found: dict[int, list[tuple[int, int, bytes]]] = {}
        ends = iter(self.bodies)
        for number, entry, metadata, begin, end in zip(
            self.numbers, self.entries, self.metadata, ends, ends, strict=True
        ):
            stored = self.data[begin - len(metadata) - FRAME_HEAD : end]
            found.setdefault(number, []).append((self.ledgers[number], entry, stored))
        return found


class BatchWalk:
    """Extraction of wanted entries from consecutive batches."""

    def __init__(self, wanted: Mapping[int, WantedEntries]) -> None:
        """Start the walk; ``wanted`` is by ledger."""
        self._ledgers = {each.number: ledger for ledger, each in wanted.items()}
        self._open = {ledger: [each.first, each.last, each.number] for ledger, each in wanted.items()}
        """Ledgers still being walked: next entry, last entry and want number."""
        self._ends: dict[int, int] = {}
        """For the other wants, by number: the entry after the last one extracted."""
        self.others = 0
        """Number of records skipped as unwanted."""

    @property
    def ends(self) -> dict[int, int]:
        """The first entry not extracted, by want number."""
        return {number: entry for entry, _, number in self._open.values()} | self._ends

    @property
    def nexts(self) -> Iterator[tuple[int, int]]:
        """Ledgers still being walked, with the next entry of each."""
        return ((ledger, each[0]) for ledger, each in self._open.items())

    @property
    def is_over(self) -> bool:
        """Whether no ledger is left to walk."""
        return not self._open

    def collect(self, data: bytes, ends: Sequence[int]) -> Block:
        """Return the wanted entries of some joined batches; ``ends`` are the batches' ends.

        Raises PersistenceError and struct.error for malformed records, with the walk unchanged.
        """
        before = {ledger: each.copy() for ledger, each in self._open.items()}, self._ends.copy()
        try:
            return self._take(data, ends)
        except BaseException:
            self._open, self._ends = before
            raise

    def _take(self, data: bytes, ends: Sequence[int]) -> Block:
        usual, middle_of_usual, record, extend, find = _USUAL, _MIDDLE, _record, extend_bytes, self._open.get
        block = Block(data, [], [], [], [], self._ledgers)
        add_number, add_entry, add_metadata = block.numbers.append, block.entries.append, block.metadata.append
        add_place = block.bodies.append
        others = 0
        for begin, end in zip((0, *ends), ends, strict=False):
            at, stop = begin + _BATCH_BYTES, end - _RECORD_BYTES
            while at <= stop:
                word, size, ledger, entry, check, middle, checksum, metadata_size = record(data, at)
                wanted = find(ledger)
                if wanted is None or wanted[0] != entry or word not in usual:
                    if word in usual and (wanted is None or wanted[0] > entry):
                        others += 1
                        at += _HEADER_BYTES + size
                    else:
                        at = self._pass(data, at, end)
                    continue
                start = at + _RECORD_BYTES
                body = start + metadata_size
                at += _HEADER_BYTES + size
                if (
                    check != checksum
                    or middle != middle_of_usual  # compressed or damaged
                    or not body <= at <= end
                    or extend(0, data[start - 4 : at]) != checksum
                ):
                    self._end(ledger, entry)
                    continue
                add_number(wanted[2])
                add_entry(entry)
                add_metadata(data[start:body])
                add_place(body)
                add_place(at)
                if entry < wanted[1]:
                    wanted[0] = entry + 1
                else:
                    self._end(ledger, entry + 1)
        self.others += others
        return block

    def _pass(self, data: bytes, at: int, end: int) -> int:
        """Skip a record that is not extracted; return the position of the next."""
        word, size, ledger, entry, check, middle, checksum, _ = _record(data, at)
        header = word & 0xFFFF
        if header < RECORD_PREFIX.size:
            raise PersistenceError(f"invalid header size: {header} bytes")
        start = at + header
        wanted = self._open.get(ledger)
        if word >> 24 != _ENTRY or wanted is None or wanted[0] > entry:
            self.others += 1
        elif (
            word in _MARKERS
            and wanted[0] == entry < wanted[1]
            and check == checksum
            and middle == _MIDDLE
            and start + size <= end
            and extend_bytes(0, data[start + 6 : start + size]) == checksum
        ):
            wanted[0] = entry + 1
        else:  # the next entry, but unusual, or a later one
            self._end(ledger, wanted[0])
        return int(start + size)

    def _end(self, ledger: int, entry: int) -> None:
        """End the walk of a ledger at this entry."""
        self._ends[self._open.pop(ledger)[2]] = entry
