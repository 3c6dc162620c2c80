"""Publish throttling of one producer: receipts of what is stored leave as fast as the publish rates allow.

Only this producer's receipts wait; others on its connection do not. Most clients send no more than they keep
unanswered. A client that sends more than its connection has room for has its producer suspended
(``Producer.suspended``): the broker drops further messages, and closes the producer once its receipts have left, so
that the client sends them again.

The rates count receipts as they leave. When the producer goes, its receipts leave at once, nothing is left out; what
they are too many is debt, which its successors pay off.
"""

from collections import deque
from collections.abc import Callable
from typing import Final, NamedTuple, Protocol

from pulsarbox.broker.limits.limiter import Limiter, time_of
from pulsarbox.clock import Now

EACH_BYTES: Final = 256
"""What a receipt that is held back costs besides the bytes of its message."""
UNREAD_FACTOR: Final = 4
"""A connection that holds back so many times ``maxThrottledPublishMbytesPerConnection`` is not read any more."""


class Receipt(NamedTuple):
    """What a receipt says."""

    sequence_id: int
    highest_sequence_id: int
    ledger_id: int
    entry_id: int


class HeldCount(Protocol):
    """What of a connection is held back."""

    held_bytes: int


class Limits(Protocol):
    """The publish rates of a topic."""

    publish: tuple[Limiter, ...]
    """The limiters that hold now."""
    publish_limited: int
    """How many receipts had to wait."""


class ReceiptHold:
    """The receipts of one producer that are held back, in order."""

    __slots__ = ("_cnx", "_held", "_limits", "_owed", "_owed_bytes", "_send", "has_turn", "held_bytes", "since")

    def __init__(self, limits: Limits, cnx: HeldCount, send: Callable[[Receipt, Now], None], pending: int) -> None:
        """``send`` sends a receipt; ``pending`` messages are on their way already."""
        self._limits = limits
        self._cnx = cnx
        self._send = send
        self._owed: deque[tuple[int, int]] = deque([(0, 0)] * pending)
        """Messages and bytes of what is on its way, in order."""
        self._owed_bytes = 0
        self._held: deque[tuple[Receipt, int, int]] = deque()
        self.held_bytes = 0
        self.since = 0
        """Since when receipts are held back (ms since 1970)."""
        self.has_turn = False

    @property
    def limiter(self) -> Limiter | None:
        """The limiter that the receipts wait for; None where none are held back."""
        return next((each for each in self._limits.publish if each.is_waiting(self)), None) if self._held else None

    @property
    def waiting_bytes(self) -> int:
        """Bytes of the receipts that are held back and of the messages that are stored behind them; 0 where no receipt
        is held back."""
        return self.held_bytes + self._owed_bytes if self._held else 0

    @property
    def held(self) -> int:
        """How many receipts are held back."""
        return len(self._held)

    def published(self, messages: int, size: int) -> None:
        """An entry is on its way."""
        self._owed.append((messages, size))
        self._owed_bytes += size

    def receipt(self, receipt: Receipt, now: Now) -> None:
        """The oldest entry that is on its way is stored: send its receipt, now or later."""
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

    def go_on(self, now: Now) -> None:
        """See Waiter.go_on. One receipt at a turn while others wait for theirs."""
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
        """Other limiters hold than those of ``before``."""
        waited = [each for each in before if each not in self._limits.publish and each.is_waiting(self)]
        for each in waited:
            each.forget(self, now)
        if waited:
            self.go_on(now)

    def end(self, now: Now) -> None:
        """The producer goes, or nothing is limited any more: let everything go."""
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
            each.take(messages, size)

    def _release(self, now: Now) -> None:
        receipt, messages, size = self._held.popleft()
        self._count(-size - EACH_BYTES)
        self._take(messages, size)
        self._send(receipt, now)

    def _count(self, size: int) -> None:
        self.held_bytes += size
        self._cnx.held_bytes += size
