"""Producers that a backlog quota has refused and whose clients retry: the broker itself keeps no state of them."""

from collections import OrderedDict
from dataclasses import dataclass
from typing import Final

from pulsarbox.clock import Now

PRODUCERS_MAX: Final = 100
"""Producers remembered per topic; the one whose last attempt is the oldest is forgotten first."""
QUIET_MS: Final = 90_000
"""Time without an attempt after which a producer is forgotten: official clients retry at least every 60 s."""

Key = tuple[str, int]
"""Address of the connection, and the producer ID on it."""


@dataclass(slots=True)
class RefusedProducer:
    """A producer that was refused, from its first attempt on."""

    name: str
    """Empty if the broker would choose the name."""
    address: str
    producer_id: int
    topic: str
    since: int
    """Time of the first attempt (ms since 1970)."""
    last: int
    """Time of the last attempt (ms since 1970)."""
    is_queued: bool = False
    """Whether the broker has queued the producer instead of refusing it: the client does not try again."""
    is_over: bool = False
    """Whether the producer was admitted or forgotten."""

    def waits(self, now: Now) -> bool:
        """Return whether the producer is queued, or its client is expected to try again."""
        return not self.is_over and (self.is_queued or now.wall - self.last < QUIET_MS)

    @property
    def words(self) -> str:
        """The producer and its address, for people."""
        return f"producer '{self.name}' at {self.address}" if self.name else f"a producer at {self.address}"

    @property
    def cause(self) -> str:
        """Why the producer waits."""
        return f"the backlog quota of {self.topic} is reached"


class RefusedProducers:
    """The last producers that the backlog quotas of one topic have refused."""

    __slots__ = ("_found",)

    def __init__(self) -> None:
        self._found: OrderedDict[Key, RefusedProducer] = OrderedDict()

    def note(self, topic: str, name: str, address: str, producer_id: int, now: Now) -> tuple[RefusedProducer, bool]:
        """Return a refused producer, and whether this is its first attempt."""
        self._expire(now)
        found = self._found.get((address, producer_id))
        if found is not None and found.name == name:
            found.last = now.wall
            self._found.move_to_end((address, producer_id))
            return found, False
        self.forget(address, producer_id)
        found = RefusedProducer(name, address, producer_id, topic, now.wall, now.wall)
        self._found[address, producer_id] = found
        if len(self._found) > PRODUCERS_MAX:
            self._found.popitem(last=False)[1].is_over = True
        return found, True

    def forget(self, address: str, producer_id: int) -> None:
        """Forget a producer: it was admitted."""
        found = self._found.pop((address, producer_id), None)
        if found is not None:
            found.is_over = True

    def waiting(self, now: Now) -> list[RefusedProducer]:
        """Return the producers that are expected to try again, in the order of their last attempts."""
        self._expire(now)
        return list(self._found.values())

    def _expire(self, now: Now) -> None:
        while self._found:
            key, first = next(iter(self._found.items()))
            if first.waits(now):
                return
            self.forget(*key)
