"""The interface between a subscription and its dispatcher, whatever the type."""

from collections.abc import Iterable
from typing import Protocol

from pulsarbox.broker.dispatch.blocked_reason import BlockedSince
from pulsarbox.broker.subscription.consumer import Consumer
from pulsarbox.clock import Now


class Dispatcher(Protocol):
    """Dispatches the entries of one subscription to its consumers."""

    standstill: BlockedSince
    """Why dispatching stopped, and since when."""

    def add(self, consumer: Consumer, now: Now) -> None:
        """Add a consumer. Raises ConsumerBusy or ConsumerAssignError if it is incompatible with the others."""

    def remove(self, consumer: Consumer, now: Now, *, lost: bool = False) -> None:
        """Remove a consumer; its entries go to others. ``lost``: its connection broke instead of closing."""

    def redeliver(self, consumer: Consumer, positions: Iterable[tuple[int, int]] | None, now: Now) -> None:
        """Redeliver entries that a consumer holds: those at ``positions``, or all with None."""

    def rewind(self) -> None:
        """Start over at mark-delete, because the cursor was reset."""

    def flow(self, consumer: Consumer, now: Now) -> None:
        """Dispatch after a consumer sent permits or its connection became writable again."""

    def acknowledged(self, consumer: Consumer, now: Now) -> None:
        """Dispatch after the consumer's unacknowledged entries decreased."""

    def acknowledged_unheld(self, at: tuple[int, int]) -> None:
        """Note that an entry held by no consumer was acknowledged; ``acknowledged`` follows."""

    def dispatch(self, now: Now) -> None:
        """Dispatch as much as possible."""

    def blocked_reason(self) -> str:
        """Return the Reason why nothing is being dispatched right now."""
