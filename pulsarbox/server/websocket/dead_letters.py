"""Dead letters of a consumer's WebSocket: messages that were redelivered too often go to another topic."""

from collections.abc import Awaitable, Callable
from time import time_ns

from pulsarbox.errors import PulsarBoxError
from pulsarbox.names import TopicName
from pulsarbox.protocol.dead_letters.properties import (
    ORIGIN_MESSAGE_ID,
    ORIGIN_MESSAGE_ID_OLD,
    REAL_SUBSCRIPTION,
    REAL_TOPIC,
)
from pulsarbox.protocol.PulsarApi_pb2 import MessageIdData, MessageMetadata
from pulsarbox.server.websocket.broker_connection import BrokerConnection
from pulsarbox.server.websocket.entry_messages import SocketMessage
from pulsarbox.server.websocket.socket_producer import SendOutcome, SocketProducer


class DeadLetters:
    """Publishes dead letters, with the properties that Java clients add."""

    def __init__(
        self,
        connection: BrokerConnection,
        topic: TopicName,
        subscription: str,
        partitions: Callable[[TopicName], Awaitable[list[TopicName]]],
    ) -> None:
        """``topic`` is the dead letter topic, ``subscription`` that of the consumer."""
        self._connection = connection
        self._topic = topic
        self._subscription = subscription
        self._partitions = partitions
        self._producer: SocketProducer | None = None

    async def publish(self, message: SocketMessage, source: TopicName, outcome: SendOutcome) -> None:
        """Publish a message of ``source``. Raises BrokerRefusal, RequestTimeout, TimeoutError."""
        producer = await self._opened()
        try:
            await producer.ready()
        except PulsarBoxError:
            self._producer = None  # the next dead letter opens another one
            raise
        metadata = MessageMetadata(publish_time=time_ns() // 1_000_000, sequence_id=producer.next_sequence_id())
        properties = {**message.properties, **self._origin(message.id, source)}
        for name, value in properties.items():
            metadata.properties.add(key=name, value=value)
        if message.key is not None:
            metadata.partition_key = message.key
            metadata.partition_key_b64_encoded = message.own.partition_key_b64_encoded
        if message.own.event_time:
            metadata.event_time = message.own.event_time
        metadata.uncompressed_size = len(message.payload)
        producer.send(metadata, message.payload, [outcome], batched=False)

    def _origin(self, where: MessageIdData, source: TopicName) -> dict[str, str]:
        place = f"{where.ledgerId}:{where.entryId}:{where.partition if where.HasField('partition') else -1}"
        if where.HasField("batch_index"):
            place += f":{where.batch_index}"
        return {
            REAL_TOPIC: str(source),
            REAL_SUBSCRIPTION: self._subscription,
            ORIGIN_MESSAGE_ID: place,
            ORIGIN_MESSAGE_ID_OLD: place,
        }

    async def _opened(self) -> SocketProducer:
        if self._producer is None:
            topic = (await self._partitions(self._topic))[0]
            producer = SocketProducer(self._connection, topic)
            await producer.open()
            self._producer = producer
        return self._producer

    def close(self) -> None:
        """Close the producer."""
        if self._producer is not None:
            self._producer.close()
