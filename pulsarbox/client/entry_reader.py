"""A reader of one topic that takes entries as they are, many at a time, and asks for no more than it is told to."""

from __future__ import annotations

from typing import TYPE_CHECKING

from pulsarbox.client.partition_consumer import Subscribing, TopicConsumer
from pulsarbox.client.places import MessageId, Start
from pulsarbox.client.reconnect import Comeback
from pulsarbox.errors import PulsarBoxError
from pulsarbox.protocol.message_stream_decoder import Deliveries
from pulsarbox.protocol.metadata import parse_entry
from pulsarbox.protocol.PulsarApi_pb2 import CommandMessage
from pulsarbox.protocol.violations import MalformedMetadata

if TYPE_CHECKING:
    from pulsarbox.client.client import Client


class EntryReader(TopicConsumer):
    """What is not as usual comes to ``entry``; the rest to ``deliveries``, which tell ``took``."""

    def __init__(
        self,
        client: Client,
        topic: str,
        partition: int,
        options: Subscribing,
        deliveries: Deliveries,
        number: int,
    ) -> None:
        """``options``: of a subscription that is not durable; its queue is what is asked for at once. ``number``: under
        which ``deliveries`` have its entries."""
        super().__init__(client, topic, partition, options, lambda _: None)
        self._deliveries = deliveries
        self.asked = 0
        """Messages that the broker may still send; less than none behind a large batch."""
        # See protocol.deliveries.Reader; nothing is taken many at a time until a subclass says so.
        self.number = number
        self.ledger = self.next = self.last = -1

    @property
    def place(self) -> MessageId:
        """The entry to go on with, should the connection be lost."""
        raise NotImplementedError

    def entry(self, ledger: int, entry: int, payload: bytes) -> None:
        """An entry that has come by itself: the bytes from checksum or metadata on, which nobody has looked into."""
        raise NotImplementedError

    def took(self, end: int, messages: int) -> None:
        """The entries before ``end`` are in ``deliveries``."""
        self.asked -= messages

    def open(self) -> None:
        """As of a consumer, from where it has come to."""
        self._start = Start(self.place)
        super().open()
        if self._connection is not None:
            self.asked = self._options.queue
            self._deliveries.readers[self._id] = self
            self._connection.deliver_to(self._deliveries)

    def open_later(self, reason: PulsarBoxError) -> None:
        """Try to open it until it works, or ``Client.timeout`` is over."""
        self._client.comebacks.append(Comeback(self.open, reason, self._client.timeout))

    def ask_for(self, messages: int) -> None:
        """Let the broker send so many more."""
        self.asked += messages
        self._flow(messages)

    def message(self, message: CommandMessage, payload: bytes) -> None:
        """One that was not taken with others."""
        if self._closed:
            return
        try:
            self.asked -= parse_entry(payload, verify=False).metadata.num_messages_in_batch
        except MalformedMetadata:  # whoever gets it looks into it, too
            self.asked -= 1
        where = message.message_id
        self.entry(where.ledgerId, where.entryId, payload)

    def close(self) -> None:
        """Nothing more is wanted."""
        self._deliveries.readers.pop(self._id, None)
        super().close()
