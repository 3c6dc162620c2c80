"""The open end of the journal: the batch that collects the changes of one turn of the event loop.

A batch is one value of the log, one LMDB write transaction, one sync. While the committer writes one batch, the next
collects: group commit without added delay. A batch is handed over as a whole and not changed afterwards.
"""

from array import array

from pulsarbox.protocol.checksum import crc32c
from pulsarbox.storage.format import BATCH_HEADER, BATCH_VERSION


class JournalRun:
    """Consecutive entries of one ledger in one batch: the first entry id, and the offset of each."""

    __slots__ = ("first_entry", "offsets")

    def __init__(self, first_entry: int) -> None:
        self.first_entry = first_entry
        self.offsets = array("I")


class Batch:
    """Records that become durable together.

    ``position`` is its place in the log, ``size`` its bytes so far, ``wall`` the time of its commit.
    """

    __slots__ = (
        "_is_asked", "ack_quorum", "ack_quorum_min", "covered", "ensemble", "parts", "position", "runs", "size", "wall",
        "write_quorum",
    )  # fmt: skip

    def __init__(self, position: int) -> None:
        self.position = position
        self.ensemble = self.write_quorum = 1
        """The most data directories, and the most copies, that a part of the batch asks for."""
        self.ack_quorum = 1
        """Durable copies that complete the commit: the highest ack quorum of its parts."""
        self.ack_quorum_min = 1
        """The lowest ack quorum of its parts."""
        self._is_asked = False
        self.parts: list[bytes] = []
        self.covered: list[bytes] = []
        """The parts that the batch's checksum covers: all but the bodies of entries."""
        self.size = BATCH_HEADER.size
        self.runs: dict[int, JournalRun] = {}
        self.wall = 0

    def add(self, record: bytes) -> None:
        """Append a packed record other than an entry."""
        self.parts.append(record)
        self.covered.append(record)
        self.size += len(record)

    def add_entry(self, ledger_id: int, entry_id: int, header: bytes, body: bytes) -> None:
        """Append an entry; the entries of one ledger are consecutive, without gaps."""
        run = self.runs.get(ledger_id)
        if run is None:
            run = self.runs[ledger_id] = JournalRun(entry_id)
        run.offsets.append(self.size)
        parts = self.parts
        parts.append(header)
        parts.append(body)
        self.covered.append(header)
        self.size += len(header) + len(body)

    def ask(self, ensemble: int, write_quorum: int, ack_quorum: int) -> None:
        """Ask for copies of a part of the batch; the batch as a whole is stored as the highest numbers ask."""
        self.ensemble = max(self.ensemble, ensemble)
        self.write_quorum = max(self.write_quorum, write_quorum)
        self.ack_quorum = max(self.ack_quorum, ack_quorum)
        self.ack_quorum_min = min(self.ack_quorum_min, ack_quorum) if self._is_asked else ack_quorum
        self._is_asked = True

    def __bool__(self) -> bool:
        return bool(self.parts)

    def value(self) -> bytes:
        """Return the batch as stored in the log."""
        records = b"".join(self.parts)
        checksum = crc32c(b"".join(self.covered))
        copies = self.ack_quorum_min if self.ack_quorum_min > 1 else 0
        header = BATCH_HEADER.pack(BATCH_VERSION, copies, 0xFFFF, len(records), checksum, self.wall)
        return header + records
