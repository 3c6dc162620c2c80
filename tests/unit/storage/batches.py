"""Batches and requests for storage tests: the bytes of an entry are derived from its ledger and ID."""

from collections.abc import Callable, Iterable

from pulsarbox.protocol.checksum import crc32c
from pulsarbox.storage.engine import Compressing, CompressionChoice
from pulsarbox.storage.format import EntryFlag
from pulsarbox.storage.journal import Batch
from pulsarbox.storage.record import Entry, pack_entry

MAGIC = b"\x0e\x01"


def body_of(ledger_id: int, entry_id: int, size: int = 40) -> bytes:
    """The payload from the client of these tests: magic, checksum, and text of about ``size`` bytes."""
    text = (b"%d:%d " % (ledger_id, entry_id)).ljust(size, b".")
    return MAGIC + crc32c(text).to_bytes(4, "big") + text


def frame_of(ledger_id: int, entry_id: int, size: int = 40) -> bytes:
    """The payload of ``body_of`` with empty metadata."""
    covered = bytes(4) + body_of(ledger_id, entry_id, size)[6:]
    return MAGIC + crc32c(covered).to_bytes(4, "big") + covered


Body = Callable[[int, int, int], bytes]


def entry_of(ledger_id: int, entry_id: int, size: int = 40, body_of: Body = body_of) -> Entry:
    """The entry as expected from a read."""
    body = body_of(ledger_id, entry_id, size)
    checksum = int.from_bytes(body[2:6], "big")
    flags: int = EntryFlag.CHECKSUM
    return Entry(ledger_id, entry_id, flags, 1, entry_id + 1, (entry_id + 1) * len(body), 7, 1, 2, 0, checksum, body)


def batch_of(position: int, runs: Iterable[tuple[int, int, int]], size: int = 40, body_of: Body = body_of) -> Batch:
    """A batch with ``count`` entries from ``first`` for each (ledger, first, count), alternating between the
    ledgers."""
    batch = Batch(position)
    batch.wall = position
    ahead = [[ledger_id, first, first + count] for ledger_id, first, count in runs]
    while ahead:
        for run in ahead:
            entry = entry_of(run[0], run[1], size, body_of)
            batch.add_entry(run[0], run[1], pack_entry(entry), entry.body)
            run[1] += 1
        ahead = [run for run in ahead if run[1] < run[2]]
    return batch


def compress_with(codec: str, *ledgers: int, generation: int = 1, percent: int = 100) -> Compressing:
    """A request to compress the given ledgers, or all by default; ten consecutive ledgers form a topic."""

    def choose(ledger_id: int) -> CompressionChoice | None:
        return CompressionChoice(ledger_id // 10, codec) if not ledgers or ledger_id in ledgers else None

    return Compressing(lambda rows: choose, percent, generation)
