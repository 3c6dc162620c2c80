"""Which of the consumers that can take something is next on a Shared subscription (``sharedConsumerSelection``).

A choice is made among consumers of one priority level; they stand in the order of their last turn, longest ago first.
"""

from collections.abc import Callable, Iterable
from typing import Final

from pulsarbox.broker.subscription.consumer import Consumer

Choose = Callable[[Iterable[Consumer]], Consumer]


def round_robin(ready: Iterable[Consumer]) -> Consumer:
    """Whose turn was longest ago: as Pulsar does it."""
    return next(iter(ready))


def least_unacked(ready: Iterable[Consumer]) -> Consumer:
    """Who has the fewest messages unacknowledged: long work does not pile up behind one consumer."""
    return min(ready, key=lambda consumer: consumer.unacked)


def most_permits(ready: Iterable[Consumer]) -> Consumer:
    """Who has asked for most: a large consumer gets more than a small one."""
    return max(ready, key=lambda consumer: consumer.permits)


CHOICES: Final[dict[str, Choose]] = {
    "roundRobin": round_robin,
    "leastUnacked": least_unacked,
    "mostPermits": most_permits,
}
PROPERTY: Final = "sharedConsumerSelection"
"""Property of a subscription that names its choice, in place of the broker's."""
