"""Compacted ledgers: the latest message of every key of a topic, under the ids that it was published with.

Their entries are in the journal like all others, but in a separate ledger that belongs to no managed ledger: it is
read, never acknowledged, and deleted as a whole. A topic has one; a single metadata row replaces it with the next.
"""

from typing import Final, NamedTuple

from pulsarbox.protocol.checksum import crc32c
from pulsarbox.storage.catalog import Catalog, Row
from pulsarbox.storage.format import COMPACTED_PREFIX, EntryFlag
from pulsarbox.storage.record import Entry, Position

_PREFIX_SIZE: Final = COMPACTED_PREFIX.size


class CompactedView(NamedTuple):
    """The compacted view of a topic: everything up to its horizon, compacted into one ledger."""

    ledger_id: int
    entries: int
    size: int
    """Bytes of the entries."""
    horizon: Position
    """The last entry of the topic that the view covers."""
    messages: int
    """Messages of the topic up to the horizon, and bytes."""
    bytes: int
    last: tuple[int, int, int]
    """Its last message: ledger, entry, index in the batch or -1; all -1 if the view is empty."""
    finished: int
    """Completion time, in milliseconds since 1970."""

    @classmethod
    def of(cls, ledger_id: int, row: Row) -> "CompactedView":
        """Decode the view from its row."""
        ledger, entry, index = row["last"]
        return cls(
            ledger_id,
            row["entries"],
            row["size"],
            Position(*row["horizon"]),
            row["messages"],
            row["bytes"],
            (ledger, entry, index),
            row["finished"],
        )

    @property
    def row(self) -> Row:
        """The view as a row."""
        return {
            "entries": self.entries,
            "size": self.size,
            "horizon": list(self.horizon),
            "messages": self.messages,
            "bytes": self.bytes,
            "last": list(self.last),
            "finished": self.finished,
        }


class Behind(NamedTuple):
    """The part of the view that a subscription has yet to read, and that the log no longer has."""

    through: Position
    """Acknowledged up to here ..."""
    up_to: Position
    """... of the entries up to here."""

    @classmethod
    def of(cls, row: Row | None) -> "Behind | None":
        """Decode from a cursor's row."""
        return None if row is None else cls(Position(*row["through"]), Position(*row["up_to"]))

    @property
    def row(self) -> Row:
        """As stored in a cursor's row."""
        return {"through": list(self.through), "up_to": list(self.up_to)}


class Original(NamedTuple):
    """An entry under the id that it was published with."""

    entry: Entry
    """Its totals are those of the entry as published; its body may be smaller."""
    size: int
    """Bytes of the entry as published."""


def pack_compacted(original: Original, ledger_id: int, entry_id: int) -> Entry:
    """Return the entry as stored in a compacted ledger."""
    entry, size = original
    body = COMPACTED_PREFIX.pack(entry.ledger_id, entry.entry_id, size) + entry.body
    flags = entry.flags & ~EntryFlag.CHECKSUM | EntryFlag.OWN_CHECKSUM
    return entry._replace(
        ledger_id=ledger_id, entry_id=entry_id, flags=flags, deliver_at=0, checksum=crc32c(body), body=body
    )


def unpack_compacted(entry: Entry) -> Original:
    """Return the entry of a compacted ledger under the id that it was published with."""
    ledger_id, entry_id, size = COMPACTED_PREFIX.unpack_from(entry.body)
    return Original(entry._replace(ledger_id=ledger_id, entry_id=entry_id, body=entry.body[_PREFIX_SIZE:]), size)


def is_kept(catalog: Catalog, kind: str, rest: str) -> bool:
    """Return whether a compacted ledger still has its other row after its row of one ``kind`` is deleted."""
    return f"{'compacted' if kind == 'compacting' else 'compacting'}/{rest}" in catalog
