"""Message expiry, by policy and by request."""

import time
from datetime import timedelta
from typing import Any, Final

import pulsar

from tests.differences.broker import Broker, path_of
from tests.differences.clients import EARLIEST, KINDS, drained, made_with, policy, publish, span
from tests.differences.scenario import Steps, scenario, timed_scenario
from tests.differences.themes.management.policies import namespace

FIELDS: Final = ("msgBacklog", "totalMsgExpired", "unackedMessages")
POLICY_SECONDS: Final = 75.0
"""Pulsar checks this policy at most once a minute."""


def sent_again(broker: Broker, topic: str, sub: str = "s") -> Any:
    """Return the messages dispatched to a new consumer of the subscription."""
    consumer = broker.client().subscribe(topic, sub, consumer_type=KINDS["Shared"])
    got = drained(consumer, 0.5 * broker.patience)
    consumer.close()
    return got


@scenario
def by_request(broker: Broker) -> Steps:
    topic = made_with(broker, broker.topic(), "s", "other")
    publish(broker, topic, 6)
    broker.settle(2.2)
    publish(broker, topic, 2, start=6)
    at = f"{path_of(topic)}/subscription"
    yield "older than an hour", broker.admin("POST", f"{at}/s/expireMessages/3600")
    broker.settle(0.5)
    yield "nothing is", broker.subscription(topic, *FIELDS)
    yield "older than a second", broker.admin("POST", f"{at}/s/expireMessages/1")
    broker.settle(0.5)
    yield "six are", broker.subscription(topic, *FIELDS)
    yield "the other one has them", broker.subscription(topic, *FIELDS, sub="other")
    yield "a consumer gets the rest", sent_again(broker, topic)
    yield "again", broker.admin("POST", f"{at}/s/expireMessages/1")[0]
    yield "all subscriptions", broker.admin("POST", f"{path_of(topic)}/all_subscription/expireMessages/1")
    broker.settle(0.5)
    yield "now that one too", broker.subscription(topic, "msgBacklog", sub="other")
    yield "of none", broker.admin("POST", f"{at}/none/expireMessages/1")[0]
    yield "a time below 0", broker.admin("POST", f"{at}/s/expireMessages/-1")[0]


@scenario
def by_position(broker: Broker) -> Steps:
    topic = made_with(broker, broker.topic(), "s")
    a = broker.wire("a")
    a.producer(topic)
    a.publish([f"m{number}" for number in range(6)])
    third = a.ids["m2"]
    body = {"ledgerId": third.ledgerId, "entryId": third.entryId, "partitionIndex": -1}
    yield "up to the third", broker.admin("POST", f"{path_of(topic)}/subscription/s/expireMessages", body)
    broker.settle(0.5)
    yield "statistics", broker.subscription(topic, *FIELDS)
    yield "the rest", sent_again(broker, topic)


@scenario
def of_batches(broker: Broker) -> Steps:
    topic = made_with(broker, broker.topic(), "s")
    publish(broker, topic, 20, batch=5)
    broker.settle(2.2)
    publish(broker, topic, 5, batch=5, start=20)
    yield "backlog", broker.subscription(topic, *FIELDS)
    broker.admin("POST", f"{path_of(topic)}/subscription/s/expireMessages/1")
    broker.settle(0.5)
    yield "expired", broker.subscription(topic, *FIELDS)
    yield "the rest", sent_again(broker, topic)


@scenario
def while_a_consumer_has_them(broker: Broker) -> Steps:
    for kind in ("Exclusive", "Shared"):
        topic = made_with(broker, broker.topic(kind), "s")
        consumer = broker.client().subscribe(topic, "s", consumer_type=KINDS[kind], initial_position=EARLIEST)
        publish(broker, topic, 6)
        yield f"{kind}: it gets them", span(drained(consumer, 0.5 * broker.patience))
        broker.settle(2)
        publish(broker, topic, 1, start=6)
        yield f"{kind}: asked", broker.admin("POST", f"{path_of(topic)}/subscription/s/expireMessages/1")[0]
        broker.settle(0.5)
        yield f"{kind}: statistics", broker.subscription(topic, *FIELDS)
        consumer.redeliver_unacknowledged_messages()
        yield f"{kind}: given back", drained(consumer, 0.8 * broker.patience)


@scenario
def delayed_ones(broker: Broker) -> Steps:
    topic = made_with(broker, broker.topic(), "s")
    producer = broker.client().create_producer(topic, batching_enabled=False)
    consumer = broker.client().subscribe(topic, "s", consumer_type=KINDS["Shared"], initial_position=EARLIEST)
    producer.send(b"late", deliver_after=timedelta(hours=1))
    producer.send(b"soon")
    yield "one is held back", drained(consumer, 0.5 * broker.patience)
    broker.settle(2)
    broker.admin("POST", f"{path_of(topic)}/subscription/s/expireMessages/1")
    broker.settle(0.5)
    yield "both have expired", broker.subscription(topic, "msgBacklog", "msgDelayed")


def expires(broker: Broker, topic: str, sub: str = "s", left: int = 0) -> bool:
    """Return whether the backlog shrinks to ``left`` within one check interval of Pulsar."""
    deadline = time.monotonic() + POLICY_SECONDS
    while time.monotonic() < deadline:
        if broker.subscription(topic, "msgBacklog", sub=sub)["msgBacklog"] <= left:
            return True
        time.sleep(0.3)
    return False


@timed_scenario
def by_the_policy_of_a_topic(broker: Broker) -> Steps:
    topic = made_with(broker, broker.topic(), "s", "batches")
    yield "two seconds", broker.admin("POST", f"{path_of(topic)}/messageTTL?messageTTL=2")[0]
    publish(broker, topic, 6)
    publish(broker, topic, 10, batch=5, start=6)
    yield "they expire", expires(broker, topic)
    yield "statistics", broker.subscription(topic, *FIELDS)
    yield "of every subscription", expires(broker, topic, "batches")
    publish(broker, topic, 1, start=16)
    yield "a new one comes", sent_again(broker, topic)


@timed_scenario
def by_the_policy_of_a_namespace(broker: Broker) -> Steps:
    with namespace(broker, messageTTL=2) as name:
        one, two = (made_with(broker, f"persistent://{name}/{word}", "s") for word in ("one", "two"))
        yield "the topic's own goes first", broker.admin("POST", f"{path_of(two)}/messageTTL?messageTTL=600")[0]
        for topic in (one, two):
            publish(broker, topic, 6)
        yield "they expire", expires(broker, one)
        yield "these do not", broker.subscription(two, *FIELDS)


@timed_scenario
def by_policy_what_is_delayed_or_held(broker: Broker) -> Steps:
    late, held = (made_with(broker, broker.topic(word), "s") for word in ("late", "held"))
    producer = broker.client().create_producer(late, batching_enabled=False)
    for _ in range(3):
        producer.send(b"late", deliver_after=timedelta(hours=1))
    for topic in (late, held):
        broker.admin("POST", f"{path_of(topic)}/messageTTL?messageTTL=2")
    consumer = broker.client().subscribe(held, "s", consumer_type=KINDS["Shared"], initial_position=EARLIEST)
    publish(broker, held, 300)
    yield "held by a consumer", len(drained(consumer, 0.5 * broker.patience))
    yield "what is delayed expires", expires(broker, late)
    yield "what is held expires", expires(broker, held)
    consumer.redeliver_unacknowledged_messages()
    yield "and does not come again", drained(consumer, 0.8 * broker.patience)


@scenario
def readers_do_not_expire(broker: Broker) -> Steps:
    topic = made_with(broker, broker.topic())
    publish(broker, topic, 3)
    reader = broker.client().create_reader(topic, pulsar.MessageId.earliest)
    policy(broker, topic, "maxProducers", 3)
    yield "it reads what is there", drained(reader, 0.5 * broker.patience)
