"""Bulk decoding of MESSAGE frames into entries, with checksum verification and without an object for each frame.

Consecutive frames of a consumer differ only in the entry ID, so the start of the next frame is predicted and compared.
A frame that differs from the prediction (another command or entry, extra fields, a missing or wrong checksum) is left
in place, to be parsed on its own.
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
"""The command type and the tag of its field, as every broker encodes them."""
_MAGIC: Final = int.from_bytes(MAGIC, "big")
_COUNT: Final = b"\x58"
"""The tag of MessageMetadata.num_messages_in_batch; without this byte the field is absent."""
_sizes: Final = Struct(">II").unpack_from
_metadata: Final = MessageMetadata.FromString


class Reader(Protocol):
    """A consumer whose entries are decoded in bulk."""

    number: int
    """Identifies the reader in ``Entries.numbers``."""
    ledger: int
    next: int
    """The next expected entry ID."""
    last: int
    """The last entry ID of the consecutive run that may be decoded; before ``next`` if none may."""

    def took(self, end: int, messages: int) -> None:
        """Record that the entries before ``end``, with ``messages`` messages, were decoded: update ``next`` and
        ``last``."""


class Entries(NamedTuple):
    """Entries in order of arrival, as parallel lists."""

    data: bytes
    """The bytes that hold the entries."""
    numbers: list[int]
    """Reader numbers."""
    entries: list[int]
    metadata: list[bytes]
    bodies: list[int]
    """Two offsets in ``data`` for each entry: the start of the body, right after the metadata, and its end."""


class Deliveries:
    """Decoded entries of some readers, until they are drained."""

    def __init__(self) -> None:
        self.readers: dict[int, Reader] = {}
        """Readers by consumer ID."""
        self.size = 0
        """Bytes of the data that holds the entries."""
        self._clear()

    def _clear(self) -> None:
        self.size = 0
        self._pieces: list[bytes] = []
        self._numbers: list[int] = []
        self._entries: list[int] = []
        self._metadata: list[bytes] = []
        self._bodies: list[int] = []

    def drain(self) -> Entries | None:
        """Return all entries decoded since the last call, or None."""
        if not self._entries:
            return None
        data = self._pieces[0] if len(self._pieces) == 1 else b"".join(self._pieces)
        found = Entries(data, self._numbers, self._entries, self._metadata, self._bodies)
        self._clear()
        return found

    def decode(self, data: bytes, at: int) -> int:
        """Decode frames from ``at`` on while readers expect them; return the offset of the first frame not decoded."""
        while (found := self._reader_of(data, at)) is not None:
            end = self._run(data, at, *found)
            if end == at:
                break
            at = end
        return at

    def _reader_of(self, data: bytes, at: int) -> tuple[Reader, bytes, bytes] | None:
        """Return the reader that expects the frame at ``at``, and the bytes of its command, size included, before and
        after the entry ID. None if no reader expects it or it may not be decoded."""
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
        """Decode frames of one reader that match the prediction; return the offset of the first that does not."""
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
    """Return an unpacker of a frame's start: its size, the command with its size in ``command`` bytes, and magic
    number, checksum and metadata size of its payload."""
    return Struct(f">I{command}sHII").unpack_from


def _parts(command: bytes) -> tuple[int, int, int, int, int] | None:
    """Parse a MESSAGE with a plain message ID: return consumer, ledger and entry ID, and the offsets of the entry ID's
    start and end. None if the command has other fields."""
    size = len(command) - 4
    if not 0 < size < 128 or command[:5] != _MESSAGE + bytes((size, 0x08)):
        return None
    try:
        consumer, at = _varint(command, 5)
        if command[at : at + 3] != bytes((0x12, len(command) - at - 2, 0x08)):
            return None
        ledger, at = _varint(command, at + 3)
        entry, end = _varint(command, at + 1)
        # the partition may follow
        is_over = end == len(command) or (command[end] == 0x18 and _varint(command, end + 1)[1] == len(command))
        return (consumer, ledger, entry, at + 1, end) if is_over and command[at] == 0x10 else None
    except (IndexError, ValueError):
        return None


def _varint(data: bytes, at: int) -> tuple[int, int]:
    """Return a varint and the offset after it. Raises IndexError if it is truncated."""
    found = shift = 0
    while (byte := data[at]) > 0x7F:
        found |= (byte & 0x7F) << shift
        shift += 7
        at += 1
    return found | byte << shift, at + 1


def _messages(metadata: bytes) -> int:
    """Return the number of messages in an entry; 0 if its metadata is invalid."""
    try:
        return _metadata(metadata).num_messages_in_batch
    except DecodeError:
        return 0
