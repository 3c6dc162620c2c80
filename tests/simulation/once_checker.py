"""The rule of deduplication."""

from __future__ import annotations

import json
from typing import Final, NamedTuple

from pulsarbox.broker.policies.kinds.deduplication import DEDUPLICATION
from pulsarbox.storage.record import Meta, Position
from tests.simulation.checker import Checker
from tests.simulation.letters import TOPIC_SUFFIX
from tests.simulation.model import Model
from tests.simulation.rulebook import Rows
from tests.simulation.views import NOWHERE, EntryView, MessageKey, Pending, ProducerView, TopicView

RESENT_MS: Final = 30_000
"""For so long the box knows the chunks of a message without its last one."""

TRANSACTING: Final = "transacting"
"""What the names of producers begin with that publish in transactions."""
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

    Policies turn deduplication on and off. Their rows stand in the log among the entries, and tell for each of these
    whether it was on. Each time it is turned on nothing is known of what was stored before.
    """

    rule = "once"

    def __init__(self, model: Model) -> None:
        super().__init__(model)
        self._seen: dict[str, int] = {}
        self._rows: Rows = {}
        """Those of policies, as the log has them."""
        self._on: dict[str, bool] = {}
        """Topics that deduplicate."""
        self._last: dict[Who, int] = {}
        """The number of the last message, or chunk, since deduplication was turned on."""
        self._highest: dict[Who, int] = {}
        """The highest number that was ever stored."""
        self._begun: dict[Who, Begun] = {}

    def turn(self) -> None:
        """See Checker."""
        if self.model.box.settings.brokerDeduplicationEnabled or self.model.book is not None:
            self._read_on()

    def written(self, row: Meta) -> None:
        """See Checker."""
        key = row.key.decode()
        if self.model.book is None or not key.startswith(("namespace/", "policies/")):
            return
        self._read_on()
        self._rows[key] = {} if row.value is None else json.loads(row.value)
        for topic, before in self._on.items():
            self._on[topic] = self._deduplicates(topic)
            if self._on[topic] != before:
                self._last = {who: last for who, last in self._last.items() if who[0] != topic}

    def _deduplicates(self, topic: str) -> bool:
        """Whether it does, as far as the log is read."""
        book = self.model.book
        on = DEDUPLICATION.broker(self.model.box.settings)
        return on if book is None else bool(book.look_up(topic, DEDUPLICATION, self._rows)[0])

    def _read_on(self) -> None:
        for topic in self.model.topics.values():
            if topic.name.endswith(TOPIC_SUFFIX):
                continue  # two subscriptions may have moved the same message
            if topic.name not in self._on:
                self._on[topic.name] = self._deduplicates(topic.name)
            on = self._on[topic.name]
            for position in topic.order[self._seen.get(topic.name, 0) :]:
                entry = topic.entries[position]
                if on and not (entry.chunks and self._comes_again(topic, entry)):
                    self._comes(topic, entry)
                for key in entry.keys:
                    self._stored(topic, key)
            self._seen[topic.name] = len(topic.order)

    def _stored(self, topic: TopicView, key: MessageKey) -> None:
        who = topic.name, key.producer
        self._highest[who] = max(key.sequence, self._highest.get(who, -1))

    def _comes(self, topic: TopicView, entry: EntryView) -> None:
        """Each message is the one after the one before."""
        for key in entry.keys:
            who = topic.name, key.producer
            last = self._last.get(who, -1)
            self.check(key.sequence > last, "a message is stored twice:", entry.position, key)
            most = self._highest.get(who, -1)
            refused = key.producer.startswith(TRANSACTING)  # of a transaction that had ended: given up
            self.check(
                refused or key.sequence <= most + 1, "a message is left out:", most + 1, "before", entry.position, key
            )
            self._last[who] = key.sequence
            self._stored(topic, key)
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
        if position == NOWHERE:
            topic = producer.topic.name
            self.check(self._was_on(topic, pending.at), "a duplicate without deduplication:", topic, pending.keys)
            self._read_on()
            for key in pending.keys:
                highest = self._highest.get((topic, key.producer), -1)
                self.check(key.sequence <= highest, "a duplicate of what is not stored:", key)

    def _was_on(self, topic: str, since: float) -> bool:
        """Whether it was on at any time from then on (monotonic)."""
        book = self.model.book
        if book is None:
            return DEDUPLICATION.broker(self.model.box.settings)
        return any(each.value for each in book.in_force(topic, DEDUPLICATION, self.model.world.monotonic - since))
