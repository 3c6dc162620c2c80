"""The interface of an ensemble to its maintenance, and the results of maintenance steps."""

from collections.abc import Sequence
from typing import NamedTuple, Protocol

from pulsarbox.storage.engine import Rows
from pulsarbox.storage.ensemble.keeping.expected_entries import CopiesOf
from pulsarbox.storage.ensemble.keeping.fragments import MemberPlace
from pulsarbox.storage.ensemble.member import Member
from pulsarbox.storage.ensemble.status import MemberEvent


class Held(NamedTuple):
    """A member and its state at present."""

    member: Member
    place: MemberPlace

    @property
    def name(self) -> str:
        """The path as configured."""
        return self.member.name


class Maintained(NamedTuple):
    """The result of one step of maintenance."""

    what: str
    """``joined``, ``audited``, ``repaired``, ``scrubbed``, ``trimmed`` or ``removed``."""
    text: str
    """One sentence for people."""
    bytes: int
    """Bytes read or written."""


class Ensemble(Protocol):
    """The parts of an ensemble that maintenance uses. All methods are called from the thread of maintenance."""

    def held(self) -> Sequence[Held]:
        """Return the members that belong to the ensemble, in order, whatever their states."""

    def rows(self) -> Rows:
        """Return the rows of the last checkpoint."""

    def is_settled(self) -> bool:
        """Return whether no copy of a batch that the last checkpoint covers waits to be written."""

    def is_covered(self) -> bool:
        """Return whether a checkpoint covers all batches before the last change of the members."""

    def copies_of(self) -> CopiesOf:
        """Return the function that knows the number of copies wanted of each ledger, as of the last checkpoint."""

    def advance(self, monotonic: float, wall: int) -> Maintained | None:
        """Bring a member that returned or is new one step closer to being active; None if there is nothing to do.

        Raises PersistenceError.
        """

    def release(self, name: str) -> bool:
        """Remove a leaving member, all of whose entries are elsewhere; False if that cannot be known yet.

        Raises PersistenceError.
        """

    def report(self, event: MemberEvent) -> None:
        """Publish an event."""

    def read_note(self, name: str) -> bytes:
        """Return the note of a member; empty if it has none or cannot be read."""

    def write_note(self, name: str, note: bytes) -> None:
        """Store a small note in the directory of a member. Raises PersistenceError."""
