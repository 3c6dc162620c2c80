"""Shared helpers for tests of retention, expiry and quotas."""

from typing import Any

from pulsarbox.broker.topic.topic import PersistentTopic
from pulsarbox.names import parse_topic
from pulsarbox.protocol.commands import COMMANDS, parse_command
from tests.unit.broker.playbook import TOPIC, Box, Client

NAME = parse_topic(TOPIC)
NAMESPACE = "public/default"
MINUTE, HOUR, DAY = 60, 3600, 86_400


def set_policy(box: Box, **values: Any) -> None:
    """Set namespace policies by key. None removes a policy."""
    for key, value in values.items():
        box.broker.tenants.set_policy(NAMESPACE, key, value, box.now)
    box.turn()


def set_topic_policy(box: Box, key: str, value: Any, name: str = TOPIC) -> None:
    """Set one topic policy by key. None removes it."""
    box.broker.policies.set_topic(parse_topic(name), key, value, box.now)
    box.turn()


def topic_of(box: Box, name: str = TOPIC) -> PersistentTopic:
    """Return the topic, loading it if necessary."""
    topic = box.broker.topics.find(parse_topic(name), box.now)
    assert isinstance(topic, PersistentTopic)
    return topic


def backlog(box: Box, subscription: str = "s", name: str = TOPIC) -> int:
    """Return the unacknowledged messages of a subscription."""
    return topic_of(box, name).subscriptions[subscription].cursor.backlog_messages


def subscribed(box: Box, *names: str, topic: str = TOPIC) -> None:
    """Create durable subscriptions without consumers."""
    client = box.client()
    for number, name in enumerate(names):
        assert client.subscribe(name, number, topic).DESCRIPTOR.name == "CommandSuccess"
    leave(client)


def publish(box: Box, count: int, size: int = 1, topic: str = TOPIC) -> list[tuple[int, int]]:
    """Publish entries of ``size`` bytes each, disconnect, and return the positions."""
    client = box.client()
    client.producer(1, topic)
    for number in range(count):
        client.send(number, b"x" * size)
    receipts = [client.take("send_receipt").message_id for _ in range(count)]
    leave(client)
    return [(each.ledgerId, each.entryId) for each in receipts]


def leave(client: Client) -> None:
    """Close the connection."""
    client.cnx.closed(client.box.now)
    client.box.turn()


def unload(box: Box) -> None:
    """Unload all topics, so that only their catalog rows remain."""
    for topic in box.broker.topics:
        box.broker.topics.unload(topic, lambda now: None, box.now)
    box.turn()
    box.advance(1)
    assert not list(box.broker.topics)


def ledgers(box: Box) -> list[int]:
    """Return the ledgers of all topics, oldest first."""
    return [int(key.rpartition("/")[2], 16) for key in box.broker.catalog.keys("ledger/")]


def exists(box: Box, name: str = TOPIC) -> bool:
    """Return whether the topic exists."""
    return box.broker.topics.exists(parse_topic(name))


def frames(client: Client) -> list[tuple[str, Any]]:
    """Consume all received frames and return the commands' names and contents."""
    taken, client.inbox = client.inbox, []
    commands = [parse_command(data) for data, _ in taken]
    return [(COMMANDS[each.type].field, getattr(each, COMMANDS[each.type].field)) for each in commands]
