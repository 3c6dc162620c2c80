"""Entries of many ledgers as they stand in a volume: verified, and no object for each.

What is here is what most entries are: sent with a checksum, stored as they came. A ledger is let go from where anything
else stands: ``taking`` has that.
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
"""Bytes in front of an entry's metadata: magic number, checksum, size of the metadata."""
_RECORD: Final = ">IIQQ64xI6sII"
_record: Final = Struct(_RECORD).unpack_from
"""Of ENTRY_HEADER what is needed here, and FRAME_HEAD behind it: kind, flags and header size as one word, size of the
body, ledger, entry, checksum, codec and magic number as one, checksum, size of the metadata."""
_RECORD_BYTES: Final = calcsize(_RECORD)
_HEADER_BYTES: Final = ENTRY_HEADER.size
assert _HEADER_BYTES + FRAME_HEAD == _RECORD_BYTES
_BATCH_BYTES: Final = BATCH_HEADER.size
_ENTRY: Final = RecordKind.ENTRY
_MIDDLE: Final = bytes(4) + MAGIC.to_bytes(2)
"""No codec, then the magic number."""


def _words(*more: int) -> frozenset[int]:
    """What an entry with a checksum and these flags, or some of the usual ones, begins with."""
    found = {_ENTRY << 24 | EntryFlag.CHECKSUM << 16 | _HEADER_BYTES}
    for flag in (EntryFlag.KEY, EntryFlag.BATCH, EntryFlag.TRANSACTION):
        found |= {word | flag << 16 for word in found}
    return frozenset(word | flag << 16 for word in found for flag in (more or (0,)))


_USUAL: Final = _words()
_MARKERS: Final = _words(EntryFlag.MARKER)


class Wanted(NamedTuple):
    """Entries of one ledger, and who wants them."""

    number: int
    first: int
    last: int


class Block(NamedTuple):
    """Entries in the order in which they stand: one of each list is one of them."""

    data: bytes
    """In which they are."""
    numbers: list[int]
    """Who wants them."""
    entries: list[int]
    metadata: list[bytes]
    bodies: list[int]
    """Two each: where in ``data`` the body begins, right behind the metadata, and where it ends."""
    ledgers: Mapping[int, int]
    """By who wants them: the ledger. The same object for all blocks of a walk."""

    def part(self, begin: int, entries: int, size: int) -> "Block":
        """Entries from ``begin`` on: so many, or so many bytes, one at least."""
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
        """The same by who wants them: ledger, entry, and the bytes as the client sent them."""
        found: dict[int, list[tuple[int, int, bytes]]] = {}
        ends = iter(self.bodies)
        for number, entry, metadata, begin, end in zip(
            self.numbers, self.entries, self.metadata, ends, ends, strict=True
        ):
            stored = self.data[begin - len(metadata) - FRAME_HEAD : end]
            found.setdefault(number, []).append((self.ledgers[number], entry, stored))
        return found


class Walk:
    """Takes what is wanted out of batch after batch."""

    def __init__(self, wanted: Mapping[int, Wanted]) -> None:
        """``wanted``: by ledger."""
        self._ledgers = {each.number: ledger for ledger, each in wanted.items()}
        self._open = {ledger: [each.first, each.last, each.number] for ledger, each in wanted.items()}
        """Of ledgers from which something can still be taken: the next entry, the last, and who wants them."""
        self._ends: dict[int, int] = {}
        """By who wants the others: the entry behind the last that was taken."""
        self.others = 0
        """Records that were not wanted."""

    @property
    def ends(self) -> dict[int, int]:
        """By who wants them: the first entry that was not taken."""
        return {number: entry for entry, _, number in self._open.values()} | self._ends

    @property
    def nexts(self) -> Iterator[tuple[int, int]]:
        """Ledgers from which something can still be taken, and the next entry of each."""
        return ((ledger, each[0]) for ledger, each in self._open.items())

    @property
    def is_over(self) -> bool:
        """Whether nothing can be taken any more."""
        return not self._open

    def take(self, data: bytes, ends: Sequence[int]) -> Block:
        """What is wanted of some batches, one behind the other; ``ends`` are where each one ends.

        Raises PersistenceError and struct.error where these are no records: then nothing was taken.
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
                    or middle != middle_of_usual  # there is a codec, or it is damaged
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
        """Step over a record that is not taken; where the next one is."""
        word, size, ledger, entry, check, middle, checksum, _ = _record(data, at)
        header = word & 0xFFFF
        if header < RECORD_PREFIX.size:
            raise PersistenceError(f"a header of {header} bytes")
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
        else:  # it is the next one, and unusual; or that is not here
            self._end(ledger, wanted[0])
        return int(start + size)

    def _end(self, ledger: int, entry: int) -> None:
        """Nothing of a ledger can be taken from this entry on."""
        self._ends[self._open.pop(ledger)[2]] = entry
