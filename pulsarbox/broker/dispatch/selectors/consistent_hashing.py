"""AUTO_SPLIT with consistent hashing, Pulsar's default: a ring of slots on which each consumer has many points.

A slot belongs to the first point at or above it, or wraps around to the lowest point. As in
ConsistentHashingStickyKeyConsumerSelector of Pulsar 4.2, points derive from the consumer's name, so a consumer that
reconnects gets the same slots. Consumers with the same name are numbered, lowest free number first. If two consumers
have a point at the same slot, the earlier owns it, and the later inherits it.
"""

from array import array
from bisect import bisect_left
from typing import Generic

from pulsarbox.broker.dispatch.selectors.selector import MASK, RANGE_SIZE, ConsumerT, key_hash

_SLOTS = RANGE_SIZE - 1
"""Slots on the ring, numbered from 1."""


class ConsistentHashingSelector(Generic[ConsumerT]):
    """Selector with a ring of ``replica_points`` points per consumer."""

    def __init__(self, replica_points: int) -> None:
        self._replica_points = replica_points
        # Two bytes per point: an insertion into a full ring moves 100 kB instead of 400.
        self._points = array("H")
        """Slots with a point, ascending."""
        self._owner: dict[int, ConsumerT] = {}
        """Owner of the point at each slot."""
        self._waiting: dict[int, list[ConsumerT]] = {}
        """Other consumers with a point at the same slot, next in line first."""
        self._number: dict[ConsumerT, int] = {}
        self._taken: dict[str, set[int]] = {}
        """Numbers in use, by consumer name."""

    @staticmethod
    def slot(key_hash: int) -> int:
        """See StickyKeySelector.slot."""
        return (key_hash & MASK) % _SLOTS + 1

    def add(self, consumer: ConsumerT) -> list[ConsumerT]:
        """See StickyKeySelector.add. A consumer whose points are all taken has no slots for now."""
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
                # If the loser is the new consumer itself, its point there took slots from the same consumer.
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
                assert waiting is not None, "a consumer waits for each of its points that it does not own"
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
        """See StickyKeySelector.ranges. Covers 1 to 65535; adjacent ranges of one consumer are merged."""
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
        """Return the distinct slots of a consumer's points in order."""
        prefix = f"{name}\0{number}\0"
        return {self.slot(key_hash(f"{prefix}{i}".encode())): None for i in range(self._replica_points)}
