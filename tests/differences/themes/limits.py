"""Limits of unacknowledged messages and of consumers, set as topic policies."""

from typing import Any

from tests.differences.broker import Broker, path_of
from tests.differences.messages import batch, numbered
from tests.differences.scenario import Steps, scenario


def limited(broker: Broker, topic: str, policy: str, value: Any) -> Any:
    """Set a policy of the topic, wait until the broker applies it, and return the status of the request."""
    status = broker.admin("POST", f"{path_of(topic)}/{policy}", value)[0]
    broker.until(lambda: broker.admin("GET", f"{path_of(topic)}/{policy}")[1] == value, seconds=3)
    return status


@scenario
def unacked_messages_of_a_consumer(broker: Broker) -> Steps:
    topic = broker.topic()
    p, a, b = broker.wire("p"), broker.wire("a"), broker.wire("b")
    p.producer(topic)
    yield "limit of ten", limited(broker, topic, "maxUnackedMessagesOnConsumer", 10)
    broker.settle(0.5)
    a.subscribe(topic, 1, "Shared", name="a")
    a.flow(100)
    broker.forget()
    for payload in numbered(15):
        p.publish([payload])
    yield "fifteen messages", broker.shares()
    yield (
        "stats",
        broker.subscription(
            topic, "unackedMessages", "blockedSubscriptionOnUnackedMsgs", "consumers.blockedConsumerOnUnackedMsgs"
        ),
    )
    a.consumer_stats()
    yield "CONSUMER_STATS", broker.frames()
    for number in range(6):
        a.ack([a.ids[f"m{number}"]])
        yield f"m{number} is acknowledged", broker.shares()
    b.subscribe(topic, 1, "Shared", name="b")
    b.flow(100)
    yield "another joins", broker.shares()


@scenario
def unacked_messages_of_a_subscription(broker: Broker) -> Steps:
    topic = broker.topic()
    p, a = broker.wire("p"), broker.wire("a")
    p.producer(topic)
    yield "limit of ten", limited(broker, topic, "maxUnackedMessagesOnSubscription", 10)
    broker.settle(0.5)
    for number in (1, 2):
        a.subscribe(topic, number, "Shared", name=f"n{number}")
        a.flow(100, number)
    broker.forget()
    for payload in numbered(15):
        p.publish([payload])
        broker.settle()  # otherwise, reads in progress overshoot
    shares = broker.shares()
    yield "fifteen messages", shares
    yield (
        "stats",
        broker.subscription(
            topic, "unackedMessages", "blockedSubscriptionOnUnackedMsgs", "consumers.blockedConsumerOnUnackedMsgs"
        ),
    )
    for number in range(8):
        holder = 1 if f"m{number}" in shares.get("a1", []) else 2
        a.ack([a.ids[f"m{number}"]], holder)
        yield f"m{number} is acknowledged", broker.shares()


@scenario
def a_batch_above_the_limit(broker: Broker) -> Steps:
    topic = broker.topic()
    p, a = broker.wire("p"), broker.wire("a")
    p.producer(topic)
    limited(broker, topic, "maxUnackedMessagesOnConsumer", 3)
    broker.settle(0.5)
    a.subscribe(topic, 1, "Shared", name="a")
    a.flow(100)
    broker.forget()
    p.publish([batch("a", "b", "c", "d", "e")])
    p.publish(["single"])
    yield "a batch of five and a single one", broker.shares()
    a.redeliver()
    yield "all are given back", broker.frames()


@scenario
def numbers_of_consumers(broker: Broker) -> Steps:
    topic = broker.topic()
    a = broker.wire("a")
    a.producer(topic)
    yield "two a subscription", limited(broker, topic, "maxConsumersPerSubscription", 2)
    yield "three a topic", limited(broker, topic, "maxConsumers", 3)
    yield "one producer", limited(broker, topic, "maxProducers", 1)
    broker.settle(0.5)
    broker.forget()
    for number, sub in enumerate(("one", "one", "one", "two", "two")):
        a.subscribe(topic, number, "Shared", sub=sub)
        yield f"consumer {number} of {sub}", broker.frames()
    a.producer(topic, 2)
    yield "a second producer", broker.frames()


@scenario
def types_of_subscriptions(broker: Broker) -> Steps:
    topic = broker.topic()
    a = broker.wire("a")
    a.producer(topic)
    yield "Exclusive and Shared only", limited(broker, topic, "subscriptionTypesEnabled", ["Exclusive", "Shared"])
    broker.settle(0.5)
    broker.forget()
    for number, kind in enumerate(("Exclusive", "Shared", "Failover", "Key_Shared")):
        a.subscribe(topic, number, kind, sub=kind)
        yield kind, broker.frames()
        a.subscribe(topic, 10 + number, kind, sub=f"{kind}-reader", durable=False)
        yield f"{kind}, not durable", broker.frames()
