"""STICKY: every consumer names its ranges, which must not overlap. Messages of other slots wait.

As HashRangeExclusiveStickyKeyConsumerSelector of Pulsar 4.2, including the error messages. Ranges are not checked
against the number of slots: slots beyond it never occur.
"""

from bisect import bisect_right
from collections.abc import Iterable
from operator import itemgetter
from typing import Generic

from pulsarbox.broker.dispatch.selectors.selector import ConsumerT, KeySharedConsumer, slot_from_zero
from pulsarbox.errors import ConsumerAssignError


class RangeConflict(ConsumerAssignError):
    """A connected consumer (``holder``) already has slots of a requested range."""

    def __init__(self, holder: KeySharedConsumer) -> None:
        super().__init__(f"Range conflict with consumer {holder}")
        self.holder = holder


class StickyRangesSelector(Generic[ConsumerT]):
    """Selector of ranges chosen by the consumers."""

    def __init__(self) -> None:
        self._starts: list[int] = []
        self._ends: list[int] = []
        self._owners: list[ConsumerT] = []
        """Start, end and owner of each range, in three parallel sorted lists."""

    slot = staticmethod(slot_from_zero)

    def add(self, consumer: ConsumerT) -> list[ConsumerT]:
        """See StickyKeySelector.add. No consumer ever loses slots here.

        Raises RangeConflict if another consumer has a slot of a range, ConsumerAssignError if the ranges are missing or
        invalid.
        """
        wanted = _checked(consumer)
        for start, end in wanted:
            index = bisect_right(self._starts, start) - 1
            # Existing ranges do not overlap: only the nearest on either side can reach into this one.
            if index >= 0 and self._ends[index] >= start:
                raise RangeConflict(self._owners[index])
            if index + 1 < len(self._starts) and self._starts[index + 1] <= end:
                raise RangeConflict(self._owners[index + 1])
        here = list(zip(self._starts, self._ends, self._owners, strict=True))
        # Sorting once is linear for sorted input; inserting each range would be quadratic.
        merged = sorted([*here, *((start, end, consumer) for start, end in wanted)], key=itemgetter(0))
        self._starts = [each[0] for each in merged]
        self._ends = [each[1] for each in merged]
        self._owners = [each[2] for each in merged]
        return []

    def remove(self, consumer: ConsumerT) -> None:
        """See StickyKeySelector.remove. The slots have no owner until another consumer requests them."""
        kept = [i for i, owner in enumerate(self._owners) if owner is not consumer]
        self._starts = [self._starts[i] for i in kept]
        self._ends = [self._ends[i] for i in kept]
        self._owners = [self._owners[i] for i in kept]

    def select(self, slot: int) -> ConsumerT | None:
        """See StickyKeySelector.select."""
        index = bisect_right(self._starts, slot) - 1
        return self._owners[index] if index >= 0 and slot <= self._ends[index] else None

    def ranges(self) -> dict[ConsumerT, list[tuple[int, int]]]:
        """See StickyKeySelector.ranges. As the consumers named them, with adjacent ranges merged."""
        found: dict[ConsumerT, list[tuple[int, int]]] = {}
        for start, end, owner in zip(self._starts, self._ends, self._owners, strict=True):
            ranges = found.setdefault(owner, [])
            first = ranges.pop()[0] if ranges and ranges[-1][1] == start - 1 else start
            ranges.append((first, end))
        return found


def _checked(consumer: KeySharedConsumer) -> Iterable[tuple[int, int]]:
    """Return the ranges that a consumer requests, in its order. Raises ConsumerAssignError if they are invalid."""
    meta = consumer.key_shared
    if meta is None:
        raise ConsumerAssignError("Must specify key shared meta for consumer.")
    if not meta.ranges:
        raise ConsumerAssignError("Ranges for KeyShared policy must not be empty.")
    ordered = sorted(meta.ranges, key=lambda each: each[0])
    # In Pulsar's order, which determines which of two errors is reported.
    for i, (start, end) in enumerate(ordered):
        if start > end:
            raise ConsumerAssignError(f"Fixed hash range start > end for range: [{start},{end}]")
        for first, last in ordered[i + 1 : i + 2]:
            if max(start, first) <= min(end, last):
                raise ConsumerAssignError(
                    f"Consumer's own ranges conflict: [{start},{end}] overlaps with [{first},{last}]"
                )
    return meta.ranges
