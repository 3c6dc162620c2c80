"""A consumer of any number of topics, partitioned or not, that takes in new ones while it works."""

from __future__ import annotations

import time
from collections import deque
from collections.abc import Callable, Iterable, Sequence
from dataclasses import replace
from typing import TYPE_CHECKING, Final

from pulsarbox.client.message_decoder import Message
from pulsarbox.client.partition_consumer import TYPES, Subscribing, TopicConsumer
from pulsarbox.client.places import Start
from pulsarbox.names import parse_topic

if TYPE_CHECKING:
    from pulsarbox.client.client import Client
    from pulsarbox.client.transaction import Transaction

__all__ = ["TYPES", "Consumer", "Subscribing"]

LOOK_SECONDS: Final = 30.0
"""How often it is looked whether a topic has got more partitions."""


class Consumer:
    """Messages of several topics, of each in its order. Errors of any of them come out of ``take``."""

    def __init__(self, client: Client, options: Subscribing) -> None:
        """Consumes nothing yet: see ``add``."""
        self.parts: dict[str, TopicConsumer] = {}
        """By the names of topics and partitions."""
        self._client = client
        self._options = options
        self._waiting: deque[TopicConsumer] = deque()
        self._partitioned: dict[str, int] = {}
        self._look = time.monotonic() + LOOK_SECONDS

    def add(self, topic: str, start_of: Callable[[str], Start] | None = None) -> list[TopicConsumer]:
        """Consume a topic too, with all its partitions; those that are new. Raises what the broker tells.

        ``start_of``: where each topic or partition begins, where that is not as the options say.
        """
        name = parse_topic(topic)
        partitions = self._client.partitions(str(name), create=self._options.create)
        if not partitions:
            return self._open(str(name), name.partition_index, start_of)
        self._partitioned[str(name)] = partitions
        return [each for index in range(partitions) for each in self._open(str(name.partition(index)), index, start_of)]

    def _open(self, topic: str, partition: int, start_of: Callable[[str], Start] | None) -> list[TopicConsumer]:
        if topic in self.parts:
            return []
        options = self._options if start_of is None else replace(self._options, start=start_of(topic))
        part = TopicConsumer(self._client, topic, partition, options, self._waiting.append)
        part.open()
        self.parts[topic] = part
        return [part]

    def look_for_partitions(self) -> None:
        """Take in partitions that were added since; asked of the broker now and then only."""
        now = time.monotonic()
        if now < self._look:
            return
        self._look = now + LOOK_SECONDS
        for topic, before in list(self._partitioned.items()):
            name = parse_topic(topic)
            found = self._client.partitions(topic, create=False)
            for index in range(before, found):
                # From its beginning: whatever is there was sent after we came.
                self._open(str(name.partition(index)), index, lambda topic: Start())
            self._partitioned[topic] = max(before, found)

    def take(self, limit: int, seconds: float) -> list[Message]:
        """Up to ``limit`` messages or a batch more, as soon as there are any; none after so many seconds."""
        deadline = time.monotonic() + seconds
        while True:
            found = self._take_waiting(limit)
            left = deadline - time.monotonic()
            if found or left <= 0:
                return found
            self._client.turn(min(left, 1.0))
            self.look_for_partitions()
            for part in self.parts.values():
                part.give_up_chunks()

    def _take_waiting(self, limit: int) -> list[Message]:
        found: list[Message] = []
        waiting = self._waiting
        for _ in range(len(waiting)):
            part = waiting.popleft()
            found += part.take(limit - len(found))
            part.is_waiting = part.has_some
            if part.is_waiting:
                waiting.append(part)
            if len(found) >= limit:
                break
        return found

    def acknowledge(self, messages: Sequence[Message], transaction: Transaction | None = None) -> None:
        """Acknowledge messages; in a transaction that is kept with its commit, and what is refused fails it."""
        for part, own in _by_part(messages):
            if transaction is None:
                part.acknowledge(own)
            else:
                part.acknowledge_in(transaction, own)

    def acknowledge_all_up_to(self, messages: Sequence[Message], transaction: Transaction | None = None) -> None:
        """Acknowledge messages, and whatever came before them. Not on Shared and Key_Shared subscriptions."""
        for part, own in _by_part(messages):
            part.acknowledge_up_to(own, transaction)

    def send_partial(self) -> None:
        """Acknowledge what is acknowledged of batches that are not so as a whole."""
        for part in self.parts.values():
            part.send_partial()

    def settle(self) -> None:
        """Return when the broker has kept all acknowledgements. Raises NotConnected where that will not be known."""
        for part in self.parts.values():
            part.send_partial()
        for part in self.parts.values():
            part.settle()

    def give_back(self, messages: Sequence[Message]) -> None:
        """Have messages delivered again; see ``TopicConsumer.give_back``."""
        for part, own in _by_part(messages):
            part.give_back(own)

    @property
    def ended(self) -> bool:
        """Whether nothing more will ever come: all topics are terminated, and read."""
        return bool(self.parts) and all(each.ended and not each.has_some for each in self.parts.values())

    @property
    def durable(self) -> bool:
        """Whether there is a subscription; without one it is a reader."""
        return self._options.durable

    def close(self) -> None:
        """No more is wanted. What is not acknowledged goes to others, or comes again later."""
        for part in self.parts.values():
            part.close()


def _by_part(messages: Sequence[Message]) -> Iterable[tuple[TopicConsumer, Sequence[Message]]]:
    """Messages by the topic they came from, in their order."""
    if not messages:
        return ()
    first = messages[0].entry.consumer
    if all(each.entry.consumer is first for each in messages):
        return ((first, messages),)
    grouped: dict[int, tuple[TopicConsumer, list[Message]]] = {}
    for each in messages:
        part = each.entry.consumer
        grouped.setdefault(id(part), (part, []))[1].append(each)
    return grouped.values()
