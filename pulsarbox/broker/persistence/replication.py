"""Copies of messages in an ensemble of data directories, which are the bookies of the box.

A box with one data directory has no ``Replication``: its batches ask for nothing, and nothing here is computed.
"""

from collections.abc import Callable, Mapping, Sequence
from typing import Any, Final, NamedTuple, Protocol

from pulsarbox.broker.events import Events
from pulsarbox.clock import Now
from pulsarbox.config import Settings
from pulsarbox.storage.ensemble.member import MemberState
from pulsarbox.storage.ensemble.status import EnsembleStatus
from pulsarbox.storage.journal import Batch
from pulsarbox.storage.record import Entry

Beside = Callable[[str, Callable[[], Any], Callable[[Any, Exception | None], None]], None]
"""Runs a named piece of work outside the turn, then calls back in the loop with its result or exception."""

_NO_BOOKIE: Final = frozenset({MemberState.LEAVING, MemberState.REMOVED})
"""States of members that get no further copies."""


class Bookies(Protocol):
    """The data directories, as the engine knows them. Safe to use from any thread."""

    @property
    def writable(self) -> int:
        """How many of them can be written."""

    def status(self) -> EnsembleStatus:
        """Return their present state. Does not wait for a disk."""

    def coverage(self, ledger_ids: Sequence[int]) -> Mapping[str, Mapping[int, Sequence[tuple[int, int]]]]:
        """Return the entries that each readable directory has: first entries and ends (exclusive), by its name.

        Slow. Raises PersistenceError.
        """


class Room(Protocol):
    """Decides whether messages can be stored."""

    @property
    def refusal(self) -> str | None:
        """Why messages are rejected right now; None if they are accepted."""


class CopyNumbers(NamedTuple):
    """The numbers of copies that a part of a batch asks for."""

    ensemble: int
    write_quorum: int
    ack_quorum: int


class AskedCopies(Protocol):
    """The copies of the entries of a topic."""

    @property
    def asked(self) -> CopyNumbers:
        """The numbers of its persistence policy."""

    def fell_short(self, entries: Sequence[Entry]) -> None:
        """Note entries that were stored with fewer copies than its ack quorum."""


class ReplicatedTopic(Protocol):
    """A topic whose entries may have several copies."""

    room: Room
    """Decides whether its entries can be stored."""

    @property
    def copies(self) -> AskedCopies | None:
        """The copies of its entries; None in a box with one data directory."""


class Replication:
    """The number of copies that batches ask for, and whether there are directories for them."""

    def __init__(self, bookies: Bookies, settings: Settings, events: Events, run_in_thread: Beside) -> None:
        self._bookies = bookies
        self._run_in_thread = run_in_thread
        self._events = events
        self.default = CopyNumbers(
            settings.managedLedgerDefaultEnsembleSize,
            settings.managedLedgerDefaultWriteQuorum,
            settings.managedLedgerDefaultAckQuorum,
        )
        """The box's numbers, for metadata, acknowledgements and packages."""
        self.directories = 0
        """Data directories of the box that get copies, writable or not."""
        self._writable = 0
        """Writable ones when they were counted: the number changes whenever one comes or goes."""
        self._is_reduced = False
        """Whether metadata is stored with fewer copies than the box's ack quorum."""
        self._count()

    def _count(self) -> None:
        self._writable = self._bookies.writable
        self.directories = sum(each.state not in _NO_BOOKIE for each in self._bookies.status().members)

    def is_short(self) -> bool:
        """Return whether a data directory cannot be written at present."""
        if self._bookies.writable != self._writable:
            self._count()
        return self._writable < self.directories

    def refusal(self, copies: CopyNumbers) -> str | None:
        """Return why messages with so many copies cannot be stored; None if they can.

        The ensemble size only spreads the copies, so it is cut to the directories that exist.
        """
        writable = self._bookies.writable
        if writable != self._writable or copies.write_quorum > self.directories:
            self._count()
        if copies.ack_quorum <= writable and copies.write_quorum <= self.directories:
            return None
        if copies.write_quorum > self.directories:
            asked = f"its persistence policy asks for {copies.write_quorum} copies (bookkeeperWriteQuorum)"
            return f"NotEnoughBookies: {asked}, the box has {_directories(self.directories)}: add some, or lower it"
        asked = f"its persistence policy waits for {copies.ack_quorum} copies (bookkeeperAckQuorum)"
        found = f"{writable} of {_directories(self.directories)} can be written"
        return f"NotEnoughBookies: {asked}, {found}: restore the others, or lower it"

    def warning(self, copies: CopyNumbers) -> str | None:
        """Return why messages cannot have these numbers of copies at present; None if they can."""
        refusal = self.refusal(copies)
        if refusal is not None:
            return f"messages are rejected: {refusal}"
        if copies.ensemble > self.directories:
            return f"the ensemble of {copies.ensemble} is cut to the {_directories(self.directories)} that exist"
        return None

    def count_copies(self, ledger_id: int, first: int, end: int, done: Callable[[int], None]) -> None:
        """Count the directories that have all entries from ``first`` to ``end`` (exclusive), later."""

        def count() -> int:
            held = self._bookies.coverage([ledger_id])
            return sum(_has(runs.get(ledger_id, ()), first, end) for runs in held.values())

        self._run_in_thread("copies", count, lambda found, error: done(0 if error is not None else found))

    def ask(self, batch: Batch, copies: CopyNumbers) -> None:
        """Have a batch ask for the copies of one of its parts."""
        ensemble = min(copies.ensemble, max(self.directories, copies.write_quorum))
        batch.ask(ensemble, copies.write_quorum, copies.ack_quorum)

    def ask_for_metadata(self, batch: Batch, now: Now) -> int:
        """Have a batch ask for the copies of metadata, and return its ack quorum.

        Metadata and acknowledgements are stored as long as one directory can be written, so they wait for no more
        copies than there can be.
        """
        wanted = self.default.ack_quorum
        quorum = min(wanted, max(1, self._bookies.writable))
        if (quorum < wanted) != self._is_reduced:
            self._is_reduced = quorum < wanted
            if self._is_reduced:
                text = f"metadata and acknowledgements are stored in {_directories(quorum)} instead of {wanted}"
                self._events.report("too-few-copies", "", text, now, copies=quorum, wanted=wanted)
        self.ask(batch, self.default._replace(ack_quorum=quorum))
        return quorum


def _has(runs: Sequence[tuple[int, int]], first: int, end: int) -> bool:
    """Return whether sorted runs have all entries from ``first`` to ``end`` (exclusive)."""
    for low, high in runs:
        if low <= first < high:
            first = high
    return first >= end


def _directories(count: int) -> str:
    return f"{count} data director{'y' if count == 1 else 'ies'}"
