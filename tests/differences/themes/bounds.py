"""Namespace limits as seen by the official client, by exception class."""

from functools import partial
from typing import Any

import pulsar

from tests.differences.broker import Broker, path_of
from tests.differences.clients import EARLIEST, KINDS, drained, made_with, publish, told
from tests.differences.scenario import Steps, scenario
from tests.differences.themes.management.policies import namespace


def hasty(broker: Broker) -> Any:
    """Return a client with short timeouts for operations that it retries."""
    return broker.client(operation_timeout_seconds=3)


@scenario
def producers(broker: Broker) -> Steps:
    with namespace(broker, maxProducersPerTopic=1) as name:
        topic = made_with(broker, f"persistent://{name}/t")
        client = broker.client()
        first = client.create_producer(topic)
        yield "a second", told(lambda: client.create_producer(topic))
        first.close()
        yield "when the first has gone", told(lambda: client.create_producer(topic))
        broker.admin("POST", f"{path_of(topic)}/maxProducers", 3)
        broker.settle(1)
        yield "more at this topic", told(lambda: client.create_producer(topic))


@scenario
def consumers(broker: Broker) -> Steps:
    policies = {"maxConsumersPerTopic": 3, "maxConsumersPerSubscription": 2, "maxSubscriptionsPerTopic": 2}
    with namespace(broker, **policies) as name:
        topic = made_with(broker, f"persistent://{name}/t")
        client = broker.client()
        for number, sub in enumerate(("one", "one", "one", "two", "two", "three")):
            yield f"{number} of {sub}", told(partial(client.subscribe, topic, sub, consumer_type=KINDS["Shared"]))


@scenario
def unacked(broker: Broker) -> Steps:
    with namespace(broker, maxUnackedMessagesPerConsumer=5) as name:
        topic = made_with(broker, f"persistent://{name}/t", "s")
        publish(broker, topic, 20)
        consumer = broker.client().subscribe(topic, "s", consumer_type=KINDS["Shared"], receiver_queue_size=1)
        held: list[Any] = []
        yield "five, and those under way", len(_take(consumer, held, broker)) <= 7
        for message in held:
            consumer.acknowledge(message)
        yield "it goes on", bool(_take(consumer, held, broker))


def _take(consumer: Any, held: list[Any], broker: Broker) -> list[Any]:
    held.clear()
    try:
        while True:
            held.append(consumer.receive(timeout_millis=int(1000 * broker.patience)))
    except pulsar.Timeout:
        return held


@scenario
def encryption(broker: Broker) -> Steps:
    with namespace(broker, encryptionRequired=True) as name:
        topic = made_with(broker, f"persistent://{name}/t")
        yield "a plain producer", told(lambda: hasty(broker).create_producer(topic))


@scenario
def kinds(broker: Broker) -> Steps:
    with namespace(broker, subscriptionTypesEnabled=["Exclusive", "Shared"]) as name:
        topic = made_with(broker, f"persistent://{name}/t")
        for kind, number in KINDS.items():
            yield kind, told(partial(broker.client().subscribe, topic, kind, consumer_type=number))


@scenario
def creation(broker: Broker) -> Steps:
    with namespace(broker, autoTopicCreation={"allowAutoTopicCreation": False}) as name:
        topic = f"persistent://{name}/none"
        client = hasty(broker)
        yield "a producer", told(lambda: client.create_producer(topic))
        yield "a consumer", told(lambda: client.subscribe(topic, "s"))
        yield "a reader", told(lambda: client.create_reader(topic, pulsar.MessageId.earliest))
        made_with(broker, topic)
        broker.admin("POST", f"namespaces/{name}/autoSubscriptionCreation", {"allowAutoSubscriptionCreation": False})
        broker.settle(1)
        yield "a subscription", told(lambda: client.subscribe(topic, "s"))
        yield "a reader of what is there", told(lambda: client.create_reader(topic, pulsar.MessageId.earliest))


@scenario
def topics(broker: Broker) -> Steps:
    with namespace(broker, maxTopicsPerNamespace=1) as name:
        client = broker.client()
        yield "one", told(lambda: client.create_producer(f"persistent://{name}/one"))
        yield "two", told(lambda: client.create_producer(f"persistent://{name}/two"))


@scenario
def messages_that_are_sent_twice(broker: Broker) -> Steps:
    with namespace(broker, deduplication=True) as name:
        topic = made_with(broker, f"persistent://{name}/t", "s")
        broker.settle(1)
        client = broker.client()
        producer = client.create_producer(topic, producer_name="p", initial_sequence_id=0, batching_enabled=False)
        for sequence in (1, 2, 2, 1, 3):
            yield f"sequence id {sequence}", told(partial(producer.send, b"m%d" % sequence, sequence_id=sequence))
        producer.close()
        again = client.create_producer(topic, producer_name="p", batching_enabled=False)
        yield "it knows where it was", again.last_sequence_id()
        consumer = client.subscribe(topic, "s", initial_position=EARLIEST)
        yield "what is stored", drained(consumer, 0.5 * broker.patience)
        yield "unloaded", broker.admin("PUT", f"{path_of(topic)}/unload")[0]
        yield "after that", told(lambda: again.send(b"m3", sequence_id=3))
        consumer.close()
        last = client.subscribe(topic, "s")
        yield "nothing twice", drained(last, 0.5 * broker.patience)
