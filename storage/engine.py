"""The storage interface of the broker core, implemented by the LMDB engine and the memory engine.

``recover`` is called first and once. Then three threads call, each one operation at a time: the committer ``commit``,
the reader ``read``, the housekeeper ``checkpoint``, ``reclaim`` and ``check_room``. All of these page, decompress or
sync and may be slow, so they never run in the core's thread. The core itself only looks up rows, which are small and
mostly in memory.
"""

from collections.abc import Callable, Iterator, Mapping
from typing import TYPE_CHECKING, Any, NamedTuple, Protocol

from pulsarbox.plugins.compression.rest import RestCodecs
from pulsarbox.storage.compression.decompressed_cache import UnpackedUse, nothing_unpacked
from pulsarbox.storage.journal import Batch
from pulsarbox.storage.record import Entry

if TYPE_CHECKING:
    from pulsarbox.storage.compression.topic_usage import CompressedTopic


class ReadRequest(NamedTuple):
    """Entries ``first`` to ``last`` of a ledger except those left out, up to ``max_bytes``; always at least one."""

    token: int
    """Chosen by the core and returned with the answer."""
    ledger_id: int
    first: int
    last: int
    max_bytes: int
    left_out: tuple[tuple[int, int], ...] = ()
    """First and last entries of unwanted runs after ``first``, in order and disjoint."""
    work: Callable[[list[Entry]], list[Any]] | None = None
    """Transforms the entries in the reader's thread; its result is the answer."""

    def answer(self, entries: list[Entry]) -> list[Any]:
        """Return the answer for the entries read."""
        return entries if self.work is None else self.work(entries)


class Rows(Protocol):
    """The rows of the last checkpoint. Read by the core's thread, even while the housekeeper writes the next one."""

    def get(self, key: bytes) -> bytes | None:
        """Return the value of a row, or None if there is none."""

    def items(self, prefix: bytes, after: bytes = b"") -> Iterator[tuple[bytes, bytes]]:
        """Return the rows whose keys start with ``prefix`` and are after ``after``, sorted by key.

        Each row is as of some instant since the iteration began.
        """

    def last(self, prefix: bytes, through: bytes) -> tuple[bytes, bytes] | None:
        """Return the last row whose key starts with ``prefix`` and is not after ``through``, or None if there is none.

        ``through`` starts with ``prefix`` as well. Only for keys of up to 400 bytes.
        """


class LedgerVolumes(NamedTuple):
    """The volumes that hold each ledger."""

    instance: str
    """The id of the data directory."""
    stretches: Mapping[int, tuple[tuple[int, int, str], ...]]
    """By ledger, in order: first entry, end (exclusive), and the volume, such as ``packed/00000003``."""
    unsealed: tuple[str, ...] = ()
    """The volumes that hold all other entries."""

    def of(self, ledger_id: int, first: int, end: int) -> list[str]:
        """Return the volumes that may hold entries of a ledger from ``first`` to ``end`` (exclusive)."""
        stretches = self.stretches.get(ledger_id, ())
        known = [(max(low, first), min(high, end), name) for low, high, name in stretches if low < end and high > first]
        held = sum(high - low for low, high, _ in known)
        return sorted({name for _, _, name in known}) + (list(self.unsealed) if held < end - first else [])


class Recovery(NamedTuple):
    """The content of a store when it is opened."""

    rows: Rows
    """The rows of the last checkpoint; after each ``checkpoint`` returns, those of the new one."""
    batches: Iterator[bytes]
    """The batch values of the log after the checkpoint, oldest first. Raises PersistenceError at a damaged one."""
    next_position: int
    """The position of the next batch."""
    compressed: Callable[[], "tuple[CompressedTopic, ...]"] = tuple
    """Compression statistics per topic, as of the last space reclamation."""
    unpacked: Callable[[], UnpackedUse] = nothing_unpacked
    """Statistics of the cache of decompressed entries."""


class Checkpoint(NamedTuple):
    """The state of the log up to a position."""

    position: int
    """The last position covered, inclusive; its batch is committed."""
    rows: Mapping[bytes, bytes | None]
    """Rows written since the previous checkpoint, None for deleted ones."""
    dropped: tuple[int, ...]
    """Ledgers deleted since the previous checkpoint: they are no longer read."""


class Reclaimed(NamedTuple):
    """The result of one step of space reclamation."""

    what: str
    """``sealed``, ``removed``, ``packed``, or ``compressed`` for packing only to compress."""
    volumes: tuple[str, ...]
    """Directory names of the volumes."""
    bytes_before: int
    bytes_after: int
    """Disk usage before the step, and after it."""


class CompressionChoice(NamedTuple):
    """How to compress the entries of a ledger on disk."""

    topic_id: int
    codec: str
    """The codec's name, never that of no compression."""


Choose = Callable[[int], CompressionChoice | None]
"""Returns the choice for a ledger; None to store its entries as published."""


class Compressing(NamedTuple):
    """Compression of entries on disk, and its cost limits. Used in the housekeeper's thread."""

    chooser: Callable[[Rows], Choose]
    """Builds the choice function from the rows of the last checkpoint."""
    cpu_percent: int
    """Of one core, on average; 100 or more means no limit."""
    generation: int
    """Changes whenever the choices may have changed."""
    hurried: Callable[[], bool] = bool
    """Whether other work waits for the current step, which then finishes what it began and moves nothing more."""


class Engine(Protocol):
    """A durable store of batches, of the rows of the last checkpoint, and of entries by ledger and id."""

    @property
    def codecs(self) -> RestCodecs:
        """The codecs that compress and decompress entries."""

    def recover(self) -> Recovery:
        """Open the store and return its content."""

    def commit(self, batch: Batch) -> None:
        """Make a batch durable; once this returns, all of it survives a power failure.

        Raises PersistenceError if the batch could not be stored: nothing of it is stored then, and the same position
        may be committed again. Raises StoreFull if there is no space for entries; a batch without entries is stored as
        long as possible.
        """

    def read(self, request: ReadRequest) -> list[Entry]:
        """Return the requested entries in order, with no gaps except those left out.

        Sees every batch whose commit has returned. Raises EntryDamaged if the first entry is damaged (with the number
        of damaged entries after it, as far as known), PersistenceError if it does not exist or cannot be read right
        now. A later bad entry ends the list before it.
        """

    def checkpoint(self, checkpoint: Checkpoint) -> None:
        """Store a checkpoint; once this returns, all of it survives a power failure.

        Raises PersistenceError if it could not be stored: nothing has changed then. Its rows and dropped ledgers are
        part of a later checkpoint.
        """

    def reclaim(self, compressing: Compressing | None = None) -> Reclaimed | None:
        """Reclaim disk space in one step: seal a volume, remove dead ones, or pack mostly dead ones.

        Packing compresses entries as configured; sealed volumes are packed once for compression alone. Returns None if
        there is nothing to do. A crash at any point loses no live entry. Raises PersistenceError if the step failed; it
        may be retried.
        """

    def check_room(self) -> None:
        """Raise StoreFull if there is no space for entries."""

    def close(self) -> None:
        """Close the store. No other method may be called afterwards."""
