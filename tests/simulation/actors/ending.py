"""An operator that terminates a topic repeatedly, and the rule that termination is permanent."""

from __future__ import annotations

from typing import TYPE_CHECKING

from pulsarbox.broker.topic.topic import PersistentTopic
from pulsarbox.clock import Now
from pulsarbox.names import parse_topic
from pulsarbox.storage.catalog import topic_key
from pulsarbox.storage.record import Position
from tests.simulation.model.views import NOWHERE, Pending, ProducerView, Request, TopicView
from tests.simulation.rules.checker import Checker

if TYPE_CHECKING:
    from tests.simulation.box import SimulatedBox
    from tests.simulation.model.model import Model

AGAIN_SECONDS = 0.7


class Ending:
    """The operator that terminates a topic."""

    def __init__(self, box: SimulatedBox, model: Model, topic: str) -> None:
        self.told = 0
        """Number of responses."""
        self.stopped = False
        self._box = box
        self._model = model
        self._name = topic

    def ask(self) -> None:
        """Terminate the topic, or query its last position if it is already terminated."""
        box, world = self._box, self._box.world
        if self.stopped:
            return
        world.after(AGAIN_SECONDS, self.ask)
        if not box.running:
            return
        topic = box.broker.topics.find(parse_topic(self._name), world.now)
        if not isinstance(topic, PersistentTopic):
            return
        life = box.life

        def done(at: Position, now: Now) -> None:
            if box.running and box.life == life:
                self.told += 1
                world.note("ended", self._name, at)
                view = self._model.topic(self._name)
                for checker in self._model.checkers:
                    checker.ended(view, at)

        topic.termination.begin(done, lambda error: world.note("not ended", error), world.now)
        box.turn()


class Ended(Checker):
    """A terminated topic rejects all messages and always reports the same last position."""

    rule = "ended"

    def __init__(self, model: Model) -> None:
        super().__init__(model)
        self._at: dict[str, Position] = {}

    def ended(self, topic: TopicView, position: Position) -> None:
        """See Checker."""
        before = self._at.setdefault(topic.name, position)
        self.check(position == before, "it has ended at", before, "and now at", position)
        self.check(not topic.order or max(topic.order) <= position, "there is more behind the end,", position)

    def stored(self, topic: TopicView, position: Position) -> None:
        """See Checker."""
        at = self._at.get(topic.name)
        self.check(at is None or position <= at, "stored behind the end:", position, at)

    def settled(self, producer: ProducerView, pending: Pending, position: Position | None, in_order: bool) -> None:
        """See Checker."""
        at = self._at.get(producer.topic.name)
        if at is not None and position is not None and position != NOWHERE:
            self.check(position <= at, "a receipt for", position, "behind the end", at)

    def named(self, request: Request, name: str) -> None:
        """See Checker."""
        topic = request.topic
        self.check(topic not in self._at, "a producer is opened on", topic, "which has ended")

    def recovered_topic(self, topic: TopicView, ledgers: set[int]) -> None:
        """See Checker."""
        at = self._at.get(topic.name)
        row = self.model.box.found.catalog.get(topic_key(topic.name)) or {}
        if at is not None:
            self.check(row.get("terminated") == list(at), "the end of", topic.name, "is lost:", row)
