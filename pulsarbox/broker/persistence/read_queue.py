"""Reads outside the tail cache: requested here, carried out by a thread of the shell, answered by ``read_done``."""

from collections.abc import Callable
from typing import Any

from pulsarbox.clock import Now
from pulsarbox.storage.engine import ReadRequest
from pulsarbox.storage.record import Entry

Answer = Callable[[list[Entry], Exception | None, Now], None]
Worked = Callable[[Any, Exception | None, Now], None]
"""Receives what was computed from the entries; None with an error."""


class ReadQueue:
    """Reads that are not answered yet."""

    def __init__(self) -> None:
        self._waiting: list[ReadRequest] = []
        self._answers: dict[int, Callable[[Any, Exception | None, Now], None]] = {}
        self._at_work: set[int] = set()
        self._last_token = 0
        self.entries = 0
        """Entries read so far; ``bytes`` is their size."""
        self.bytes = 0

    def ask(
        self,
        ledger_id: int,
        first: int,
        last: int,
        max_bytes: int,
        answer: Answer,
        left_out: tuple[tuple[int, int], ...] = (),
    ) -> int:
        """Read entries of a ledger, see ``ReadRequest``; return the read's token."""
        self._last_token += 1
        self._answers[self._last_token] = answer
        self._waiting.append(ReadRequest(self._last_token, ledger_id, first, last, max_bytes, left_out))
        return self._last_token

    def ask_for_work(
        self, ledger_id: int, first: int, last: int, max_bytes: int, answer: Worked, work: Callable[[list[Entry]], Any]
    ) -> None:
        """Read entries and answer with what ``work`` returns for them.

        ``work`` runs in the reading thread and must only use immutable data. The read is not counted in ``entries`` and
        ``bytes``.
        """
        self._last_token += 1
        self._answers[self._last_token] = answer
        self._at_work.add(self._last_token)
        request = ReadRequest(self._last_token, ledger_id, first, last, max_bytes, work=lambda entries: [work(entries)])
        self._waiting.append(request)

    def take(self) -> list[ReadRequest]:
        """Remove and return the reads not yet passed to the shell."""
        waiting, self._waiting = self._waiting, []
        return waiting

    def done(self, token: int, entries: list[Entry], now: Now, error: Exception | None) -> None:
        """Pass a read's result to its requester."""
        if token in self._at_work:
            self._at_work.remove(token)
            self._answers.pop(token)(next(iter(entries), None), error, now)
            return
        self.entries += len(entries)
        self.bytes += sum([len(entry.body) for entry in entries])
        self._answers.pop(token)(entries, error, now)
