"""Retention of acknowledged messages, and of messages without subscriptions. Ledgers have ten entries in these
scenarios.
"""

import contextlib
from typing import Any, Final

import pulsar

from tests.differences.broker import Broker, path_of
from tests.differences.clients import EARLIEST, drained, made_with, policy, publish, read, span
from tests.differences.scenario import Steps, long, timed_scenario

COUNT: Final = 45
"""Number of messages: four full ledgers and one open ledger."""
LARGE: Final = 60_000
"""Bytes per message: a ledger has 0.57 MiB, all messages have 2.6 MiB."""
TRIMMED_SECONDS: Final = 3.0


def kept(minutes: int, megabytes: int) -> dict[str, int]:
    return {"retentionTimeInMinutes": minutes, "retentionSizeInMB": megabytes}


ROWS: Final = {
    "none": kept(0, 0),
    "for ever": kept(-1, -1),
    "by time": kept(10, -1),
    "by size": kept(-1, 1),
    "by both": kept(10, 1),
    "as the broker has it: a time and no size": None,
}


def consumed(broker: Broker, topic: str, count: int, sub: str = "s") -> None:
    """Acknowledge the given number of messages, then close the consumer."""
    consumer = broker.client().subscribe(topic, sub, initial_position=EARLIEST)
    with contextlib.suppress(pulsar.Timeout):  # the backlog then shows the failure
        for _ in range(count):
            consumer.acknowledge(consumer.receive(timeout_millis=10_000))
    broker.settle(0.5)
    consumer.close()


def filled(broker: Broker, word: str, row: Any, *subs: str, size: int = LARGE) -> str:
    """Return a topic with its messages and its policy."""
    topic = made_with(broker, broker.topic(word.partition(":")[0].replace(" ", "")), *subs)
    if row is not None:
        policy(broker, topic, "retention", row)
    publish(broker, topic, COUNT, size=size)
    return topic


@long
@timed_scenario
def acknowledged_up_to_the_last_ledger(broker: Broker) -> Steps:
    topics = {word: filled(broker, word, row, "s") for word, row in ROWS.items()}
    for topic in topics.values():
        consumed(broker, topic, 40)
    broker.settle(TRIMMED_SECONDS)
    for word, topic in topics.items():
        yield word, span(read(broker, topic))
        yield f"{word}: backlog", broker.subscription(topic, "msgBacklog")


@long
@timed_scenario
def not_acknowledged(broker: Broker) -> Steps:
    for word in ("none", "by size"):
        topic = filled(broker, word, ROWS[word], "s", "slow")
        consumed(broker, topic, COUNT)
        broker.settle(TRIMMED_SECONDS)
        yield f"{word}: one subscription has all of it", span(read(broker, topic))
        broker.admin("POST", f"{path_of(topic)}/subscription/slow/skip/20")
        broker.settle(TRIMMED_SECONDS)
        yield f"{word}: it has skipped twenty", span(read(broker, topic))


@long
@timed_scenario
def without_a_subscription(broker: Broker) -> Steps:
    topics = {word: filled(broker, word, row) for word, row in ROWS.items()}
    broker.settle(TRIMMED_SECONDS)
    for word, topic in topics.items():
        yield word, span(read(broker, topic))


@long
@timed_scenario
def all_acknowledged(broker: Broker) -> Steps:
    topics = {word: filled(broker, word, ROWS[word], "s") for word in ("none", "for ever", "by size")}
    for topic in topics.values():
        consumed(broker, topic, COUNT)
    broker.settle(TRIMMED_SECONDS)
    for word, topic in topics.items():
        yield word, span(read(broker, topic))
        consumer = broker.client().subscribe(topic, "later", initial_position=EARLIEST)
        yield f"{word}: a new subscription", span(drained(consumer, 0.5 * broker.patience))


@timed_scenario
def sought_back(broker: Broker) -> Steps:
    topic = filled(broker, "kept", ROWS["for ever"], "s", size=10)
    consumed(broker, topic, COUNT)
    consumer = broker.client().subscribe(topic, "s")
    consumer.seek(pulsar.MessageId.earliest)
    yield "what is kept comes again", span(drained(consumer, 0.5 * broker.patience))


@timed_scenario
def readers_hold_nothing(broker: Broker) -> Steps:
    topic = filled(broker, "none", ROWS["for ever"], "s", size=10)
    reader = broker.client().create_reader(topic, pulsar.MessageId.earliest, receiver_queue_size=1)
    yield "the first", drained(reader, most=1)
    policy(broker, topic, "retention", ROWS["none"])
    consumed(broker, topic, 40)
    broker.settle(TRIMMED_SECONDS)
    rest = drained(reader, 0.5 * broker.patience)
    yield "it goes on where its topic begins now", span(rest[-5:])
    yield "it was given no more than it had asked for", len(rest) < COUNT - 20


@timed_scenario
def a_policy_that_comes_later(broker: Broker) -> Steps:
    topic = filled(broker, "later", ROWS["for ever"], "s", size=10)
    consumed(broker, topic, 40)
    broker.settle(TRIMMED_SECONDS)
    yield "for ever", span(read(broker, topic))
    policy(broker, topic, "retention", ROWS["none"])
    broker.settle(TRIMMED_SECONDS)
    yield "none", span(read(broker, topic))


@timed_scenario
def expired_and_then_kept(broker: Broker) -> Steps:
    topic = filled(broker, "expired", ROWS["for ever"], "s", size=10)
    broker.settle(2)
    yield "expired", broker.admin("POST", f"{path_of(topic)}/subscription/s/expireMessages/1")[0]
    broker.settle(TRIMMED_SECONDS)
    yield "backlog", broker.subscription(topic, "msgBacklog")
    yield "a reader has all of it", span(read(broker, topic))


@timed_scenario
def trimmed_by_hand(broker: Broker) -> Steps:
    topic = filled(broker, "trim", ROWS["none"], "s", size=10)
    consumed(broker, topic, 20)
    yield "trim", broker.admin("POST", f"{path_of(topic)}/trim")
    broker.settle(TRIMMED_SECONDS)
    yield "what is left", span(read(broker, topic))
    yield "of a topic that is not there", broker.admin("POST", f"{path_of(topic)}-none/trim")[0]
