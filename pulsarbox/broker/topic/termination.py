"""Topic termination: the topic permanently accepts no more messages, and its producers and consumers are notified.

Source: https://pulsar.apache.org/docs/4.2.x/admin-api-topics/#terminate-topic (and PIP-9 for the consumers' side).
"""

from collections.abc import Callable, Iterable
from typing import Protocol

from pulsarbox.broker.persistence.group_commit import GroupCommit
from pulsarbox.broker.topic.producer_access import Producers
from pulsarbox.clock import Now
from pulsarbox.errors import ServiceNotReady, TopicTerminated
from pulsarbox.storage.catalog import Catalog, Row, topic_key
from pulsarbox.storage.record import Position
from pulsarbox.storage.recovery import StoredTopic

Terminated = Callable[[Position, Now], None]
Failed = Callable[[Exception], None]


def refusal() -> TopicTerminated:
    """Return the error for producers of a terminated topic."""
    return TopicTerminated("Topic was already terminated")


class EndedSubscription(Protocol):
    """A subscription of a topic that may be terminated."""

    def notify_end_of_topic(self) -> None:
        """Notify the consumers of a terminated topic once everything is acknowledged."""


class TerminatedTopic(Protocol):
    """The clients of a topic that its termination notifies."""

    @property
    def producers(self) -> Producers:
        """Its producers."""

    def all_subscriptions(self) -> Iterable[EndedSubscription]:
        """Return its subscriptions."""


class Termination:
    """Termination state of one topic."""

    # As in ManagedLedger.
    __slots__ = ("_catalog", "_commits", "_key", "_requests", "_stored", "_topic", "at", "begun", "ended")

    def __init__(
        self, topic: TerminatedTopic, stored: StoredTopic, row: Row, catalog: Catalog, commits: GroupCommit
    ) -> None:
        """``row`` is that of the topic."""
        at = row.get("terminated")
        self._topic = topic
        self._stored = stored
        self._catalog = catalog
        self._commits = commits
        self._key = topic_key(stored.name)
        self._requests: list[tuple[Terminated, Failed]] = []
        self.at: Position | None = Position(*at) if at is not None else None
        """Position of the last message, which may be trimmed by now; entry -1 if the ledger has none."""
        self.begun = self.ended = at is not None
        """``begun``: the topic accepts no more messages. ``ended``: that is durable and clients were notified."""

    @property
    def under_way(self) -> bool:
        """Whether a request waits for the termination, so that the topic must stay in memory."""
        return bool(self._requests)

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
        self._requests.append((done, failed))
        if not self.begun:
            self.begun = True
            self._commits.after_commit(self._settled)

    def _settled(self, now: Now) -> None:
        """Store the last position: earlier messages are now durable or rejected, so it is final."""
        stored, commits = self._stored, self._commits
        row = self._catalog.get(self._key)
        if row is None or not stored.in_use:
            for _, failed in self._take():
                failed(ServiceNotReady(f"Topic {stored.name} was deleted during its termination"))
            return
        self.at = stored.ledger.last_confirmed
        commits.put_row(self._key, row | {"terminated": list(self.at)})
        commits.after_commit(self._has_ended)

    def _has_ended(self, now: Now) -> None:
        assert self.at is not None
        self.ended = True
        self._topic.producers.close(now, refusal())
        for subscription in self._topic.all_subscriptions():
            subscription.notify_end_of_topic()
        for done, _ in self._take():
            done(self.at, now)

    def _take(self) -> list[tuple[Terminated, Failed]]:
        who_asked, self._requests = self._requests, []
        return who_asked
