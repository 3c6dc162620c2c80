"""Publish throttling of one producer: receipts of stored messages are sent at the publish rates.

Only this producer's receipts wait, not those of others on its connection. Most clients bound their outstanding
messages. If a client sends more than its connection has room for, its producer is suspended (``Producer.suspended``).
The broker then drops further messages, and closes the producer once its receipts are sent, so that the client resends
the rest.

The rates count receipts when they are sent. When the producer closes, all its receipts are sent at once; any excess
becomes debt of the limiters, which later producers pay off.
"""

from collections import deque
from collections.abc import Callable
from typing import Final, NamedTuple, Protocol

from pulsarbox.broker.limits.limiter import Limiter, time_of
from pulsarbox.clock import Now

EACH_BYTES: Final = 256
"""Overhead of a held receipt in addition to its message's bytes."""
UNREAD_FACTOR: Final = 4
"""Multiple of ``maxThrottledPublishMbytesPerConnection`` at which a connection is no longer read."""


class Receipt(NamedTuple):
    """The fields of a receipt."""

    sequence_id: int
    highest_sequence_id: int
    ledger_id: int
    entry_id: int


class HeldCount(Protocol):
    """A connection's total of held bytes."""

    held_bytes: int


class PublishLimits(Protocol):
    """The publish rates of a topic."""

    publish: tuple[Limiter, ...]
    """Limiters in effect."""
    publish_limited: int
    """Number of receipts that had to wait."""


class ReceiptHold:
    """The held receipts of one producer, in order."""

    __slots__ = ("_cnx", "_held", "_limits", "_owed", "_owed_bytes", "_send", "has_turn", "held_bytes", "since")

    def __init__(
        self, limits: PublishLimits, cnx: HeldCount, send: Callable[[Receipt, Now], None], pending: int
    ) -> None:
        """``send`` sends a receipt; ``pending`` messages are already being stored."""
        self._limits = limits
        self._cnx = cnx
        self._send = send
        self._owed: deque[tuple[int, int]] = deque([(0, 0)] * pending)
        """Messages and bytes of each entry being stored, in order."""
        self._owed_bytes = 0
        self._held: deque[tuple[Receipt, int, int]] = deque()
        self.held_bytes = 0
        self.since = 0
        """When the current hold began (ms since 1970)."""
        self.has_turn = False

    @property
    def limiter(self) -> Limiter | None:
        """The limiter that the receipts wait for; None if none are held."""
        return next((each for each in self._limits.publish if each.is_waiting(self)), None) if self._held else None

    @property
    def waiting_bytes(self) -> int:
        """Bytes of held receipts and of entries being stored after them; 0 if no receipt is held."""
        return self.held_bytes + self._owed_bytes if self._held else 0

    @property
    def held(self) -> int:
        """Number of held receipts."""
        return len(self._held)

    def published(self, messages: int, size: int) -> None:
        """Note an entry that is being stored."""
        self._owed.append((messages, size))
        self._owed_bytes += size

    def receipt(self, receipt: Receipt, now: Now) -> None:
        """Send or hold the receipt of the oldest entry being stored."""
        messages, size = self._owed.popleft()
        self._owed_bytes -= size
        if not self._held:
            refusing = self._refusing(now)
            if refusing is None:
                self._take(messages, size)
                self._send(receipt, now)
                return
            self.since = now.wall
            refusing.wait(self, now)
        self._limits.publish_limited += 1
        self._held.append((receipt, messages, size))
        self._count(size + EACH_BYTES)

    def resume(self, now: Now) -> None:
        """See Waiter.resume. Sends one receipt per turn while others are waiting."""
        while self._held:
            refusing = self._refusing(now)
            if refusing is not None:
                refusing.wait(self, now)
                return
            self._release(now)
            busy = next((each for each in self._limits.publish if each.waiting), None)
            if busy is not None and self._held:
                busy.wait(self, now)
                return

    def changed(self, before: tuple[Limiter, ...], now: Now) -> None:
        """Switch to changed limiters; ``before`` are the previous ones."""
        waited = [each for each in before if each not in self._limits.publish and each.is_waiting(self)]
        for each in waited:
            each.forget(self, now)
        if waited:
            self.resume(now)

    def end(self, now: Now) -> None:
        """Release all receipts, because the producer closes or limits no longer apply."""
        for each in self._limits.publish:
            each.forget(self, now)
        while self._held:
            self._release(now)
        for messages, size in self._owed:
            self._take(messages, size)
        self._owed.clear()
        self._owed_bytes = 0

    def _refusing(self, now: Now) -> Limiter | None:
        at = time_of(now)
        return next((each for each in self._limits.publish if each.refuses(self, at)), None)

    def _take(self, messages: int, size: int) -> None:
        for each in self._limits.publish:
            each.consume(messages, size)

    def _release(self, now: Now) -> None:
        receipt, messages, size = self._held.popleft()
        self._count(-size - EACH_BYTES)
        self._take(messages, size)
        self._send(receipt, now)

    def _count(self, size: int) -> None:
        self.held_bytes += size
        self._cnx.held_bytes += size
