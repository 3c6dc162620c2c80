"""Failover: which of the consumers of a subscription is the active one.

As AbstractDispatcherSingleActiveConsumer of Pulsar 4.2. Consumers stand in order of priority level, then of name. Only
those of the first priority level are considered: on partition i it is the i-th of them, counted round, so that the
partitions of a topic are shared out. A topic without partitions, or any with ``consistent_hashing``, has its place on a
ring of hashes, on which every consumer has 100 points: the active one has the next point.
"""

from collections.abc import Sequence
from functools import lru_cache
from itertools import takewhile
from typing import Final, Protocol, TypeVar

from pulsarbox.broker.dispatch.selectors.selector import MASK, key_hash

POINTS: Final = 100
"""Of each consumer on the ring."""


class RankedConsumer(Protocol):
    """As much of a consumer as the choice looks at."""

    @property
    def name(self) -> str:
        """Consumer name."""

    @property
    def priority_level(self) -> int:
        """0 is served first."""


RankedT = TypeVar("RankedT", bound=RankedConsumer)


def rank(consumer: RankedConsumer) -> tuple[int, bytes]:
    """Sorts consumers: by priority level, then by name as Java compares strings (by UTF-16 code unit)."""
    return consumer.priority_level, consumer.name.encode("utf-16-be", "surrogatepass")


def choose_active(
    ranked: Sequence[RankedT], *, topic: str, partition: int, consistent_hashing: bool = False
) -> RankedT | None:
    """The active one of consumers that are sorted by ``rank``; None without consumers.

    ``topic`` is the whole name, ``partition`` -1 for a topic without partitions.
    """
    if not ranked:
        return None
    first = list(takewhile(lambda each: each.priority_level == ranked[0].priority_level, ranked))
    if partition >= 0 and not consistent_hashing:
        return first[partition % len(first)]
    if len(first) == 1:
        return first[0]  # the common case, without a hundred hashes
    place = key_hash(topic.encode())
    # Where two have a point at one place, Pulsar's map keeps the one that was put there last.
    return min(reversed(first), key=lambda each: _distance(each.name, place))


@lru_cache(maxsize=10_000)
def _distance(name: str, place: int) -> int:
    """How far it is from a place on the ring up to the next point of a consumer, round its end where need be."""
    return min((key_hash(f"{name}{i}".encode()) - place) & MASK for i in range(POINTS))
