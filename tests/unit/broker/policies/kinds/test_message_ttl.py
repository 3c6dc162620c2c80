"""Message TTL in virtual time: what expires and when, with and without consumers, in memory or unloaded."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from pulsarbox.broker.backlog.message_expiry import ExpiryLimits, cutoff, due_at
from pulsarbox.broker.policies.kinds.message_ttl import MESSAGE_TTL
from pulsarbox.protocol.PulsarApi_pb2 import CommandAck, CommandSubscribe
from tests.unit.broker.playbook import TOPIC, Box
from tests.unit.broker.policies.kept import (
    DAY,
    MINUTE,
    NAMESPACE,
    backlog,
    leave,
    publish,
    set_policy,
    set_topic_policy,
    subscribed,
    topic_of,
    unload,
)


def test_the_oldest_goes_at_the_instant_its_time_is_over_for_every_subscription() -> None:
    box = Box()
    subscribed(box, "s", "other")
    set_policy(box, message_ttl_in_seconds=120)
    publish(box, 3)
    box.advance(60)
    publish(box, 2)
    box.advance(59.9)
    assert (backlog(box), backlog(box, "other")) == (5, 5)
    box.advance(0.2)
    assert (backlog(box), backlog(box, "other")) == (2, 2)
    box.advance(59.7)
    assert backlog(box) == 2
    box.advance(0.2)
    assert (backlog(box), backlog(box, "other")) == (0, 0)
    clearing = topic_of(box).subscriptions["s"].clearing
    assert (clearing.expired, clearing.last_expired) == (5, box.wall)


@pytest.mark.parametrize("restarted", [False, True])
def test_a_topic_that_is_not_in_memory_is_no_exception_and_goes_back(*, restarted: bool) -> None:
    box = Box()
    subscribed(box, "s")
    set_policy(box, message_ttl_in_seconds=10 * DAY)
    publish(box, 3)
    unload(box)
    if restarted:
        box = box.restart()
    box.advance(10 * DAY - 2)
    assert not list(box.broker.topics)
    assert box.broker.catalog.first("deadline/") is not None
    box.advance(4)
    assert not list(box.broker.topics), "it came into memory for this alone"
    assert backlog(box) == 0


def test_a_policy_that_comes_later_holds_for_what_is_there_in_memory_or_not() -> None:
    box = Box()
    other = TOPIC + "-other"
    for name in (TOPIC, other):
        subscribed(box, "s", topic=name)
        publish(box, 3, topic=name)
    unload(box)
    box.advance(MINUTE)
    assert topic_of(box).name is not None  # loaded again, unlike the other topic
    set_policy(box, message_ttl_in_seconds=30)
    box.advance(0.1)
    assert (backlog(box), backlog(box, name=other)) == (0, 0)
    publish(box, 1, topic=other)
    set_policy(box, message_ttl_in_seconds=None)
    box.advance(DAY)
    assert backlog(box, name=other) == 1


def test_a_walk_that_a_crash_interrupts_goes_on() -> None:
    box = Box()
    names = [f"{TOPIC}-{number}" for number in range(30)]
    for name in names:
        subscribed(box, "s", topic=name)
        publish(box, 1, topic=name)
    unload(box)
    box.advance(MINUTE)
    box.broker.tenants.set_policy(NAMESPACE, "message_ttl_in_seconds", 30, box.now)
    box.commit()
    again = box.restart()
    again.advance(31)
    assert [backlog(again, name=name) for name in names] == [0] * len(names)
    assert again.broker.catalog.first("walk/") is None


def test_the_brokers_own_value_from_a_file_holds_after_a_restart_for_topics_that_nobody_loads() -> None:
    box = Box()
    subscribed(box, "s")
    publish(box, 3)
    unload(box)
    box.advance(MINUTE)
    box = Box(box.disk, ttlDurationDefaultInSeconds=30)
    box.advance(31)
    assert backlog(box) == 0


def test_topic_before_namespace_before_broker_and_0_is_off() -> None:
    box = Box(ttlDurationDefaultInSeconds=60)
    subscribed(box, "s")
    publish(box, 1)
    set_policy(box, message_ttl_in_seconds=0)
    box.advance(HOUR_AND_MORE)
    assert backlog(box) == 1
    set_topic_policy(box, "messageTTLInSeconds", 7200)
    box.advance(7200 - HOUR_AND_MORE - 1)
    assert backlog(box) == 1
    box.advance(2)
    assert backlog(box) == 0
    set_topic_policy(box, "messageTTLInSeconds", None)
    set_policy(box, message_ttl_in_seconds=-1)
    assert topic_of(box).policies.get(MESSAGE_TTL) == 60_000, "below 0 a level says nothing"


HOUR_AND_MORE = 4000


def test_what_a_consumer_holds_expires_too_and_its_permits_are_its_own() -> None:
    box = Box(keepAliveIntervalSeconds=1_000_000)
    client = box.client()
    client.subscribe("s", subType=CommandSubscribe.Shared)
    set_policy(box, message_ttl_in_seconds=60)
    client.flow(2)
    sent = publish(box, 3)
    assert client.received() == sent[:2]
    box.advance(61)
    client.inbox.clear()  # discard a PING
    assert backlog(box) == 0
    consumer = topic_of(box).subscriptions["s"].consumers[0]
    assert (len(consumer.held), consumer.unacked) == (0, 0)
    client.flow(2)
    assert client.inbox == [], "what has expired is not delivered any more"
    sent = publish(box, 1)
    assert client.received() == sent
    assert client.ack(sent[0]) is not None
    assert backlog(box) == 0


def test_a_consumer_that_acknowledges_in_time_loses_nothing() -> None:
    box = Box(keepAliveIntervalSeconds=1_000_000)
    client = box.client()
    client.subscribe("s")
    client.flow(1000)
    set_policy(box, message_ttl_in_seconds=10)
    for _ in range(30):
        sent = publish(box, 1)
        assert [name for name in client.names() if name == "message"] == ["message"]
        client.ack(sent[0], ack_type=CommandAck.Cumulative)
        box.advance(3)
        client.inbox.clear()
    assert topic_of(box).subscriptions["s"].clearing.expired == 0


def test_delay_is_ignored() -> None:
    box = Box()
    subscribed(box, "s")
    set_policy(box, message_ttl_in_seconds=60)
    client = box.client()
    client.producer()
    client.send(0, deliver_at_time=box.wall + 3_600_000)
    leave(client)
    box.advance(61)
    assert backlog(box) == 0


def test_a_clock_of_a_client_that_is_ahead_does_not_keep_messages_for_ever() -> None:
    box = Box()
    subscribed(box, "s")
    set_policy(box, message_ttl_in_seconds=60)
    client = box.client()
    client.producer()
    client.send(0, publish_time=box.wall + DAY * 1000)
    leave(client)
    box.advance(61)
    assert backlog(box) == 0


def test_readers_alone_have_nothing_that_expires_and_go_on_behind_what_does() -> None:
    box = Box(keepAliveIntervalSeconds=1_000_000)
    reader = box.client()
    reader.subscribe("r", durable=False, initialPosition=1)
    set_policy(box, message_ttl_in_seconds=60)
    publish(box, 2)
    box.advance(120)
    assert backlog(box, "r") == 2
    subscribed(box, "s")
    box.advance(1)
    assert (backlog(box), backlog(box, "r")) == (0, 0)


def test_going_back_to_what_has_expired_lets_it_expire_again() -> None:
    box = Box(keepAliveIntervalSeconds=1_000_000, defaultRetentionTimeInMinutes=-1, defaultRetentionSizeInMB=-1)
    client = box.client()
    client.subscribe("s")
    set_policy(box, message_ttl_in_seconds=60)
    publish(box, 2)
    box.advance(61)
    assert backlog(box) == 0
    client.request("seek", consumer_id=1, message_publish_time=0)
    assert backlog(box) == 2
    box.advance(0.1)
    assert backlog(box) == 0


def test_a_steady_stream_is_searched_once_a_second_and_never_later() -> None:
    box = Box(keepAliveIntervalSeconds=1_000_000)
    subscribed(box, "s")
    set_policy(box, message_ttl_in_seconds=10)
    client = box.client()
    client.producer()
    for number in range(200):
        client.send(number)
        box.advance(0.1)
        client.inbox.clear()
        assert backlog(box) <= 10 * 10 + 10 + 1
    assert backlog(box) >= 10 * 10 - 1


@given(st.integers(0, 100), st.integers(0, 100), st.integers(0, 100), st.integers(1, 10_000), st.integers(1, 10_000))
def test_nothing_goes_before_it_is_due_and_something_goes_when_it_is(
    ttl: int, evict: int, block: int, begins: int, now: int
) -> None:
    limits = ExpiryLimits(ttl, evict, evict * 9 // 10, 0 if evict else block)
    until, due = cutoff(limits, begins, now), due_at(limits, begins, now)
    if until is not None:
        assert begins <= until <= now
    if due > now:
        assert until is None
        assert limits.block or due in (begins + ttl, begins + evict)
    if until is None and (ttl or evict):
        assert due > now


def test_what_is_on_its_way_to_the_disk_when_its_time_is_over_goes_when_it_is_there() -> None:
    box = Box(keepAliveIntervalSeconds=1_000_000)
    subscribed(box, "s")
    set_policy(box, message_ttl_in_seconds=10)
    client = box.client()
    client.producer()
    box.auto = False
    client.send(0)
    box.time += 20
    box.wall += 20_000
    box.broker.on_timer(box.now)
    assert topic_of(box).ledger.confirmed_messages == 0
    box.auto = True
    box.turn()
    assert backlog(box) == 1
    box.advance(1.1)
    assert backlog(box) == 0
