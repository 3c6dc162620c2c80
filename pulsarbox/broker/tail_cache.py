"""The tail cache: recent entries of all topics in memory, the oldest given up first.

A consumer that keeps up is served from here and never touches the disk.
"""

from collections import deque

from pulsarbox.storage.ledger import ManagedLedger
from pulsarbox.storage.record import Entry


class TailCache:
    """Bounds what the ``tail`` of all managed ledgers holds together, in bytes."""

    def __init__(self, limit: int) -> None:
        self.limit = limit
        self.size = 0
        self.evicted = 0
        """Spans of entries that were given up for want of room."""
        self._spans: deque[tuple[ManagedLedger, int, int, int, int]] = deque()

    def added(self, ledger: ManagedLedger, entries: list[Entry]) -> None:
        """Entries were confirmed and stand in the ledger's tail; make room for them."""
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
