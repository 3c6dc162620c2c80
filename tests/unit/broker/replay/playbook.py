"""Shared helpers for jobs: a dead letter topic with messages, a job, and the outcome of both."""

from typing import Any

from pulsarbox.broker.replay.job import Job, read_spec
from pulsarbox.broker.security.principal import Principal
from pulsarbox.broker.topic.topic import PersistentTopic
from pulsarbox.names import parse_topic
from pulsarbox.protocol.batch import encode_batch, iterate_batch
from pulsarbox.protocol.metadata import key_values, parse_entry
from pulsarbox.protocol.PulsarApi_pb2 import KeyValue, MessageMetadata, SingleMessageMetadata
from tests.unit.broker.dead_letters_playbook import letters
from tests.unit.broker.playbook import TOPIC, Box, Client

DLQ = f"{TOPIC}-s-DLQ"
SUB = "dead-letters"


def pairs(properties: dict[str, str]) -> list[KeyValue]:
    return [KeyValue(key=name, value=value) for name, value in properties.items()]


def told(origin: str = TOPIC, **properties: str) -> dict[str, str]:
    """Return the properties of a dead letter, as written by clients."""
    return {"REAL_TOPIC": origin, "ORIGIN_MESSAGE_ID": "1:2:-1", "RECONSUMETIMES": "3"} | properties


def batch_of(*messages: tuple[bytes, dict[str, str]]) -> bytes:
    return encode_batch((SingleMessageMetadata(properties=pairs(told(**more))), body) for body, more in messages)


def dead_letter_topic(box: Box, *bodies: bytes, subscription: str = SUB, topic: str = DLQ) -> Client:
    """Create a dead letter topic and its source topic, and return the producer.

    A subscription retains the messages of the dead letter topic.
    """
    client = box.client()
    client.producer(90, TOPIC)
    if subscription:
        client.subscribe(subscription, consumer_id=9, topic=topic, subType=1)
        client.request("close_consumer", consumer_id=9)
    client.producer(1, topic)
    for i, body in enumerate(bodies):
        client.send(i, body, properties=pairs(told()))
    client.names()
    return client


def create(box: Box, principal: Principal | None = None, **asked: Any) -> Job:
    """Start a job without running any of its steps."""
    value = {"kind": "dlq-replay", "topic": DLQ} | asked
    return box.broker.jobs.create(read_spec(value, principal, box.now), box.now)


def run(box: Box, seconds: float = 10.0, **asked: Any) -> Job:
    """Start a job and advance the clock."""
    job = create(box, **asked)
    box.turn()
    box.advance(seconds)
    return job


def job_in(box: Box, number: int) -> Job:
    return box.broker.jobs.get(number)


def topic_of(box: Box, name: str = DLQ) -> PersistentTopic:
    found = box.broker.topics.find(parse_topic(name), box.now)
    assert isinstance(found, PersistentTopic)
    return found


def backlog(box: Box, name: str = SUB, topic: str = DLQ) -> int:
    return topic_of(box, topic).subscriptions[name].cursor.backlog_messages


def bodies(box: Box, topic: str = TOPIC) -> list[bytes]:
    """Return all messages of a topic, with batches split."""
    found = []
    for metadata, body in letters(box, topic):
        if metadata.HasField("num_messages_in_batch"):
            found += [payload for _, payload in iterate_batch(body, metadata.num_messages_in_batch)]
        else:
            found.append(body)
    return found


def left(box: Box, name: str = SUB, topic: str = DLQ) -> list[bytes]:
    """Return the unacknowledged messages of a subscription."""
    client = box.client()
    client.subscribe(name, topic=topic, subType=1)
    client.flow(10_000)
    found = []
    while client.inbox:
        data, payload = client.inbox.pop(0)
        parsed = parse_entry(payload)
        metadata, body = parsed.metadata, payload[parsed.body_offset :]
        if metadata.HasField("num_messages_in_batch"):
            unacked = _ack_set(data)
            inside = iterate_batch(body, metadata.num_messages_in_batch)
            found += [each for i, (_, each) in enumerate(inside) if unacked is None or unacked >> i & 1]
        else:
            found.append(body)
    client.cnx.closed(box.now)
    box.turn()
    return found


def _ack_set(data: bytes) -> int | None:
    from pulsarbox.protocol.commands import parse_command

    words = list(parse_command(data).message.ack_set)
    return None if not words else sum((word & (1 << 64) - 1) << 64 * i for i, word in enumerate(words))


def properties(metadata: MessageMetadata) -> dict[str, str]:
    return key_values(metadata.properties)


def counted(job: Job) -> tuple[int, int, int, int]:
    """Return the numbers of messages seen, done, skipped and failed."""
    counts = job.progress.counts
    return counts.seen, counts.done, counts.skipped, counts.failed
