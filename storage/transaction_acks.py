"""Pending acknowledgements of open transactions on one subscription: not dispatched, and not acknowledged yet.

Different transactions may acknowledge different messages of a batch, so a claim is a bit per message, by transaction. A
cumulative acknowledgement claims everything up to a position, for one transaction.
"""

from collections.abc import Callable
from typing import NamedTuple

from pulsarbox.storage.record import Position

At = tuple[int, int]
Partly = Callable[[At], tuple[int, int] | None]
"""Returns the messages in an entry and a bit for each unacknowledged one; None if all are unacknowledged."""


class Claimed(NamedTuple):
    """Totals of one entry with messages acknowledged by transactions."""

    size: int
    total_messages: int
    total_bytes: int
    batch_size: int


class EntryClaim:
    """The claims on one entry."""

    __slots__ = ("bits", "by", "entry", "passed")

    def __init__(self, entry: Claimed) -> None:
        self.entry = entry
        self.by: dict[object, int] = {}
        """A bit for each message, by transaction."""
        self.bits = 0
        """The union of all transactions' bits."""
        self.passed = False
        """Whether the dispatcher will not read the entry again: it passed it, or dispatched it before the claim."""

    def add(self, txn: object, bits: int) -> None:
        """Add messages acknowledged by a transaction."""
        self.by[txn] = self.by.get(txn, 0) | bits
        self.bits |= bits

    def drop(self, txn: object) -> int:
        """Remove an ended transaction and return its bits."""
        bits = self.by.pop(txn, 0)
        self.bits = 0
        for others in self.by.values():
            self.bits |= others
        return bits


class TransactionAcks:
    """All claims on one subscription."""

    def __init__(self, partly: Partly) -> None:
        """``partly`` returns the cursor's state of a partly acknowledged entry."""
        self._partly = partly
        self.entries: dict[At, EntryClaim] = {}
        self.through: tuple[object, Position] | None = None
        """A transaction, and the position of its cumulative acknowledgement."""
        self.sets = ClaimedSets(self, partly)

    def __bool__(self) -> bool:
        return bool(self.entries) or self.through is not None

    def __contains__(self, at: At) -> bool:
        return at in self.entries

    def left(self, at: At, batch_size: int) -> int:
        """Return a bit for each message of an entry that is neither acknowledged nor claimed."""
        claim, partly = self.entries.get(at), self._partly(at)
        unacked = (1 << batch_size) - 1 if partly is None else partly[1]
        return unacked & ~(claim.bits if claim is not None else 0)

    def has(self, at: At) -> bool:
        """Return whether nothing of an entry is left to dispatch, and record that the dispatcher passes it."""
        if self.through is not None and at <= self.through[1]:
            return True
        claim = self.entries.get(at)
        if claim is None or self.left(at, claim.entry.batch_size):
            return False
        claim.passed = True
        return True

    def rewound(self) -> None:
        """Reset after the dispatcher is rewound to mark-delete: it will pass every entry again."""
        for claim in self.entries.values():
            claim.passed = False


class ClaimedSets:
    """The messages of batches left to dispatch: unacknowledged in the cursor, and not claimed."""

    def __init__(self, claims: TransactionAcks, partly: Partly) -> None:
        self._claims = claims
        self._partly = partly

    def __bool__(self) -> bool:
        return True

    def get(self, at: At) -> tuple[int, int] | None:
        """Return the messages of the batch, and a bit for each left; None if all are left."""
        claim = self._claims.entries.get(at)
        if claim is None:
            return self._partly(at)
        return claim.entry.batch_size, self._claims.left(at, claim.entry.batch_size)
