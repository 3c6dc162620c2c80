"""Shared helpers for limits: boxes with a backlog, counting clients, and policies as stored by the Admin API."""

from typing import Any

from pulsarbox.broker.subscription.subscription import Subscription
from pulsarbox.broker.topic.topic import PersistentTopic
from pulsarbox.names import parse_topic
from pulsarbox.protocol.commands import parse_command
from pulsarbox.protocol.PulsarApi_pb2 import BaseCommand, CommandSubscribe
from tests.unit.broker.playbook import TOPIC, Box, Client

EXCLUSIVE, SHARED = CommandSubscribe.Exclusive, CommandSubscribe.Shared
FAILOVER, KEY_SHARED = CommandSubscribe.Failover, CommandSubscribe.Key_Shared
TYPES = [EXCLUSIVE, SHARED, FAILOVER, KEY_SHARED]


def dispatch_rate(messages: int = -1, size: int = -1, period: int = 1, *, relative: bool = False) -> dict[str, Any]:
    """Return a dispatch rate in the format of the Admin API."""
    return {
        "dispatchThrottlingRateInMsg": messages,
        "dispatchThrottlingRateInByte": size,
        "relativeToPublishRate": relative,
        "ratePeriodInSecond": period,
    }


def publish_rate(messages: int = -1, size: int = -1) -> dict[str, Any]:
    """Return a publish rate in the format of the Admin API."""
    return {"publishThrottlingRateInMsg": messages, "publishThrottlingRateInByte": size}


def set_topic(box: Box, key: str, value: Any, topic: str = TOPIC) -> None:
    """Set a topic policy."""
    box.broker.policies.set_topic(parse_topic(topic), key, value, box.now)
    box.turn()


def set_namespace(box: Box, key: str, value: Any) -> None:
    """Set a policy of namespace public/default."""
    box.broker.tenants.set_policy("public/default", key, value, box.now)
    box.turn()


def change(box: Box, name: str, value: str) -> None:
    """Change a setting at runtime."""
    box.broker.configuration.update(name, value, box.now)
    box.turn()


def fill(box: Box, entries: int, batch: int = 0, topic: str = TOPIC, body: bytes = b"x") -> None:
    """Publish entries, each with its own key. A nonzero ``batch`` is the number of messages per entry."""
    client = box.client()
    client.producer(1, topic)
    for i in range(entries):
        client.send(i, body, batch=batch, partition_key=f"k{i}")
    client.ask("close_producer", producer_id=1, request_id=1)
    box.turn()


def join(box: Box, kind: Any = EXCLUSIVE, name: str = "s", permits: int = 10_000, topic: str = TOPIC) -> Client:
    """Return a client with a consumer that has many permits."""
    client = box.client()
    reply = client.subscribe(name, subType=kind, topic=topic, consumer_name=f"c{len(box.outboxes)}")
    assert not hasattr(reply, "error"), reply
    if kind == FAILOVER:
        box.advance(1.5)
    client.flow(permits)
    return client


def got(client: Client) -> int:
    """Return the number of entries received since the last call."""
    taken, client.inbox = client.inbox, []
    return sum(parse_command(data).type == BaseCommand.MESSAGE for data, _ in taken)


def periods(box: Box, client: Client, count: int, seconds: float = 1.0) -> list[int]:
    """Return the number of entries received in each of several periods."""
    found = []
    for _ in range(count):
        box.advance(seconds)
        found.append(got(client))
    return found


def topic_of(box: Box, topic: str = TOPIC) -> PersistentTopic:
    """Return a loaded topic."""
    found = box.broker.topics.loaded(parse_topic(topic))
    assert isinstance(found, PersistentTopic)
    return found


def subscription_of(box: Box, name: str = "s", topic: str = TOPIC) -> Subscription:
    """Return a subscription of a loaded topic."""
    return topic_of(box, topic).subscriptions[name]
