"""STICKY: every consumer names its ranges, and no two may have a slot in common. Messages of other slots wait.

As HashRangeExclusiveStickyKeyConsumerSelector of Pulsar 4.2, texts included. Ranges are not held against the number of
slots: what lies beyond is never asked for.
"""

from bisect import bisect_right
from collections.abc import Iterable
from operator import itemgetter
from typing import Generic

from pulsarbox.broker.dispatch.selectors.selector import ConsumerT, KeySharedConsumer, slot_from_zero
from pulsarbox.errors import ConsumerAssignError


class RangeConflict(ConsumerAssignError):
    """A consumer that is here has slots of a range that another asks for. ``holder`` is the one that is here."""

    def __init__(self, holder: KeySharedConsumer) -> None:
        super().__init__(f"Range conflict with consumer {holder}")
        self.holder = holder


class StickyRangesSelector(Generic[ConsumerT]):
    """Selector of ranges that consumers chose."""

    def __init__(self) -> None:
        self._starts: list[int] = []
        self._ends: list[int] = []
        self._owners: list[ConsumerT] = []
        """The ranges in order: where each begins, where it ends, whose it is."""

    slot = staticmethod(slot_from_zero)

    def add(self, consumer: ConsumerT) -> list[ConsumerT]:
        """See StickyKeySelector.add. Nobody ever loses slots here.

        Raises RangeConflict where somebody has a slot of a range; ConsumerAssignError where there are no ranges, or
        they cannot be meant.
        """
        wanted = _checked(consumer)
        for start, end in wanted:
            index = bisect_right(self._starts, start) - 1
            # Ranges that are here do not overlap: only the nearest on either side can reach into this one.
            if index >= 0 and self._ends[index] >= start:
                raise RangeConflict(self._owners[index])
            if index + 1 < len(self._starts) and self._starts[index + 1] <= end:
                raise RangeConflict(self._owners[index + 1])
        here = list(zip(self._starts, self._ends, self._owners, strict=True))
        # Sorting once is linear for what is sorted already; inserting each would be quadratic.
        merged = sorted([*here, *((start, end, consumer) for start, end in wanted)], key=itemgetter(0))
        self._starts = [each[0] for each in merged]
        self._ends = [each[1] for each in merged]
        self._owners = [each[2] for each in merged]
        return []

    def remove(self, consumer: ConsumerT) -> None:
        """See StickyKeySelector.remove. Nobody has its slots until somebody comes who asks for them."""
        kept = [i for i, owner in enumerate(self._owners) if owner is not consumer]
        self._starts = [self._starts[i] for i in kept]
        self._ends = [self._ends[i] for i in kept]
        self._owners = [self._owners[i] for i in kept]

    def select(self, slot: int) -> ConsumerT | None:
        """See StickyKeySelector.select."""
        index = bisect_right(self._starts, slot) - 1
        return self._owners[index] if index >= 0 and slot <= self._ends[index] else None

    def ranges(self) -> dict[ConsumerT, list[tuple[int, int]]]:
        """See StickyKeySelector.ranges. As the consumers named them, but neighbours are joined."""
        found: dict[ConsumerT, list[tuple[int, int]]] = {}
        for start, end, owner in zip(self._starts, self._ends, self._owners, strict=True):
            ranges = found.setdefault(owner, [])
            first = ranges.pop()[0] if ranges and ranges[-1][1] == start - 1 else start
            ranges.append((first, end))
        return found


def _checked(consumer: KeySharedConsumer) -> Iterable[tuple[int, int]]:
    """The ranges that a consumer asks for, in the order in which it names them."""
    meta = consumer.key_shared
    if meta is None:
        raise ConsumerAssignError("Must specify key shared meta for consumer.")
    if not meta.ranges:
        raise ConsumerAssignError("Ranges for KeyShared policy must not be empty.")
    ordered = sorted(meta.ranges, key=lambda each: each[0])
    # One after the other, as Pulsar does: which of two faults is told depends on it.
    for i, (start, end) in enumerate(ordered):
        if start > end:
            raise ConsumerAssignError(f"Fixed hash range start > end for range: [{start},{end}]")
        for first, last in ordered[i + 1 : i + 2]:
            if max(start, first) <= min(end, last):
                raise ConsumerAssignError(
                    f"Consumer's own ranges conflict: [{start},{end}] overlaps with [{first},{last}]"
                )
    return meta.ranges
