"""CRC-32C (Castagnoli), the checksum of payload frames.

google_crc32c computes it in C (0.06 us for 100 bytes, 4 us for 128 KiB). If its C build is unavailable, the table below
produces the same checksums a thousand times slower; ``ACCELERATED`` tells which of the two is in use.
"""

from __future__ import annotations

from collections.abc import Callable

_POLYNOMIAL = 0x82F63B78  # Castagnoli, reflected


def _table_entry(byte: int) -> int:
    for _ in range(8):
        byte = (byte >> 1) ^ (_POLYNOMIAL if byte & 1 else 0)
    return byte


_TABLE = tuple(map(_table_entry, range(256)))


def extend_in_python(crc: int, data: bytes) -> int:
    """Extend a checksum byte by byte: the fallback, and the reference that tests compare with."""
    state = crc ^ 0xFFFFFFFF
    for byte in data:
        state = _TABLE[(state ^ byte) & 0xFF] ^ (state >> 8)
    return state ^ 0xFFFFFFFF


def _accelerated() -> Callable[[int, bytes], int] | None:
    """Return google_crc32c's C function, or None if the package is missing or has only its pure Python version."""
    try:
        import google_crc32c
    except ImportError:
        return None
    if google_crc32c.implementation != "c":
        return None
    extend_in_c: Callable[[int, bytes], int] = google_crc32c.extend
    return extend_in_c


_c_extend = _accelerated()

ACCELERATED = _c_extend is not None
"""Whether the C implementation is in use."""

_extend: Callable[[int, bytes], int] = _c_extend or extend_in_python


extend_bytes = _extend
"""``extend`` without the conversion to bytes, for hot paths."""


def crc32c(data: bytes | bytearray | memoryview) -> int:
    """Return the CRC-32C of ``data``, 0 to 2**32-1. ``bytes`` are read in place, other types are copied first."""
    return _extend(0, data if type(data) is bytes else bytes(data))


def extend(crc: int, data: bytes | bytearray | memoryview) -> int:
    """Extend ``crc``, the checksum of some data, by ``data`` that follows it, without joining the two."""
    return _extend(crc, data if type(data) is bytes else bytes(data))
