"""Ack sets: one bit for each unacknowledged message of a batch.

The protocol encodes them as signed 64-bit words, lowest first; the broker uses one integer. Clients choose the number
of words, so every function here takes linear time at most: shifting an integer bit by bit would copy it at each step.
"""

import sys
from array import array
from collections.abc import Iterable, Iterator

_WORD_BYTES = 8


def bits_of(words: Iterable[int]) -> int:
    """Return the protocol's words as one integer."""
    found = array("q", words)
    if sys.byteorder == "big":
        found.byteswap()
    return int.from_bytes(found.tobytes(), "little")


def words_of(bits: int) -> tuple[int, ...]:
    """Return an integer as the protocol's words, without trailing zeros."""
    count = (bits.bit_length() + 63) // 64
    found = array("q", bits.to_bytes(_WORD_BYTES * count, "little"))
    if sys.byteorder == "big":
        found.byteswap()
    return tuple(found)


def first_of(bits: int) -> int:
    """Return the first unacknowledged batch index, or -1 if all are acknowledged."""
    return (bits & -bits).bit_length() - 1


def indexes_of(bits: int) -> Iterator[int]:
    """Yield the unacknowledged batch indexes in order."""
    digits = f"{bits:b}"[::-1]
    index = digits.find("1")
    while index >= 0:
        yield index
        index = digits.find("1", index + 1)
