"""Unloading of topics that have been unused for a while, so that idle topics use no memory."""

from collections import OrderedDict
from collections.abc import Callable, Hashable
from typing import Generic, TypeVar

from pulsarbox.broker.timers import Timers
from pulsarbox.clock import Now

T = TypeVar("T", bound=Hashable)

AT_ONCE = 25
"""Topics checked in one turn; the next ones follow 10 ms later, so that other work is not delayed."""


class IdleTopics(Generic[T]):
    """The persistent topics in memory, least recently used first. One timer, armed only while there are any."""

    def __init__(self, timers: Timers, after: float, unload: Callable[[T, Now], bool]) -> None:
        """``unload`` is called ``after`` seconds after a topic's last use (0: never); it returns False if in use."""
        self._timers = timers
        self._after = after
        self._unload = unload
        self._topics: OrderedDict[T, float] = OrderedDict()
        self._armed = False

    def used(self, topic: T, now: Now) -> None:
        """Record a use of the topic."""
        if self._after:
            self._topics[topic] = now.monotonic
            self._topics.move_to_end(topic)
            self._arm(now)

    def _arm(self, now: Now) -> None:
        if not self._armed and self._topics:
            self._armed = True
            first = next(iter(self._topics.values()))
            self._timers.at(max(first + self._after, now.monotonic + 0.01), self._ring)

    def _ring(self, now: Now) -> None:
        self._armed = False
        for _ in range(AT_ONCE):
            topic, since = next(iter(self._topics.items()), (None, 0.0))
            if topic is None or now.monotonic < since + self._after:
                break
            del self._topics[topic]
            if not self._unload(topic, now):
                self._topics[topic] = now.monotonic  # in use: check again later
        self._arm(now)
