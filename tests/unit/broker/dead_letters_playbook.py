"""Shared helpers for dead letter tests: a policy, failing consumers, and the resulting dead letters."""

from typing import Any

import pytest

from pulsarbox.broker.policies.kinds.dead_letter import DeadLetterPolicy
from pulsarbox.broker.subscription.subscription import Subscription
from pulsarbox.broker.topic.topic import PersistentTopic
from pulsarbox.names import parse_topic
from pulsarbox.protocol.metadata import parse_entry
from pulsarbox.protocol.PulsarApi_pb2 import (
    CommandSubscribe,
    MessageIdData,
    MessageMetadata,
)
from tests.unit.broker.playbook import TOPIC, Box, Client

SHARED, KEY_SHARED, EXCLUSIVE = CommandSubscribe.Shared, CommandSubscribe.Key_Shared, CommandSubscribe.Exclusive
BOTH = pytest.mark.parametrize("sub_type", [SHARED, KEY_SHARED])
DLQ = f"{TOPIC}-s-DLQ"
At = tuple[int, int]


def topic_of(box: Box, name: str = TOPIC) -> PersistentTopic:
    found = box.broker.topics.find(parse_topic(name), box.now)
    assert isinstance(found, PersistentTopic)
    return found


def subscription_of(box: Box) -> Subscription:
    return topic_of(box).subscriptions["s"]


def set_policy(box: Box, count: int = 1, **value: Any) -> None:
    policy = DeadLetterPolicy.read({"maxRedeliverCount": count} | value, parse_topic(TOPIC), "s")
    box.broker.dead_letters.prepare(policy, box.now)
    subscription_of(box).dead_letters.set_policy(policy, box.now)
    box.turn()


def join(box: Box, sub_type: int = SHARED, permits: int = 1000, name: str = "s", topic: str = TOPIC) -> Client:
    client = box.client()
    reply = client.subscribe(name, topic=topic, subType=sub_type)
    assert not hasattr(reply, "error"), reply
    if permits:
        client.flow(permits)
    return client


def give_back(client: Client, *ats: At) -> None:
    ids = [MessageIdData(ledgerId=at[0], entryId=at[1]) for at in ats]
    client.ask("redeliverUnacknowledgedMessages", consumer_id=1, message_ids=ids)


def die_of(box: Box, *ats: At, times: int, sub_type: int = SHARED) -> None:
    """Deliver the messages to ``times`` consumers, each of which disconnects without acknowledging."""
    for _ in range(times):
        client = join(box, sub_type)
        assert set(ats) <= set(client.received())
        client.cnx.closed(box.now)
        box.advance(0.1)  # redelivery counts are written lazily


def letters(box: Box, topic: str = DLQ) -> list[tuple[MessageMetadata, bytes]]:
    """Return the contents of a dead letter topic, read by a separate consumer."""
    client = box.client()
    client.subscribe(f"reader-{len(box.broker.cnxs)}", topic=topic, subType=EXCLUSIVE)
    client.flow(1000)
    found = []
    while client.inbox:
        _, payload = client.inbox.pop(0)
        parsed = parse_entry(payload)
        found.append((parsed.metadata, payload[parsed.body_offset :]))
    return found


def bodies(box: Box, topic: str = DLQ) -> list[bytes]:
    return [body for _, body in letters(box, topic)]


def backlog(box: Box) -> int:
    return subscription_of(box).cursor.backlog_messages
