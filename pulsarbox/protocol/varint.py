"""Base-128 varints of protobuf: seven bits a byte, lowest first; the top bit is set on all bytes but the last."""

from __future__ import annotations

_LOW = [bytes((n | 0x80,)) for n in range(128)]
_HIGH = [bytes((n,)) for n in range(128)]
_SHORT = _HIGH + [low + high for high in _HIGH[1:] for low in _LOW]
"""The varint of every number below 2**14: one byte below 128, otherwise two."""
_CONTINUED = [low + high for high in _LOW for low in _LOW]
"""The first two bytes of a larger number's varint, by its low 14 bits."""


def varint(n: int) -> bytes:
    """Return the varint of ``n``, 0 <= n < 2**64; uses tables of 14 bits, 0.07 us below 2**28."""
    if n < 0x4000:
        return _SHORT[n]
    if n < 0x10000000:
        return _CONTINUED[n & 0x3FFF] + _SHORT[n >> 14]
    return _CONTINUED[n & 0x3FFF] + varint(n >> 14)


def signed(n: int) -> bytes:
    """Return the varint of an int32 or int64; a negative number takes ten bytes, as 64-bit two's complement."""
    return varint(n & 0xFFFFFFFFFFFFFFFF)
