"""What a subscription asks of its dispatcher, whatever its type."""

from collections.abc import Iterable
from typing import Protocol

from pulsarbox.broker.consumer import Consumer
from pulsarbox.clock import Now


class Dispatcher(Protocol):
    """Gives the entries of one subscription to its consumers."""

    def add(self, consumer: Consumer, now: Now) -> None:
        """A consumer has come. Raises ConsumerBusy where it cannot be taken beside those that are there."""

    def remove(self, consumer: Consumer, now: Now) -> None:
        """A consumer has gone: what it held goes to others."""

    def redeliver(self, consumer: Consumer, positions: Iterable[tuple[int, int]] | None, now: Now) -> None:
        """A consumer wants entries that it holds sent again: those at ``positions``, or all with None."""

    def rewind(self) -> None:
        """The cursor was reset: start again behind its mark-delete."""

    def dispatch(self, now: Now) -> None:
        """Send what can be sent."""
