"""Placement of batches: the log is divided into segments, each written to the same members. Pure.

Segments follow each other round the ring of writable members, so that an ensemble larger than the write quorum shares
the load: with three members and two copies 1 2, 2 3, 3 1.
"""

from collections.abc import Sequence
from typing import NamedTuple


class RingMember(NamedTuple):
    """A writable member."""

    member_id: str
    device: int
    """The number of its device, 0 if unknown."""


class SegmentCopies(NamedTuple):
    """The copies that a batch asks for."""

    ensemble: int
    write_quorum: int


class Segment(NamedTuple):
    """Batches in a row that are written to the same members."""

    number: int
    first_position: int
    members: tuple[str, ...]
    """The ids of its write set, in order. It grows, but never shrinks."""


class Placement:
    """Chooses the write set of each batch."""

    def __init__(self, segment_bytes: int) -> None:
        """A segment ends after ``segment_bytes`` of batches if its ensemble is larger than its write set."""
        self._segment_bytes = segment_bytes
        self._bytes = 0
        self._asked = SegmentCopies(1, 1)
        self._generation = -1
        self.segment = Segment(0, 0, ())

    def place(
        self, position: int, size: int, asked: SegmentCopies, ring: Sequence[RingMember], generation: int
    ) -> Segment:
        """Return the segment of a batch of ``size`` bytes; empty if no member is writable."""
        has_left = not set(self.segment.members) <= {each.member_id for each in ring}
        if generation != self._generation or has_left or self._is_long():
            self._begin(position, asked, ring, generation)
        else:
            self._extend(asked, ring)
        self._bytes += size
        return self.segment

    def _is_long(self) -> bool:
        ensemble, write_quorum = self._asked
        return ensemble > write_quorum and self._bytes >= self._segment_bytes

    def _begin(self, position: int, asked: SegmentCopies, ring: Sequence[RingMember], generation: int) -> None:
        self._asked, self._generation, self._bytes = asked, generation, 0
        number = self.segment.number + 1
        self.segment = Segment(number, position, write_set(asked, ring, generation, number))

    def _extend(self, asked: SegmentCopies, ring: Sequence[RingMember]) -> None:
        self._asked = SegmentCopies(*map(max, self._asked, asked))
        members = self.segment.members
        if len(members) < self._asked.write_quorum:
            wanted = write_set(self._asked, ring, self._generation, self.segment.number)
            added = [each for each in wanted if each not in members]
            self.segment = self.segment._replace(members=(*members, *added)[: self._asked.write_quorum])


def write_set(asked: SegmentCopies, ring: Sequence[RingMember], generation: int, number: int) -> tuple[str, ...]:
    """Return the write set of a segment: as many members of the ensemble as it has copies, or all if there are fewer.

    The ensemble begins elsewhere in each generation, so that members that join are used. Copies are on different
    devices while there are enough of them.
    """
    if not ring:
        return ()
    ensemble = on_devices(_from(ring, generation), max(asked))
    chosen = on_devices(_from(ensemble, number - 1), asked.write_quorum)
    return tuple(each.member_id for each in chosen)


def _from(ring: Sequence[RingMember], start: int) -> list[RingMember]:
    start %= len(ring)
    return [*ring[start:], *ring[:start]]


def on_devices(ring: Sequence[RingMember], count: int) -> list[RingMember]:
    """Return the first members on different devices, then the others, up to ``count``."""
    first: list[RingMember] = []
    others: list[RingMember] = []
    devices: set[int] = set()
    for each in ring:
        (others if each.device in devices else first).append(each)
        devices |= {each.device} if each.device else set()
    return [*first, *others][:count]
