"""Topic termination: the topic permanently accepts no more messages, and its producers and consumers are notified.

Source: https://pulsar.apache.org/docs/4.2.x/admin-api-topics/#terminate-topic (and PIP-9 for the consumers' side).
"""

from collections.abc import Callable
from typing import TYPE_CHECKING

from pulsarbox.clock import Now
from pulsarbox.errors import ServiceNotReady, TopicTerminated
from pulsarbox.storage.catalog import Row, topic_key
from pulsarbox.storage.record import Position

if TYPE_CHECKING:
    from pulsarbox.broker.topic.topic import PersistentTopic

Terminated = Callable[[Position, Now], None]
Failed = Callable[[Exception], None]


def refusal() -> TopicTerminated:
    """Return the error for producers of a terminated topic."""
    return TopicTerminated("Topic was already terminated")


class Termination:
    """Termination state of one topic."""

    # As in ManagedLedger.
    __slots__ = ("_key", "_topic", "_who_asked", "at", "begun", "ended")

    def __init__(self, topic: "PersistentTopic", row: Row) -> None:
        at = row.get("terminated")
        self._topic = topic
        self._key = topic_key(str(topic.name))
        self._who_asked: list[tuple[Terminated, Failed]] = []
        self.at: Position | None = Position(*at) if at is not None else None
        """Position of the last message, which may be trimmed by now; entry -1 if the ledger has none."""
        self.begun = self.ended = at is not None
        """``begun``: the topic accepts no more messages. ``ended``: that is durable and clients were notified."""

    @property
    def under_way(self) -> bool:
        """Whether a request waits for the termination, so that the topic must stay in memory."""
        return bool(self._who_asked)

    def check(self) -> None:
        """Raise TopicTerminated if the topic accepts no more messages."""
        if self.begun:
            raise refusal()

    def begin(self, done: Terminated, failed: Failed, now: Now) -> None:
        """Terminate the topic after the messages received so far; ``done`` gets the last position once it is durable.

        Calls ``done`` at once if the topic is terminated already.
        """
        if self.ended and self.at is not None:
            done(self.at, now)
            return
        self._who_asked.append((done, failed))
        if not self.begun:
            self.begun = True
            self._topic.core.commits.after_commit(self._settled)

    def _settled(self, now: Now) -> None:
        """Store the last position: earlier messages are now durable or rejected, so it is final."""
        topic, commits = self._topic, self._topic.core.commits
        row = topic.core.catalog.get(self._key)
        if row is None or not topic.stored.in_use:
            for _, failed in self._take():
                failed(ServiceNotReady(f"Topic {topic.name} was deleted while it was terminated"))
            return
        self.at = topic.ledger.last_confirmed
        commits.put_row(self._key, row | {"terminated": list(self.at)})
        commits.after_commit(self._stored)

    def _stored(self, now: Now) -> None:
        assert self.at is not None
        self.ended = True
        self._topic.producers.close(now, refusal())
        for subscription in self._topic.all_subscriptions():
            subscription.tell_end()
        for done, _ in self._take():
            done(self.at, now)

    def _take(self) -> list[tuple[Terminated, Failed]]:
        who_asked, self._who_asked = self._who_asked, []
        return who_asked
