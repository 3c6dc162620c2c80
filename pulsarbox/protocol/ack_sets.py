"""Ack sets: the messages of a batch that are not acknowledged, one bit each.

The protocol has them as signed 64-bit words, the lowest first; the broker as one integer. Clients choose how many words
they send, so no function here takes more than linear time: shifting an integer bit by bit copies all of it each time.
"""

import sys
from array import array
from collections.abc import Iterable, Iterator

_WORD_BYTES = 8


def bits_of(words: Iterable[int]) -> int:
    """The words of the protocol as one integer."""
    found = array("q", words)
    if sys.byteorder == "big":
        found.byteswap()
    return int.from_bytes(found.tobytes(), "little")


def words_of(bits: int) -> tuple[int, ...]:
    """One integer as the words of the protocol, without zeros at the end."""
    count = (bits.bit_length() + 63) // 64
    found = array("q", bits.to_bytes(_WORD_BYTES * count, "little"))
    if sys.byteorder == "big":
        found.byteswap()
    return tuple(found)


def first_of(bits: int) -> int:
    """The first index that is not acknowledged; -1 where all are."""
    return (bits & -bits).bit_length() - 1


def indexes_of(bits: int) -> Iterator[int]:
    """The indexes that are not acknowledged, in order."""
    digits = f"{bits:b}"[::-1]
    index = digits.find("1")
    while index >= 0:
        yield index
        index = digits.find("1", index + 1)
