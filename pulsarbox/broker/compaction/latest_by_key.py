"""Selection of the latest message of every key, recorded as one bit per message read.

The table of keys is bounded. If there are more keys, a pass covers those with low hashes, and further passes cover the
others; the bits persist. A key takes about 170 bytes, a message one bit.
"""

from typing import Final

from mmh3 import hash as murmur3_32

from pulsarbox.broker.compaction.scan_pass import BATCH, CHUNK, DROPPED, SINGLE, WHOLE, Seen

_SLOTS: Final = 1 << 32


class LatestByKey:
    """The latest message of every key, numbered in reading order."""

    def __init__(self, most_keys: int) -> None:
        self._most_keys = most_keys
        self._latest: dict[bytes, int] = {}
        self._low, self._high = 0, _SLOTS
        """Range of key hashes that this pass covers."""
        self._at = 0
        self._chunks: dict[str, list[int]] = {}
        """Message numbers of chunks, by UUID, for incomplete chunked messages."""
        self._parts: dict[int, list[int]] = {}
        """Chunks before the last one, by the message number of the last."""
        self.bits = bytearray()
        self.keys = 0
        """Keys with a message to keep, so far."""

    @property
    def messages(self) -> int:
        """Messages seen in this pass."""
        return self._at

    @property
    def kept(self) -> int:
        """Messages to keep."""
        return int.from_bytes(self.bits, "little").bit_count()

    def process(self, seen: list[Seen]) -> None:
        """Process the next entries in order."""
        missing = (self._at + sum(map(messages_in, seen)) + 7) // 8 - len(self.bits)
        if missing > 0:
            self.bits.extend(bytes(missing))
        for each in seen:
            kind = each[0]
            if kind == SINGLE:
                self._message(each[1], self._at, each[2])
                self._at += 1
            elif kind == BATCH:
                self._batch(each[1])
            elif kind == CHUNK:
                self._chunk(each)
            else:
                if kind == WHOLE:
                    self._set_all(self._at, self._at + each[1])
                self._at += each[1]
            if len(self._latest) > self._most_keys:
                self._narrow()

    def end_pass(self) -> bool:
        """End a pass; return whether other keys need another one."""
        for numbers in self._chunks.values():  # these messages end after the horizon
            for number in numbers:
                self._set(number)
        self.keys += len(self._latest)
        self._latest.clear()
        self._chunks.clear()
        self._parts.clear()
        self._at = 0
        self._low, self._high = self._high, _SLOTS
        return self._low < _SLOTS

    def _message(self, key: bytes, number: int, alive: bool) -> bool:
        """Process a message with a key; return whether it is the latest so far."""
        if self._high - self._low != _SLOTS and not self._low <= murmur3_32(key, signed=False) < self._high:
            return False
        before = self._latest.get(key)
        if before is not None:
            self._clear(before)
        if alive:
            self._latest[key] = number
            self._set(number)
        elif before is not None:
            del self._latest[key]
        return alive

    def _batch(self, messages: list[tuple[bytes | None, bool] | None]) -> None:
        for number, message in enumerate(messages, self._at):
            if message is not None:
                key, alive = message
                if key is not None:
                    self._message(key, number, alive)
                elif alive:
                    self._set(number)
        self._at += len(messages)

    def _chunk(self, seen: Seen) -> None:
        _, uuid, chunk, last, key, alive = seen
        number = self._at
        self._at += 1
        numbers = self._chunks.setdefault(uuid, [])
        if chunk < last:
            numbers.append(number)
            return
        del self._chunks[uuid]
        if self._message(key, number, alive):
            self._parts[number] = numbers
            for part in numbers:
                self._set(part)

    def _narrow(self) -> None:
        """Leave keys with the upper half of the hashes to the next pass until the table is within its bound."""
        while len(self._latest) > self._most_keys and self._high - self._low > 1:
            self._high = (self._low + self._high) // 2
            going = [key for key in self._latest if murmur3_32(key, signed=False) >= self._high]
            for key in going:
                self._clear(self._latest.pop(key))

    def _set(self, number: int) -> None:
        self.bits[number >> 3] |= 1 << (number & 7)

    def _set_all(self, first: int, end: int) -> None:
        """Set the bits from ``first`` up to ``end``, whole bytes at once."""
        low, high = (first + 7) >> 3, end >> 3
        if low < high:
            self.bits[low:high] = b"\xff" * (high - low)
        for number in (*range(first, min(low << 3, end)), *range(max(high << 3, first), end)):
            self._set(number)

    def _clear(self, number: int) -> None:
        self.bits[number >> 3] &= ~(1 << (number & 7))
        for part in self._parts.pop(number, ()):
            self.bits[part >> 3] &= ~(1 << (part & 7))


def messages_in(seen: Seen) -> int:
    """Return the number of messages in an entry, including compacted-out ones."""
    kind = seen[0]
    if kind in (DROPPED, WHOLE):
        count: int = seen[1]
        return count
    return len(seen[1]) if kind == BATCH else 1
