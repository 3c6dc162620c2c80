"""The rule of deduplication."""

from __future__ import annotations

import json
from typing import Final, NamedTuple

from pulsarbox.broker.policies.kinds.deduplication import DEDUPLICATION
from pulsarbox.storage.record import Meta, Position
from tests.simulation.model.letters import TOPIC_SUFFIX
from tests.simulation.model.model import Model
from tests.simulation.model.rulebook import Rows
from tests.simulation.model.views import NOWHERE, EntryView, MessageKey, Pending, ProducerView, TopicView
from tests.simulation.rules.checker import Checker

RESENT_MS: Final = 30_000
"""Milliseconds for which the broker remembers the chunks of an incomplete message."""

TRANSACTING: Final = "transacting"
"""Prefix of the names of producers that publish in transactions."""
Who = tuple[str, str]
"""Topic and producer name."""


class Begun(NamedTuple):
    """A message without its last chunk."""

    uuid: str
    chunk_id: int
    """The last stored chunk."""
    since: int
    """Last time that the first chunk was stored (ms since 1970)."""


class Once(Checker):
    """With deduplication, the log has every message once and in order, across crashes too; without it, no duplicates.

    Each chunk of a chunked message is stored once as well, unless a late attempt starts the message again.

    Policies enable and disable deduplication. Their rows are in the log between the entries and decide for each entry.
    Each time deduplication is enabled, it starts without knowledge of earlier messages.
    """

    rule = "once"

    def __init__(self, model: Model) -> None:
        super().__init__(model)
        self._seen: dict[str, int] = {}
        self._rows: Rows = {}
        """Policy rows as read from the log."""
        self._on: dict[str, bool] = {}
        """Topics, and whether they deduplicate."""
        self._last: dict[Who, int] = {}
        """The last sequence ID, of a message or chunk, since deduplication was enabled."""
        self._highest: dict[Who, int] = {}
        """The highest sequence ID ever stored."""
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
        """Return whether the topic deduplicates, according to the rows read so far."""
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
        """Check that each message follows its predecessor."""
        for key in entry.keys:
            who = topic.name, key.producer
            last = self._last.get(who, -1)
            self.check(key.sequence > last, "a message is stored twice:", entry.position, key)
            most = self._highest.get(who, -1)
            refused = key.producer.startswith(TRANSACTING)  # given up: the transaction had already ended
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
        """Return whether a chunk is legitimately stored again, long enough after the start of its message."""
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
        """Return whether deduplication was enabled at any time since ``since`` (monotonic seconds)."""
        book = self.model.book
        if book is None:
            return DEDUPLICATION.broker(self.model.box.settings)
        return any(each.value for each in book.in_force(topic, DEDUPLICATION, self.model.world.monotonic - since))
