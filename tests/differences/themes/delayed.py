"""Delayed messages with the official client."""

import time
from datetime import timedelta
from typing import Any, Final

from tests.differences.broker import Broker, path_of
from tests.differences.clients import EARLIEST, KINDS, Arrivals, drained, made_with, policy
from tests.differences.messages import Draft
from tests.differences.scenario import Steps, long, scenario

TICK_SECONDS: Final = 1.0


def later(broker: Broker, producer: Any, text: str, seconds: float) -> None:
    """Publish messages with the given delay, shortened at low patience."""
    producer.send(text.encode(), deliver_after=timedelta(seconds=seconds * min(1.0, broker.patience)))


@long
@scenario
def in_the_order_in_which_they_are_due(broker: Broker) -> Steps:
    for kind in ("Shared", "Key_Shared"):
        topic = made_with(broker, broker.topic(kind), "s")
        consumer = broker.client().subscribe(topic, "s", consumer_type=KINDS[kind], initial_position=EARLIEST)
        producer = broker.client().create_producer(topic, batching_enabled=False)
        for text, seconds in (("third", 7), ("second", 5), ("first", 3)):
            later(broker, producer, text, seconds)
        producer.send(b"at once")
        yield f"{kind}: at first", drained(consumer, 1.0 * broker.patience)
        yield f"{kind}: held back", broker.subscription(topic, "msgBacklog", "msgDelayed")
        yield f"{kind}: then", drained(consumer, 5 * min(1.0, broker.patience))


@scenario
def not_before_they_are_due(broker: Broker) -> Steps:
    topic = made_with(broker, broker.topic(), "s")
    arrivals = Arrivals(broker)
    arrivals.subscribe(topic)
    producer = broker.client().create_producer(topic, batching_enabled=False)
    producer.send(b"at once")
    for _ in range(5):
        later(broker, producer, "x", 4)
    yield "a tick early, or late, at most", arrivals.counts(4 - 2 * TICK_SECONDS, 4 + 2 * TICK_SECONDS)


@long
@scenario
def strictly_or_a_tick_early(broker: Broker) -> Steps:
    """``isDelayedDeliveryDeliverAtTimeStrict`` decides, and must be equal in both brokers: pass ``--set`` as well."""
    topic = made_with(broker, broker.topic(), "s")
    policy(broker, topic, "delayedDelivery", {"active": True, "tickTime": 4000})
    arrivals = Arrivals(broker)
    arrivals.subscribe(topic)
    producer = broker.client().create_producer(topic, batching_enabled=False)
    for _ in range(5):
        producer.send(b"x", deliver_after=timedelta(seconds=7))
    yield "four, one before, and four seconds behind it", arrivals.counts(1.5, 5.5, 11.0)


@scenario
def ordered_subscriptions_do_not_wait(broker: Broker) -> Steps:
    for kind in ("Exclusive", "Failover"):
        topic = made_with(broker, broker.topic(kind), "s")
        consumer = broker.client().subscribe(topic, "s", consumer_type=KINDS[kind], initial_position=EARLIEST)
        producer = broker.client().create_producer(topic, batching_enabled=False)
        later(broker, producer, "late", 60)
        yield kind, drained(consumer, 1.5 * broker.patience)


@scenario
def turned_off(broker: Broker) -> Steps:
    topic = made_with(broker, broker.topic(), "s")
    policy(broker, topic, "delayedDelivery", {"active": False, "tickTime": 1000})
    consumer = broker.client().subscribe(topic, "s", consumer_type=KINDS["Shared"], initial_position=EARLIEST)
    later(broker, broker.client().create_producer(topic, batching_enabled=False), "late", 60)
    yield "it comes", drained(consumer, 1.5 * broker.patience)


@scenario
def longer_than_allowed(broker: Broker) -> Steps:
    topic = made_with(broker, broker.topic(), "s")
    policy(broker, topic, "delayedDelivery", {"active": True, "tickTime": 1000, "maxDeliveryDelayInMillis": 5000})
    a = broker.wire("a")  # the official client resends rejected messages forever
    a.producer(topic)
    broker.forget()
    for word, seconds in (("allowed", 4), ("too long", 60), ("the next one", 0)):
        due = int((time.time() + seconds) * 1000)
        a.publish([Draft("x", metadata={"deliver_at_time": due} if seconds else {})])
        yield word, broker.frames()


@scenario
def in_batches(broker: Broker) -> Steps:
    topic = made_with(broker, broker.topic(), "s")
    consumer = broker.client().subscribe(topic, "s", consumer_type=KINDS["Shared"], initial_position=EARLIEST)
    producer = broker.client().create_producer(
        topic, batching_enabled=True, batching_max_publish_delay_ms=500, batching_max_messages=10
    )
    for text, seconds in (("a", 0.0), ("b", 3.0), ("c", 0.0)):
        options = {"deliver_after": timedelta(seconds=seconds * min(1.0, broker.patience))} if seconds else {}
        producer.send_async(text.encode(), lambda *_: None, **options)
    producer.flush()
    yield "at first", drained(consumer, 0.6 * broker.patience)
    yield "then", drained(consumer, 4 * min(1.0, broker.patience))


@scenario
def after_a_seek_and_an_unload(broker: Broker) -> Steps:
    topic = made_with(broker, broker.topic(), "s")
    consumer = broker.client().subscribe(topic, "s", consumer_type=KINDS["Shared"], initial_position=EARLIEST)
    producer = broker.client().create_producer(topic, batching_enabled=False)
    later(broker, producer, "late", 6)
    producer.send(b"now")
    yield "at first", drained(consumer, 0.6 * broker.patience)
    yield "unloaded", broker.admin("PUT", f"{path_of(topic)}/unload")[0]
    yield "again", drained(consumer, 1.0 * broker.patience)
    yield "when it is due", [text for text in drained(consumer, 6 * min(1.0, broker.patience)) if text == "late"]
