"""An operator that sets dead letter policies, and the rule of moves: once, completely, and not too early."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from pulsarbox.broker.policies.kinds.dead_letter import DeadLetterPolicy
from pulsarbox.names import parse_topic
from pulsarbox.storage.record import Position
from tests.simulation.model.letters import TOPIC_SUFFIX, Letter, grave_of
from tests.simulation.model.views import ConnView, ConsumerView, MessageKey, SubView
from tests.simulation.rules.checker import Checker

if TYPE_CHECKING:
    from tests.simulation.box import SimulatedBox
    from tests.simulation.model.model import Model

AGAIN_SECONDS = 0.3
NAMES = ("sub-1", "sub-3")
"""Subscriptions with several concurrent consumers."""


class Undertaker:
    """An operator that sets a policy on every subscription without one, and never removes it."""

    def __init__(self, box: SimulatedBox, topics: tuple[str, ...], allowed: int) -> None:
        self._box = box
        self._topics = topics
        self.allowed = allowed
        """Maximum redelivery count."""

    def look(self) -> None:
        """Set the missing policies on all loaded subscriptions."""
        box, world = self._box, self._box.world
        world.after(AGAIN_SECONDS, self.look)
        if not box.running:
            return
        for name in self._topics:
            topic = box.topic(name)
            for each in NAMES:
                subscription = topic.subscriptions.get(each) if topic is not None else None
                if subscription is None or not subscription.durable or subscription.dead_letters.policy is not None:
                    continue
                value = {"maxRedeliverCount": self.allowed, "deadLetterTopic": grave_of(name)}
                policy = DeadLetterPolicy.read(value, parse_topic(name), each)
                box.broker.dead_letters.prepare(policy, world.now)
                subscription.dead_letters.set_policy(policy, world.now)
                world.note("a dead letter policy for", name, each)
        box.turn()


class Buried(Checker):
    """A dead letter contains the unacknowledged rest of an entry with too many redeliveries; it moves once and
    permanently.
    """

    rule = "buried"

    def __init__(self, model: Model) -> None:
        super().__init__(model)
        self._moved: dict[tuple[int, Position], Letter] = {}
        self._doubtful: set[int] = set()
        """Cursors that were reset: moved entries may move again."""

    def moved(self, sub: SubView | None, letter: Letter) -> None:
        """See Checker."""
        key = letter.cursor_id, letter.origin
        again = key in self._moved and letter.cursor_id not in self._doubtful
        self.check(not again, "moved twice:", letter, self._moved.get(key))
        self._moved[key] = letter
        if sub is None:
            return
        self.check(
            (sub.topic.name, sub.name) == (letter.source, letter.subscription), "it comes from elsewhere:", letter
        )
        entry = sub.topic.entries[letter.origin]
        keys = set(letter.keys)
        self.check(keys <= set(entry.keys), "another entry moved:", letter, entry.keys)
        if sub.seeks or letter.cursor_id in self._doubtful:
            return
        least, most = sub.asked.get(letter.origin, 0), letter.redeliveries
        self.check(most <= least, "it was not given back so often:", letter, least)
        if letter.origin not in sub.unsure:
            left = self._of(entry.keys, sub.left.get(letter.origin, 0))
            self.check(left <= keys, "not all that was left of it moved:", letter, left - keys)
            sure = self._of(entry.keys, sub.sure.get(letter.origin, 0))
            self.check(not keys & sure, "what is acknowledged moved:", letter, keys & sure)

    def _of(self, keys: list[MessageKey], bits: int) -> set[MessageKey]:
        return {key for i, key in enumerate(keys) if bits >> i & 1}

    def sought(self, sub: SubView, start: Position | None) -> None:
        """See Checker."""
        self._doubtful.add(sub.cursor.cursor_id)

    def turn(self) -> None:
        """See Checker."""
        self._doubtful.update(sub.cursor.cursor_id for sub in self.model.subs() if sub.seeks)

    def delivered(self, conn: ConnView, consumer: ConsumerView | None, position: Position, body: Any) -> None:
        """See Checker. An entry with too many redeliveries is not dispatched."""
        if consumer is None or not consumer.sub.side_by_side or consumer.sub.name not in NAMES:
            return
        core = self.model.subscription(consumer.sub)
        letters = core.dead_letters if core is not None else None
        if letters is not None and letters.policy is not None and not letters.refused:
            most = letters.policy.max_redeliveries
            self.check(body.redelivery_count <= most, "sent after it was to be moved:", position, body.redelivery_count)

    def read_back(self, topic: str, entries: dict[Position, list[MessageKey]]) -> None:
        """See Checker. Applies to dead letter topics only."""
        if topic.endswith(TOPIC_SUFFIX):
            right = self.model.letters.graves.get(topic, {})
            self.check(entries == right, "its dead letters are", entries, "should be", right)
