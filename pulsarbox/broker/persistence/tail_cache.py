"""The tail cache: recent entries of all topics in memory, evicted oldest first.

A consumer that keeps up is served from here and never reads the disk.
"""

from collections import deque

from pulsarbox.storage.ledger import ManagedLedger
from pulsarbox.storage.record import Entry


class TailCache:
    """Bounds the bytes held by the ``tail`` of all managed ledgers together."""

    def __init__(self, limit: int) -> None:
        self.limit = limit
        self.size = 0
        self.evicted = 0
        """Spans of entries evicted for lack of room."""
        self._spans: deque[tuple[ManagedLedger, int, int, int, int]] = deque()

    def resize(self, limit: int) -> None:
        """Set the limit in bytes; entries beyond a lower one are evicted with the next addition."""
        self.limit = limit

    def added(self, ledger: ManagedLedger, entries: list[Entry]) -> None:
        """Account for confirmed entries in the ledger's tail and evict older ones if needed."""
        first, last = entries[0], entries[-1]
        size = last.total_bytes - first.total_bytes + len(first.body) + 300 * len(entries)
        if first.ledger_id == last.ledger_id:
            self._spans.append((ledger, first.ledger_id, first.entry_id, last.entry_id, size))
        else:
            for entry in entries:
                self._spans.append((ledger, entry.ledger_id, entry.entry_id, entry.entry_id, size // len(entries)))
        self.size += size
        while self.size > self.limit and len(self._spans) > 1:
            oldest, ledger_id, start, stop, freed = self._spans.popleft()
            oldest.forget(ledger_id, start, stop)
            self.size -= freed
            self.evicted += 1
