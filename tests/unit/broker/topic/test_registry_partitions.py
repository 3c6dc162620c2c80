"""Partitioned topics that grow while in use: ``broker.topic.registry``, ``broker.handlers.lookup``."""

import pytest

from pulsarbox.broker.topic.topic import PersistentTopic
from pulsarbox.names import parse_topic
from tests.unit.broker.playbook import TOPIC, Box, Client

NAME = parse_topic(TOPIC)


def partitions(client: Client, topic: str = TOPIC) -> int:
    """Return the partition count that a client receives."""
    reply = client.request("partitionMetadata", topic=topic)
    assert isinstance(reply.partitions, int)
    return reply.partitions


def partitioned(count: int = 2) -> Box:
    box = Box()
    box.broker.topics.create_partitioned(NAME, count, box.now)
    box.turn()
    return box


def grow(box: Box, count: int) -> None:
    box.broker.topics.grow(NAME, count, box.now)
    box.turn()


def subscriptions(box: Box, number: int) -> dict[str, dict[str, str]]:
    """Return the subscriptions of a partition with their properties."""
    topic = box.broker.topics.find(NAME.partition(number), box.now)
    assert isinstance(topic, PersistentTopic)
    return {each.name: each.properties for each in topic.subscriptions.values()}


@pytest.mark.parametrize("topic", [TOPIC, TOPIC.replace("persistent", "non-persistent")])
def test_clients_that_ask_again_are_told_of_more_and_may_use_them(topic: str) -> None:
    box = Box()
    box.broker.topics.create_partitioned(parse_topic(topic), 1, box.now)
    box.turn()
    client = box.client()
    client.producer(1, f"{topic}-partition-0")
    assert partitions(client, topic) == 1
    refused = client.producer(2, f"{topic}-partition-1")
    assert (refused.error, refused.message) == (11, f"Topic not found {topic}-partition-1")
    box.broker.topics.grow(parse_topic(topic), 3, box.now)
    box.turn()
    assert partitions(client, topic) == 3
    assert client.producer(2, f"{topic}-partition-2").producer_name
    client.send(0, producer_id=1)
    assert client.names() == ["send_receipt"]  # no client was disconnected


def test_the_number_is_not_told_before_it_is_durable() -> None:
    box = partitioned()
    client = box.client()
    box.auto = False
    grow(box, 3)
    client.ask("partitionMetadata", topic=TOPIC, request_id=1)
    assert client.names() == []
    box.commit()
    assert client.take("partitionMetadataResponse").partitions == 3
    assert partitions(box.restart().client()) == 3


def test_new_partitions_have_the_subscriptions_of_the_first_from_the_start() -> None:
    box = partitioned()
    client = box.client()
    for number in (0, 1):
        properties = [{"key": "k", "value": "v"}]
        client.subscribe(
            "kept", number, f"{TOPIC}-partition-{number}", initialPosition=0, subscription_properties=properties
        )
        client.subscribe("fleeting", 10 + number, f"{TOPIC}-partition-{number}", durable=False)
    client.names()
    grow(box, 4)
    assert [subscriptions(box, number) for number in (2, 3)] == [{"kept": {"k": "v"}}] * 2
    sent = client.publish(3, f"{TOPIC}-partition-3")
    after = box.restart()
    reader = after.client()
    reader.subscribe("kept", 1, f"{TOPIC}-partition-3", initialPosition=0)
    reader.flow(10)
    assert reader.received() == sent


def test_a_subscription_that_an_old_partition_lacks_comes_there_too_and_others_stay_where_they_are() -> None:
    box = partitioned()
    client = box.client()
    sent = [client.publish(2, f"{TOPIC}-partition-{number}") for number in (0, 1)]
    client.subscribe("s", 1, f"{TOPIC}-partition-0")
    client.flow(10)
    client.received()
    client.ack(*sent[0])
    client.request("close_consumer", consumer_id=1)
    grow(box, 2)
    for number, expected in ((0, []), (1, sent[1])):
        client.subscribe("s", 2, f"{TOPIC}-partition-{number}")
        client.flow(10, 2)
        assert client.received() == expected
        client.request("close_consumer", consumer_id=2)


def test_a_partition_that_is_missing_is_made_again() -> None:
    box = partitioned()
    client = box.client()
    client.subscribe("s", 1, f"{TOPIC}-partition-0")
    box.broker.topics.delete(NAME.partition(1), box.now, force=True)
    grow(box, 2)
    assert subscriptions(box, 1) == {"s": {}}


def test_what_is_no_topic_of_its_own_cannot_be_used_as_one() -> None:
    box = partitioned()
    client = box.client()
    other = TOPIC + "2-partition-0"
    for ask in (client.producer, lambda number, topic: client.subscribe("s", number, topic)):
        refused = ask(1, TOPIC)
        assert refused.error == 22
        assert refused.message == f"Found partitioned metadata for non-partitioned topic: {TOPIC}"
        refused = ask(1, other)
        assert refused.error == 22
        assert refused.message == f"Partition metadata not found for the partitioned topic: {other}"
    assert not box.broker.topics.exists(parse_topic(other))


def test_a_partition_beyond_the_last_is_not_found() -> None:
    client = partitioned(2).client()
    reply = client.request("partitionMetadata", topic=f"{TOPIC}-partition-7")
    assert (reply.error, reply.message) == (11, f"Topic {TOPIC}-partition-7 not found")
    assert partitions(client, f"{TOPIC}-partition-1") == 0
