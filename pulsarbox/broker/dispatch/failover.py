"""Failover: selection of the active consumer of a subscription.

As AbstractDispatcherSingleActiveConsumer of Pulsar 4.2. Consumers are ordered by priority level, then by name. Only
those of the first priority level are eligible. On partition i it is the i-th of them, modulo their number, which
spreads the partitions. An unpartitioned topic, or any with ``consistent_hashing``, is hashed onto a ring on which every
consumer has 100 points; the consumer of the next point is active.
"""

from collections.abc import Sequence
from functools import lru_cache
from itertools import takewhile
from typing import Final, Protocol, TypeVar

from pulsarbox.broker.dispatch.selectors.selector import MASK, key_hash

POINTS: Final = 100
"""Points of each consumer on the ring."""


class RankedConsumer(Protocol):
    """The consumer attributes that the selection uses."""

    @property
    def name(self) -> str:
        """Consumer name."""

    @property
    def priority_level(self) -> int:
        """Priority level; 0 is served first."""


RankedT = TypeVar("RankedT", bound=RankedConsumer)


def rank(consumer: RankedConsumer) -> tuple[int, bytes]:
    """Return the sort key: priority level, then name as Java compares strings (by UTF-16 code unit)."""
    return consumer.priority_level, consumer.name.encode("utf-16-be", "surrogatepass")


def choose_active(
    ranked: Sequence[RankedT], *, topic: str, partition: int, consistent_hashing: bool = False
) -> RankedT | None:
    """Return the active one of consumers sorted by ``rank``; None without consumers.

    ``topic`` is the full name; ``partition`` is -1 for an unpartitioned topic.
    """
    if not ranked:
        return None
    first = list(takewhile(lambda each: each.priority_level == ranked[0].priority_level, ranked))
    if partition >= 0 and not consistent_hashing:
        return first[partition % len(first)]
    if len(first) == 1:
        return first[0]  # the common case, without computing 100 hashes
    place = key_hash(topic.encode())
    # If two consumers have a point at the same place, Pulsar's map keeps the one inserted last.
    return min(reversed(first), key=lambda each: _distance(each.name, place))


@lru_cache(maxsize=10_000)
def _distance(name: str, place: int) -> int:
    """Return the distance from a place on the ring to a consumer's next point, wrapping around."""
    return min((key_hash(f"{name}{i}".encode()) - place) & MASK for i in range(POINTS))
