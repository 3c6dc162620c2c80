"""Selection of the next consumer of a Shared subscription (``sharedConsumerSelection``).

Selects among ready consumers of one priority level, ordered by their last turn, oldest first.
"""

from collections.abc import Callable, Iterable
from typing import Final

from pulsarbox.broker.subscription.consumer import Consumer

Choose = Callable[[Iterable[Consumer]], Consumer]


def round_robin(ready: Iterable[Consumer]) -> Consumer:
    """Return the consumer whose last turn is longest ago: Pulsar's rule."""
    return next(iter(ready))


def least_unacked(ready: Iterable[Consumer]) -> Consumer:
    """Return the consumer with the fewest unacknowledged messages, so slow work does not pile up."""
    return min(ready, key=lambda consumer: consumer.unacked)


def most_permits(ready: Iterable[Consumer]) -> Consumer:
    """Return the consumer with the most permits, so that large consumers get more than small ones."""
    return max(ready, key=lambda consumer: consumer.permits)


CHOICES: Final[dict[str, Choose]] = {
    "roundRobin": round_robin,
    "leastUnacked": least_unacked,
    "mostPermits": most_permits,
}
PROPERTY: Final = "sharedConsumerSelection"
"""Subscription property that overrides the broker's setting."""
