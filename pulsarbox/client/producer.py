"""A producer of a topic, partitioned or not: routing, and a limit on pending messages."""

from __future__ import annotations

import time
from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any, Final

from pulsarbox.client.partition_producer import Options, Stored, TopicProducer
from pulsarbox.names import parse_topic
from pulsarbox.plugins.contracts import Unrouted
from pulsarbox.protocol.message_encoder import Outgoing, StoredEntry, encoded

if TYPE_CHECKING:
    from pulsarbox.client.client import Client
    from pulsarbox.client.transaction import Transaction

_NO_PROPERTIES: Final[Mapping[str, str]] = {}
_LOOK_SECONDS: Final = 0.02
"""Maximum time between polls of the connection while publishing continuously."""

__all__ = ["Options", "Producer", "Stored"]


class Producer:
    """Publishes messages in order within each partition. Partitions are opened on first use."""

    def __init__(self, client: Client, topic: str, options: Options, stored: Stored) -> None:
        """Open the topic, or its first partition. Raises the broker's error, NotConnected, NoAnswer; PluginError if the
        route in ``options`` is invalid.

        ``stored`` is called, from within other calls, for each receipt.
        """
        self._client = client
        self._name = parse_topic(topic)
        self._options = options
        self._stored = stored
        self._choose = options.route.open(str(self._name))
        self.partitions = client.partitions(str(self._name), create=True)
        self._partitioned = self.partitions > 0
        self._sequence = 0
        self._batch = 0
        self._place = 0
        """Partition of the last stored entry."""
        self._open: dict[int, TopicProducer] = {}
        self._txn: Transaction | None = None
        self._looked = time.monotonic()
        self._of(0)

    def enter(self, transaction: Transaction | None) -> None:
        """Set the transaction of the following messages; None for none."""
        self._txn = transaction
        for each in self._open.values():
            each.enter(transaction)

    def send(self, message: Outgoing, token: Any = None) -> None:
        """Publish a message; blocks while too many are pending. ``token`` is passed to ``stored`` with its ID.

        Raises InvalidTxnStatus in a transaction that has ended.
        """
        if self._txn is not None:
            self._txn.check_open()
        producer = self._of(self._partition_of(message))
        producer.add(message, token)
        if not producer.batch_is_open:
            self._batch += 1
        self._wait_for_room(producer)

    def send_stored(self, stored: StoredEntry, partition: int = -1, tokens: Sequence[Any] = ()) -> bool:
        """Publish a previously stored entry to ``partition`` if it exists, otherwise to the one that its key selects.
        See TopicProducer.add_stored."""
        if not stored.continues:
            self._place = partition if 0 <= partition < self.partitions else self._partition_of(stored.message)
        producer = self._of(self._place)
        if not producer.add_stored(stored, tokens):
            return False
        self._batch += 1
        self._wait_for_room(producer)
        return True

    def send_plain(self, payloads: Sequence[bytes]) -> None:
        """Publish messages without attributes. Raises as ``send``."""
        if self._txn is not None:
            self._txn.check_open()
        if self.partitions > 1 and not self._options.route.by_batch:
            for payload in payloads:
                self.send(Outgoing(payload))
            return
        at = 0
        while at < len(payloads):
            producer = self._of(self._partition_of(Outgoing(payloads[at])))
            taken = producer.add_plain(payloads, at)
            at += taken
            self._sequence += taken - 1
            if not producer.batch_is_open:
                self._batch += 1
            self._wait_for_room(producer)

    def _partition_of(self, message: Outgoing) -> int:
        sequence = self._sequence
        self._sequence = sequence + 1
        if self.partitions <= 1:
            return 0
        key = None if message.key is None or message.null_key else encoded(message.key)
        properties = dict(message.properties) if message.properties else _NO_PROPERTIES
        return self._choose(
            Unrouted(key, properties, len(message.payload or b""), sequence, self._batch), self.partitions
        )

    def send_batches(self) -> None:
        """Send open batches, when no more messages are at hand to fill them."""
        for each in self._open.values():
            if each.batch_is_open:
                each.send_batch()
                self._batch += 1
        self._client.turn()
        self._check()

    def flush(self) -> None:
        """Wait until everything is stored. Raises the error that prevents it."""
        self.send_batches()
        while any(each.unconfirmed for each in self._open.values()):
            self._client.turn(1.0)
            self._check()

    def close(self) -> None:
        """Close the producer."""
        for each in self._open.values():
            each.close()

    def _of(self, partition: int) -> TopicProducer:
        found = self._open.get(partition)
        if found is None:
            name = self._name.partition(partition) if self._partitioned else self._name
            number = partition if self._partitioned else name.partition_index
            found = TopicProducer(self._client, str(name), number, self._options, self._stored)
            found.begin()
            if self._txn is not None:
                found.enter(self._txn)
            self._open[partition] = found
        return found

    def _wait_for_room(self, producer: TopicProducer) -> None:
        now = time.monotonic()
        if now - self._looked >= _LOOK_SECONDS:  # receipts that have not been read are lost with the connection
            self._looked = now
            self._client.turn()
            self._check()
        while producer.full:
            self._client.turn(1.0)
            self._check()

    def _check(self) -> None:
        for each in self._open.values():
            each.check()

    @property
    def unconfirmed(self) -> int:
        """Number of frames and batches without a receipt."""
        return sum(each.unconfirmed for each in self._open.values())
