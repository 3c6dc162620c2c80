"""Copies of the messages of one topic, as its persistence policy asks for."""

from collections.abc import Sequence
from functools import partial

from pulsarbox.broker.persistence.replication import CopyNumbers, Replication, Room
from pulsarbox.broker.policies.kinds.persistence import PERSISTENCE, Persistence
from pulsarbox.broker.policies.policies import TopicPolicies
from pulsarbox.clock import Now
from pulsarbox.errors import NotEnoughBookies, PersistenceError
from pulsarbox.storage.record import Entry


class TopicCopies:
    """The copies of each message of a topic, and whether they can be stored."""

    __slots__ = ("_counting", "_lacking", "_policies", "_replication", "_room", "asked")

    def __init__(self, replication: Replication, room: Room, policies: TopicPolicies) -> None:
        """``room``: that of the box."""
        self._replication = replication
        self._room = room
        self._policies = policies
        self.asked = copies_of(policies.get(PERSISTENCE))
        """The numbers of its persistence policy."""
        self._lacking: dict[int, tuple[int, int]] = {}
        """By ledger, the first entry and the end (exclusive) of those that may still have too few copies."""
        self._counting = False

    def policies_changed(self, now: Now) -> None:
        """Apply a changed persistence policy to later messages."""
        self.asked = copies_of(self._policies.get(PERSISTENCE))

    def check(self) -> None:
        """Raise NotEnoughBookies if there cannot be so many copies."""
        refusal = self._replication.refusal(self.asked)
        if refusal is not None:
            raise NotEnoughBookies(refusal)

    def fell_short(self, entries: Sequence[Entry]) -> None:
        """Note entries that were stored with fewer copies than the ack quorum."""
        for entry in entries:
            first, end = self._lacking.get(entry.ledger_id, (entry.entry_id, entry.entry_id))
            self._lacking[entry.ledger_id] = min(first, entry.entry_id), max(end, entry.entry_id + 1)

    def check_complete(self) -> None:
        """Raise PersistenceError if entries may still have too few copies; whether they have is found out later."""
        if not self._lacking:
            return
        if not self._counting:
            self._counting = True
            ledger_id, (first, end) = next(iter(self._lacking.items()))
            self._replication.count_copies(ledger_id, first, end, partial(self._counted, ledger_id, end))
        raise PersistenceError("Messages that were stored with too few copies are still being copied: try again")

    def _counted(self, ledger_id: int, end: int, copies: int) -> None:
        self._counting = False
        if copies >= self.asked.ack_quorum and self._lacking.get(ledger_id, (0, 0))[1] == end:
            del self._lacking[ledger_id]

    @property
    def refusal(self) -> str | None:
        """See Room."""
        return self._room.refusal or self._replication.refusal(self.asked)


def copies_of(policy: Persistence) -> CopyNumbers:
    """Return the numbers of copies of a persistence policy."""
    return CopyNumbers(policy.ensemble, policy.write_quorum, policy.ack_quorum)
