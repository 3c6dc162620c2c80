"""The live view of quotas: limited object, level, usage, and throttled time."""

from typing import Any

import pytest

from pulsarbox.protocol.policies.policy_values import QUOTA_AGE as AGE
from pulsarbox.protocol.policies.policy_values import QUOTA_SIZE as SIZE
from tests.unit.broker.limits.rates import (
    EXCLUSIVE,
    SHARED,
    dispatch_rate,
    fill,
    got,
    join,
    publish_rate,
    set_namespace,
    set_topic,
)
from tests.unit.broker.playbook import TOPIC, Box
from tests.unit.server.live.views import Row, rows

PATIENT: dict[str, Any] = {"keepAliveIntervalSeconds": 86_400}


def limits(box: Box, policy: str = "", **query: str) -> list[Row]:
    """Return the rows of the view, optionally of one policy only."""
    return [row for row in rows(box, "quotas", limit="1000", **query) if row["policy"].startswith(policy)]


def limit(box: Box, policy: str, scope: str = "", unit: str = "") -> Row:
    """Return the only row of a policy."""
    found = [row for row in limits(box, policy) if scope in row["scope"] and unit in row["unit"]]
    assert len(found) == 1, found
    return found[0]


def test_each_level_of_dispatch_says_what_is_used_and_which_of_them_holds() -> None:
    box = Box(dispatchThrottlingRateInMsg=40, **PATIENT)
    box.broker.put_resource_group("g", {"dispatchRateInMsgs": 30}, box.now)
    box.broker.tenants.set_policy("public/default", "resource_group_name", "g", box.now)
    set_namespace(box, "topicDispatchRate", {"standalone": dispatch_rate(20)})
    set_topic(box, "subscriptionPolicies", {"s": {"dispatchRate": dispatch_rate(10)}})
    fill(box, 600)
    client = join(box)
    limits(box)
    for _ in range(5):
        box.advance(1.0)
        limits(box)
        got(client)
    found = {row["scope"]: row for row in limits(box) if row["unit"] == "messages/s"}
    assert {scope: (row["subject"], row["policy"], row["level"], row["limit"]) for scope, row in found.items()} == {
        "broker": ("box", "dispatchThrottlingRateInMsg", "broker", 40),
        "resource group": ("g", "dispatchRateInMsgs", "resource group", 30),
        "topic": (TOPIC, "dispatch-rate", "namespace", 20),
        "subscription": (f"{TOPIC} s", "subscription-dispatch-rate", "topic", 10),
    }
    assert {scope: row["used"] for scope, row in found.items()} == dict.fromkeys(found, 10.0)
    assert {scope: row["share"] for scope, row in found.items()} == {
        "broker": 0.25, "resource group": 10 / 30, "topic": 0.5, "subscription": 1.0,
    }  # fmt: skip
    assert {scope: (row["holding"], row["held"], row["waiting"]) for scope, row in found.items()} == {
        "broker": (False, 0, 0), "resource group": (False, 0, 0), "topic": (False, 0, 0),
        "subscription": (True, 5000, 1),
    }  # fmt: skip
    box.advance(120.0)
    assert limit(box, "subscription-dispatch-rate")["held"] == 0, "its backlog was gone a minute ago"


def test_a_publish_rate_by_messages_and_by_bytes() -> None:
    box = Box(**PATIENT)
    set_topic(box, "publishRate", publish_rate(2, 10_000))
    client = box.client()
    client.producer()
    for i in range(5):
        client.send(i)
    by_messages, by_bytes = (limit(box, "publish-rate", unit=unit) for unit in ("messages/s", "bytes/s"))
    assert (by_messages["limit"], by_messages["holding"], by_messages["level"]) == (2, True, "topic")
    assert by_bytes["limit"] == 10_000
    assert 0 < by_bytes["share"] < 1
    assert by_messages["share"] >= 1


def test_the_quota_of_a_backlog_says_how_long_it_kept_producers_away() -> None:
    box = Box(**PATIENT)
    set_topic(box, "backLogQuotaMap", {
        SIZE: {"limit": 200, "limitSize": 200, "limitTime": -1, "policy": "producer_request_hold"},
        AGE: {"limit": -1, "limitSize": -1, "limitTime": 3600, "policy": "consumer_backlog_eviction"},
    })  # fmt: skip
    client = box.client()
    client.subscribe()
    ids = client.publish(3)
    size, age = limit(box, "backlog-quota:destination"), limit(box, "backlog-quota:message_age")
    assert (size["limit"], size["unit"], size["holding"], size["held"]) == (200, "bytes", False, 0)
    assert 0 < size["share"] < 1
    assert (age["limit"], age["unit"], age["holding"]) == (3600, "s", False)
    assert (size["then"], size["evictions"], age["then"]) == ("hold", 0, "evict")
    fill(box, 8)
    box.advance(7.0)
    size = limit(box, "backlog-quota:destination")
    assert (size["holding"], size["held"]) == (True, 7000)
    assert size["share"] >= 1
    client.flow(100)
    client.ack(*ids, *[(ids[0][0], i) for i in range(3, 11)])
    box.advance(10.0)
    size = limit(box, "backlog-quota:destination")
    assert (size["holding"], size["held"], size["used"]) == (False, 7000, 0)
    assert limit(box, "backlog-quota:message_age")["used"] is None, "there is no message"


def test_the_quota_of_a_backlog_counts_its_evictions() -> None:
    box = Box(maxProducersPerTopic=2, **PATIENT)
    set_topic(box, "backLogQuotaMap", {
        SIZE: {"limit": 200, "limitSize": 200, "limitTime": -1, "policy": "consumer_backlog_eviction"},
    })  # fmt: skip
    box.client().subscribe()
    fill(box, 20)
    size = limit(box, "backlog-quota:destination")
    assert (size["then"], size["holding"]) == ("evict", False)
    assert size["evictions"] > 0 and 0 < size["share"] <= 1
    assert {row["then"] for row in limits(box, "max-producers")} == {None}


def test_counts_of_producers_consumers_subscriptions_topics_and_connections() -> None:
    box = Box(
        maxProducersPerTopic=2, maxConsumersPerTopic=5, maxConsumersPerSubscription=4, maxSubscriptionsPerTopic=8,
        maxTopicsPerNamespace=10, brokerMaxConnections=100, **PATIENT,
    )  # fmt: skip
    set_topic(box, "maxProducerPerTopic", 1)
    join(box).producer()
    found = {row["policy"]: row for row in limits(box)}
    told = {
        policy: (row["scope"], row["used"], row["limit"], row["level"], row["holding"]) for policy, row in found.items()
    }
    assert told == {
        "max-producers": ("topic", 1, 1, "topic", True),
        "max-consumers": ("topic", 1, 5, "broker", False),
        "max-subscriptions-per-topic": ("topic", 1, 8, "broker", False),
        "max-consumers-per-subscription": ("subscription", 1, 4, "broker", False),
        "max-topics-per-namespace": ("namespace", 1, 10, "broker", False),
        "brokerMaxConnections": ("broker", 1, 100, "broker", False),
    }


def test_unacknowledged_messages_are_limited_where_several_share_them() -> None:
    box = Box(maxUnackedMessagesPerConsumer=4, maxUnackedMessagesPerSubscription=100, **PATIENT)
    fill(box, 20)
    join(box, EXCLUSIVE, "alone")
    client = join(box, SHARED, "s")
    box.advance(3.0)
    each, together = limit(box, "max-unacked-messages-per-c"), limit(box, "max-unacked-messages-per-s")
    assert (each["used"], each["limit"], each["holding"], each["held"]) == (4, 4, True, 3000)
    assert (together["used"], together["limit"], together["holding"]) == (4, 100, False)
    assert each["subscription"] == "s"
    client.cnx.closed(box.now)
    assert not limits(box, "max-unacked-messages"), "nobody has any"


def test_a_tenant_sees_its_own_alone() -> None:
    box = Box(dispatchThrottlingRateInMsg=40, **PATIENT)
    set_topic(box, "dispatchRate", dispatch_rate(20))
    join(box)
    assert {row["scope"] for row in limits(box)} >= {"broker", "topic"}
    assert {row["topic"] for row in limits(box, tenant="public")} == {TOPIC}
    assert limits(box, tenant="other") == []


def test_which_hold_now_is_a_filter() -> None:
    box = Box(**PATIENT)
    set_topic(box, "dispatchRate", dispatch_rate(20))
    set_topic(box, "publishRate", publish_rate(1000))
    fill(box, 100)
    join(box)
    assert [row["policy"] for row in limits(box, filter="holding")] == ["dispatch-rate"]
    assert [row["policy"] for row in limits(box, filter="/publish")] == ["publish-rate"]


@pytest.mark.parametrize("key", ["scope", "policy", "unit", "share"])
def test_rows_are_ordered_by_any_column(key: str) -> None:
    box = Box(maxProducersPerTopic=2, maxConsumersPerTopic=5, brokerMaxConnections=100, **PATIENT)
    join(box)
    values: list[Any] = [row[key] for row in limits(box, sort=key, order="asc")]
    assert len(values) == 3
    assert values == sorted(values)
