"""The live view of subscriptions: columns, and causes of backlogs."""

from typing import Any

import pytest

from pulsarbox.broker.stats import oldest_message_age
from tests.unit.broker.limits.rates import EXCLUSIVE, KEY_SHARED, SHARED, dispatch_rate, fill, join, set_topic
from tests.unit.broker.playbook import TOPIC, Box
from tests.unit.server.live.views import Row, rows

PATIENT: dict[str, Any] = {"keepAliveIntervalSeconds": 86_400}


def subscription(box: Box, name: str = "s", **query: str) -> Row:
    """Return the row of a subscription."""
    found = [row for row in rows(box, "subscriptions", **query) if row["subscription"] == name]
    assert len(found) == 1, found
    return found[0]


def test_the_row_of_a_subscription_that_is_read() -> None:
    box = Box(**PATIENT)
    client = join(box, SHARED, permits=10)
    ids = box.client().publish(4)
    client.ack(ids[0])
    row = subscription(box)
    assert {name: row[name] for name in ("topic", "subscription", "type", "backlog", "unacked", "consumers")} == {
        "topic": TOPIC, "subscription": "s", "type": "Shared", "backlog": 3, "unacked": 3, "consumers": 1,
    }  # fmt: skip
    assert (row["loaded"], row["delayed"], row["drain"], row["cause"]) == (True, 0, None, "unacknowledged")
    assert row["causeText"].startswith("all messages are dispatched")
    client.ack(*ids[1:])
    row = subscription(box)
    assert (row["backlog"], row["drain"], row["cause"], row["causeText"], row["oldest"]) == (0, 0, None, None, None)


def test_causes() -> None:
    box = Box(maxUnackedMessagesPerConsumer=5, **PATIENT)
    fill(box, 50)
    set_topic(box, "subscriptionPolicies", {"throttled": {"dispatchRate": dispatch_rate(2)}})
    join(box, EXCLUSIVE, "throttled")
    join(box, EXCLUSIVE, "slow", permits=3)
    join(box, SHARED, "limited")
    gone = join(box, EXCLUSIVE, "gone")
    gone.cnx.closed(box.now)
    holder = join(box, KEY_SHARED, "keys", permits=100)
    found = {row["subscription"]: row["cause"] for row in rows(box, "subscriptions")}
    assert found == {
        "throttled": "throttled", "slow": "no-permits", "limited": "unacked-limit", "gone": "no-consumer",
        "keys": "unacked-limit",
    }  # fmt: skip
    assert holder.cnx.consumers
    assert [row["subscription"] for row in rows(box, "subscriptions", filter='cause == "throttled"')] == ["throttled"]
    assert subscription(box, "slow")["causeSince"] == box.wall


def test_what_is_not_due_is_the_cause_too() -> None:
    box = Box(**PATIENT)
    client = join(box, SHARED)
    client.producer()
    client.send(0, deliver_at_time=box.wall + 60_000)
    row = subscription(box)
    assert (row["cause"], row["delayed"], row["backlog"]) == ("delayed", 1, 1)


def test_the_age_of_the_oldest_unacknowledged_message() -> None:
    box = Box(**PATIENT)
    client = join(box, SHARED)
    ids = box.client().publish(2)
    box.advance(30.0)
    box.client().publish(1)
    assert subscription(box)["oldest"] == 30.0
    client.ack(ids[0])
    assert subscription(box)["oldest"] == 30.0, "the second is as old"
    client.ack(ids[1])
    assert subscription(box)["oldest"] == 0.0


def test_what_is_on_the_disk_is_read_for_its_age_so_many_a_second(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(oldest_message_age, "READS_A_SECOND", 2)
    box = Box(**PATIENT)
    client = box.client()
    for i in range(5):
        client.subscribe("s", i, f"{TOPIC}{i}")
        client.publish(1, f"{TOPIC}{i}")
    box = box.restart()
    client = box.client()
    for i in range(5):
        client.subscribe("s", i, f"{TOPIC}{i}")
    known = []
    for _ in range(4):
        rows(box, "subscriptions")
        known.append(sum(row["oldest"] is not None for row in rows(box, "subscriptions")))
        box.advance(1.0)
    assert known == [2, 4, 5, 5]


def test_of_a_topic_that_is_not_in_memory_what_its_rows_say() -> None:
    box = Box(**PATIENT)
    client = box.client()
    client.subscribe()
    client.publish(3)
    box = box.restart()
    row = subscription(box)
    assert (row["loaded"], row["backlog"], row["type"], row["consumers"], row["oldest"]) == (False, 3, None, 0, None)
    assert (row["cause"], row["inRate"], row["outRate"]) == ("no-consumer", 0.0, 0.0)
