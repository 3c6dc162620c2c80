"""The membership of an ensemble, as every member stores it in its file ENSEMBLE."""

from typing import NamedTuple

PAST_MAX = 200
"""Former generations that a membership lists."""


class MemberRecord(NamedTuple):
    """A member as the membership lists it."""

    member_id: str
    name: str
    state: str
    """One of MemberState."""
    left_at: int = 0
    """Its batches from this position on are not part of the log; 0 while it belongs to the ensemble."""
    generation: int = 0
    """A generation that it has recorded: a directory that knows only older ones was returned to an old state."""
    known_quorum: int = 0
    """The highest ``ack_quorum_min`` that it may know: it can be started without fewer members than that."""
    is_leaving: bool = False
    """Whether it is being removed, also while it is lost."""


class Membership(NamedTuple):
    """The members of the ensemble, and since when. The highest generation wins."""

    box: str
    """The id of the box, the same in every directory."""
    member_id: str
    """The member whose file this is."""
    generation: int
    """Raised durably on all remaining members before a batch is confirmed without a former one."""
    epoch: str
    """Random id of this generation: equal generations with different epochs have separate histories."""
    members: tuple[MemberRecord, ...]
    ack_quorum_min: int
    """The lowest ack quorum of a batch that was confirmed in this generation, or is expected; 1 if none ever was.

    The members that are missing at a start may have gone on in a later generation, and have confirmed such batches.
    """
    first: int = 1
    """The position of the first batch of this generation."""
    past: tuple[tuple[int, str], ...] = ()
    """The generations and epochs that it continues, oldest first, at most PAST_MAX."""
    quorum_before: int = 0
    """The lowest ack quorum of the batches between the last two starts that confirmed any; 0 if there were none."""
    quorum_since: int = 0
    """The lowest ack quorum since the last start; 0 if no batch was confirmed."""

    @property
    def quorum_expected(self) -> int:
        """The lowest ack quorum to expect of later batches; 0 if unknown."""
        return min(filter(None, (self.quorum_before, self.quorum_since)), default=0)
