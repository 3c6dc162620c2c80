"""Enforcement of the size limit of unsubscribed retention for all topics together.

Above the limit, the oldest ledger is dropped among topics that hold more than an equal share, so that a topic with many
messages does not displace those of others.
"""

from collections.abc import Callable
from typing import Final

from pulsarbox.broker.backlog.unsubscribed_index import UnsubscribedIndex
from pulsarbox.broker.timers import Timers
from pulsarbox.clock import Now
from pulsarbox.storage.catalog import Catalog

COUNTED_AT_ONCE: Final = 10
"""Topics counted again in one turn after a start."""
AT_ONCE: Final = 4
"""Ledgers dropped in one turn."""
SKIPPED_MAX: Final = 100
"""Topics skipped because their oldest ledger cannot be dropped yet; above this, the search stops until later."""
AGAIN_SECONDS: Final = 1.0


class UnsubscribedTrimming:
    """Drops the oldest ledgers with unsubscribed messages while their total is above the limit."""

    def __init__(
        self,
        index: UnsubscribedIndex,
        catalog: Catalog,
        timers: Timers,
        trim: Callable[[str, Now], bool],
        count: Callable[[str, Now], object],
        replayed: list[str],
    ) -> None:
        """Enforce the limit, and count the topics in the replayed log again.

        ``trim`` drops the oldest ledger with unsubscribed messages of a topic, loaded or not, and returns whether it
        could; ``count`` updates the row of a topic. A row is written in the batch after its entries, so a crash may
        lose its update: ``replayed`` are the topics of the replayed log.
        """
        self._index = index
        self._catalog = catalog
        self._timers = timers
        self._trim_oldest = trim
        self._count = count
        self._uncounted = replayed
        self._skipped: set[str] = set()
        self._armed = False
        if replayed:
            timers.at(0.0, self._count_replayed)
        index.changed.add(self._look)

    def _count_replayed(self, now: Now) -> None:
        names, self._uncounted = self._uncounted[:COUNTED_AT_ONCE], self._uncounted[COUNTED_AT_ONCE:]
        for name in names:
            self._count(name, now)
        if self._uncounted:
            self._timers.at(now.monotonic, self._count_replayed)

    def _look(self, now: Now) -> None:
        if not self._armed and self._index.is_over:
            self._armed = True
            self._timers.at(now.monotonic, self._trim)

    def _trim(self, now: Now) -> None:
        self._armed = False
        for _ in range(AT_ONCE):
            key = self._next() if self._index.is_over else None
            if key is None:
                break
            row = self._catalog.get(key)
            assert row is not None
            if not self._trim_oldest(row["topic"], now):
                self._skipped.add(key)
        else:
            self._look(now)
            return
        if self._skipped and self._index.is_over:
            self._armed = True
            self._timers.at(now.monotonic + AGAIN_SECONDS, self._trim)
        self._skipped.clear()

    def _next(self) -> str | None:
        """Return the row of the topic whose oldest ledger is dropped next; None if there is none."""
        return None if len(self._skipped) >= SKIPPED_MAX else self._index.largest(self._skipped)
