"""The messages of a topic as values, for tests."""

import json
import time
import uuid
from dataclasses import dataclass, field
from typing import Any, Final

from pulsarbox.client.client import Client
from pulsarbox.client.credentials import Credentials
from pulsarbox.client.message_decoder import ReceivedMessage as Received
from pulsarbox.client.multi_topic_consumer import MultiTopicConsumer, Subscribing
from pulsarbox.client.partition_consumer import TopicConsumer
from pulsarbox.server.process.runtime_file import RuntimeFile

READ_SECONDS_MAX: Final = 30.0
_AT_ONCE: Final = 1000


@dataclass(frozen=True, slots=True)
class Message:
    """A message of a topic."""

    payload: bytes
    """Empty for a null value."""
    key: str | None = None
    properties: dict[str, str] = field(default_factory=dict)
    topic: str = ""
    """The partition, if the topic is partitioned."""
    id: str = ""
    """``ledger:entry:partition:batch index``"""
    producer: str = ""
    sequence_id: int = -1
    publish_time: int = 0
    """Milliseconds since 1970, by the producer's clock."""
    event_time: int = 0
    """Milliseconds since 1970, 0 for none."""

    def text(self) -> str:
        """Return the payload as UTF-8 text."""
        return self.payload.decode()

    def json(self) -> Any:
        """Return the payload as JSON."""
        return json.loads(self.payload)


def messages_of(box: RuntimeFile, topic: str) -> list[Message]:
    """Return all messages in a topic, oldest first, partition by partition. Does not change the topic.

    Raises TopicNotFound if it does not exist, and the client's errors.
    """
    secure = box.port < 0
    port = box.tls_port if secure else box.port
    known = Credentials(pinned=box.certificate, operator=box.operator)
    client = Client([(box.host, port)], READ_SECONDS_MAX, secure=secure, credentials=known)
    try:
        options = Subscribing(f"pulsarbox-{uuid.uuid4().hex}", durable=False, create=False)
        consumer = MultiTopicConsumer(client, options)
        found = [each for part in consumer.add(topic) for each in _up_to_the_end(client, part)]
        return [_value(each) for each in found]
    finally:
        client.close()


def _up_to_the_end(client: Client, part: TopicConsumer) -> list[Received]:
    end, _ = part.last_id()
    found: list[Received] = []
    deadline = time.monotonic() + READ_SECONDS_MAX
    # The last entries may be chunks of an incomplete message, which is never returned.
    while end.entry >= 0 and (part.has_some or part.seen is None or part.seen < (end.ledger, end.entry)):
        if time.monotonic() > deadline:
            raise TimeoutError(f"{part.topic}: read {len(found)} messages, but the last one, {end}, did not arrive")
        if not part.has_some:
            client.turn(0.1)
        found += part.take(_AT_ONCE)
    return found


def _value(received: Received) -> Message:
    return Message(
        payload=received.payload or b"",
        key=received.key,
        properties=dict(received.properties),
        topic=received.topic,
        id=str(received.id),
        producer=received.producer_name,
        sequence_id=received.sequence_id,
        publish_time=received.publish_time,
        event_time=received.event_time,
    )
