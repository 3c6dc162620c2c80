"""Content of packages: ledgers that belong to no topic, whose entries are the bytes of a package in order.

They are in the journal like all entries, so that durability, checksums, backups and space reclamation are the same. A
metadata row names each, see ``catalog``.
"""

from typing import Final

from pulsarbox.protocol.checksum import crc32c
from pulsarbox.storage.format import EntryFlag
from pulsarbox.storage.record import Entry

ENTRY_BYTES: Final = 256 << 10
"""Bytes per entry, except in the last one: a checksum of this many takes 0.1 ms of a turn."""


def content_entry(ledger_id: int, entry_id: int, before: int, body: bytes, wall: int) -> Entry:
    """Return an entry for the bytes ``body`` that follow ``before`` bytes of a package; ``wall`` in ms since 1970."""
    total = before + len(body)
    flags = EntryFlag.OWN_CHECKSUM
    return Entry(ledger_id, entry_id, flags, 1, entry_id + 1, total, 0, wall, wall, 0, crc32c(body), body)
