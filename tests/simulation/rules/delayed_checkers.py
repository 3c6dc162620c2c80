"""The rules of delayed delivery. The liveness rule covers messages that are due."""

from __future__ import annotations

from typing import Any

from pulsarbox.storage.delayed_index import DELAY_CHUNK, Delays
from pulsarbox.storage.record import Position
from tests.simulation.model.model import Model
from tests.simulation.model.views import ConnView, ConsumerView, TopicView
from tests.simulation.rules.checker import Checker


def rows_of(delays: Delays) -> dict[Position, int]:
    """Return the due time of each delayed entry of a topic."""
    found: dict[Position, int] = {}
    for (ledger_id, number), _ in list(delays.extents()):
        chunk = delays.chunk(ledger_id, number)
        for time, place in zip(chunk.times, chunk.places, strict=True):
            found[Position(ledger_id, number * DELAY_CHUNK + place)] = time
    return found


class NotBefore(Checker):
    """Shared and Key_Shared consumers receive no entry before its time, less one tick unless delivery is strict."""

    rule = "not-before"

    def turn(self) -> None:
        """See Checker."""
        self.model.latest_wall = max(self.model.latest_wall, self.model.world.now.wall)

    def delivered(self, conn: ConnView, consumer: ConsumerView | None, position: Position, body: Any) -> None:
        """See Checker."""
        if consumer is None or not consumer.sub.side_by_side:
            return
        self.turn()
        entry = consumer.sub.topic.entries.get(position)
        settings = self.model.box.settings
        early = 0 if settings.isDelayedDeliveryDeliverAtTimeStrict else settings.delayedDeliveryTickTimeMillis
        if entry is not None and entry.deliver_at:
            before = entry.deliver_at - early - self.model.latest_wall
            self.check(before <= 0, "delivered", before, "ms too early:", consumer.sub.name, position)
            self.model.delayed_deliveries += entry.late


class DelaysKept(Checker):
    """After a recovery, the delay table matches the delivery times of the remaining entries."""

    rule = "delays-kept"

    def __init__(self, model: Model) -> None:
        super().__init__(model)
        self._turns = 0

    def turn(self) -> None:
        """See Checker."""
        self._turns += 1
        commits = self.model.box.broker.commits
        if self._turns % 20 or commits.in_flight is not None or commits.open.batch:
            return
        for stored in commits._store.topics.values():
            topic = self.model.topics.get(stored.name)
            if topic is not None and stored.in_use:
                self._no_others(topic, rows_of(stored.delays))

    def _no_others(self, topic: TopicView, found: dict[Position, int]) -> None:
        for position, time in found.items():
            entry = topic.entries.get(position)
            self.check(entry is not None, "a row for no entry:", topic.name, position)
            self.check(entry is not None and entry.deliver_at == time, "a row says", time, topic.name, position)

    def recovered_topic(self, topic: TopicView, ledgers: set[int]) -> None:
        """See Checker."""
        stored = self.model.box.found.topic(topic.name)
        found = {} if stored is None else rows_of(stored.delays)
        self._no_others(topic, found)
        for position in found:
            self.check(position.ledger_id in ledgers, "a row of a ledger that is gone:", topic.name, position)
        for position, entry in topic.entries.items():
            if entry.late and position.ledger_id in ledgers:
                self.check(position in found, "an entry has no row:", topic.name, position)
