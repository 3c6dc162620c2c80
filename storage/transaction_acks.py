"""What open transactions have acknowledged on one subscription: held back from everybody, and not acknowledged yet.

Of a batch a transaction may have some messages and another one others; so a claim is a bit for each message, by
transaction. A cumulative acknowledgement claims everything up to a place, for one transaction alone.
"""

from collections.abc import Callable
from typing import NamedTuple

from pulsarbox.storage.record import Position

At = tuple[int, int]
Partly = Callable[[At], tuple[int, int] | None]
"""Of an entry, the messages in it and a bit for each that is left; None where all are."""


class Claimed(NamedTuple):
    """One entry that transactions have acknowledged messages of: what is known of it."""

    size: int
    total_messages: int
    total_bytes: int
    batch_size: int


class Claim:
    """Of one entry."""

    __slots__ = ("bits", "by", "entry", "passed")

    def __init__(self, entry: Claimed) -> None:
        self.entry = entry
        self.by: dict[object, int] = {}
        """A bit for each message, by transaction."""
        self.bits = 0
        """Those of all."""
        self.passed = False
        """The dispatcher has come by it, or has taken it from whoever held it: it does not find it again itself."""

    def add(self, txn: object, bits: int) -> None:
        """A transaction acknowledges these messages too."""
        self.by[txn] = self.by.get(txn, 0) | bits
        self.bits |= bits

    def drop(self, txn: object) -> int:
        """The transaction has ended; which it had."""
        bits = self.by.pop(txn, 0)
        self.bits = 0
        for others in self.by.values():
            self.bits |= others
        return bits


class Claims:
    """All of one subscription."""

    def __init__(self, partly: Partly) -> None:
        """``partly``: what the cursor knows of an entry of which some messages are acknowledged."""
        self._partly = partly
        self.entries: dict[At, Claim] = {}
        self.through: tuple[object, Position] | None = None
        """A transaction, and up to where it has acknowledged everything."""
        self.sets = ClaimedSets(self, partly)

    def __bool__(self) -> bool:
        return bool(self.entries) or self.through is not None

    def __contains__(self, at: At) -> bool:
        return at in self.entries

    def left(self, at: At, batch_size: int) -> int:
        """A bit for each message of an entry that is neither acknowledged nor claimed."""
        claim, partly = self.entries.get(at), self._partly(at)
        unacked = (1 << batch_size) - 1 if partly is None else partly[1]
        return unacked & ~(claim.bits if claim is not None else 0)

    def has(self, at: At) -> bool:
        """Whether nothing of an entry is left; asked by who would send it, and then passes it by."""
        if self.through is not None and at <= self.through[1]:
            return True
        claim = self.entries.get(at)
        if claim is None or self.left(at, claim.entry.batch_size):
            return False
        claim.passed = True
        return True

    def rewound(self) -> None:
        """The dispatcher starts again behind mark-delete, and comes by everything."""
        for claim in self.entries.values():
            claim.passed = False


class ClaimedSets:
    """The messages that are left of batches, as the cursor has them, and without what is claimed."""

    def __init__(self, claims: Claims, partly: Partly) -> None:
        self._claims = claims
        self._partly = partly

    def __bool__(self) -> bool:
        return True

    def get(self, at: At) -> tuple[int, int] | None:
        """Messages of the batch, and a bit for each that is left; None where all are."""
        claim = self._claims.entries.get(at)
        if claim is None:
            return self._partly(at)
        return claim.entry.batch_size, self._claims.left(at, claim.entry.batch_size)
