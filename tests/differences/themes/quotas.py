"""Backlog quotas: effect on producers, their resumption, and the result of an eviction."""

from typing import Any, Final

from tests.differences.broker import Broker, path_of
from tests.differences.clients import drained, made_with, policy, publish, read, span, told
from tests.differences.scenario import Steps, long, timed_scenario
from tests.differences.themes.management.policies import namespace
from tests.differences.themes.retention import consumed

SIZE: Final = 1000
LOOKED_SECONDS: Final = 2.5
HELD: Final = "producer_request_hold"
REFUSED: Final = "producer_exception"
EVICTED: Final = "consumer_backlog_eviction"


def by_size(limit: int, then: str) -> dict[str, Any]:
    return {"limitSize": limit, "limitTime": -1, "policy": then}


def by_age(seconds: int, then: str) -> dict[str, Any]:
    return {"limitSize": -1, "limitTime": seconds, "policy": then}


def limited(broker: Broker, topic: str, quota: dict[str, Any], kind: str = "destination_storage") -> None:
    broker.admin("POST", f"{path_of(topic)}/backlogQuota?backlogQuotaType={kind}", quota)
    broker.settle(1)


def sends(broker: Broker, producer: Any) -> str:
    return told(lambda: producer.send(b"x" * SIZE))


def new_producer(broker: Broker, topic: str) -> str:
    return told(lambda: broker.client(operation_timeout_seconds=3).create_producer(topic).close())


@long
@timed_scenario
def by_size_and_held(broker: Broker) -> Steps:
    yield from _stopped(broker, by_size(10 * SIZE, HELD), "destination_storage")


@timed_scenario
def by_size_and_refused(broker: Broker) -> Steps:
    yield from _stopped(broker, by_size(10 * SIZE, REFUSED), "destination_storage")


@long
@timed_scenario
def by_age_and_held(broker: Broker) -> Steps:
    yield from _stopped(broker, by_age(2, HELD), "message_age")


@timed_scenario
def by_age_and_refused(broker: Broker) -> Steps:
    yield from _stopped(broker, by_age(2, REFUSED), "message_age")


def _stopped(broker: Broker, quota: dict[str, Any], kind: str) -> Steps:
    topic = made_with(broker, broker.topic(), "s")
    limited(broker, topic, quota, kind)
    producer = broker.client().create_producer(topic, batching_enabled=False, send_timeout_millis=4000)
    for _ in range(5):
        producer.send(b"x" * SIZE)
    yield "below the limit, by size", broker.subscription(topic, "msgBacklog")
    publish(broker, topic, 5, size=SIZE, start=5)  # the tenth message reaches the limit
    broker.settle(LOOKED_SECONDS + 2)
    found = sends(broker, producer)
    if quota["policy"] == REFUSED:  # a reconnect within the time-out reports the reason
        found = "it is kept away" if found in ("Timeout", "ProducerBlockedQuotaExceededException") else found
    yield "it sends", found
    yield "another one comes", new_producer(broker, topic)
    consumed(broker, topic, 10)
    broker.settle(LOOKED_SECONDS)
    yield "another one, when all is consumed", new_producer(broker, topic)
    late = broker.client().create_producer(topic, batching_enabled=False, send_timeout_millis=4000)
    yield "a message", sends(broker, late)


@timed_scenario
def held_and_let_go(broker: Broker) -> Steps:
    topic = made_with(broker, broker.topic(), "s")
    limited(broker, topic, by_size(10 * SIZE, HELD))
    producer = broker.client().create_producer(topic, batching_enabled=False, send_timeout_millis=60_000)
    for _ in range(10):
        producer.send_async(b"x" * SIZE, lambda *_: None)
    broker.settle(LOOKED_SECONDS)
    results: list[str] = []
    for _ in range(3):
        producer.send_async(b"x" * SIZE, lambda result, _: results.append(result.name))
    broker.settle(LOOKED_SECONDS)
    yield "they wait", list(results)
    yield "skipped", broker.admin("POST", f"{path_of(topic)}/subscription/s/skip_all")[0]
    yield "they go on", broker.until(lambda: len(results) == 3, seconds=20)
    yield "and are stored", results
    consumer = broker.client().subscribe(topic, "s")
    yield "once", len(drained(consumer, 0.8 * broker.patience))


@long
@timed_scenario
def let_go_by_a_policy(broker: Broker) -> Steps:
    for word, method, path in (
        ("quota is taken away", "DELETE", "backlogQuota"),
        ("subscription is deleted", "DELETE", "subscription/s?force=true"),
        ("backlog is skipped", "POST", "subscription/s/skip_all"),
    ):
        topic = made_with(broker, broker.topic(word.replace(" ", "")), "s")
        limited(broker, topic, by_size(5 * SIZE, REFUSED))
        publish(broker, topic, 5, size=SIZE)
        broker.settle(LOOKED_SECONDS)
        yield f"before the {word}", new_producer(broker, topic)
        broker.admin(method, f"{path_of(topic)}/{path}")
        broker.settle(LOOKED_SECONDS)
        yield f"after the {word}", new_producer(broker, topic)


@timed_scenario
def eviction_by_size(broker: Broker) -> Steps:
    topic = made_with(broker, broker.topic(), "s", "quick")
    limited(broker, topic, by_size(20 * SIZE, EVICTED))
    producer = broker.client().create_producer(topic, batching_enabled=False, send_timeout_millis=4000)
    for start in range(0, 45, 15):
        publish(broker, topic, 15, size=SIZE, start=start)
        consumed(broker, topic, 15, "quick")
    broker.settle(LOOKED_SECONDS)
    yield "a producer goes on", sends(broker, producer)
    left = broker.subscription(topic, "msgBacklog")["msgBacklog"]
    yield "at most what fits is left", 0 < left <= 20
    yield "the quicker one has what is new", broker.subscription(topic, "msgBacklog", sub="quick")
    consumer = broker.client().subscribe(topic, "s")
    got = drained(consumer, 0.8 * broker.patience)
    yield "the newest are left", [len(got) == left, got[-1][:1]]


@timed_scenario
def eviction_by_age(broker: Broker) -> Steps:
    topic = made_with(broker, broker.topic(), "s")
    limited(broker, topic, by_age(3, EVICTED), "message_age")
    publish(broker, topic, 20)
    broker.settle(5)
    publish(broker, topic, 3, start=20)
    broker.settle(1.5)
    consumer = broker.client().subscribe(topic, "s")
    yield "the young ones are left", drained(consumer, 0.8 * broker.patience)


@timed_scenario
def of_a_namespace(broker: Broker) -> Steps:
    with namespace(broker, backlogQuota=by_size(5 * SIZE, REFUSED)) as name:
        one, two = (made_with(broker, f"persistent://{name}/{word}", "s") for word in ("one", "two"))
        limited(broker, two, by_size(1 << 20, REFUSED))
        for topic in (one, two):
            publish(broker, topic, 5, size=SIZE)
        broker.settle(LOOKED_SECONDS)
        yield "the namespace's", new_producer(broker, one)
        yield "the topic's own", new_producer(broker, two)


@timed_scenario
def without_a_subscription(broker: Broker) -> Steps:
    topic = made_with(broker, broker.topic())
    policy(broker, topic, "retention", {"retentionTimeInMinutes": -1, "retentionSizeInMB": -1})
    limited(broker, topic, by_size(5 * SIZE, REFUSED))
    publish(broker, topic, 8, size=SIZE)
    broker.settle(LOOKED_SECONDS)
    yield "there is no backlog", new_producer(broker, topic)
    yield "what is kept", span(read(broker, topic))


@timed_scenario
def delayed_ones_count(broker: Broker) -> Steps:
    topic = made_with(broker, broker.topic(), "s")
    limited(broker, topic, by_size(5 * SIZE, REFUSED))
    producer = broker.client().create_producer(topic, batching_enabled=False)
    for _ in range(8):
        told(lambda: producer.send(b"x" * SIZE, deliver_at=2_000_000_000_000))
    broker.settle(LOOKED_SECONDS)
    yield "a producer", new_producer(broker, topic)
    yield "statistics", broker.stats(topic).get("backlogQuotaLimitSize")
