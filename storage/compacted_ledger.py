"""Compacted ledgers: of a topic's messages the latest of every key, under the ids that they were published with.

The entries stand in the journal as all do, in a ledger of their own that belongs to no managed ledger: it is read,
never acknowledged, and goes as a whole. A topic has one; the next one takes its place with one row of the metadata.
"""

from typing import Final, NamedTuple

from pulsarbox.protocol.checksum import crc32c
from pulsarbox.storage.catalog import Catalog, Row
from pulsarbox.storage.format import COMPACTED_PREFIX, EntryFlag
from pulsarbox.storage.record import Entry, Position

_PREFIX_SIZE: Final = COMPACTED_PREFIX.size


class View(NamedTuple):
    """The compacted view of a topic: everything up to its horizon, compacted into one ledger."""

    ledger_id: int
    entries: int
    size: int
    """Bytes of the entries."""
    horizon: Position
    """The last entry of the topic that it speaks for."""
    messages: int
    """Messages of the topic up to the horizon, and bytes."""
    bytes: int
    last: tuple[int, int, int]
    """Its last message: ledger, entry, index in the batch or -1; all -1 where nothing is left."""
    finished: int
    """When it was made, in milliseconds since 1970."""

    @classmethod
    def of(cls, ledger_id: int, row: Row) -> "View":
        """As its row says it."""
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
        """Its row."""
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
    """What a subscription still has to read of the view that the log does not have any more."""

    through: Position
    """Acknowledged up to here ..."""
    up_to: Position
    """... of what is there up to here."""

    @classmethod
    def of(cls, row: Row | None) -> "Behind | None":
        """As a cursor's row has it."""
        return None if row is None else cls(Position(*row["through"]), Position(*row["up_to"]))

    @property
    def row(self) -> Row:
        """As a cursor's row has it."""
        return {"through": list(self.through), "up_to": list(self.up_to)}


class Original(NamedTuple):
    """An entry under the id that it was published with."""

    entry: Entry
    """Its totals are those of the entry as it was published; its body may be less."""
    size: int
    """Bytes of the entry as it was published."""


def pack_compacted(original: Original, ledger_id: int, entry_id: int) -> Entry:
    """The entry as it stands in a compacted ledger."""
    entry, size = original
    body = COMPACTED_PREFIX.pack(entry.ledger_id, entry.entry_id, size) + entry.body
    flags = entry.flags & ~EntryFlag.CHECKSUM | EntryFlag.OWN_CHECKSUM
    return entry._replace(
        ledger_id=ledger_id, entry_id=entry_id, flags=flags, deliver_at=0, checksum=crc32c(body), body=body
    )


def unpack_compacted(entry: Entry) -> Original:
    """The entry of a compacted ledger under the id that it was published with."""
    ledger_id, entry_id, size = COMPACTED_PREFIX.unpack_from(entry.body)
    return Original(entry._replace(ledger_id=ledger_id, entry_id=entry_id, body=entry.body[_PREFIX_SIZE:]), size)


def is_kept(catalog: Catalog, kind: str, rest: str) -> bool:
    """Whether a compacted ledger whose row of one kind goes has a row of the other: it is no longer what it was."""
    return f"{'compacted' if kind == 'compacting' else 'compacting'}/{rest}" in catalog
