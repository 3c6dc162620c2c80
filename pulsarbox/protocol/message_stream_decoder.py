"""Entries out of a stream of MESSAGE frames, many at a time: verified, and no object for each frame.

The frames that a consumer gets one after the other differ in the number of the entry. So what the next one has to begin
with is known, and is compared with what it begins with. What is not as expected (another command, another entry,
something that goes with the entry, no checksum or a wrong one) stays where it is: to be cut and parsed by itself.
"""

from __future__ import annotations

from collections.abc import Callable
from functools import cache
from struct import Struct
from typing import Any, Final, NamedTuple, Protocol

from google.protobuf.message import DecodeError

from pulsarbox.protocol.checksum import extend_bytes
from pulsarbox.protocol.commands import MAGIC
from pulsarbox.protocol.PulsarApi_pb2 import MessageMetadata
from pulsarbox.protocol.varint import varint

_MESSAGE: Final = b"\x08\x09\x4a"
"""The number of the command and the tag of its part: how every broker begins it."""
_MAGIC: Final = int.from_bytes(MAGIC, "big")
_COUNT: Final = b"\x58"
"""The tag of MessageMetadata.num_messages_in_batch; where it is not, there is none."""
_sizes: Final = Struct(">II").unpack_from
_metadata: Final = MessageMetadata.FromString


class Reader(Protocol):
    """A consumer whose entries are taken many at a time."""

    number: int
    """Under which they are found."""
    ledger: int
    next: int
    """The entry that comes next."""
    last: int
    """The last one up to which all follow each other and may be taken; before ``next`` where none may."""

    def took(self, end: int, messages: int) -> None:
        """The entries before ``end`` were taken, of so many messages: to set ``next`` and ``last``."""


class Entries(NamedTuple):
    """Entries in the order in which they came: one of each list is one of them."""

    data: bytes
    """In which they are."""
    numbers: list[int]
    """Of their readers."""
    entries: list[int]
    metadata: list[bytes]
    bodies: list[int]
    """Two each: where in ``data`` the body begins, right behind the metadata, and where it ends."""


class Deliveries:
    """What was taken for some readers."""

    def __init__(self) -> None:
        self.readers: dict[int, Reader] = {}
        """By consumer id."""
        self.size = 0
        """Bytes in which the entries are."""
        self._clear()

    def _clear(self) -> None:
        self.size = 0
        self._pieces: list[bytes] = []
        self._numbers: list[int] = []
        self._entries: list[int] = []
        self._metadata: list[bytes] = []
        self._bodies: list[int] = []

    def drain(self) -> Entries | None:
        """All that was taken since the last time; None for nothing."""
        if not self._entries:
            return None
        data = self._pieces[0] if len(self._pieces) == 1 else b"".join(self._pieces)
        found = Entries(data, self._numbers, self._entries, self._metadata, self._bodies)
        self._clear()
        return found

    def take(self, data: bytes, at: int) -> int:
        """Take the frames from ``at`` on, as long as they are those that readers expect; where the next one begins."""
        while (found := self._reader_of(data, at)) is not None:
            end = self._run(data, at, *found)
            if end == at:
                break
            at = end
        return at

    def _reader_of(self, data: bytes, at: int) -> tuple[Reader, bytes, bytes] | None:
        """Who expects the frame there, and what stands in its command, its size included, before and behind the number
        of the entry. None where nobody does, or it may not be taken."""
        begin = at + 8
        if len(data) < begin:
            return None
        command = data[begin : begin + _sizes(data, at)[1]]
        parts = _parts(command)
        reader = None if parts is None else self.readers.get(parts[0])
        if parts is None or reader is None:
            return None
        _, ledger, entry, start, end = parts
        if ledger != reader.ledger or entry != reader.next or entry > reader.last:
            return None
        return reader, data[at + 4 : begin + start], command[end:]

    def _run(self, data: bytes, at: int, reader: Reader, before: bytes, behind: bytes) -> int:
        """Take frames of one reader that look like this one; where the first one begins that does not."""
        first, entry, last = reader.next, reader.next, reader.last
        expected = before + varint(entry) + behind
        head = 14 + len(expected)
        unpack, extend, end = _layout(len(expected)), extend_bytes, len(data)
        is_new = not self._pieces or self._pieces[-1] is not data
        shift = self.size if is_new else self.size - end
        metadata, bodies = self._metadata, self._bodies
        room, more = end - head, 0
        while at <= room and entry <= last:
            total, command, magic, checksum, size = unpack(data, at)
            start = at + head
            body, stop = start + size, at + 4 + total
            if (
                command != expected
                or magic != _MAGIC
                or not body <= stop <= end
                or extend(0, data[start - 4 : stop]) != checksum
            ):
                break
            says = data[start:body]
            if _COUNT in says:
                messages = _messages(says)
                if messages < 1:
                    break
                more += messages - 1
            metadata.append(says)
            bodies.append(shift + body)
            bodies.append(shift + stop)
            at = stop
            entry += 1
            expected = before + varint(entry) + behind
        count = entry - first
        if count:
            if is_new:
                self._pieces.append(data)
                self.size += end
            self._numbers += [reader.number] * count
            self._entries += range(first, entry)
            reader.took(entry, count + more)
        return at


@cache
def _layout(command: int) -> Callable[[bytes, int], tuple[Any, ...]]:
    """Unpacks the beginning of a frame: its size, that of its command and the command itself together in so many bytes,
    and of its payload magic number, checksum, size of the metadata."""
    return Struct(f">I{command}sHII").unpack_from


def _parts(command: bytes) -> tuple[int, int, int, int, int] | None:
    """Of a MESSAGE that names an entry and nothing else: consumer, ledger, entry, and where the number of the latter
    begins and ends."""
    size = len(command) - 4
    if not 0 < size < 128 or command[:5] != _MESSAGE + bytes((size, 0x08)):
        return None
    try:
        consumer, at = _varint(command, 5)
        if command[at : at + 3] != bytes((0x12, len(command) - at - 2, 0x08)):
            return None
        ledger, at = _varint(command, at + 3)
        entry, end = _varint(command, at + 1)
        # behind it the partition may stand
        is_over = end == len(command) or (command[end] == 0x18 and _varint(command, end + 1)[1] == len(command))
        return (consumer, ledger, entry, at + 1, end) if is_over and command[at] == 0x10 else None
    except (IndexError, ValueError):
        return None


def _varint(data: bytes, at: int) -> tuple[int, int]:
    """A varint and where it ends. Raises IndexError where it does not."""
    found = shift = 0
    while (byte := data[at]) > 0x7F:
        found |= (byte & 0x7F) << shift
        shift += 7
        at += 1
    return found | byte << shift, at + 1


def _messages(metadata: bytes) -> int:
    """How many messages an entry has; 0 where this is no metadata."""
    try:
        return _metadata(metadata).num_messages_in_batch
    except DecodeError:
        return 0
