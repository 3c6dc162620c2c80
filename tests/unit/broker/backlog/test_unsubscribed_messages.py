"""Retention of messages that no subscription has covered, in virtual time: duration and order of eviction."""

from typing import Any

import pytest

from pulsarbox.broker.backlog.unsubscribed_index import UnsubscribedIndex
from pulsarbox.broker.topic.system_topics import HEALTH_TOPIC
from pulsarbox.names import parse_topic
from pulsarbox.storage.catalog import UNSUBSCRIBED
from tests.unit.broker.playbook import TOPIC, Box
from tests.unit.broker.policies.kept import (
    DAY,
    HOUR,
    MINUTE,
    exists,
    leave,
    publish,
    set_policy,
    set_topic_policy,
    subscribed,
    topic_of,
    unload,
)
from tests.unit.broker.transactions_playbook import Txn

SHIPPED: dict[str, Any] = {"brokerDeleteInactiveTopicsEnabled": True, "keepAliveIntervalSeconds": 1_000_000}
KIB = 1 << 10
NOTHING = {"retentionTimeInMinutes": 0, "retentionSizeInMB": 0}


def stored(box: Box, name: str = TOPIC) -> int:
    """Return the stored bytes of the topic."""
    return topic_of(box, name).ledger.size if exists(box, name) else 0


def events(box: Box, kind: str) -> list[dict[str, Any]]:
    """Return the subject and fields of each reported event of one kind."""
    found = box.broker.events.after(0, 1000)
    return [{"subject": each.subject, **each.fields} for each in found if each.kind == kind]


def index(box: Box) -> UnsubscribedIndex:
    return box.broker.unsubscribed


def check_count(box: Box, *names: str) -> None:
    """Check that the total of the box equals the sum of its rows, and lags behind the topics by at most one step."""
    catalog = box.broker.catalog
    rows = [catalog.get(key) or {} for key in catalog.keys(UNSUBSCRIBED)]
    assert (index(box).bytes, index(box).topics) == (sum(row["bytes"] for row in rows), len(rows))
    held = {name: stored(box, name) for name in names}
    by_name = {row["topic"]: row["bytes"] for row in rows}
    assert all(0 <= held[name] - by_name.get(name, 0) <= max(8 * KIB, held[name] // 10) for name in names)


@pytest.mark.parametrize("where", ["memory", "rows", "restarted"])
def test_the_first_message_waits_a_week_for_a_subscription(where: str) -> None:
    box = Box(**SHIPPED)
    publish(box, 1)
    if where == "rows":
        unload(box)
    elif where == "restarted":
        box = box.restart()
    box.advance(7 * DAY - MINUTE)
    assert stored(box) > 0
    box.advance(DAY)
    assert not exists(box)
    (trimmed,) = events(box, "unsubscribed-trimmed")
    assert (trimmed["subject"], trimmed["messages"], trimmed["reason"]) == (TOPIC, 1, "time")
    (deleted,) = events(box, "topic-deleted")
    assert (deleted["reason"], deleted["messages"], deleted["bytes"]) == ("inactive", 0, 0)
    assert index(box).bytes == index(box).topics == 0
    assert not list(box.broker.catalog.keys(UNSUBSCRIBED))


def test_topics_in_rows_stay_there() -> None:
    box = Box(**SHIPPED)
    for number in range(30):
        publish(box, 1, topic=f"{TOPIC}-{number}")
    unload(box)
    for _ in range(6 * 24):
        box.advance(HOUR)
        assert not list(box.broker.topics), "its deadlines are for the ledgers alone"
    assert index(box).topics == 30


def test_a_late_subscription_receives_all_of_it() -> None:
    box = Box(**SHIPPED)
    sent = publish(box, 3)
    box.advance(2 * HOUR)
    client = box.client()
    client.subscribe("late")
    client.flow(10)
    assert client.received() == sent
    assert index(box).topics == 0, "from now on it is a backlog"


@pytest.mark.parametrize("unloaded", [False, True])
def test_with_a_subscription_pulsars_rules_hold_and_behind_it_the_rule_again(*, unloaded: bool) -> None:
    box = Box(**SHIPPED)
    publish(box, 2)
    subscribed(box, "s")
    publish(box, 2)
    assert topic_of(box).ledgers.unsubscribed.find() is None
    topic_of(box).remove_subscription(topic_of(box).subscriptions["s"], box.now)
    box.turn()
    publish(box, 1)
    if unloaded:
        unload(box)
    box.advance(DAY)
    found = topic_of(box).ledgers.unsubscribed.find()
    assert found is not None
    assert found.messages in (1, 5), "whole ledgers"
    box.advance(7 * DAY)
    assert not exists(box)


def test_what_a_deleted_subscription_has_covered_goes_as_in_pulsar() -> None:
    box = Box(**SHIPPED)
    publish(box, 2)
    subscribed(box, "s")
    topic_of(box).remove_subscription(topic_of(box).subscriptions["s"], box.now)
    box.turn()
    box = box.restart()
    box.advance(62)
    assert not exists(box)
    (deleted,) = events(box, "topic-deleted")
    assert (deleted["reason"], deleted["messages"]) == ("inactive", 2)


def test_a_subscription_to_the_latest_message_leaves_time_to_go_back() -> None:
    box = Box(**SHIPPED)
    sent = publish(box, 2)
    box.advance(HOUR)
    client = box.client()
    client.subscribe("late", initialPosition=0)
    box.advance(5 * MINUTE)
    client.request("seek", consumer_id=1, message_publish_time=0)
    client = box.client()
    client.subscribe("late")
    client.flow(10)
    assert client.received() == sent
    leave(client)
    topic_of(box).subscriptions["late"].clearing.clear(lambda now: None, box.now)
    box.advance(11 * MINUTE)
    assert stored(box) == 0


def test_a_reader_does_not_end_it() -> None:
    box = Box(**SHIPPED)
    sent = publish(box, 3)
    for _ in range(2):
        reader = box.client()
        reader.subscribe("r", durable=False)
        reader.flow(10)
        assert reader.received() == sent
        leave(reader)
        box.advance(DAY)
    box.advance(7 * DAY)
    assert not exists(box)


@pytest.mark.parametrize("level", ["topic", "namespace", "broker"])
@pytest.mark.parametrize("unloaded", [False, True])
def test_a_retention_takes_its_place(level: str, *, unloaded: bool) -> None:
    more: dict[str, Any] = {}
    if level == "broker":
        more = {"defaultRetentionTimeInMinutes": 10, "defaultRetentionSizeInMB": -1}
    box = Box(**SHIPPED, **more)
    publish(box, 1)
    if unloaded:
        unload(box)
    retention = {"retentionTimeInMinutes": 10, "retentionSizeInMB": -1}
    if level == "namespace":
        set_policy(box, retention_policies=retention)
    elif level == "topic":
        set_topic_policy(box, "retentionPolicies", retention)
    box.advance(9 * MINUTE)
    assert exists(box)
    assert index(box).topics == 0
    box.advance(2 * MINUTE)
    assert not exists(box)
    (deleted,) = events(box, "topic-deleted")
    assert deleted["reason"] == "inactive"
    assert not events(box, "unsubscribed-trimmed"), "it was a policy"


@pytest.mark.parametrize("unloaded", [False, True])
def test_a_retention_of_nothing_is_one_too_and_without_it_the_rule_holds(*, unloaded: bool) -> None:
    box = Box(**SHIPPED)
    set_policy(box, retention_policies=NOTHING)
    publish(box, 1)
    if unloaded:
        unload(box)
    box.advance(30)
    set_policy(box, retention_policies=None)
    box.advance(DAY)
    assert stored(box) > 0
    assert index(box).topics == 1
    if unloaded:
        unload(box)
    set_policy(box, retention_policies=NOTHING)
    box.advance(11 * MINUTE)
    assert not exists(box)


@pytest.mark.parametrize("setting", ["unsubscribedRetentionTimeInMinutes", "unsubscribedRetentionSize"])
@pytest.mark.parametrize("unloaded", [False, True])
def test_zero_is_as_in_pulsar_and_changes_hold_at_once(setting: str, *, unloaded: bool) -> None:
    box = Box(**SHIPPED)
    publish(box, 4)
    if unloaded:
        unload(box)
    box.advance(HOUR)
    box.broker.configuration.update(setting, "0", box.now)
    box.turn()
    box.advance(62)
    assert not exists(box)
    (deleted,) = events(box, "topic-deleted")
    assert (deleted["reason"], deleted["messages"]) == ("inactive", 4)
    publish(box, 1)
    box.advance(30)
    box.broker.configuration.delete(setting, box.now)
    box.advance(HOUR)
    assert exists(box)


def test_without_a_limit_of_time_it_stays() -> None:
    box = Box(**SHIPPED, unsubscribedRetentionTimeInMinutes=-1, unsubscribedRetentionSize="-1")
    publish(box, 1)
    box.advance(3650 * DAY)
    assert stored(box) > 0
    found = topic_of(box).ledgers.unsubscribed.find()
    assert found is not None
    assert found.until == 0


def test_it_says_how_much_and_until_when() -> None:
    box = Box(**SHIPPED)
    at = box.wall
    publish(box, 3)
    found = topic_of(box).ledgers.unsubscribed.find()
    assert found is not None
    assert (found.messages, found.bytes, found.until) == (3, stored(box), at + 7 * DAY * 1000)
    unload(box)
    box.advance(DAY)
    publish(box, 2)
    again = topic_of(box).ledgers.unsubscribed.find()
    assert again is not None
    assert (again.messages, again.until) == (5, at + 7 * DAY * 1000)


# Size limit


def test_above_the_limit_the_oldest_goes_first() -> None:
    box = Box(**SHIPPED, unsubscribedRetentionSize="300K", managedLedgerMaxEntriesPerLedger=10)
    for number in range(6):
        publish(box, 10, 10 * KIB, topic=f"{TOPIC}-{number}")
        box.advance(1)
    names = [f"{TOPIC}-{number}" for number in range(6)]
    check_count(box, *names)
    assert [stored(box, name) > 0 for name in names] == [False, False, False, False, True, True]
    assert index(box).bytes <= 300 * KIB
    told = events(box, "unsubscribed-trimmed")
    assert [each["subject"] for each in told] == names[:4]
    assert all(each["reason"] == "size" and each["messages"] == 10 for each in told)
    box.advance(61)
    assert not exists(box, names[0]), "without messages it is inactive"


@pytest.mark.parametrize("unloaded", [False, True])
def test_a_flood_does_not_take_the_messages_of_quiet_topics(*, unloaded: bool) -> None:
    box = Box(**SHIPPED, unsubscribedRetentionSize="1M", managedLedgerMaxEntriesPerLedger=4)
    quiet = [f"{TOPIC}-quiet-{number}" for number in range(5)]
    for name in quiet:
        publish(box, 1, KIB, topic=name)
    if unloaded:
        unload(box)
    flood = f"{TOPIC}-flood"
    for _ in range(10):
        box.advance(1)
        publish(box, 40, 10 * KIB, topic=flood)
        if unloaded:
            unload(box)
    box.advance(1)
    assert all(stored(box, name) for name in quiet)
    assert 0 < stored(box, flood) <= 1100 * KIB
    check_count(box, flood, *quiet)


def test_after_a_restart_the_limit_holds_once_all_are_counted() -> None:
    box = Box(**SHIPPED, managedLedgerMaxEntriesPerLedger=2)
    for number in range(200):  # counted ten at once
        publish(box, 1, KIB, topic=f"{TOPIC}-{number:03}")
    box.settings["unsubscribedRetentionSize"] = "100K"
    box = box.restart()
    publish(box, 1, KIB, topic=f"{TOPIC}-new")  # while the box counts the stored bytes
    box.advance(10)
    check_count(box)
    assert 50 * KIB < index(box).bytes <= 100 * KIB
    assert exists(box, f"{TOPIC}-199")
    assert stored(box, f"{TOPIC}-new")
    assert not stored(box, f"{TOPIC}-000")


def test_a_share_is_of_what_the_disk_has() -> None:
    box = Box(**SHIPPED, managedLedgerMaxEntriesPerLedger=1)
    publish(box, 30, 10 * KIB)
    assert stored(box) > 300 * KIB, "the disk's size is not known yet"
    index(box).set_capacity(1000 * KIB, box.now)
    box.turn()
    box.advance(1)
    assert 50 * KIB < stored(box) <= 100 * KIB


def test_the_ledger_that_grows_goes_too_and_what_is_not_durable_stays() -> None:
    box = Box(**SHIPPED, unsubscribedRetentionSize="10K")
    client = box.client()
    client.producer()
    client.send(0, b"x" * 20 * KIB)
    box.advance(1)
    assert stored(box) == 0
    box.auto = False
    client.send(1, b"x" * 20 * KIB)
    topic = topic_of(box)
    assert not topic.trim_unsubscribed(box.now)
    assert topic.ledger.size > 20 * KIB
    box.auto = True
    box.turn()
    box.advance(2)
    assert stored(box) == 0
    assert client.names().count("send_receipt") == 2


def test_an_open_transaction_holds_its_ledger_and_others_go() -> None:
    box = Box(**SHIPPED, unsubscribedRetentionSize="30K")
    client = box.client()
    client.producer()
    txn = Txn(client, 3_600_000)
    txn.send(0)
    for number in range(1, 4):
        client.send(number, b"x" * 10 * KIB)
    publish(box, 3, 10 * KIB, topic=TOPIC + "-other")
    box.advance(3)
    assert stored(box) > 30 * KIB
    assert stored(box, TOPIC + "-other") == 0
    txn.commit()
    box.advance(3)
    assert stored(box) == 0


def test_many_ledgers_go_in_small_turns() -> None:
    box = Box(**SHIPPED, managedLedgerMaxEntriesPerLedger=1)
    publish(box, 200, KIB)
    box.broker.configuration.update("unsubscribedRetentionSize", "10K", box.now)
    turns = 0
    while index(box).bytes > 10 * KIB:
        before = len(topic_of(box).ledger.ledgers)
        box.broker.on_timer(box.now)
        box.turn()
        assert before - len(topic_of(box).ledger.ledgers) <= 5
        turns += 1
    assert turns > 30


# Edge cases


def test_the_topic_of_health_checks_is_not_kept() -> None:
    box = Box(**SHIPPED)
    box.broker.topics.of_box(parse_topic(HEALTH_TOPIC), box.now)
    publish(box, 1, topic=HEALTH_TOPIC)
    assert index(box).topics == 0
    assert topic_of(box, HEALTH_TOPIC).ledgers.unsubscribed.find() is None


def test_the_cursor_of_compaction_covers_nothing() -> None:
    box = Box(**SHIPPED, brokerServiceCompactionThresholdInBytes=1)
    publish(box, 3)
    box.advance(HOUR)
    assert list(topic_of(box).subscriptions) == ["__compaction"]
    assert stored(box) > 0
    assert index(box).topics == 1
    topic_of(box).remove_subscription(topic_of(box).subscriptions["__compaction"], box.now)
    box.turn()
    box.advance(DAY)
    found = topic_of(box).ledgers.unsubscribed.find()
    assert found is not None
    assert found.messages == 3


def test_each_partition_is_a_topic_of_its_own() -> None:
    box = Box(**SHIPPED)
    box.broker.topics.create_partitioned(parse_topic(TOPIC), 3, box.now)
    publish(box, 1, topic=f"{TOPIC}-partition-1")
    box.advance(HOUR)
    assert [exists(box, f"{TOPIC}-partition-{number}") for number in range(3)] == [False, True, False]


def test_truncating_and_deleting_take_it_along() -> None:
    box = Box(**SHIPPED)
    for name in (TOPIC, TOPIC + "-2"):
        publish(box, 3, topic=name)
    topic_of(box).truncate(lambda now: None, box.now)
    box.broker.topics.delete(parse_topic(TOPIC + "-2"), box.now, force=True)
    box.turn()
    assert (stored(box), index(box).bytes, index(box).topics) == (0, 0, 0)
    (deleted,) = events(box, "topic-deleted")
    assert (deleted["reason"], deleted["messages"]) == ("request", 3)


def test_a_namespace_goes_with_what_its_topics_hold() -> None:
    box = Box(**SHIPPED)
    publish(box, 3)
    for step in box.broker.removal.of_namespace("public/default", force=True):
        step(box.now)
    box.turn()
    (deleted,) = events(box, "topic-deleted")
    assert (deleted["reason"], deleted["messages"]) == ("namespace", 3)
    assert index(box).bytes == index(box).topics == 0
