"""The hash by which clients detect changes of a topic list (GetTopicsOfNamespace, topic watchers)."""

from __future__ import annotations

from collections.abc import Iterable

from pulsarbox.protocol.checksum import crc32c


def _java_order(name: str) -> bytes:
    """Return the sort key of Java's string order, by UTF-16 code unit; Python's differs above U+FFFF."""
    return name.encode("utf-16-be", "surrogatepass")


def topics_hash(topics: Iterable[str]) -> str:
    """Return eight hex digits: the crc32c of the sorted names joined by commas, least significant byte first."""
    joined = ",".join(sorted(topics, key=_java_order)).encode("utf-8", "replace")
    return crc32c(joined).to_bytes(4, "little").hex()
