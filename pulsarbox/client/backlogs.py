"""Backlogs of a topic's partitions, for routers: polled from the Admin API at most once a second."""

from __future__ import annotations

import time
from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING, Any, Final

from pulsarbox.errors import PulsarBoxError
from pulsarbox.names import parse_topic

if TYPE_CHECKING:
    from pulsarbox.client.admin import Admin  # importing HTTP takes longer than everything else

ASKED_EVERY_SECONDS: Final = 1.0
AFTER_AN_ERROR_SECONDS: Final = 10.0
ANSWER_SECONDS: Final = 1.0
"""Maximum delay of a message by a poll."""


class PartitionBacklogs:
    """Callable that returns each partition's backlog in messages, over all subscriptions; empty if unknown.

    It polls on the first call. If a poll fails, the previous result remains in use.
    """

    def __init__(
        self,
        connect: Callable[[], Admin],
        topic: str,
        tell: Callable[[str], None],
        clock: Callable[[], float] = time.monotonic,
    ) -> None:
        """``tell`` is called once, with the first failure."""
        self._connect = connect
        self._topic = parse_topic(topic)
        self._tell = tell
        self._clock = clock
        self._admin: Admin | None = None
        self._known: Sequence[int] = ()
        self._next = float("-inf")
        self._told = False

    def __call__(self) -> Sequence[int]:
        """Return the backlog of each partition."""
        now = self._clock()
        if now >= self._next:
            self._next = now + ASKED_EVERY_SECONDS
            try:
                self._admin = self._admin or self._connect()
                self._known = _waiting(self._admin.stats(self._topic, 1, each=True))
            except PulsarBoxError as error:
                self._next = now + AFTER_AN_ERROR_SECONDS
                if not self._told:
                    self._told = True
                    self._tell(f"cannot read the backlogs, using the partitions in turn: {error}")
        return self._known


def _waiting(stats: dict[str, Any]) -> Sequence[int]:
    of_partitions = {
        int(name.rpartition("-")[2]): sum(map(_messages, found["subscriptions"].values()))
        for name, found in stats.get("partitions", {}).items()
    }
    return tuple(of_partitions.get(index, 0) for index in range(max(of_partitions, default=-1) + 1))


def _messages(subscription: dict[str, Any]) -> int:
    """Return the backlog in messages. Apache Pulsar reports entries, which serve as well for a comparison."""
    waiting: int = subscription.get("backlogMessages", subscription["msgBacklog"])
    return waiting
