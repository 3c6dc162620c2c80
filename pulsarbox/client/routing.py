"""Which partition a message goes to: by its key as Java clients choose, else in turn."""

from __future__ import annotations

from collections.abc import Callable
from typing import Final


def java_string(key: str) -> int:
    """``String.hashCode`` without its sign: the default of Java clients (JavaStringHash). Over UTF-16 code units."""
    if key.isascii():
        units: bytes | list[int] = key.encode()
    else:
        wide = key.encode("utf-16-be", "surrogatepass")
        units = [(high << 8) | low for high, low in zip(wide[::2], wide[1::2], strict=True)]
    number = 0
    for unit in units:
        number = (31 * number + unit) & 0xFFFFFFFF
    return number & 0x7FFFFFFF


def murmur3(key: str) -> int:
    """Murmur3 of the key's UTF-8 without its sign (Murmur3_32Hash)."""
    import mmh3

    return mmh3.hash(key.encode("utf-8", "surrogateescape"), 0, signed=False) & 0x7FFFFFFF


HASHES: Final[dict[str, Callable[[str], int]]] = {"java": java_string, "murmur3": murmur3}


class Router:
    """Chooses partitions for one producer."""

    def __init__(self, partitions: int, hashing: str = "java") -> None:
        """``partitions``: at least 1. ``hashing``: a name of ``HASHES``."""
        self.partitions = partitions
        self._hash = HASHES[hashing]
        self._turn = 0

    def of_key(self, key: str) -> int:
        """The partition of all messages with this key."""
        return self._hash(key) % self.partitions

    @property
    def current(self) -> int:
        """The partition of messages without a key, until ``next``."""
        return self._turn

    def next(self) -> None:
        """Go to the next partition: after a message that went alone, or after a batch."""
        self._turn = (self._turn + 1) % self.partitions
