"""Admission of clients to a topic: each limit at each level, with Pulsar's codes and texts, changed at runtime."""

from typing import Any

import pytest

from pulsarbox.broker.topic.topic import PersistentTopic
from pulsarbox.errors import Conflict, PreconditionFailed
from pulsarbox.names import parse_topic
from pulsarbox.protocol.PulsarApi_pb2 import CommandSubscribe, EncryptionKeys
from tests.unit.broker.playbook import TOPIC, Box

NAMESPACE = "public/default"
OTHER = "non-persistent://public/default/t"
SYSTEM = "persistent://public/default/__change_events"
SHARED = CommandSubscribe.Shared
BUSY, NOT_ALLOWED, NOT_FOUND = 5, 22, 11
LIMITS = {
    "producers": ("maxProducersPerTopic", "max_producers_per_topic", "maxProducerPerTopic"),
    "consumers": ("maxConsumersPerTopic", "max_consumers_per_topic", "maxConsumerPerTopic"),
    "of one": ("maxConsumersPerSubscription", "max_consumers_per_subscription", "maxConsumersPerSubscription"),
    "subscriptions": ("maxSubscriptionsPerTopic", "max_subscriptions_per_topic", "maxSubscriptionsPerTopic"),
}


def limited(what: str, level: str, value: int = 2) -> Box:
    """Build a box with a limit at one level and higher limits at the levels above."""
    setting, of_namespace, of_topic = LIMITS[what]
    settings: dict[str, Any] = {setting: value if level == "broker" else 9}
    box = Box(**settings)
    if level == "topic":
        box.broker.tenants.set_policy(NAMESPACE, of_namespace, 8, box.now)
        box.broker.policies.set_topic(parse_topic(TOPIC), of_topic, value, box.now)
        box.broker.policies.set_topic(parse_topic(OTHER), of_topic, value, box.now)
    elif level == "namespace":
        box.broker.tenants.set_policy(NAMESPACE, of_namespace, value, box.now)
    return box


def refusal(reply: Any) -> tuple[int, str] | None:
    return (reply.error, reply.message) if hasattr(reply, "error") else None


levels = pytest.mark.parametrize("level", ["broker", "namespace", "topic"])
topics = pytest.mark.parametrize("topic", [TOPIC, OTHER])


@levels
@topics
def test_producers(level: str, topic: str) -> None:
    client = limited("producers", level).client()
    assert [refusal(client.producer(i, topic)) for i in (1, 2)] == [None, None]
    assert refusal(client.producer(3, topic)) == (16, f"Topic '{topic}' reached max producers limit")
    client.request("close_producer", producer_id=1)
    assert refusal(client.producer(3, topic)) is None


@levels
@topics
def test_consumers_of_a_topic(level: str, topic: str) -> None:
    client = limited("consumers", level).client()
    for i in (1, 2):
        assert refusal(client.subscribe(f"s{i}", i, topic)) is None
    assert refusal(client.subscribe("s3", 3, topic)) == (BUSY, "Topic reached max consumers limit")
    client.request("close_consumer", consumer_id=1)
    assert refusal(client.subscribe("s3", 3, topic)) is None


@levels
@topics
@pytest.mark.parametrize("kind", [SHARED, CommandSubscribe.Failover, CommandSubscribe.Key_Shared])
def test_consumers_of_a_subscription(level: str, topic: str, kind: Any) -> None:
    client = limited("of one", level).client()
    for i in (1, 2):
        assert refusal(client.subscribe("s", i, topic, subType=kind)) is None
    assert refusal(client.subscribe("s", 3, topic, subType=kind)) == (BUSY, "Subscription reached max consumers limit")
    assert refusal(client.subscribe("other", 3, topic, subType=kind)) is None


@levels
def test_subscriptions(level: str) -> None:
    box = limited("subscriptions", level)
    client = box.client()
    for i in (1, 2):
        assert refusal(client.subscribe(f"s{i}", i, durable=i == 1)) is None
    text = f"Exceed the maximum number of subscriptions of the topic: {TOPIC}"
    assert refusal(client.subscribe("s3", 3)) == (NOT_ALLOWED, text)
    assert refusal(client.subscribe("s4", 4, durable=False)) == (NOT_ALLOWED, text)
    assert refusal(client.producer(5, initial_subscription_name="s5")) == (NOT_ALLOWED, text)
    client.request("close_consumer", consumer_id=1)
    assert refusal(client.subscribe("s1", 3)) is None, "one that is there is no other one"


def test_limits_are_of_each_partition() -> None:
    box = limited("producers", "namespace", 1)
    box.broker.topics.create_partitioned(parse_topic("p"), 2, box.now)
    client = box.client()
    parts = [f"persistent://public/default/p-partition-{i}" for i in range(2)]
    assert [refusal(client.producer(i, part)) for i, part in enumerate(parts)] == [None, None]
    assert refusal(client.producer(5, parts[1])) is not None


def test_topics_that_pulsar_keeps_for_itself_have_no_limits() -> None:
    box = Box(
        maxProducersPerTopic=1, maxConsumersPerTopic=1, maxSubscriptionsPerTopic=1, encryptionRequireOnProducer=True
    )
    box.broker.topics.of_box(parse_topic(SYSTEM), box.now)
    client = box.client()
    assert [refusal(client.producer(i, SYSTEM)) for i in (1, 2)] == [None, None]
    assert [refusal(client.subscribe(f"s{i}", i, SYSTEM)) for i in (3, 4)] == [None, None]


def test_a_limit_that_is_lowered_sends_nobody_away_and_one_that_is_taken_away_lets_in() -> None:
    box = Box()
    client, policies = box.client(), box.broker.policies
    assert [refusal(client.producer(i)) for i in (1, 2)] == [None, None]
    policies.set_topic(parse_topic(TOPIC), "maxProducerPerTopic", 1, box.now)
    assert refusal(client.producer(3)) is not None
    client.send(0, producer_id=2)
    assert client.names() == ["send_receipt"]
    policies.set_topic(parse_topic(TOPIC), "maxProducerPerTopic", 0, box.now)
    assert refusal(client.producer(3)) is None


# Topics per namespace


@pytest.mark.parametrize("level", ["broker", "namespace"])
def test_topics_of_a_namespace(level: str) -> None:
    box = Box(maxTopicsPerNamespace=3 if level == "broker" else 0)
    if level == "namespace":
        box.broker.tenants.set_policy(NAMESPACE, "max_topics_per_namespace", 3, box.now)
    topics, client = box.broker.topics, box.client()
    topics.create(parse_topic("__change_events"), box.now)
    topics.create_partitioned(parse_topic("p"), 2, box.now)
    with pytest.raises(PreconditionFailed, match="Exceed maximum number of topics in namespace"):
        topics.create_partitioned(parse_topic("q"), 2, box.now)
    assert refusal(client.producer(1, "persistent://public/default/a")) is None
    refused = (NOT_ALLOWED, "Exceed maximum number of topics in namespace.")
    assert refusal(client.producer(2, "persistent://public/default/b")) == refused
    with pytest.raises(Conflict, match="Exceed maximum number"):
        topics.create(parse_topic("c"), box.now)
    assert refusal(client.producer(2, "non-persistent://public/default/b")) is None
    topics.delete(parse_topic("a"), box.now, force=True)
    assert refusal(client.producer(3, "persistent://public/default/b")) is None


# Messages


@topics
def test_the_size_of_messages(topic: str) -> None:
    box = Box()
    client = box.client()
    client.producer(1, topic)
    client.send(0, b"x" * 200)
    box.broker.policies.set_topic(parse_topic(topic), "maxMessageSize", 100, box.now)
    client.send(1, b"x" * 200)
    client.send(2, b"x")
    client.send(3, b"x" * 200, uuid="u", num_chunks_from_msg=2, chunk_id=0)
    assert client.take("send_receipt").sequence_id == 0
    error = client.take("send_error")
    assert (error.sequence_id, error.error, error.message) == (1, NOT_ALLOWED, "Exceed maximum message size")
    assert client.names() == ["send_receipt", "send_receipt"]
    box.broker.policies.set_topic(parse_topic(topic), "maxMessageSize", None, box.now)
    client.send(4, b"x" * 200)
    assert client.names() == ["send_receipt"]


@topics
def test_encryption(topic: str) -> None:
    box = Box()
    box.broker.tenants.set_policy(NAMESPACE, "encryption_required", True, box.now)
    client = box.client()
    assert refusal(client.producer(1, topic)) == (NOT_ALLOWED, f"Encryption is required in {topic}")
    assert refusal(client.producer(1, topic, encrypted=True)) is None
    client.send(0)
    client.send(1, encryption_keys=[EncryptionKeys(key="k", value=b"v")])
    error = client.take("send_error")
    assert (error.sequence_id, error.error, error.message) == (0, NOT_ALLOWED, "Messages must be encrypted")
    assert client.names() == ["send_receipt"]


def test_who_does_not_encrypt_goes_when_it_is_asked_for() -> None:
    box = Box()
    client = box.client()
    client.producer(1)
    client.producer(2, encrypted=True)
    box.broker.tenants.set_policy(NAMESPACE, "encryption_required", True, box.now)
    box.turn()
    assert client.take("close_producer").producer_id == 1
    assert client.inbox == []
    assert refusal(client.producer(3)) is not None
    box.broker.tenants.set_policy(NAMESPACE, "encryption_required", False, box.now)
    assert refusal(client.producer(3)) is None


# Automatic creation


@pytest.mark.parametrize("allowed", [False, True])
def test_topics_that_clients_make(allowed: bool) -> None:
    box = Box(allowAutoTopicCreation=not allowed)
    override = {"allowAutoTopicCreation": allowed, "topicType": "partitioned", "defaultNumPartitions": 3}
    box.broker.tenants.set_policy(NAMESPACE, "autoTopicCreationOverride", override, box.now)
    client = box.client()
    found = client.request("partitionMetadata", topic="public/default/new", metadata_auto_creation_enabled=True)
    assert found.partitions == (3 if allowed else 0)
    assert box.broker.topics.partitions(parse_topic("new")) == (3 if allowed else 0)
    reply = client.producer(1, "persistent://public/default/plain")
    assert refusal(reply) == (None if allowed else (NOT_FOUND, f"Topic {reply_topic('plain')} does not exist"))


def reply_topic(local: str) -> str:
    return f"persistent://public/default/{local}"


@pytest.mark.parametrize("level", ["namespace", "topic"])
def test_subscriptions_that_clients_make(level: str) -> None:
    box = Box()
    override = {"allowAutoSubscriptionCreation": False}
    if level == "topic":
        box.broker.policies.set_topic(parse_topic(TOPIC), "autoSubscriptionCreationOverride", override, box.now)
    else:
        box.broker.tenants.set_policy(NAMESPACE, "autoSubscriptionCreationOverride", override, box.now)
    client = box.client()
    assert refusal(client.subscribe()) is not None
    assert refusal(client.subscribe(durable=False)) is None, "a reader's goes with it"
    assert refusal(client.producer(1, initial_subscription_name="i")) is not None
    topic = box.broker.topics.find(parse_topic(TOPIC), box.now)
    assert isinstance(topic, PersistentTopic)
    topic.subscribe("made", earliest=True, properties={}, now=box.now)
    assert refusal(client.subscribe("made", 2)) is None


@pytest.mark.parametrize("level", ["namespace", "topic"])
def test_types_of_subscriptions(level: str) -> None:
    box = Box(subscriptionTypesEnabled="Exclusive")
    client, policies = box.client(), box.broker.policies
    if level == "topic":
        box.broker.tenants.set_policy(NAMESPACE, "subscription_types_enabled", ["Failover"], box.now)
        policies.set_topic(parse_topic(TOPIC), "subscriptionTypesEnabled", ["Shared", "Key_Shared"], box.now)
    else:
        box.broker.tenants.set_policy(NAMESPACE, "subscription_types_enabled", ["Shared", "Key_Shared"], box.now)
    text = f"Topic[{{{TOPIC}}}] doesn't support Exclusive sub type!"
    assert refusal(client.subscribe()) == (NOT_ALLOWED, text)
    assert refusal(client.subscribe("a", 2, subType=SHARED)) is None
    assert refusal(client.subscribe("b", 3, subType=CommandSubscribe.Key_Shared)) is None
    assert refusal(client.subscribe("c", 4, OTHER, subType=CommandSubscribe.Failover)) is None


# Deduplication


def test_deduplication_of_a_topic_or_a_namespace() -> None:
    box = Box()
    client = box.client()
    client.producer(1, producer_name="p")

    def sent_again() -> bool:
        client.send(5)
        client.send(5)
        ids = [client.take("send_receipt").message_id.entryId for _ in range(2)]
        return bool(ids[1] == 2**64 - 1)

    assert not sent_again()
    box.broker.tenants.set_policy(NAMESPACE, "deduplicationEnabled", True, box.now)
    assert sent_again()
    box.broker.policies.set_topic(parse_topic(TOPIC), "deduplicationEnabled", False, box.now)
    assert not sent_again()
    box.broker.policies.set_topic(parse_topic(TOPIC), "deduplicationEnabled", None, box.now)
    assert sent_again()


# Unacknowledged messages


def test_what_a_consumer_may_hold_follows_its_policy_at_once() -> None:
    box = Box()
    client, policies = box.client(), box.broker.policies
    positions = client.publish(20)
    policies.set_topic(parse_topic(TOPIC), "maxUnackedMessagesOnConsumer", 4, box.now)
    client.subscribe(subType=SHARED)
    client.flow(100)
    assert client.received() == positions[:4]
    policies.set_topic(parse_topic(TOPIC), "maxUnackedMessagesOnConsumer", 6, box.now)
    box.turn()
    assert client.received() == positions[4:6]
    policies.set_topic(parse_topic(TOPIC), "maxUnackedMessagesOnConsumer", None, box.now)
    box.broker.tenants.set_policy(NAMESPACE, "max_unacked_messages_per_consumer", 0, box.now)
    box.turn()
    assert client.received() == positions[6:]


def test_what_a_subscription_may_hold_follows_its_policy_at_once() -> None:
    box = Box(dispatcherMaxRoundRobinBatchSize=1)
    client, policies = box.client(), box.broker.policies
    box.broker.tenants.set_policy(NAMESPACE, "max_unacked_messages_per_subscription", 5, box.now)
    for consumer_id in (1, 2):
        client.subscribe(consumer_id=consumer_id, subType=SHARED)
        client.flow(100, consumer_id)
    positions = box.client().publish(20)
    assert len(client.received()) == 5
    policies.set_topic(parse_topic(TOPIC), "maxUnackedMessagesOnSubscription", 8, box.now)
    box.turn()
    assert len(client.received()) == 3
    policies.set_topic(parse_topic(TOPIC), "maxUnackedMessagesOnSubscription", 0, box.now)
    box.turn()
    assert len(client.received()) == len(positions) - 8


@pytest.mark.parametrize(
    ("reached", "other"),
    [
        ({"maxUnackedMessagesPerConsumer": 4}, "maxUnackedMessagesOnSubscription"),
        (
            {"maxUnackedMessagesPerSubscription": 4, "dispatcherMaxRoundRobinBatchSize": 1},
            "maxUnackedMessagesOnConsumer",
        ),
    ],
    ids=["consumer", "subscription"],
)
def test_another_limit_lets_nobody_go_that_has_reached_its_own(reached: dict[str, Any], other: str) -> None:
    box = Box(**reached)
    client, policies = box.client(), box.broker.policies
    positions = client.publish(20)
    client.subscribe(subType=SHARED)
    client.flow(100)
    assert client.received() == positions[:4]
    client.ack(positions[0])
    for limit in (10, 0):
        policies.set_topic(parse_topic(TOPIC), other, limit, box.now)
        box.turn()
        assert client.received() == []
    client.ack(positions[1])
    assert client.received() == positions[4:6]


# Restarts


def test_policies_are_kept_over_a_restart() -> None:
    box = limited("producers", "topic", 1)
    box.broker.tenants.set_policy(NAMESPACE, "encryption_required", True, box.now)
    box.turn()
    client = box.restart().client()
    assert refusal(client.producer(1)) == (NOT_ALLOWED, f"Encryption is required in {TOPIC}")
    assert refusal(client.producer(1, encrypted=True)) is None
    assert refusal(client.producer(2, encrypted=True)) == (16, f"Topic '{TOPIC}' reached max producers limit")
