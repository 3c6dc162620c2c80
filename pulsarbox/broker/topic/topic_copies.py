"""Copies of the messages of one topic, as its persistence policy asks for."""

from pulsarbox.broker.persistence.replication import Copies, Replication, Room
from pulsarbox.broker.policies.kinds.persistence import PERSISTENCE, Persistence
from pulsarbox.broker.policies.policies import TopicPolicies
from pulsarbox.clock import Now
from pulsarbox.errors import NotEnoughBookies


class TopicCopies:
    """The copies of each message of a topic, and whether they can be stored."""

    __slots__ = ("_policies", "_replication", "_room", "asked")

    def __init__(self, replication: Replication, room: Room, policies: TopicPolicies) -> None:
        """``room``: that of the box."""
        self._replication = replication
        self._room = room
        self._policies = policies
        self.asked = copies_of(policies.get(PERSISTENCE))
        """The numbers of its persistence policy."""

    def policies_changed(self, now: Now) -> None:
        """Apply a changed persistence policy to later messages."""
        self.asked = copies_of(self._policies.get(PERSISTENCE))

    def check(self) -> None:
        """Raise NotEnoughBookies if there cannot be so many copies."""
        refusal = self._replication.refusal(self.asked)
        if refusal is not None:
            raise NotEnoughBookies(refusal)

    @property
    def refusal(self) -> str | None:
        """See Room."""
        return self._room.refusal or self._replication.refusal(self.asked)


def copies_of(policy: Persistence) -> Copies:
    """Return the numbers of copies of a persistence policy."""
    return Copies(policy.ensemble, policy.write_quorum, policy.ack_quorum)
