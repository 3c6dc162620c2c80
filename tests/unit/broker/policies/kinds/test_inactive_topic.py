"""Expiration of unused topics and subscriptions in virtual time, in memory or unloaded."""

from typing import Any

import pytest

from pulsarbox.broker.policies.kinds.inactive_topic import CAUGHT_UP, NO_SUBSCRIPTIONS, InactiveTopic, delete_at
from pulsarbox.broker.policies.kinds.retention import Retention
from pulsarbox.names import parse_topic
from pulsarbox.storage.catalog import partitions_key
from tests.unit.broker.playbook import AS_PULSAR, TOPIC, Box
from tests.unit.broker.policies.kept import (
    DAY,
    HOUR,
    MINUTE,
    backlog,
    exists,
    leave,
    publish,
    set_policy,
    set_topic_policy,
    subscribed,
    topic_of,
    unload,
)

ON: dict[str, Any] = {"brokerDeleteInactiveTopicsEnabled": True, **AS_PULSAR}
LASTING: dict[str, Any] = {"keepAliveIntervalSeconds": 1_000_000}


def inactive(mode: str, seconds: int, *, delete: bool = True) -> dict[str, Any]:
    return {"inactiveTopicDeleteMode": mode, "maxInactiveDurationSeconds": seconds, "deleteWhileInactive": delete}


def test_as_in_pulsar_a_topic_without_producers_and_subscriptions_goes_after_a_minute() -> None:
    box = Box(**ON)
    publish(box, 3)
    box.advance(59.9)
    assert exists(box)
    box.advance(0.2)
    assert not exists(box)
    assert not list(box.broker.catalog.keys("ledger/")), "with all it has"
    assert box.broker.next_timer().wall is None


@pytest.mark.parametrize("used_by", ["producer", "reader", "subscription"])
def test_it_stays_as_long_as_somebody_uses_it_and_its_time_runs_from_then(used_by: str) -> None:
    box = Box(**ON, **LASTING)
    client = box.client()
    if used_by == "producer":
        client.producer()
    else:
        client.subscribe("s", durable=used_by == "subscription")
    box.advance(HOUR)
    assert exists(box)
    if used_by == "subscription":
        client.request("unsubscribe", consumer_id=1)
    leave(client)
    box.advance(59)
    assert exists(box)
    box.advance(1.1)
    assert not exists(box)


def test_one_that_is_made_and_never_used_goes_too_whole_partitions_unloaded() -> None:
    box = Box(**ON)
    box.broker.topics.create(parse_topic(TOPIC), box.now)
    partitioned = parse_topic(TOPIC + "-p")
    box.broker.topics.create_partitioned(partitioned, 3, box.now)
    box.turn()
    box.advance(61)
    assert not exists(box)
    assert not any(exists(box, f"{partitioned}-partition-{number}") for number in range(3))
    assert box.broker.topics.partitions(partitioned) == 3, "partitions come again when somebody uses them"
    client = box.client()
    client.producer(1, f"{partitioned}-partition-1")
    assert exists(box, f"{partitioned}-partition-1")


def test_a_partitioned_topic_goes_with_its_last_partition_where_that_is_asked_for() -> None:
    box = Box(**ON, **LASTING, brokerDeleteInactivePartitionedTopicMetadataEnabled=True)
    partitioned = parse_topic(TOPIC + "-p")
    box.broker.topics.create_partitioned(partitioned, 2, box.now)
    client = box.client()
    client.producer(1, f"{partitioned}-partition-1")
    box.advance(61)
    assert partitions_key(str(partitioned)) in box.broker.catalog
    leave(client)
    box.advance(61)
    assert partitions_key(str(partitioned)) not in box.broker.catalog


def test_what_retention_holds_stays_as_long_as_that() -> None:
    box = Box(**ON, defaultRetentionTimeInMinutes=10, defaultRetentionSizeInMB=-1)
    publish(box, 1)
    box.advance(9 * MINUTE)
    assert exists(box)
    box.advance(MINUTE + 1)
    assert not exists(box)


@pytest.mark.parametrize("unloaded", [False, True])
def test_caught_up_topics_go_with_their_subscriptions_but_never_with_a_backlog(*, unloaded: bool) -> None:
    box = Box(**LASTING)
    set_policy(box, inactive_topic_policies=inactive(CAUGHT_UP, 600))
    subscribed(box, "s")
    publish(box, 2)
    if unloaded:
        unload(box)
    box.advance(HOUR)
    assert exists(box)
    topic_of(box).subscriptions["s"].clearing.clear(lambda now: None, box.now)
    box.turn()
    if unloaded:
        unload(box)
    box.advance(598)
    assert exists(box)
    box.advance(3)
    assert not exists(box)


def test_expiry_lets_a_caught_up_topic_go_that_nobody_has_in_memory() -> None:
    box = Box()
    set_policy(box, inactive_topic_policies=inactive(CAUGHT_UP, 600), message_ttl_in_seconds=DAY)
    subscribed(box, "s")
    publish(box, 2)
    unload(box)
    box.advance(DAY + 500)
    assert exists(box)
    box.advance(102)
    assert not exists(box)


def test_a_connected_consumer_keeps_a_caught_up_topic() -> None:
    box = Box(**LASTING)
    set_policy(box, inactive_topic_policies=inactive(CAUGHT_UP, 600))
    client = box.client()
    client.subscribe("s")
    box.advance(HOUR)
    assert exists(box)
    leave(client)
    box.advance(601)
    assert not exists(box)


def test_levels_and_changes_in_memory_or_not() -> None:
    box = Box(**ON)
    set_topic_policy(box, "inactiveTopicPolicies", inactive(NO_SUBSCRIPTIONS, 60, delete=False), TOPIC + "-kept")
    for name in (TOPIC, TOPIC + "-kept"):
        publish(box, 1, topic=name)
    set_policy(box, inactive_topic_policies=inactive(NO_SUBSCRIPTIONS, 300))
    box.advance(100)
    assert exists(box)
    box.advance(201)
    assert not exists(box)
    box.advance(DAY)
    assert exists(box, TOPIC + "-kept")
    unload(box) if list(box.broker.topics) else None
    set_topic_policy(box, "inactiveTopicPolicies", None, TOPIC + "-kept")
    box.advance(301)
    assert not exists(box, TOPIC + "-kept")


def test_a_crash_gives_everybody_their_time_to_come_back() -> None:
    box = Box(**ON, **LASTING)
    client = box.client()
    client.producer()
    box.advance(HOUR)
    again = box.restart()
    again.advance(59)
    assert exists(again)
    again.advance(2 * HOUR)
    assert not exists(again)


def test_topics_that_pulsar_keeps_for_itself_stay() -> None:
    box = Box(**ON)
    name = "persistent://public/default/__change_events"
    box.broker.topics.create(parse_topic(name), box.now)
    box.advance(DAY)
    assert exists(box, name)


def test_when_an_unused_topic_goes() -> None:
    policy = InactiveTopic(True, NO_SUBSCRIPTIONS, 60)
    assert delete_at(policy, Retention(0, 0), unused_since=1000, empty=False) == 1060
    assert delete_at(policy, Retention(600, 5), unused_since=1000, empty=False) == 1600
    assert delete_at(policy, Retention(600, 5), unused_since=1000, empty=True) == 1060
    assert delete_at(policy, Retention(-1, 5), unused_since=1000, empty=False) == 0
    assert delete_at(policy, Retention(-1, 5), unused_since=1000, empty=True) == 1060
    assert delete_at(policy._replace(delete=False), Retention(0, 0), unused_since=1000, empty=True) == 0


# Subscriptions


@pytest.mark.parametrize("unloaded", [False, True])
def test_a_subscription_without_consumers_goes_at_its_time_with_what_it_held(*, unloaded: bool) -> None:
    box = Box(**LASTING)
    set_policy(box, subscription_expiration_time_minutes=60)
    client = box.client()
    client.subscribe("used")
    subscribed(box, "s")
    publish(box, 3)
    if unloaded:
        leave(client)
        unload(box)
    box.advance(HOUR - 3)
    assert set(topic_of(box).subscriptions) == {"used", "s"}
    if unloaded:
        unload(box)
        box.advance(4)
        assert list(topic_of(box).subscriptions) == []
        return
    box.advance(4)
    assert set(topic_of(box).subscriptions) == {"used"}
    box.advance(DAY)
    assert backlog(box, "used") == 3
    leave(client)
    box.advance(HOUR + 1)
    assert list(topic_of(box).subscriptions) == []


def test_a_consumer_that_comes_back_in_time_makes_it_begin_anew() -> None:
    box = Box(subscriptionExpirationTimeMinutes=60)
    for _ in range(5):
        subscribed(box, "s")
        box.advance(50 * MINUTE)
    assert "s" in topic_of(box).subscriptions
    box.advance(11 * MINUTE)
    assert "s" not in topic_of(box).subscriptions


def test_a_time_that_is_set_later_counts_from_the_last_use_also_of_what_is_unloaded() -> None:
    box = Box()
    subscribed(box, "s")
    unload(box)
    box.advance(2 * HOUR)
    set_policy(box, subscription_expiration_time_minutes=60)
    box.advance(0.1)
    assert not topic_of(box).subscriptions


def test_a_crash_does_not_take_a_subscription_that_was_in_use() -> None:
    box = Box(subscriptionExpirationTimeMinutes=60, **LASTING)
    subscribed(box, "s")
    box.client().subscribe("s")
    box.advance(DAY)
    again = box.restart()
    again.advance(DAY)
    assert "s" in topic_of(again).subscriptions, "the box was started before that, as far as the clock says"
    again.advance(2 * HOUR)
    assert "s" not in topic_of(again).subscriptions


@pytest.mark.parametrize("used_by", ["nobody", "producer", "consumer"])
def test_topics_that_are_not_stored_go_as_well(used_by: str) -> None:
    box = Box(**ON, **LASTING)
    name = parse_topic("non-persistent://public/default/n")
    client = box.client()
    if used_by == "producer":
        client.producer(1, str(name))
    elif used_by == "consumer":
        client.subscribe(topic=str(name))
    else:
        box.broker.topics.create(name, box.now)
        box.turn()
    box.advance(HOUR)
    assert box.broker.topics.exists(name) == (used_by != "nobody")
    leave(client)
    box.advance(61)
    assert not box.broker.topics.exists(name)
    assert box.broker.next_timer().wall is None
