"""Message IDs seen by an import, to store a redelivered message only once."""

from bisect import bisect_left, bisect_right
from collections.abc import Iterator

from pulsarbox.client.places import MessageId


class Runs:
    """A set of numbers stored as disjoint runs; compact if numbers arrive roughly in order."""

    def __init__(self) -> None:
        self._firsts: list[int] = []
        self._lasts: list[int] = []

    def __contains__(self, number: int) -> bool:
        at = bisect_right(self._firsts, number) - 1
        return at >= 0 and number <= self._lasts[at]

    def __iter__(self) -> Iterator[tuple[int, int]]:
        """Iterate over the first and last number of each run."""
        return iter(zip(self._firsts, self._lasts, strict=True))

    def add(self, number: int) -> None:
        """Add a number that is not in the set."""
        firsts, lasts = self._firsts, self._lasts
        if lasts and lasts[-1] == number - 1:  # the common case: in order
            lasts[-1] = number
            return
        at = bisect_left(firsts, number)
        joins_left = at > 0 and lasts[at - 1] == number - 1
        joins_right = at < len(firsts) and firsts[at] == number + 1
        if joins_left and joins_right:
            lasts[at - 1] = lasts[at]
            del firsts[at], lasts[at]
        elif joins_left:
            lasts[at - 1] = number
        elif joins_right:
            firsts[at] = number
        else:
            firsts.insert(at, number)
            lasts.insert(at, number)


class SeenIds:
    """Set of seen messages of several topics, by ledger, entry and batch index."""

    def __init__(self) -> None:
        self._entries: dict[tuple[str, int], Runs] = {}
        """Completely seen entries, by topic and ledger."""
        self._partly: dict[tuple[str, int, int], int] = {}
        """Bitmap of seen messages of other entries."""

    def add(self, topic: str, id: MessageId, batch: int) -> bool:  # noqa: A002 - the name used everywhere
        """Add a message and return whether it is new. ``batch`` is the batch size of its entry, 0 if unknown."""
        runs = self._entries.setdefault((topic, id.ledger), Runs())
        if id.entry in runs:
            return False
        if id.batch_index < 0:
            runs.add(id.entry)
            return True
        place = (topic, id.ledger, id.entry)
        seen, bit = self._partly.get(place, 0), 1 << id.batch_index
        if seen & bit:
            return False
        seen |= bit
        if batch and seen.bit_count() >= batch:
            self._partly.pop(place, None)
            runs.add(id.entry)
        else:
            self._partly[place] = seen
        return True
