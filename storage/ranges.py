"""Acknowledged ranges of one ledger: sorted, disjoint, never touching, each with the totals at its two ends.

The totals make a backlog a subtraction: the messages of any run of entries are those after its last entry less those
before its first, however the run was put together.
"""

from bisect import bisect_left, bisect_right
from collections.abc import Iterator

from pulsarbox.storage.record import AckedRange


class RangeSet:
    """Ranges of entry ids of one ledger."""

    __slots__ = ("_firsts", "_ranges")

    def __init__(self) -> None:
        self._firsts: list[int] = []
        self._ranges: list[AckedRange] = []

    def __iter__(self) -> Iterator[AckedRange]:
        return iter(self._ranges)

    def __len__(self) -> int:
        return len(self._ranges)

    def __contains__(self, entry_id: int) -> bool:
        i = bisect_right(self._firsts, entry_id) - 1
        return i >= 0 and entry_id <= self._ranges[i].last

    def add(self, acked: AckedRange) -> None:
        """Put a range in, joined with those that it touches or overlaps."""
        low = bisect_left(self._firsts, acked.first)
        if low and self._ranges[low - 1].last >= acked.first - 1:
            low -= 1
        high = bisect_right(self._firsts, acked.last + 1)
        for other in self._ranges[low:high]:
            if other.first < acked.first:
                acked = acked._replace(
                    first=other.first, messages_before=other.messages_before, bytes_before=other.bytes_before
                )
            if other.last > acked.last:
                acked = acked._replace(
                    last=other.last, messages_after=other.messages_after, bytes_after=other.bytes_after
                )
        self._firsts[low:high] = [acked.first]
        self._ranges[low:high] = [acked]

    def take(self, first: int) -> AckedRange | None:
        """Take out the range that starts at ``first``, None where none does."""
        i = bisect_left(self._firsts, first)
        if i == len(self._firsts) or self._firsts[i] != first:
            return None
        del self._firsts[i]
        return self._ranges.pop(i)

    def drop_through(self, entry_id: int) -> None:
        """Forget everything up to ``entry_id``; a range that goes beyond it keeps its end.

        The totals at the cut are not known, so the rest of a cut range keeps those before its old first entry; the
        caller cuts only where it then absorbs the rest (see ManagedCursor).
        """
        keep = bisect_right(self._firsts, entry_id)
        if keep and self._ranges[keep - 1].last > entry_id:
            keep -= 1
            self._ranges[keep] = self._ranges[keep]._replace(first=entry_id + 1)
            self._firsts[keep] = entry_id + 1
        del self._firsts[:keep]
        del self._ranges[:keep]

    def first_gap(self, entry_id: int) -> int:
        """The first entry id from ``entry_id`` on that is not in the set."""
        i = bisect_right(self._firsts, entry_id) - 1
        return self._ranges[i].last + 1 if i >= 0 and entry_id <= self._ranges[i].last else entry_id
