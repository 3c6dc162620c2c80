"""Deterministic inputs for conformance checks, equal in every process."""

from __future__ import annotations

from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from typing import Any, Final
from zlib import crc32

ODD_KEYS: Final = (
    b"",
    b"\0",
    b"\xff",
    b"\xff\xfe\xfd",
    "é".encode(),
    "日本語".encode(),
    "😀".encode(),
    b"\xed\xa0\x80",  # half of a surrogate pair, not valid UTF-8
    b" ",
    b"a" * 10_000,
    bytes(range(256)),
)

PLAIN_KEYS: Final = tuple(
    each.encode()
    for i in range(2_000)
    for each in (f"key-{i}", f"order:{i * 7919:08d}", f"{crc32(b'%d' % i):08x}-{i:04x}-4{i % 4096:03x}", f"müller{i}")
)

THREADS: Final = 2


def side_by_side(work: Callable[[], Any]) -> list[Any]:
    """Run ``work`` in two threads at the same time and return both results."""
    with ThreadPoolExecutor(THREADS) as pool:
        return [each.result() for each in [pool.submit(work) for _ in range(THREADS)]]


def noise(size: int, seed: int = 0) -> bytes:
    """Return bytes that hardly compress."""
    words = (crc32(b"%d %d" % (seed, i)).to_bytes(4, "little") for i in range(size // 4 + 1))
    return b"".join(words)[:size]


def records(number: int) -> list[bytes]:
    """Return small, similar documents, as in telemetry."""
    return [
        b'{"device":"sensor-%04d","temperature":%d.%d,"unit":"celsius","at":"2026-01-%02dT%02d:%02d:00Z","ok":%s}'
        % (i % 977, i % 40, i % 10, i % 28 + 1, i % 24, i % 60, b"true" if i % 3 else b"false")
        for i in range(number)
    ]
