"""What the core asks of a store: met by the LMDB engine and the memory engine alike.

``recover`` comes first and once. Then three threads call, each one thing at a time: the committer ``commit``, the
reader ``read``, the housekeeper ``checkpoint``, ``reclaim`` and ``check_room``. All of these may take long: they page,
decompress and sync, and so they never run in the core's own thread. The core itself looks up rows, which are small,
many and mostly in memory.
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
    """Entries ``first`` to ``last`` of a ledger but those left out, as far as ``max_bytes`` go; always at least one."""

    token: int
    """Chosen by the core; comes back with the answer."""
    ledger_id: int
    first: int
    last: int
    max_bytes: int
    left_out: tuple[tuple[int, int], ...] = ()
    """First and last entries of runs behind ``first`` that nobody wants, in order and apart."""
    work: Callable[[list[Entry]], list[Any]] | None = None
    """What to make of the entries where they are read, beside the core: the answer is what it gives."""

    def answer(self, entries: list[Entry]) -> list[Any]:
        """What the core is told when these entries were read."""
        return entries if self.work is None else self.work(entries)


class Rows(Protocol):
    """The rows of the last checkpoint. Asked by the core's thread, while the housekeeper may be writing the next."""

    def get(self, key: bytes) -> bytes | None:
        """The value of a row, None where there is none."""

    def items(self, prefix: bytes, after: bytes = b"") -> Iterator[tuple[bytes, bytes]]:
        """The rows whose keys start with ``prefix`` and come behind ``after``, sorted by key.

        Each row is as it was at some instant since the first was asked for.
        """

    def last(self, prefix: bytes, through: bytes) -> tuple[bytes, bytes] | None:
        """The last row whose key starts with ``prefix`` and is not behind ``through``, which starts with it as well;
        None where there is none. Of rows with short keys: up to 400 bytes.
        """


class Whereabouts(NamedTuple):
    """In which volumes ledgers stand."""

    instance: str
    """The data directory's own id."""
    stretches: Mapping[int, tuple[tuple[int, int, str], ...]]
    """By ledger, in order: first entry, the one behind the last, and the volume, as ``packed/00000003``."""
    unsealed: tuple[str, ...] = ()
    """The volumes in which all else stands."""

    def of(self, ledger_id: int, first: int, end: int) -> list[str]:
        """The volumes that may hold entries of a ledger from ``first`` to ``end`` (not included)."""
        known = [each for each in self.stretches.get(ledger_id, ()) if each[0] < end and each[1] > first]
        held = sum(min(each[1], end) - max(each[0], first) for each in known)
        return sorted({each[2] for each in known}) + (list(self.unsealed) if held < end - first else [])


class Recovery(NamedTuple):
    """What a store holds when it is opened."""

    rows: Rows
    """The rows of the last checkpoint, then those of each later one once ``checkpoint`` has returned."""
    batches: Iterator[bytes]
    """The batch values of the log after the checkpoint, oldest first. Raises PersistenceError at a damaged one."""
    next_position: int
    """The position of the next batch."""
    compressed: Callable[[], "tuple[CompressedTopic, ...]"] = tuple
    """What compressing has done for each topic, as it was found when disk was given back last."""
    unpacked: Callable[[], UnpackedUse] = nothing_unpacked
    """What keeping unpacked entries has been good for."""


class Checkpoint(NamedTuple):
    """What the log up to a position amounts to."""

    position: int
    """It covers the log up to here, this batch included; the batch is committed."""
    rows: Mapping[bytes, bytes | None]
    """Rows written since the checkpoint before, None for those that are gone."""
    dropped: tuple[int, ...]
    """Ledgers that are no more since then: nobody will read them."""


class Reclaimed(NamedTuple):
    """One step of giving disk back."""

    what: str
    """``sealed``, ``removed``, ``packed`` or ``compressed``, which is packing for that alone."""
    volumes: tuple[str, ...]
    """Which volumes, by their directories' names."""
    bytes_before: int
    bytes_after: int
    """What they took on the disk before the step, and what stands in their place after it."""


class Choice(NamedTuple):
    """How the entries of a ledger are to be compressed on the disk."""

    topic_id: int
    codec: str
    """Its name, never that of none."""


Choose = Callable[[int], Choice | None]
"""What is wanted for the entries of a ledger; None for as they came."""


class Compressing(NamedTuple):
    """What is to be compressed on the disk, and at what cost. Used in the housekeeper's thread."""

    chooser: Callable[[Rows], Choose]
    """Makes the choices by the rows of the last checkpoint."""
    cpu_percent: int
    """Of one core, on average; 100 or more for as much as there is."""
    generation: int
    """Another number where choices may be other ones than before."""
    hurried: Callable[[], bool] = bool
    """Whether something waits for the step that is under way: then it moves no more than it has begun to."""


class Engine(Protocol):
    """A durable store of batches, of the rows of the last checkpoint, and of entries by ledger and id."""

    @property
    def codecs(self) -> RestCodecs:
        """Those with which entries are compressed, and unpacked."""

    def recover(self) -> Recovery:
        """Open the store and say what it holds."""

    def commit(self, batch: Batch) -> None:
        """Make a batch durable; on return all of it survives a power cut.

        Raises PersistenceError where the batch could not be stored: then nothing of it is there, and the same
        position may be committed again. StoreFull says that there is no room for entries; a batch without entries
        is stored as long as anything can be.
        """

    def read(self, request: ReadRequest) -> list[Entry]:
        """The entries asked for, in order, from the first on; without gaps but those of what is left out.

        Sees every batch whose commit has returned. Raises EntryDamaged where the first one is damaged (and says how
        many behind it are, as far as that is known), PersistenceError where it does not exist, or cannot be given
        right now. A later bad one ends the list before it.
        """

    def checkpoint(self, checkpoint: Checkpoint) -> None:
        """Take over a checkpoint; on return all of it survives a power cut.

        Raises PersistenceError where it could not be stored: then nothing has changed. Its rows and dropped ledgers
        come again with a later one.
        """

    def reclaim(self, compressing: Compressing | None = None) -> Reclaimed | None:
        """Do one step of giving disk back: seal a volume, remove dead ones, pack mostly dead ones.

        Packing compresses what is to be; what stands in sealed volumes is packed once for that alone. None where
        nothing is to be done. Nothing that is alive is lost by a crash at any point of it. Raises PersistenceError
        where the step could not be done: it may be tried again.
        """

    def check_room(self) -> None:
        """Raises StoreFull where there is no room for entries."""

    def close(self) -> None:
        """Let go of the store. Nothing may be called afterwards."""
