"""What waits in each partition of a topic, for routers: asked of the Admin API, at most once a second."""

from __future__ import annotations

import time
from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING, Any, Final

from pulsarbox.errors import PulsarBoxError
from pulsarbox.names import parse_topic

if TYPE_CHECKING:
    from pulsarbox.client.admin import Admin  # HTTP takes longer to import than all the rest

ASKED_EVERY_SECONDS: Final = 1.0
AFTER_AN_ERROR_SECONDS: Final = 10.0
ANSWER_SECONDS: Final = 1.0
"""So long a message may wait for the answer."""


class PartitionBacklogs:
    """Called for the messages that wait in each partition, of all subscriptions together; none where that is unknown.

    Nothing is asked before the first call. Where there is no answer the last one stands, and messages go on.
    """

    def __init__(
        self,
        connect: Callable[[], Admin],
        topic: str,
        tell: Callable[[str], None],
        clock: Callable[[], float] = time.monotonic,
    ) -> None:
        """``tell`` is called once, where the broker does not say."""
        self._connect = connect
        self._topic = parse_topic(topic)
        self._tell = tell
        self._clock = clock
        self._admin: Admin | None = None
        self._known: Sequence[int] = ()
        self._next = float("-inf")
        self._told = False

    def __call__(self) -> Sequence[int]:
        """See the class."""
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
                    self._tell(f"backlogs are not known, so partitions are taken in turn: {error}")
        return self._known


def _waiting(stats: dict[str, Any]) -> Sequence[int]:
    of_partitions = {
        int(name.rpartition("-")[2]): sum(map(_messages, found["subscriptions"].values()))
        for name, found in stats.get("partitions", {}).items()
    }
    return tuple(of_partitions.get(index, 0) for index in range(max(of_partitions, default=-1) + 1))


def _messages(subscription: dict[str, Any]) -> int:
    """Of a box the messages themselves; Apache Pulsar tells entries, which is as good to compare."""
    waiting: int = subscription.get("backlogMessages", subscription["msgBacklog"])
    return waiting
