"""AUTO_SPLIT without consistent hashing: each consumer has one range; a new one gets half of the largest.

As HashRangeAutoSplitStickyKeyConsumerSelector of Pulsar 4.2: ranges are identified by their upper ends, the highest of
which is 65536, a slot that no key has.
"""

from bisect import bisect_left
from typing import Generic

from pulsarbox.broker.dispatch.selectors.selector import RANGE_SIZE, ConsumerT, slot_from_zero
from pulsarbox.errors import ConsumerAssignError


class HashRangeSelector(Generic[ConsumerT]):
    """Selector that splits ranges in two."""

    def __init__(self) -> None:
        self._ends: list[int] = []
        """Last slot of each range, ascending."""
        self._owners: list[ConsumerT] = []
        """Owners of the ranges in ``_ends``."""
        self._end_of: dict[ConsumerT, int] = {}

    slot = staticmethod(slot_from_zero)

    def add(self, consumer: ConsumerT) -> list[ConsumerT]:
        """See StickyKeySelector.add. The consumer gets the lower half of the largest range, the lowest of equals."""
        if not self._ends:
            self._insert(0, RANGE_SIZE, consumer)
            return []
        lower = size = index = 0
        for i, end in enumerate(self._ends):
            if end - lower > size:
                size, index = end - lower, i
            lower = end
        if size <= 1:
            text = f"No more range can assigned to new consumer, assigned consumers {len(self._ends)}"
            raise ConsumerAssignError(text)
        loser = self._owners[index]
        self._insert(index, self._ends[index] - (size >> 1), consumer)
        return [loser]

    def remove(self, consumer: ConsumerT) -> None:
        """See StickyKeySelector.remove. The range merges into the one above it, or the highest into the one below."""
        end = self._end_of.pop(consumer, None)
        if end is None:
            return
        index = bisect_left(self._ends, end)
        if end == RANGE_SIZE and index > 0:
            self._end_of[self._owners[index - 1]] = end
            del self._ends[index - 1], self._owners[index]
        else:
            del self._ends[index], self._owners[index]

    def select(self, slot: int) -> ConsumerT | None:
        """See StickyKeySelector.select."""
        return self._owners[bisect_left(self._ends, slot)] if self._ends else None

    def ranges(self) -> dict[ConsumerT, list[tuple[int, int]]]:
        """See StickyKeySelector.ranges. As in Pulsar, the first starts at 0 and the last ends at 65536."""
        starts = [0, *(end + 1 for end in self._ends)]
        return {owner: [(start, end)] for owner, start, end in zip(self._owners, starts, self._ends, strict=False)}

    def _insert(self, index: int, end: int, consumer: ConsumerT) -> None:
        self._ends.insert(index, end)
        self._owners.insert(index, consumer)
        self._end_of[consumer] = end
