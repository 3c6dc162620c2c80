"""Dispatch throttling: the examples of Pulsar's documentation, each level, subscription type and flag."""

from typing import Any

import pytest

from pulsarbox.broker.dispatch.blocked_reason import Reason
from pulsarbox.names import parse_topic
from tests.unit.broker.limits.rates import (
    EXCLUSIVE,
    FAILOVER,
    KEY_SHARED,
    SHARED,
    TYPES,
    change,
    dispatch_rate,
    fill,
    got,
    join,
    periods,
    set_namespace,
    set_topic,
    subscription_of,
    topic_of,
)
from tests.unit.broker.playbook import TOPIC, Box

PER_TOPIC: dict[str, Any] = {"dispatchThrottlingRatePerTopicInMsg": 10}
PER_SUBSCRIPTION: dict[str, Any] = {"dispatchThrottlingRatePerSubscriptionInMsg": 10}
OF_THE_BOX: dict[str, Any] = {"dispatchThrottlingRateInMsg": 10}


# The examples


@pytest.mark.parametrize("kind", TYPES)
def test_six_messages_an_entry_are_two_entries_with_precise_control(kind: Any) -> None:
    box = Box(preciseDispatcherFlowControl=True, **PER_TOPIC)
    fill(box, 50, batch=6)
    client = join(box, kind)
    assert got(client) == 2
    assert periods(box, client, 5) == [2, 1, 2, 2, 1], "12, 12, 6 messages and again: sixty in six periods"


@pytest.mark.parametrize("kind", TYPES)
def test_and_ten_entries_without(kind: Any) -> None:
    box = Box(**PER_TOPIC)
    fill(box, 50, batch=6)
    client = join(box, kind)
    assert got(client) == 10
    assert periods(box, client, 6) == [0, 0, 0, 0, 0, 10], "sixty messages are six periods"


@pytest.mark.parametrize("kind", TYPES)
def test_counted_by_entry_batches_do_not_matter(kind: Any) -> None:
    box = Box(dispatchThrottlingOnBatchMessageEnabled=True, **PER_TOPIC)
    fill(box, 50, batch=6)
    client = join(box, kind)
    assert got(client) == 10
    assert periods(box, client, 3) == [10, 10, 10]


def test_eleven_sent_then_nine() -> None:
    box = Box(preciseDispatcherFlowControl=True, **PER_TOPIC)
    fill(box, 9)
    fill(box, 1, batch=2)
    fill(box, 50)
    client = join(box)
    assert got(client) == 10, "eleven messages"
    assert periods(box, client, 2) == [9, 10]


def test_thirty_sent_then_none_and_none() -> None:
    box = Box(preciseDispatcherFlowControl=True, **PER_TOPIC)
    fill(box, 1, batch=30)
    fill(box, 50)
    client = join(box)
    assert got(client) == 1
    assert periods(box, client, 4) == [0, 0, 10, 10]


# Levels


@pytest.mark.parametrize("kind", TYPES)
@pytest.mark.parametrize("settings", [PER_TOPIC, PER_SUBSCRIPTION, OF_THE_BOX])
def test_each_setting_holds_for_each_type(kind: Any, settings: dict[str, Any]) -> None:
    box = Box(**settings)
    fill(box, 100)
    client = join(box, kind)
    assert got(client) == 10
    assert subscription_of(box).blocked_reason().reason == Reason.THROTTLED
    assert periods(box, client, 12) == [10] * 9 + [0, 0, 0]
    assert subscription_of(box).blocked_reason().reason == Reason.END_OF_LOG


@pytest.mark.parametrize("kind", TYPES)
def test_bytes(kind: Any) -> None:
    box = Box()
    fill(box, 60, body=b"x" * 960)
    size = subscription_entry_size(box)
    set_topic(box, "dispatchRate", dispatch_rate(size=3 * size))
    client = join(box, kind)
    assert got(client) == 3
    set_topic(box, "dispatchRate", dispatch_rate(size=3 * size - 1))
    assert got(client) == 0
    counts = periods(box, client, 10)
    assert counts == [3] * 10, "an entry beyond the limit is debt that a period later is still less than one entry"


def test_an_entry_beyond_the_limit_goes_all_the_same_and_is_paid_off() -> None:
    box = Box()
    fill(box, 3, body=b"x" * 960)
    size = subscription_entry_size(box)
    set_topic(box, "dispatchRate", dispatch_rate(size=size // 3))
    client = join(box)
    assert got(client) == 1
    assert periods(box, client, 6) == [0, 0, 1, 0, 0, 1]


def subscription_entry_size(box: Box) -> int:
    ledger = topic_of(box).ledger
    return ledger.confirmed_bytes // ledger.confirmed_messages


def test_a_topics_limit_is_shared_by_its_subscriptions_by_turns() -> None:
    box = Box(**PER_TOPIC)
    fill(box, 100)
    clients = [join(box, name=name) for name in ("a", "b", "c")]
    assert [got(client) for client in clients] == [10, 0, 0]
    shares = []
    for _ in range(6):
        box.advance(1)
        shares.append([got(client) for client in clients])
    assert [sum(each) for each in shares] == [10] * 6
    assert [sum(column) for column in zip(*shares, strict=True)] == [20, 20, 20], "nobody goes short"


def test_whoever_is_published_to_does_not_overtake_those_who_wait() -> None:
    box = Box(**OF_THE_BOX)
    topics = [TOPIC, TOPIC + "2"]
    for topic in topics:
        fill(box, 100, topic=topic)
    clients = [join(box, topic=topic) for topic in topics]
    box.advance(3)
    for client in clients:
        got(client)
    total = [0, 0]
    for _ in range(14):
        box.advance(0.9)
        fill(box, 1, topic=topics[0])
        box.time, box.wall = box.time + 0.1, box.wall + 100
        fill(box, 1, topic=topics[0])
        for i, client in enumerate(clients):
            total[i] += got(client)
    assert abs(total[0] - total[1]) <= 10, total


def test_partitions_have_limits_of_their_own_and_the_box_has_one() -> None:
    box = Box(**PER_SUBSCRIPTION)
    topic = "persistent://public/default/p"
    box.broker.topics.create_partitioned(parse_topic(topic), 2, box.now)
    box.turn()
    partitions = [f"{topic}-partition-{i}" for i in range(2)]
    for each in partitions:
        fill(box, 40, topic=each)
    clients = [join(box, topic=each) for each in partitions]
    assert [got(each) for each in clients] == [10, 10]
    change(box, "dispatchThrottlingRateInMsg", "10")
    box.advance(1)
    assert sum(got(each) for each in clients) in (10, 20), "the periods of both limits need not begin together"
    box.advance(1)
    assert sum(got(each) for each in clients) == 10


def test_limits_of_all_levels_hold_at_once() -> None:
    box = Box(dispatchThrottlingRateInMsg=9, **PER_TOPIC)
    set_topic(box, "subscriptionDispatchRate", dispatch_rate(5))
    fill(box, 200)
    one, two = join(box, name="one"), join(box, name="two")
    assert (got(one), got(two)) == (5, 4)
    totals = [0, 0]
    for _ in range(10):
        box.advance(1)
        counts = got(one), got(two)
        assert sum(counts) <= 9
        assert max(counts) <= 5
        totals = [totals[0] + counts[0], totals[1] + counts[1]]
    assert sum(totals) == 90
    change(box, "dispatchThrottlingRateInMsg", "0")
    assert got(one) + got(two) == 1
    box.advance(1)
    assert got(one) + got(two) == 10
    assert (periods(box, one, 1), got(two)) == ([5], 5)


def test_precedence_picks_the_value_of_one_level() -> None:
    box = Box(**PER_SUBSCRIPTION)
    fill(box, 300)
    client = join(box)
    assert got(client) == 10
    cluster = box.broker.settings.clusterName
    set_namespace(box, "subscriptionDispatchRate", {cluster: dispatch_rate(20)})
    assert got(client) == 10, "ten more are left of it at once"
    assert periods(box, client, 2) == [20, 20]
    set_topic(box, "subscriptionDispatchRate", dispatch_rate(3))
    assert periods(box, client, 8)[-2:] == [3, 3]
    set_topic(box, "subscriptionPolicies", {"s": {"dispatchRate": dispatch_rate(4)}, "t": {}})
    box.advance(1)
    got(client)
    assert periods(box, client, 2) == [4, 4]
    set_topic(box, "subscriptionPolicies", None)
    set_topic(box, "subscriptionDispatchRate", None)
    set_namespace(box, "subscriptionDispatchRate", None)
    box.advance(1)
    got(client)
    assert periods(box, client, 2) == [10, 10]


@pytest.mark.parametrize("kind", TYPES)
def test_a_limit_that_is_taken_away_lets_all_go_at_once(kind: Any) -> None:
    box = Box(**PER_TOPIC)
    fill(box, 100)
    client = join(box, kind)
    assert got(client) == 10
    change(box, "dispatchThrottlingRatePerTopicInMsg", "-1")
    assert got(client) == 90


def test_setting_the_same_again_gives_nothing_away() -> None:
    box = Box()
    set_topic(box, "dispatchRate", dispatch_rate(10))
    fill(box, 100)
    client = join(box)
    assert got(client) == 10
    for _ in range(5):
        set_topic(box, "dispatchRate", dispatch_rate(10))
        change(box, "dispatchThrottlingRatePerSubscriptionInMsg", "50")
    assert got(client) == 0
    assert periods(box, client, 1) == [10]


# Periods


def test_a_period_of_a_minute() -> None:
    box = Box(keepAliveIntervalSeconds=86_400)
    set_topic(box, "dispatchRate", dispatch_rate(10, period=60))
    fill(box, 100)
    client = join(box)
    assert got(client) == 10
    assert periods(box, client, 7, 20) == [10, 0, 0, 10, 0, 0, 10]


def test_an_advance_of_the_clock_fills_it_up_at_once() -> None:
    box = Box(brokerClock="virtual", **PER_TOPIC)
    fill(box, 100)
    client = join(box)
    assert got(client) == 10
    for _ in range(3):
        box.broker.advance_clock(1000, box.now)
        box.turn()
        assert got(client) == 10
    box.broker.advance_clock(86_400_000, box.now)
    box.turn()
    assert got(client) == 10, "what periods leave over is not kept"


def test_a_wall_clock_that_goes_back_stops_nobody() -> None:
    box = Box(**PER_TOPIC)
    fill(box, 100)
    client = join(box)
    assert got(client) == 10
    box.wall -= 3_600_000
    box.advance(1.01)
    assert got(client) == 10
    assert periods(box, client, 2) == [10, 10]


# Counting


@pytest.mark.parametrize("kind", TYPES)
def test_what_is_sent_again_counts(kind: Any) -> None:
    box = Box(**PER_TOPIC)
    fill(box, 30)
    client = join(box, kind)
    assert got(client) == 10
    box.advance(1)
    assert got(client) == 10
    client.ask("redeliverUnacknowledgedMessages", consumer_id=1)
    assert got(client) == 0
    assert subscription_of(box).blocked_reason().reason == Reason.THROTTLED
    assert periods(box, client, 4) == [10, 10, 10, 0]


def test_a_seek_counts() -> None:
    box = Box(**PER_TOPIC)
    fill(box, 30)
    client = join(box)
    assert got(client) == 10
    client.request("seek", consumer_id=1, message_publish_time=1)
    again = join(box)
    assert got(again) == 0
    assert periods(box, again, 4) == [10, 10, 10, 0]


def test_of_a_batch_count_the_messages_that_are_sent() -> None:
    box = Box(preciseDispatcherFlowControl=True, **PER_TOPIC)
    fill(box, 2, batch=10)
    client = join(box)
    assert got(client) == 1
    box.advance(1)
    assert got(client) == 1


@pytest.mark.parametrize("kind", [EXCLUSIVE, SHARED])
def test_caught_up_subscriptions_need_not_be_limited(kind: Any) -> None:
    settings: dict[str, Any] = {
        "dispatchThrottlingOnNonBacklogConsumerEnabled": False,
        "managedLedgerCursorBackloggedThreshold": 20,
    }
    box = Box(**PER_TOPIC, **settings)
    client = join(box, kind)
    fill(box, 60)
    assert got(client) == 60, "it was caught up all the time"
    slow = join(box, kind, name="slow")
    assert got(slow) == 10, "this one has a backlog of sixty"
    assert periods(box, slow, 4) == [10, 10, 30, 0], "twenty are no backlog any more"
    change(box, "dispatchThrottlingOnNonBacklogConsumerEnabled", "true")
    fill(box, 30)
    assert got(client) <= 10


def test_what_is_published_comes_on_top_where_the_rate_is_relative() -> None:
    box = Box()
    fill(box, 100)
    set_topic(box, "dispatchRate", dispatch_rate(10, relative=True))
    client = join(box)
    box.advance(5)
    assert got(client) == 60
    for _ in range(4):
        fill(box, 50)
        box.advance(1)
    assert got(client) == 4 * (50 + 10)


@pytest.mark.parametrize("subscribed", [True, False])
@pytest.mark.parametrize("idle", [2, 8, 25])
def test_what_was_published_before_an_idle_time_makes_no_burst(idle: int, *, subscribed: bool) -> None:
    box = Box(brokerDeleteInactiveTopicsEnabled=False)
    if subscribed:
        join(box).cnx.closed(box.now)
    else:
        box.broker.topics.open(parse_topic(TOPIC), box.now)
    set_topic(box, "dispatchRate", dispatch_rate(10, relative=True))
    set_topic(box, "subscriptionDispatchRate", dispatch_rate(15, relative=True))
    fill(box, 1000)
    box.advance(idle)
    client = join(box)
    assert got(client) == 10
    assert periods(box, client, 2) == [10, 10]
    fill(box, 40)
    assert periods(box, client, 3) == [50, 10, 10]


@pytest.mark.parametrize("kind", TYPES)
def test_reads_from_the_disk_are_limited_too(kind: Any) -> None:
    box = Box(**PER_TOPIC)
    fill(box, 300)
    again = box.restart()
    client = join(again, kind)
    assert got(client) == 10
    assert periods(again, client, 3) == [10, 10, 10]


def test_system_topics_are_not_limited() -> None:
    topic = "persistent://public/default/__change_events"
    box = Box(**PER_TOPIC, **OF_THE_BOX)
    box.broker.topics.of_box(parse_topic(topic), box.now)
    fill(box, 100, topic=topic)
    assert got(join(box, topic=topic)) == 100


def test_a_topic_that_stores_nothing_is_not_limited() -> None:
    topic = "non-persistent://public/default/n"
    box = Box(**PER_TOPIC, **OF_THE_BOX)
    client = join(box, SHARED, topic=topic)
    fill(box, 100, topic=topic)
    assert got(client) == 100


# Resource groups


def test_a_resource_group_is_shared_by_the_topics_of_its_namespaces() -> None:
    box = Box()
    topics = [TOPIC, "persistent://public/other/t"]
    box.broker.tenants.create_namespace("public/other", None)
    box.broker.put_resource_group("g", {"dispatchRateInMsgs": 10}, box.now)
    for namespace in ("public/default", "public/other"):
        box.broker.tenants.set_policy(namespace, "resource_group_name", "g", box.now)
    for topic in topics:
        fill(box, 100, topic=topic)
    clients = [join(box, topic=topic) for topic in topics]
    assert [got(each) for each in clients] == [10, 0]
    box.advance(2)
    assert sum(got(each) for each in clients) == 20
    box.broker.put_resource_group("g", {"dispatchRateInMsgs": 30}, box.now)
    box.turn()
    assert sum(got(each) for each in clients) == 20
    box.advance(1)
    assert sum(got(each) for each in clients) == 30
    box.broker.put_resource_group("g", None, box.now)
    box.turn()
    assert sum(got(each) for each in clients) == 120


# Waiting subscriptions


def test_the_reason_names_the_limit() -> None:
    box = Box()
    set_topic(box, "dispatchRate", dispatch_rate(10, 5000, 60))
    fill(box, 100)
    join(box)
    why = subscription_of(box).blocked_reason()
    assert why.reason == Reason.THROTTLED
    assert why.text == (
        "the dispatch rate is reached: 10 messages and 5000 bytes per 60 s for the topic, set at topic level"
    )
    assert why.since == box.wall


@pytest.mark.parametrize("kind", TYPES)
def test_nobody_waits_when_there_is_nothing_to_send(kind: Any) -> None:
    box = Box(**PER_TOPIC)
    fill(box, 10)
    client = join(box, kind)
    assert got(client) == 10
    assert subscription_of(box).blocked_reason().reason == Reason.END_OF_LOG
    limiter = topic_of(box).limits.dispatch
    assert limiter is not None
    assert limiter.waiting == 0
    fill(box, 1)
    assert got(client) == 0
    assert subscription_of(box).blocked_reason().reason == Reason.THROTTLED
    assert limiter.waiting == 1
    assert periods(box, client, 1) == [1]
    assert limiter.waiting == 0


def test_who_has_gone_does_not_wait() -> None:
    box = Box(**OF_THE_BOX)
    fill(box, 100)
    client = join(box)
    assert got(client) == 10
    limiter = box.broker.limits.dispatch
    assert limiter.waiting == 1
    client.request("unsubscribe", consumer_id=1)
    assert limiter.waiting == 0
    assert not limiter.holds.holding


@pytest.mark.parametrize("kind", TYPES)
def test_who_has_left_its_consumers_does_not_wait(kind: Any) -> None:
    box = Box(**OF_THE_BOX)
    fill(box, 100)
    client = join(box, kind)
    limiter = box.broker.limits.dispatch
    assert limiter.waiting == 1
    client.request("close_consumer", consumer_id=1)
    assert limiter.waiting == 0
    again = join(box, kind)
    assert got(again) + sum(periods(box, again, 12)) == 100


def test_both_ways_of_counting_have_no_effect_together(caplog: pytest.LogCaptureFixture) -> None:
    box = Box(preciseDispatcherFlowControl=True)
    change(box, "dispatchThrottlingOnBatchMessageEnabled", "true")
    assert "cannot be combined with" in caplog.text
    assert not box.broker.settings.dispatchThrottlingOnBatchMessageEnabled


@pytest.mark.parametrize("kind", [SHARED, KEY_SHARED])
def test_consumers_share_what_a_subscription_may(kind: Any) -> None:
    box = Box(**PER_SUBSCRIPTION)
    fill(box, 200)
    clients = [join(box, kind) for _ in range(3)]
    [got(each) for each in clients]
    for _ in range(5):
        box.advance(1)
        assert sum(got(each) for each in clients) == 10


def test_a_take_over_goes_on_where_the_limit_allows() -> None:
    box = Box(**PER_TOPIC)
    fill(box, 50)
    one = join(box, FAILOVER)
    two = join(box, FAILOVER)
    got(one)
    one.ask("close_consumer", consumer_id=1, request_id=7)
    box.advance(10)
    assert got(two) == 50
