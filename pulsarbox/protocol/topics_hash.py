"""The hash by which a client asks "has the list of topics changed since?" (GetTopicsOfNamespace, topic watch)."""

from __future__ import annotations

from collections.abc import Iterable

from pulsarbox.protocol.checksum import crc32c


def _java_order(name: str) -> bytes:
    """Java compares strings by UTF-16 code unit, which differs from Python's order above U+FFFF."""
    return name.encode("utf-16-be", "surrogatepass")


def topics_hash(topics: Iterable[str]) -> str:
    """Eight hex digits: crc32c of the sorted names joined by commas, least significant byte first."""
    joined = ",".join(sorted(topics, key=_java_order)).encode("utf-8", "replace")
    return crc32c(joined).to_bytes(4, "little").hex()
