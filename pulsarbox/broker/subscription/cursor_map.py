"""Map of a subscription's progress through the log: acknowledged, in-flight, delayed and waiting entries per bucket.

The caller passes each of ``steps`` to ``add``, some per turn. Changes in between may or may not be included.
"""

from bisect import bisect_right
from collections.abc import Iterator
from itertools import islice
from typing import TYPE_CHECKING, Any, Final, NamedTuple

from pulsarbox.clock import Now
from pulsarbox.storage.delayed_index import DELAY_CHUNK
from pulsarbox.storage.record import Position

if TYPE_CHECKING:
    from pulsarbox.broker.subscription.subscription import Subscription

STEPS_MAX: Final = 300_000
"""Maximum number of steps; the map of a subscription with more is truncated."""
SOME: Final = 500
"""Acknowledged ranges copied at a time, as the cursor may change between steps."""
SHOWN: Final = 1000
"""Ledgers and ranges listed individually."""


class CursorRun(NamedTuple):
    """A run of entries of one ledger, and their state."""

    what: str
    """``acknowledged``, ``inFlight`` or ``delayed``."""
    ledger_id: int
    first: int
    last: int


class LogSpan(NamedTuple):
    """A stretch of the log, with entries numbered across ledgers."""

    ledgers: list[int]
    starts: list[int]
    """The number of each ledger's first entry in the span."""
    firsts: list[int]
    """The entry id of each ledger's first entry in the span."""
    entries: int

    def number(self, ledger_id: int, entry_id: int) -> int | None:
        """Return the number of an entry; None if its ledger is not in the span."""
        at = bisect_right(self.ledgers, ledger_id) - 1
        if at < 0 or self.ledgers[at] != ledger_id:
            return None
        return self.starts[at] + entry_id - self.firsts[at]

    def position(self, number: int) -> Position:
        """Return the position of the entry with a number."""
        at = bisect_right(self.starts, number) - 1
        return Position(self.ledgers[at], self.firsts[at] + number - self.starts[at])


def span_of(subscription: "Subscription", *, backlog: bool) -> LogSpan:
    """Return the whole log, or only the part after mark-delete, up to the first open transaction."""
    ledger = subscription.ledger
    ledgers, starts, firsts, entries = [], [], [], 0
    mark = subscription.cursor.mark_delete
    for ledger_id, info in sorted(ledger.ledgers.items()):
        first = 0
        if backlog and ledger_id <= mark.ledger_id:
            first = mark.entry_id + 1 if ledger_id == mark.ledger_id else info.confirmed
        end = ledger.readable_of(info)
        if first < end:
            ledgers.append(ledger_id)
            starts.append(entries)
            firsts.append(first)
            entries += end - first
    return LogSpan(ledgers, starts, firsts, entries)


class CursorMap:
    """The map of one subscription."""

    def __init__(self, subscription: "Subscription", buckets: int, now: Now, *, backlog: bool) -> None:
        self._subscription = subscription
        self._now = now
        self.span = span_of(subscription, backlog=backlog)
        self._size = max(-(-self.span.entries // buckets), 1)
        count = -(-self.span.entries // self._size)
        self._counts: dict[str, list[int]] = {what: [0] * count for what in ("acknowledged", "inFlight", "delayed")}
        self.truncated = False

    def steps(self) -> Iterator[CursorRun]:
        """Yield the steps to ``add``, up to ``STEPS_MAX``."""
        every = self._every()
        yield from islice(every, STEPS_MAX)
        self.truncated = next(every, None) is not None

    def _every(self) -> Iterator[CursorRun]:
        yield from self._acknowledged()
        for consumer in list(self._subscription.consumers):
            for ledger_id, entry_id in list(consumer.held):
                yield CursorRun("inFlight", ledger_id, entry_id, entry_id)
        yield from self._delayed()

    def _acknowledged(self) -> Iterator[CursorRun]:
        cursor = self._subscription.cursor
        mark = cursor.mark_delete
        for ledger_id, info in sorted(self._subscription.ledger.ledgers.items()):
            last = mark.entry_id if ledger_id == mark.ledger_id else info.confirmed - 1
            if ledger_id <= mark.ledger_id and last >= 0:
                yield CursorRun("acknowledged", ledger_id, 0, last)
        at = (mark.ledger_id, mark.entry_id + 1)
        while some := list(islice(cursor.ranges.runs_from(*at), SOME)):
            for begin, end in some:
                if begin >= at:
                    yield CursorRun("acknowledged", begin[0], begin[1], end[1])
            at = (some[-1][1][0], some[-1][1][1] + 1)
            if len(some) < SOME:
                return

    def _delayed(self) -> Iterator[CursorRun]:
        delays, now, cursor = self._subscription.stored.delays, self._now.wall, self._subscription.cursor
        for (ledger_id, number), extent in list(delays.extents()):
            if extent.last <= now:
                continue
            chunk = delays.chunk(ledger_id, number)
            for time, place, _ in list(chunk.rows()):
                entry_id = number * DELAY_CHUNK + place
                if time > now and not cursor.is_acked(ledger_id, entry_id):
                    yield CursorRun("delayed", ledger_id, entry_id, entry_id)

    def add(self, step: CursorRun, now: Now) -> None:
        """Count the entries of a step in their buckets."""
        last = self.span.number(step.ledger_id, step.last)
        if last is None:
            return
        first = max(last - (step.last - step.first), 0)
        last = min(last, self.span.entries - 1)
        counts, size = self._counts[step.what], self._size
        while first <= last:
            bucket = first // size
            end = min(last, (bucket + 1) * size - 1)
            counts[bucket] += end - first + 1
            first = end + 1

    def as_json(self) -> dict[str, Any]:
        """Return the map for the Admin API."""
        cursor, ledger = self._subscription.cursor, self._subscription.ledger
        ledgers = [self._ledger(ledger_id) for ledger_id in sorted(ledger.ledgers)]
        ranges = list(islice(cursor.ranges, SHOWN))
        return {
            "topic": str(self._subscription.topic_name),
            "subscription": self._subscription.name,
            "markDelete": _shown(cursor.mark_delete),
            "lastConfirmed": _shown(ledger.last_confirmed),
            "backlog": cursor.backlog_messages,
            "backlogEntries": cursor.backlog_entries,
            "entries": self.span.entries,
            "bucketEntries": self._size,
            "buckets": [self._bucket(number) for number in range(len(self._counts["acknowledged"]))],
            "truncated": self.truncated,
            "ledgers": ledgers[:SHOWN],
            "ledgersTotal": len(ledgers),
            "ranges": [[each.ledger_id, each.first, each.last] for each in ranges],
            "rangesTotal": len(cursor.ranges),
        }

    def _ledger(self, ledger_id: int) -> dict[str, Any]:
        info = self._subscription.ledger.ledgers[ledger_id]
        return {"ledger": ledger_id, "first": 0, "last": info.confirmed - 1, "size": info.size, "open": not info.closed}

    def _bucket(self, number: int) -> dict[str, Any]:
        first = number * self._size
        last = min(first + self._size, self.span.entries) - 1
        counted = {what: counts[number] for what, counts in self._counts.items()}
        there = last - first + 1
        waiting = max(there - sum(counted.values()), 0)
        return {
            "first": _shown(self.span.position(first)),
            "last": _shown(self.span.position(last)),
            "entries": there,
            **counted,
            "waiting": waiting,
        }


def _shown(position: Position) -> str:
    return f"{position.ledger_id}:{position.entry_id}"
