"""A consumer of several topics, partitioned or not, to which topics and partitions can be added at any time."""

from __future__ import annotations

import time
from collections import deque
from collections.abc import Callable, Iterable, Sequence
from dataclasses import replace
from typing import TYPE_CHECKING, Final

from pulsarbox.client.message_decoder import ReceivedMessage
from pulsarbox.client.partition_consumer import TYPES, Subscribing, TopicConsumer
from pulsarbox.client.places import Start
from pulsarbox.names import parse_topic

if TYPE_CHECKING:
    from pulsarbox.client.client import Client
    from pulsarbox.client.transaction import Transaction

__all__ = ["TYPES", "MultiTopicConsumer", "Subscribing"]

LOOK_SECONDS: Final = 30.0
"""How often partitioned topics are checked for new partitions."""


class MultiTopicConsumer:
    """Consumer of several topics, each in order. ``take`` raises the errors of all of them."""

    def __init__(self, client: Client, options: Subscribing) -> None:
        """Create a consumer without topics: see ``add``."""
        self.parts: dict[str, TopicConsumer] = {}
        """Consumers by the name of topic or partition."""
        self._client = client
        self._options = options
        self._waiting: deque[TopicConsumer] = deque()
        self._partitioned: dict[str, int] = {}
        self._look = time.monotonic() + LOOK_SECONDS

    def add(self, topic: str, start_of: Callable[[str], Start] | None = None) -> list[TopicConsumer]:
        """Subscribe to a topic and all its partitions; return the new consumers. Raises the broker's error.

        ``start_of``: start position of each topic or partition, overriding the options.
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

    def discover_partitions(self) -> None:
        """Subscribe to new partitions; checks at most every ``LOOK_SECONDS``."""
        now = time.monotonic()
        if now < self._look:
            return
        self._look = now + LOOK_SECONDS
        for topic, before in list(self._partitioned.items()):
            name = parse_topic(topic)
            found = self._client.partitions(topic, create=False)
            for index in range(before, found):
                # From the beginning: all its messages were published after this consumer subscribed.
                self._open(str(name.partition(index)), index, lambda topic: Start())
            self._partitioned[topic] = max(before, found)

    def take(self, limit: int, seconds: float) -> list[ReceivedMessage]:
        """Return up to ``limit`` messages, or a batch more, as soon as any arrive; none after ``seconds``."""
        deadline = time.monotonic() + seconds
        while True:
            found = self._take_waiting(limit)
            left = deadline - time.monotonic()
            if found or left <= 0:
                return found
            self._client.turn(min(left, 1.0))
            self.discover_partitions()
            for part in self.parts.values():
                part.discard_chunks()

    def _take_waiting(self, limit: int) -> list[ReceivedMessage]:
        found: list[ReceivedMessage] = []
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

    def acknowledge(self, messages: Sequence[ReceivedMessage], transaction: Transaction | None = None) -> None:
        """Acknowledge messages. In a transaction this takes effect on commit, and a rejection fails the transaction."""
        for part, own in _by_part(messages):
            if transaction is None:
                part.acknowledge(own)
            else:
                part.acknowledge_in(transaction, own)

    def acknowledge_all_up_to(
        self, messages: Sequence[ReceivedMessage], transaction: Transaction | None = None
    ) -> None:
        """Acknowledge messages cumulatively. Not supported on Shared and Key_Shared subscriptions."""
        for part, own in _by_part(messages):
            part.acknowledge_up_to(own, transaction)

    def send_partial(self) -> None:
        """Send the acknowledgements of partially acknowledged batches."""
        for part in self.parts.values():
            part.send_partial()

    def settle(self) -> None:
        """Wait until the broker has stored all acknowledgements. Raises NotConnected if that remains unknown."""
        for part in self.parts.values():
            part.send_partial()
        for part in self.parts.values():
            part.settle()

    def give_back(self, messages: Sequence[ReceivedMessage]) -> None:
        """Request redelivery of messages; see ``TopicConsumer.give_back``."""
        for part, own in _by_part(messages):
            part.give_back(own)

    @property
    def ended(self) -> bool:
        """Whether all topics are terminated and read to their end."""
        return bool(self.parts) and all(each.ended and not each.has_some for each in self.parts.values())

    @property
    def durable(self) -> bool:
        """Whether the subscription is durable; otherwise this is a reader."""
        return self._options.durable

    def close(self) -> None:
        """Close the consumer. Unacknowledged messages are redelivered to other consumers or later."""
        for part in self.parts.values():
            part.close()


def _by_part(messages: Sequence[ReceivedMessage]) -> Iterable[tuple[TopicConsumer, Sequence[ReceivedMessage]]]:
    """Group messages by topic, preserving order."""
    if not messages:
        return ()
    first = messages[0].entry.consumer
    if all(each.entry.consumer is first for each in messages):
        return ((first, messages),)
    grouped: dict[int, tuple[TopicConsumer, list[ReceivedMessage]]] = {}
    for each in messages:
        part = each.entry.consumer
        grouped.setdefault(id(part), (part, []))[1].append(each)
    return grouped.values()
