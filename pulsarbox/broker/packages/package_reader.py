"""Reads the content of a package, one step after another."""

from collections.abc import Callable
from typing import Final

from pulsarbox.broker.persistence.read_queue import ReadQueue
from pulsarbox.clock import Now
from pulsarbox.storage.package_content import ENTRY_BYTES
from pulsarbox.storage.record import Entry

Answer = Callable[[bytes, Exception | None, Now], None]
"""Receives the next bytes, empty at the end, or an error."""
_STEP_BYTES: Final = ENTRY_BYTES


class PackageReader:
    """A reader at its current place in a package."""

    def __init__(self, reads: ReadQueue, ledger_id: int, entries: int, size: int) -> None:
        self._reads = reads
        self._ledger_id = ledger_id
        self._left = range(entries)
        self.size = size
        """Bytes of the package."""

    def read(self, answer: Answer, now: Now) -> None:
        """Request the next bytes. Another request may follow once this one is answered."""
        if not self._left:
            answer(b"", None, now)
            return

        def found(entries: list[Entry], error: Exception | None, when: Now) -> None:
            self._left = self._left[len(entries) :]
            answer(b"".join([entry.body for entry in entries]), error, when)

        self._reads.ask(self._ledger_id, self._left[0], self._left[-1], _STEP_BYTES, found)
