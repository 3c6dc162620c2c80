"""What the tests of retention, expiry and quotas do again and again."""

from typing import Any

from pulsarbox.broker.topic.topic import PersistentTopic
from pulsarbox.names import parse_topic
from pulsarbox.protocol.commands import COMMANDS, parse_command
from tests.unit.broker.playbook import TOPIC, Box, Client

NAME = parse_topic(TOPIC)
NAMESPACE = "public/default"
MINUTE, HOUR, DAY = 60, 3600, 86_400


def set_policy(box: Box, **values: Any) -> None:
    """Set policies of the namespace, by their keys there; None takes one away."""
    for key, value in values.items():
        box.broker.tenants.set_policy(NAMESPACE, key, value, box.now)
    box.turn()


def set_topic_policy(box: Box, key: str, value: Any, name: str = TOPIC) -> None:
    """Set one policy of a topic, by its key there; None takes it away."""
    box.broker.core.policies.set_topic(parse_topic(name), key, value, box.now)
    box.turn()


def topic_of(box: Box, name: str = TOPIC) -> PersistentTopic:
    """The topic, brought into memory where it is not."""
    topic = box.broker.topics.find(parse_topic(name), box.now)
    assert isinstance(topic, PersistentTopic)
    return topic


def backlog(box: Box, subscription: str = "s", name: str = TOPIC) -> int:
    """Messages that a subscription has not acknowledged."""
    return topic_of(box, name).subscriptions[subscription].cursor.backlog_messages


def subscribed(box: Box, *names: str, topic: str = TOPIC) -> None:
    """Make durable subscriptions that nobody is connected to."""
    client = box.client()
    for number, name in enumerate(names):
        assert client.subscribe(name, number, topic).DESCRIPTOR.name == "CommandSuccess"
    leave(client)


def publish(box: Box, count: int, size: int = 1, topic: str = TOPIC) -> list[tuple[int, int]]:
    """Publish entries of ``size`` bytes each and go; the positions."""
    client = box.client()
    client.producer(1, topic)
    for number in range(count):
        client.send(number, b"x" * size)
    receipts = [client.take("send_receipt").message_id for _ in range(count)]
    leave(client)
    return [(each.ledgerId, each.entryId) for each in receipts]


def leave(client: Client) -> None:
    """The connection ends."""
    client.cnx.closed(client.box.now)
    client.box.turn()


def unload(box: Box) -> None:
    """Let everything be rows again."""
    for topic in box.broker.topics:
        box.broker.topics.unload(topic, lambda now: None, box.now)
    box.turn()
    box.advance(1)
    assert not list(box.broker.topics)


def ledgers(box: Box) -> list[int]:
    """The ledgers of all topics, oldest first."""
    return [int(key.rpartition("/")[2], 16) for key in box.broker.core.catalog.keys("ledger/")]


def exists(box: Box, name: str = TOPIC) -> bool:
    """Whether there is such a topic."""
    return box.broker.topics.exists(parse_topic(name))


def frames(client: Client) -> list[tuple[str, Any]]:
    """Take all frames: names of the commands, and what they say."""
    taken, client.inbox = client.inbox, []
    commands = [parse_command(data) for data, _ in taken]
    return [(COMMANDS[each.type].field, getattr(each, COMMANDS[each.type].field)) for each in commands]
