"""A member of an ensemble: one data directory that stores copies of batches.

The log of a member has the positions of the box, with gaps where other members stored the batches. A gap is always
between two volumes, never inside one, so that a volume holds consecutive entries of a ledger.
"""

from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import Any, Final, NamedTuple, Protocol

from pulsarbox.errors import PersistenceError
from pulsarbox.storage.engine import Checkpoint, Compressing, ReadRequest, Reclaimed, Rows
from pulsarbox.storage.ensemble.membership import Membership
from pulsarbox.storage.journal import JournalRun
from pulsarbox.storage.record import Entry

NOT_THERE: Final = "it was removed or replaced, or its disk is gone"
"""Why the path of a member may no longer lead to it."""


class MemberState:
    """The states of a member of an ensemble."""

    ACTIVE: Final = "active"
    """It is written and read."""
    LOST: Final = "lost"
    """It cannot be written, or is not there."""
    FULL: Final = "full"
    """It is read, but has no space for entries."""
    LATE: Final = "late"
    """It did not complete a write in time."""
    FENCED: Final = "fenced"
    """It is from an earlier generation: its log is not read."""
    JOINING: Final = "joining"
    """It is being brought up to date."""
    LEAVING: Final = "leaving"
    """It is read while its entries are copied to others."""
    REMOVED: Final = "removed"
    """It is released."""


IN_USE: Final = frozenset({MemberState.ACTIVE, MemberState.FULL, MemberState.LEAVING})
"""States of members that are written or read."""


class MemberLate(PersistenceError):
    """A member did not complete a write in time. The write may still complete."""


class PackedBatch(NamedTuple):
    """A batch as the log stores it, made once for all members."""

    position: int
    value: bytes
    runs: Mapping[int, JournalRun]
    """The entries in it, by ledger."""


class Piece(NamedTuple):
    """Consecutive entries of a ledger in one batch: what a member copies from another one."""

    position: int
    """The position of their batch. In each directory, the order of positions is that of the entries of a ledger."""
    entries: Sequence[Entry]
    """Verified, as the client sent them."""


class MemberContent(NamedTuple):
    """The content of a member when it is opened."""

    membership: Membership | None
    """The membership that it knows; None if it is new."""
    rows: Rows
    """The rows of its last checkpoint; after each ``checkpoint`` returns, those of the new one."""
    mark: int
    """The position that its checkpoint covers."""
    newest: int
    """The position of the last batch in its log, or of its checkpoint if that is later."""
    box: str = ""
    """The id of its box; empty if the directory is new, and then set by the first ``write_membership``."""


class Member(Protocol):
    """One directory. ``open`` comes first and once; then several threads call, each method from one at a time."""

    name: str
    """The path as configured."""
    device: int
    """The number of its device, 0 if unknown."""
    is_remote: bool
    """Whether it is on another machine, so that each call may wait for the network."""

    def open(self) -> MemberContent:
        """Open the directory, creating it if missing. Raises DirectoryHeld, PersistenceError."""

    def batches(self, after: int) -> Iterator[tuple[int, bytes]]:
        """Yield positions and values of the log after a position, in order; gaps are possible.

        Raises PersistenceError at a damaged batch.
        """

    def write_membership(self, membership: Membership) -> None:
        """Store the membership durably. Raises PersistenceError."""

    def commit(self, batch: PackedBatch) -> None:
        """Make a batch durable; its position is after all others of this log.

        Raises PersistenceError, also if the path no longer leads to the directory after the write, and StoreFull;
        nothing of the batch is readable then.
        """

    def erase_from(self, position: int) -> None:
        """Drop the batches from a position on, durably. Raises PersistenceError."""

    def read(self, request: ReadRequest) -> list[Entry]:
        """See Engine.read. The list may end before an entry that this member does not have."""

    def checkpoint(self, checkpoint: Checkpoint) -> None:
        """See Engine.checkpoint. The position may be after the last batch of this log."""

    def replace_rows(self, rows: Iterable[tuple[bytes, bytes]], mark: int) -> None:
        """Replace all rows by those of another member, whose checkpoint covers ``mark``.

        Ledgers that the rows no longer contain are dropped. Raises PersistenceError; nothing has changed then.
        """

    def reclaim(self, compressing: Compressing | None = None) -> Reclaimed | None:
        """See Engine.reclaim."""

    def check_room(self) -> None:
        """Raise StoreFull if there is no space for entries."""

    def is_there(self) -> bool:
        """Return whether the path still leads to the directory that was opened. Cheap."""

    def ledgers(self) -> list[int]:
        """Return the ledgers of which it has entries, sorted. Raises PersistenceError."""

    def coverage(self, ledger_ids: Sequence[int]) -> Mapping[int, list[tuple[int, int]]]:
        """Return the entries it has as first entries and ends (exclusive) by ledger, sorted and disjoint.

        Raises PersistenceError.
        """

    def pieces(self, ledger_id: int, first: int, end: int, max_bytes: int) -> list[Piece]:
        """Return entries of a ledger for ``adopt``, from ``first`` on, in order and without gaps.

        The list ends before ``end``, after ``max_bytes``, before a damaged entry, or before one that this member does
        not have. Raises EntryDamaged if the first one is damaged, PersistenceError if it is not here or cannot be read.
        """

    def adopt(self, pieces: Iterable[Piece]) -> int:
        """Store copies of entries that it lacks; return their bytes. Pieces of a ledger come in order.

        They are durable before they are listed. Entries that it has by then, and ledgers dropped meanwhile, are left
        out. Raises PersistenceError, StoreFull; nothing has changed then.
        """

    def forget(self, ledger_id: int, first: int, end: int) -> None:
        """Remove entries from its coverage, durably. Raises PersistenceError."""

    def statistics(self) -> dict[str, Any]:
        """Return the statistics of the store. Raises PersistenceError."""

    def release_inherited_lock(self) -> None:
        """Release the inherited lock in a forked child. No other method may be called afterwards."""

    def close(self) -> None:
        """Close the directory. No other method may be called afterwards."""
