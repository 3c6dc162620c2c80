"""The rule of unsubscribed retention."""

from __future__ import annotations

from typing import TYPE_CHECKING

from pulsarbox.broker.policies.kinds.retention import RETENTION
from pulsarbox.names import COMPACTION_SUBSCRIPTION, parse_topic
from pulsarbox.storage.catalog import namespace_key, policies_key
from pulsarbox.storage.record import Position
from tests.simulation.model.letters import TOPIC_SUFFIX
from tests.simulation.model.views import SubView, TopicView
from tests.simulation.rules.checker import Checker

if TYPE_CHECKING:
    from tests.simulation.model.model import Model

NOTHING = Position(-1, -1)


class Unsubscribed(Checker):
    """A ledger with messages that no subscription has covered is not trimmed before its time."""

    rule = "unsubscribed"

    def __init__(self, model: Model) -> None:
        super().__init__(model)
        self._covered: dict[str, Position] = {}
        """By topic, the last entry stored while the topic had a durable subscription."""
        self._retained: set[str] = set()
        """Topics that have had a retention policy: the rules of policies judge them."""

    def _cover(self, topic: TopicView, position: Position | None = None) -> None:
        last = position or (topic.order[-1] if topic.order else NOTHING)
        self._covered[topic.name] = max(self._covered.get(topic.name, NOTHING), last)

    def _is_subscribed(self, topic: TopicView) -> bool:
        """Return whether the topic may have a durable subscription, as known to clients or to the broker."""
        if any(sub.durable for sub in topic.subs.values()):
            return True
        core = self.model.box.topic(topic.name) if self.model.box.running else None
        found = core.subscriptions.values() if core is not None else ()
        return any(each.durable and each.name != COMPACTION_SUBSCRIPTION for each in found)

    def turn(self) -> None:
        """See Checker."""
        for topic in self.model.topics.values():
            if self._is_subscribed(topic):
                self._cover(topic)
        book = self.model.book
        if book is None:
            return
        for name in self.model.topics:
            parsed = parse_topic(name)
            own = book.rows.get(policies_key(str(parsed.base)), {})
            if (
                RETENTION.topic_key in own
                or RETENTION.topic_key in own.get("globalPolicies", {})
                or RETENTION.namespace_key in book.rows.get(namespace_key(parsed.namespace), {})
            ):
                self._retained.add(name)

    def made(self, sub: SubView) -> None:
        """See Checker."""
        if sub.durable:
            self._cover(sub.topic)

    def revived_subscription(self, sub: SubView) -> None:
        """See Checker."""
        self._cover(sub.topic)

    def stored(self, topic: TopicView, position: Position) -> None:
        """See Checker."""
        if self._is_subscribed(topic):
            self._cover(topic, position)

    def trimmed(self, topic: TopicView, ledger_id: int, positions: list[Position]) -> None:
        """See Checker."""
        minutes = self.model.box.settings.unsubscribedRetentionTimeInMinutes
        if not minutes or topic.name in self._retained or topic.name.endswith(TOPIC_SUFFIX):
            return
        if self._is_subscribed(topic):
            return
        covered, now = self._covered.get(topic.name, NOTHING), self.model.world.now.wall
        lost = [each for each in positions if each > covered and now < topic.entries[each].begins + minutes * 60_000]
        self.check(not lost, "no subscription has covered them, and they go:", topic.name, lost[:3], covered)
