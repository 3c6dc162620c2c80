"""The rule of deduplication."""

from __future__ import annotations

from typing import Final, NamedTuple

from pulsarbox.storage.record import Position
from tests.simulation.checker import Checker
from tests.simulation.letters import TOPIC_SUFFIX
from tests.simulation.model import Model
from tests.simulation.views import NOWHERE, EntryView, Pending, ProducerView, TopicView

RESENT_MS: Final = 30_000
"""For so long the box knows the chunks of a message without its last one."""

Who = tuple[str, str]
"""Topic and producer."""


class Begun(NamedTuple):
    """A message without its last chunk."""

    uuid: str
    chunk_id: int
    """The last one there is."""
    since: int
    """When its first one was stored last (ms since 1970)."""


class Once(Checker):
    """With deduplication the log has every message once and in order, over crashes too; without it no duplicates.

    Of a message in chunks as well every one is there once, unless the next attempt comes so late that it begins anew.
    """

    rule = "once"

    def __init__(self, model: Model) -> None:
        super().__init__(model)
        self._seen: dict[str, int] = {}
        self._last: dict[Who, int] = {}
        """The number of the last message, or chunk."""
        self._begun: dict[Who, Begun] = {}

    def turn(self) -> None:
        """See Checker."""
        if self.model.box.settings.brokerDeduplicationEnabled:
            self._read_on()

    def _read_on(self) -> None:
        for topic in self.model.topics.values():
            if topic.name.endswith(TOPIC_SUFFIX):
                continue  # two subscriptions may have moved the same message
            for position in topic.order[self._seen.get(topic.name, 0) :]:
                entry = topic.entries[position]
                if not entry.chunks or not self._comes_again(topic, entry):
                    self._comes(topic, entry)
            self._seen[topic.name] = len(topic.order)

    def _comes(self, topic: TopicView, entry: EntryView) -> None:
        """Each message is the one after the one before."""
        for key in entry.keys:
            who = topic.name, key.producer
            last = self._last.get(who, -1)
            self.check(key.sequence > last, "a message is stored twice:", entry.position, key)
            self.check(key.sequence == last + 1, "a message is left out:", last + 1, "before", entry.position, key)
            self._last[who] = key.sequence
            if not entry.chunks or entry.chunk_id == entry.chunks - 1:
                self._begun.pop(who, None)
            else:
                since = self._begun[who].since if entry.chunk_id else entry.appended
                self._begun[who] = Begun(entry.chunk_of, entry.chunk_id, since)

    def _comes_again(self, topic: TopicView, entry: EntryView) -> bool:
        """Whether a chunk is stored a second time, as it may be a while after its message was begun."""
        (key,) = entry.keys
        who = topic.name, key.producer
        begun = self._begun.get(who)
        if begun is None or begun.uuid != entry.chunk_of or entry.chunk_id > begun.chunk_id:
            return False
        late = entry.appended - begun.since
        self.check(late > RESENT_MS, "a chunk is stored twice:", entry.position, key, late)
        if entry.chunk_id == 0:
            self._begun[who] = begun._replace(since=entry.appended)
        return True

    def settled(self, producer: ProducerView, pending: Pending, position: Position | None, in_order: bool) -> None:
        """See Checker."""
        if position == NOWHERE and self.model.book is None:
            self.check(self.model.box.settings.brokerDeduplicationEnabled, "a duplicate without deduplication")
            self._read_on()
            for key in pending.keys:
                last = self._last.get((producer.topic.name, key.producer), -1)
                self.check(key.sequence <= last, "a duplicate of what is not stored:", key)
