"""Conformance checks of hashing plugins."""

from __future__ import annotations

from collections.abc import Iterator
from hashlib import sha256
from typing import Any, Final

from pulsarbox.plugins.conformance.examples import ODD_KEYS, PLAIN_KEYS, side_by_side
from pulsarbox.plugins.contracts import HASH_MAX, Hashing

_PARTITIONS: Final = 16
_CHI_SQUARE_MAX: Final = 100.0
"""With 16 partitions, uniformly random hashes give 15 on average, and above 45 once in ten thousand runs. The hashes of
Pulsar's clients stay below 60 for keys that differ only in a number."""


def _range(plugin: Hashing) -> Iterator[str]:
    for key in (*ODD_KEYS, *PLAIN_KEYS):
        found: Any = plugin.hash32(key)
        if type(found) is not int or not 0 <= found <= HASH_MAX:
            yield f"hash32({_shown(key)}) returned {found!r}, expected a number from 0 to {HASH_MAX}"
            return


def _repeats(plugin: Hashing) -> Iterator[str]:
    keys = (*ODD_KEYS, *PLAIN_KEYS)
    first = [plugin.hash32(key) for key in keys]
    other = type(plugin)()
    for key, known in zip(reversed(keys), reversed(first), strict=True):
        if (found := other.hash32(key)) != known:
            yield f"hash32({_shown(key)}) returned {known} first, and {found} on another instance"
            return


def _spreads(plugin: Hashing) -> Iterator[str]:
    counts = [0] * _PARTITIONS
    for key in PLAIN_KEYS:
        counts[plugin.hash32(key) % _PARTITIONS] += 1
    mean = len(PLAIN_KEYS) / _PARTITIONS
    chi_square = sum((count - mean) ** 2 for count in counts) / mean
    if chi_square > _CHI_SQUARE_MAX:
        shares = ", ".join(str(count) for count in counts)
        yield f"uneven distribution of {len(PLAIN_KEYS)} keys to {_PARTITIONS} partitions: {shares}"


def _threads(plugin: Hashing) -> Iterator[str]:
    known = [plugin.hash32(key) for key in PLAIN_KEYS]
    for found in side_by_side(lambda: [plugin.hash32(key) for key in PLAIN_KEYS]):
        if found != known:
            yield "hash32 returns different results in concurrent threads"
            return


def digest(plugin: Hashing) -> str:
    """Return a digest of the hashes of all example keys."""
    return sha256(b"".join(b"%d " % plugin.hash32(key) for key in (*ODD_KEYS, *PLAIN_KEYS))).hexdigest()


def _shown(key: bytes) -> str:
    return repr(key) if len(key) <= 40 else f"{key[:20]!r}... of {len(key)} bytes"


CHECKS: Final = {"range": _range, "repeatable": _repeats, "distribution": _spreads, "threads": _threads}
