"""Bulk reading of one topic's entries, with explicit flow control."""

from __future__ import annotations

from typing import TYPE_CHECKING

from pulsarbox.client.partition_consumer import Subscribing, TopicConsumer
from pulsarbox.client.places import MessageId, Start
from pulsarbox.client.transport.reconnect import Reconnect
from pulsarbox.errors import PulsarBoxError
from pulsarbox.protocol.message_stream_decoder import Deliveries
from pulsarbox.protocol.metadata import parse_entry
from pulsarbox.protocol.PulsarApi_pb2 import CommandMessage
from pulsarbox.protocol.violations import MalformedMetadata

if TYPE_CHECKING:
    from pulsarbox.client.client import Client


class EntryReader(TopicConsumer):
    """Reader of raw entries. Bulk-decoded ones go to ``deliveries``, which calls ``took``; others to ``entry``."""

    def __init__(
        self,
        client: Client,
        topic: str,
        partition: int,
        options: Subscribing,
        deliveries: Deliveries,
        number: int,
    ) -> None:
        """``options``: of a non-durable subscription; its queue is the initial number of permits. ``number``:
        identifies the reader's entries in ``deliveries``."""
        super().__init__(client, topic, partition, options, lambda _: None)
        self._deliveries = deliveries
        self.asked = 0
        """Outstanding permits in messages; may be negative after a large batch."""
        # See message_stream_decoder.Reader; subclasses enable bulk decoding by setting these.
        self.number = number
        self.ledger = self.next = self.last = -1

    @property
    def place(self) -> MessageId:
        """The entry to resume from after a reconnection."""
        raise NotImplementedError

    def entry(self, ledger: int, entry: int, payload: bytes) -> None:
        """Handle an entry outside bulk decoding; ``payload`` starts at its checksum or metadata and is not verified."""
        raise NotImplementedError

    def took(self, end: int, messages: int) -> None:
        """Account for the entries before ``end``, which are in ``deliveries``."""
        self.asked -= messages

    def open(self) -> None:
        """Subscribe from the current position."""
        self._start = Start(self.place)
        super().open()
        if self._connection is not None:
            self.asked = self._options.queue
            self._deliveries.readers[self._id] = self
            self._connection.deliver_to(self._deliveries)

    def open_later(self, reason: PulsarBoxError) -> None:
        """Retry opening until it succeeds or ``Client.timeout`` has passed."""
        self._client.comebacks.append(Reconnect(self.open, reason, self._client.timeout))

    def ask_for(self, messages: int) -> None:
        """Grant the broker permits for that many more messages."""
        self.asked += messages
        self._flow(messages)

    def message(self, message: CommandMessage, payload: bytes) -> None:
        """Handle an entry that was not decoded in bulk."""
        if self._closed:
            return
        try:
            self.asked -= parse_entry(payload, verify=False).metadata.num_messages_in_batch
        except MalformedMetadata:  # reported when the entry is parsed
            self.asked -= 1
        where = message.message_id
        self.entry(where.ledgerId, where.entryId, payload)

    def close(self) -> None:
        """Stop reading and close the consumer."""
        self._deliveries.readers.pop(self._id, None)
        super().close()
