"""What a subscription asks of its dispatcher, whatever its type."""

from collections.abc import Iterable
from typing import Protocol

from pulsarbox.broker.dispatch.blocked_reason import Standstill
from pulsarbox.broker.subscription.consumer import Consumer
from pulsarbox.clock import Now


class Dispatcher(Protocol):
    """Gives the entries of one subscription to its consumers."""

    standstill: Standstill
    """Where it stopped, and since when."""

    def add(self, consumer: Consumer, now: Now) -> None:
        """A consumer has come. Raises ConsumerBusy or ConsumerAssignError where it does not fit to the others."""

    def remove(self, consumer: Consumer, now: Now, *, lost: bool = False) -> None:
        """A consumer has gone: what it held goes to others. ``lost``: its connection broke, it did not close."""

    def redeliver(self, consumer: Consumer, positions: Iterable[tuple[int, int]] | None, now: Now) -> None:
        """A consumer wants entries that it holds sent again: those at ``positions``, or all with None."""

    def rewind(self) -> None:
        """The cursor was reset: start again behind its mark-delete."""

    def flow(self, consumer: Consumer, now: Now) -> None:
        """The consumer can take more: it gave permits, or its connection can be written to again."""

    def acknowledged(self, consumer: Consumer, now: Now) -> None:
        """The consumer holds less than before."""

    def acknowledged_unheld(self, at: tuple[int, int]) -> None:
        """An entry was acknowledged that no consumer holds; ``acknowledged`` follows."""

    def dispatch(self, now: Now) -> None:
        """Send what can be sent."""

    def why(self) -> str:
        """The Reason why nothing is being sent right now."""
