"""A producer of a topic, partitioned or not: chooses the partition, and keeps what is on its way within bounds."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

from pulsarbox.client.routing import Router
from pulsarbox.client.topic_producer import Options, Stored, TopicProducer
from pulsarbox.names import parse_topic
from pulsarbox.protocol.outgoing import Outgoing

if TYPE_CHECKING:
    from pulsarbox.client.client import Client

__all__ = ["Options", "Producer", "Stored"]


class Producer:
    """Sends messages in order, to each partition on its own. Partitions are opened when something goes there."""

    def __init__(self, client: Client, topic: str, options: Options, stored: Stored) -> None:
        """Opens the topic, or the first of its partitions. Raises what the broker tells, NotConnected, NoAnswer.

        ``stored`` is called, inside of the other calls, for what the broker has stored.
        """
        self._client = client
        self._name = parse_topic(topic)
        self._options = options
        self._stored = stored
        partitions = client.partitions(str(self._name), create=True)
        self._partitioned = partitions > 0
        self._router = Router(max(1, partitions), options.hashing)
        self._open: dict[int, TopicProducer] = {}
        self._of(0)

    def send(self, message: Outgoing, token: Any = None) -> None:
        """Take a message; waits while too much is on its way. ``token`` is given to ``stored`` with its id."""
        router = self._router
        keyed = message.key is not None and not message.null_key and router.partitions > 1
        producer = self._of(router.of_key(message.key or "") if keyed else router.current)
        producer.add(message, token)
        if not keyed and not producer.batch_is_open:
            router.next()
        self._wait_for_room(producer)

    def send_plain(self, payloads: Sequence[bytes]) -> None:
        """Take messages that are nothing but payloads."""
        at = 0
        while at < len(payloads):
            producer = self._of(self._router.current)
            at += producer.add_plain(payloads, at)
            if not producer.batch_is_open:
                self._router.next()
            self._wait_for_room(producer)

    def send_batches(self) -> None:
        """Send what waits in batches; for when nothing more is there to fill them."""
        for each in self._open.values():
            if each.batch_is_open:
                each.send_batch()
                self._router.next()
        self._client.turn()
        self._check()

    def flush(self) -> None:
        """Return when everything is stored. Raises what keeps it from being so."""
        self.send_batches()
        while any(each.unconfirmed for each in self._open.values()):
            self._client.turn(1.0)
            self._check()

    def close(self) -> None:
        """Nothing more comes."""
        for each in self._open.values():
            each.close()

    def _of(self, partition: int) -> TopicProducer:
        found = self._open.get(partition)
        if found is None:
            name = self._name.partition(partition) if self._partitioned else self._name
            number = partition if self._partitioned else name.partition_index
            found = TopicProducer(self._client, str(name), number, self._options, self._stored)
            found.open()
            self._open[partition] = found
        return found

    def _wait_for_room(self, producer: TopicProducer) -> None:
        while producer.full:
            self._client.turn(1.0)
            self._check()

    def _check(self) -> None:
        for each in self._open.values():
            each.check()

    @property
    def unconfirmed(self) -> int:
        """Frames and batches without a receipt."""
        return sum(each.unconfirmed for each in self._open.values())
