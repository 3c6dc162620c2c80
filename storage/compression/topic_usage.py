"""Compression statistics per topic, from the contents of packed volumes. Pure."""

import json
from collections.abc import Callable, Iterable, Mapping
from typing import Any, NamedTuple

from pulsarbox.storage.catalog import owner_key
from pulsarbox.storage.compression.volume_usage import Usage
from pulsarbox.storage.format import PLAIN

Given = tuple[int, bytes, int, Usage]
"""Ledger, tag, dictionary, and the entries of a packed volume under them."""


class CompressedTopic(NamedTuple):
    """The entries of a topic in packed volumes under one codec."""

    topic: str
    codec: str
    """``none`` for entries that were tried and remain uncompressed."""
    entries: int
    bytes: int
    """Uncompressed bytes of their bodies."""
    stored: int
    """Stored bytes of their bodies."""
    dictionaries: tuple[int, ...]
    dictionary_bytes: int

    @property
    def ratio(self) -> float:
        """Compression ratio, not counting the dictionaries."""
        return round(self.bytes / self.stored, 3) if self.stored else 1.0

    def document(self) -> dict[str, Any]:
        """Return the statistics as JSON, under stable names."""
        return {
            "topic": self.topic,
            "codec": self.codec,
            "entries": self.entries,
            "bytes": self.bytes,
            "stored": self.stored,
            "ratio": self.ratio,
            "dictionaries": list(self.dictionaries),
            "dictionaryBytes": self.dictionary_bytes,
        }


def topics_of(
    given: Iterable[Given], topic_of: Callable[[int], str], names: Mapping[bytes, str], sizes: Mapping[int, int]
) -> tuple[CompressedTopic, ...]:
    """Return the topics, sorted by name. ``names`` maps tags to codec names, ``sizes`` dictionary numbers to sizes.

    Entries of deleted topics are omitted.
    """
    sums: dict[tuple[str, str], list[int]] = {}
    used: dict[tuple[str, str], set[int]] = {}
    known: dict[int, str] = {}
    for ledger_id, tag, dictionary, usage in given:
        if ledger_id not in known:
            known[ledger_id] = topic_of(ledger_id)
        topic = known[ledger_id]
        if not topic:
            continue
        key = topic, "none" if tag == PLAIN else names.get(tag, tag.decode("latin-1"))
        row = sums.setdefault(key, [0, 0, 0])
        for at, number in enumerate((usage.entries, usage.came, usage.stands)):
            row[at] += number
        if dictionary:
            used.setdefault(key, set()).add(dictionary)
    return tuple(
        CompressedTopic(*key, row[0], row[1], row[2], numbers, sum(sizes.get(number, 0) for number in numbers))
        for key, row in sorted(sums.items())
        for numbers in (tuple(sorted(used.get(key, ()))),)
    )


def by_owner(get: Callable[[bytes], bytes | None]) -> Callable[[int], str]:
    """Return a function that maps a ledger to its topic by the owner rows, or to an empty string."""

    def topic_of(ledger_id: int) -> str:
        row = get(owner_key(ledger_id).encode())
        return "" if row is None else str(json.loads(row))

    return topic_of
