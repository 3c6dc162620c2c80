"""Subscriptions: types, acknowledgement and redelivery."""

import contextlib
import json
import re
from collections.abc import Callable
from typing import Any

import pulsar
import pytest

from tests.e2e.clients import EARLIEST, admin_path, is_quiet, numbered, receive, send_all, take, until
from tests.e2e.conftest import Running

SHARED = pulsar.ConsumerType.Shared
FAILOVER = pulsar.ConsumerType.Failover
KEY_SHARED = pulsar.ConsumerType.KeyShared


def test_exclusive_means_one_consumer(client: Any, topic: str) -> None:
    first = client.subscribe(topic, "s")
    with pytest.raises(pulsar.ConsumerBusy):
        client.subscribe(topic, "s")
    first.close()
    client.subscribe(topic, "s")


def test_a_type_that_differs_is_refused(client: Any, topic: str) -> None:
    client.subscribe(topic, "s", SHARED)
    with pytest.raises(pulsar.ConsumerBusy):
        client.subscribe(topic, "s", FAILOVER)


def test_the_initial_position_counts_for_a_new_subscription_only(client: Any, topic: str) -> None:
    producer = client.create_producer(topic)
    send_all(producer, numbered(3))
    latest = client.subscribe(topic, "latest")
    earliest = client.subscribe(topic, "earliest", initial_position=EARLIEST)
    send_all(producer, numbered(1, start=3))
    assert take(latest, 1) == numbered(1, start=3)
    assert take(earliest, 4) == numbered(4)
    earliest.close()
    assert is_quiet(client.subscribe(topic, "earliest", initial_position=EARLIEST))


def test_each_subscription_gets_everything(client: Any, topic: str) -> None:
    consumers = [client.subscribe(topic, f"s{number}") for number in range(3)]
    send_all(client.create_producer(topic), numbered(10))
    assert [take(consumer, 10) for consumer in consumers] == [numbered(10)] * 3


def test_unsubscribed_and_subscribed_again_is_a_new_subscription(client: Any, topic: str) -> None:
    consumer = client.subscribe(topic, "s")
    send_all(client.create_producer(topic), numbered(3))
    assert take(consumer, 1) == numbered(1)
    consumer.unsubscribe()
    again = client.subscribe(topic, "s", initial_position=EARLIEST)
    assert take(again, 3) == numbered(3)


def test_what_was_not_acknowledged_comes_again_to_the_next_consumer(client: Any, topic: str) -> None:
    consumer = client.subscribe(topic, "s", SHARED)
    send_all(client.create_producer(topic), numbered(6))
    messages = [receive(consumer) for _ in range(6)]
    for message in messages[::2]:
        consumer.acknowledge(message)
    consumer.close()
    again = client.subscribe(topic, "s", SHARED)
    assert take(again, 3) == [b"1", b"3", b"5"]
    assert is_quiet(again)


def test_a_negative_acknowledgement_brings_it_again_and_counts(client: Any, topic: str) -> None:
    consumer = client.subscribe(topic, "s", SHARED, negative_ack_redelivery_delay_ms=100)
    send_all(client.create_producer(topic), numbered(3))
    for count in range(2):
        messages = [receive(consumer) for _ in range(3)]
        assert {message.data() for message in messages} == set(numbered(3))
        assert {message.redelivery_count() for message in messages} == {count}
        for message in messages:
            consumer.negative_acknowledge(message)
    assert sorted(take(consumer, 3)) == numbered(3)


def test_unacknowledged_messages_asked_for_again_come_in_order(client: Any, topic: str) -> None:
    consumer = client.subscribe(topic, "s")
    send_all(client.create_producer(topic), numbered(5))
    for _ in range(5):
        receive(consumer)
    consumer.redeliver_unacknowledged_messages()
    assert take(consumer, 5) == numbered(5)


@pytest.mark.parametrize("batched", [False, True], ids=["single", "batched"])
def test_a_cumulative_acknowledgement_covers_what_came_before(client: Any, topic: str, batched: bool) -> None:
    consumer = client.subscribe(topic, "s", batch_index_ack_enabled=True)
    send_all(client.create_producer(topic, batching_enabled=batched), numbered(10))
    messages = [receive(consumer) for _ in range(10)]
    consumer.acknowledge_cumulative(messages[6])
    consumer.close()
    again = client.subscribe(topic, "s", batch_index_ack_enabled=True)
    assert take(again, 3) == numbered(3, start=7)


def test_single_messages_of_a_batch_are_acknowledged(client: Any, topic: str) -> None:
    consumer = client.subscribe(topic, "s", SHARED, batch_index_ack_enabled=True)
    producer = client.create_producer(
        topic, batching_enabled=True, batching_max_messages=10, batching_max_publish_delay_ms=10_000
    )
    send_all(producer, numbered(10))
    for message in [receive(consumer) for _ in range(10)][::2]:
        consumer.acknowledge(message)
    consumer.close()
    again = client.subscribe(topic, "s", SHARED, batch_index_ack_enabled=True)
    assert take(again, 5) == [b"1", b"3", b"5", b"7", b"9"]


def test_shared_consumers_divide_the_messages(client: Any, topic: str) -> None:
    consumers = [client.subscribe(topic, "s", SHARED, receiver_queue_size=10) for _ in range(2)]
    send_all(client.create_producer(topic), numbered(100))
    shares: list[list[bytes]] = [[], []]
    while sum(map(len, shares)) < 100:
        for share, consumer in zip(shares, consumers, strict=True):
            try:
                message = consumer.receive(timeout_millis=50)
            except pulsar.Timeout:
                continue
            share.append(message.data())
            consumer.acknowledge(message)
    assert sorted(shares[0] + shares[1], key=int) == numbered(100)
    assert shares[0]
    assert shares[1]


def test_the_messages_of_a_shared_consumer_that_leaves_go_to_the_other(client: Any, topic: str) -> None:
    stays, leaves = (client.subscribe(topic, "s", SHARED) for _ in range(2))
    send_all(client.create_producer(topic), numbered(40))
    leaves.close()
    assert sorted(take(stays, 40), key=int) == numbered(40)


def test_keys_keep_their_consumer(client: Any, topic: str) -> None:
    consumers = [client.subscribe(topic, "s", KEY_SHARED) for _ in range(2)]
    producer = client.create_producer(topic)
    for number in range(100):
        producer.send_async(b"%d" % number, lambda *_: None, partition_key=f"k{number % 10}")
    producer.flush()
    by_key: dict[str, list[int]] = {}
    owners: dict[str, set[int]] = {}
    count = 0
    while count < 100:
        for owner, consumer in enumerate(consumers):
            try:
                message = consumer.receive(timeout_millis=50)
            except pulsar.Timeout:
                continue
            count += 1
            by_key.setdefault(message.partition_key(), []).append(int(message.data()))
            owners.setdefault(message.partition_key(), set()).add(owner)
            consumer.acknowledge(message)
    assert by_key == {f"k{key}": list(range(key, 100, 10)) for key in range(10)}
    assert [key for key, several in owners.items() if len(several) > 1] == []


def test_failover_hands_over_to_the_next(box: Running, client: Any, topic: str) -> None:
    box.admin("PUT", f"{admin_path(topic)}/partitions", "1")
    partition = f"{topic}-partition-0"  # the consumer with the first name is active there
    first = client.subscribe(partition, "s", FAILOVER, consumer_name="a")
    second = client.subscribe(partition, "s", FAILOVER, consumer_name="b")
    producer = client.create_producer(partition)
    send_all(producer, numbered(5))
    assert take(first, 5) == numbered(5)
    assert is_quiet(second)
    send_all(producer, numbered(5, start=5))
    assert receive(first).data() == b"5"
    first.close()
    assert take(second, 5) == numbered(5, start=5)


def test_a_pattern_takes_the_topics_that_match(client: Any, fresh: Callable[[str], str]) -> None:
    # The Python client discovers new topics once a minute, regardless of its settings: see the Go client's test.
    stem = fresh("pattern")
    producers = [client.create_producer(f"{stem}-{word}") for word in ("one", "two")]
    other = client.create_producer(fresh("other"))
    consumer = client.subscribe(re.compile(f"{stem}-.*"), "s", initial_position=EARLIEST)
    for number, producer in enumerate([*producers, other]):
        producer.send(b"%d" % number)
    assert sorted(take(consumer, 2)) == numbered(2)
    assert is_quiet(consumer)


def test_several_topics_in_one_consumer(client: Any, fresh: Callable[[str], str]) -> None:
    topics = [fresh("one"), fresh("two")]
    consumer = client.subscribe(topics, "s")
    for number, topic in enumerate(topics):
        client.create_producer(topic).send(b"%d" % number)
    assert sorted(take(consumer, 2)) == numbered(2)


def test_a_message_that_fails_too_often_becomes_a_dead_letter(client: Any, topic: str) -> None:
    policy = pulsar.ConsumerDeadLetterPolicy(2, f"{topic}-dead", "kept")
    consumer = client.subscribe(topic, "s", SHARED, negative_ack_redelivery_delay_ms=50, dead_letter_policy=policy)
    producer = client.create_producer(topic)
    producer.send(b"poison")
    for _ in range(3):
        message = receive(consumer)
        assert message.data() == b"poison"
        consumer.negative_acknowledge(message)
    graveyard = client.subscribe(f"{topic}-dead", "kept", SHARED, initial_position=EARLIEST)
    # The client produces the dead letter at the next delivery, and only when the application receives messages.
    producer.send(b"good")
    got: list[bytes] = []
    buried: list[bytes] = []

    def has_come() -> bool:
        for each, found in ((consumer, got), (graveyard, buried)):
            with contextlib.suppress(pulsar.Timeout):
                found.append(each.receive(timeout_millis=100).data())
        return bool(got and buried)

    until(has_come)
    assert (got, buried) == ([b"good"], [b"poison"])


def test_the_backlog_is_told(box: Running, client: Any, topic: str) -> None:
    consumer = client.subscribe(topic, "s")
    send_all(client.create_producer(topic), numbered(7))
    assert take(consumer, 2) == numbered(2)
    path = topic.replace("://", "/") + "/stats?getPreciseBacklog=true"
    until(lambda: json.loads(box.admin("GET", path))["subscriptions"]["s"]["msgBacklog"] == 5)
