"""Manifest in object storage: numbered objects with lines, as objects cannot be appended to.

A part is created only if its number is free. Of two writers one therefore creates it, and the other one stops, which
replaces the lock of a directory. Every 100th part has all lines, so that a reader fetches at most 100.
"""

from typing import TYPE_CHECKING, Final, NamedTuple

if TYPE_CHECKING:
    from pulsarbox.spark.offload.object_path import ObjectPath

FOLDER: Final = "_manifest"
WHOLE: Final = 100
"""Parts with a number divisible by this have all lines."""


class StoredParts(NamedTuple):
    """Manifest as of reading."""

    lines: bytes
    number: int
    """Number of the last part; 0 for none."""


def read(folder: "ObjectPath") -> StoredParts:
    """Return all lines of a topic's manifest. Raises OSError."""
    numbers = [int(name.partition(".")[0]) for name in (folder / FOLDER).objects() if name.partition(".")[0].isdigit()]
    if not numbers:
        return StoredParts(b"", 0)
    last = max(numbers)
    first = max(last // WHOLE * WHOLE, 1)
    return StoredParts(b"".join(_part(folder, number).read_bytes() for number in range(first, last + 1)), last)


def append(folder: "ObjectPath", before: StoredParts, line: bytes) -> StoredParts | None:
    """Add a line; return None if another writer has added one. Raises StorageError, OSError."""
    number = before.number + 1
    lines = before.lines + line
    if not _part(folder, number).put_new(lines if number % WHOLE == 0 else line):
        return None
    return StoredParts(lines, number)


def _part(folder: "ObjectPath", number: int) -> "ObjectPath":
    return folder / FOLDER / f"{number:010}.jsonl"
