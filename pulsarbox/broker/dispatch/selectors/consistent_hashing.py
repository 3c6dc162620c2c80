"""AUTO_SPLIT as Pulsar has it by default: a ring of slots, on which each consumer has many points.

A slot belongs to the point at it or above it, and beyond the last point to the first. As
ConsistentHashingStickyKeyConsumerSelector of Pulsar 4.2: the points follow from the consumer's name, so that who leaves
and comes back has the same slots. Consumers of one name are numbered, the lowest free number first. Where two
consumers have a point at the same slot the earlier has it, and the later gets it when the earlier leaves.
"""

from array import array
from bisect import bisect_left
from typing import Generic

from pulsarbox.broker.dispatch.selectors.selector import MASK, RANGE_SIZE, ConsumerT, key_hash

_SLOTS = RANGE_SIZE - 1
"""From 1 on: there is no slot 0 on the ring."""


class ConsistentHashingSelector(Generic[ConsumerT]):
    """Selector with a ring; ``replica_points`` for each consumer."""

    def __init__(self, replica_points: int) -> None:
        self._replica_points = replica_points
        # Two bytes a point: where the ring is full, an insertion moves 100 kB instead of 400.
        self._points = array("H")
        """Slots at which there are points, ascending."""
        self._owner: dict[int, ConsumerT] = {}
        """Who has the point at a slot."""
        self._waiting: dict[int, list[ConsumerT]] = {}
        """Who has a point at that slot as well, the next in turn first."""
        self._number: dict[ConsumerT, int] = {}
        self._taken: dict[str, set[int]] = {}
        """Numbers of the consumers that are here, by name."""

    @staticmethod
    def slot(key_hash: int) -> int:
        """See StickyKeySelector.slot."""
        return (key_hash & MASK) % _SLOTS + 1

    def add(self, consumer: ConsumerT) -> list[ConsumerT]:
        """See StickyKeySelector.add. Where others have all of its points already it has no slots for now."""
        taken = self._taken.setdefault(consumer.name, set())
        number = next(i for i in range(len(taken) + 1) if i not in taken)
        taken.add(number)
        self._number[consumer] = number
        points, owner = self._points, self._owner
        losers: dict[ConsumerT, None] = {}
        for point in self._points_of(consumer.name, number):
            if point in owner:
                self._waiting.setdefault(point, []).append(consumer)
                continue
            index = bisect_left(points, point)
            if points:
                # Where that is the newcomer itself, its point there has taken from the same loser.
                losers[owner[points[index] if index < len(points) else points[0]]] = None
            points.insert(index, point)
            owner[point] = consumer
        losers.pop(consumer, None)
        return list(losers)

    def remove(self, consumer: ConsumerT) -> None:
        """See StickyKeySelector.remove."""
        number = self._number.pop(consumer, None)
        if number is None:
            return
        taken = self._taken[consumer.name]
        taken.discard(number)
        if not taken:
            del self._taken[consumer.name]
        for point in self._points_of(consumer.name, number):
            waiting = self._waiting.get(point)
            if self._owner[point] is not consumer:
                assert waiting is not None, "a point that is not had is waited for"
                waiting.remove(consumer)
            elif waiting:
                self._owner[point] = waiting.pop(0)
            else:
                del self._owner[point]
                del self._points[bisect_left(self._points, point)]
            if waiting is not None and not waiting:
                del self._waiting[point]

    def select(self, slot: int) -> ConsumerT | None:
        """See StickyKeySelector.select."""
        points = self._points
        if not points:
            return None
        index = bisect_left(points, slot)
        return self._owner[points[index] if index < len(points) else points[0]]

    def ranges(self) -> dict[ConsumerT, list[tuple[int, int]]]:
        """See StickyKeySelector.ranges: from 1 to 65535. Neighbouring ranges of one consumer are joined."""
        found: dict[ConsumerT, list[tuple[int, int]]] = {}
        if not self._points:
            return found
        last = len(self._points)
        start = 1
        for i, end in enumerate((*self._points, _SLOTS)):
            if end < start:
                continue  # the last point is at the last slot
            ranges = found.setdefault(self._owner[self._points[i if i < last else 0]], [])
            if ranges and ranges[-1][1] == start - 1:
                start = ranges.pop()[0]
            ranges.append((start, end))
            start = end + 1
        return found

    def _points_of(self, name: str, number: int) -> dict[int, None]:
        """The slots of a consumer's points in order, each once."""
        prefix = f"{name}\0{number}\0"
        return {self.slot(key_hash(f"{prefix}{i}".encode())): None for i in range(self._replica_points)}
