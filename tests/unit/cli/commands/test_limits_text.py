"""Output of `quota show` and `quota explain`."""

import time
from typing import Any

import pytest

from pulsarbox.cli.commands.limits_text import explanation, rows_of, value_words
from pulsarbox.names import parse_topic
from pulsarbox.protocol.policies.policy_values import AGE_QUOTA, SIZE_QUOTA

TOPIC = parse_topic("orders")


def report(limits: str = "dispatch", scope: str = "topic", **more: Any) -> dict[str, Any]:
    return {
        "limits": limits,
        "scope": scope,
        "name": "n",
        "setBy": "namespace",
        "periodSeconds": 1,
        "messagesLimit": 10,
        "messagesUsed": 10,
        "bytesLimit": 0,
        "bytesUsed": 0,
        "nextPeriodMillis": 400,
        "waiting": 1,
        "heldMillisLastMinute": 35_000,
    } | more


def stats(**more: Any) -> dict[str, Any]:
    return {
        "backlogQuotaLimitSize": -1,
        "backlogQuotaLimitTime": -1,
        "backlogSize": 3 << 20,
        "oldestBacklogMessageAgeSeconds": 7,
        "subscriptions": {},
        "waitingPublishers": 2,
    } | more


def policy(*levels: tuple[str, Any]) -> dict[str, Any]:
    said = [{"level": level, "value": value} for level, value in levels]
    return said[0] | {"levels": said}


RATE = {"dispatchThrottlingRateInMsg": 10, "dispatchThrottlingRateInByte": -1, "ratePeriodInSecond": 1}
QUOTA = {"limit": 1 << 20, "limitSize": 1 << 20, "limitTime": -1, "policy": "producer_request_hold"}


@pytest.mark.parametrize(
    ("name", "value", "words"),
    [
        ("dispatch-rate", None, "no limit"),
        ("dispatch-rate", RATE, "10 messages a second"),
        (
            "dispatch-rate",
            RATE | {"relativeToPublishRate": True},
            "10 messages a second, in addition to the publish rate",
        ),
        (
            "dispatch-rate",
            RATE | {"dispatchThrottlingRateInByte": 2048, "ratePeriodInSecond": 5},
            "10 messages and 2.0 KiB in 5 s",
        ),
        ("dispatch-rate", RATE | {"dispatchThrottlingRateInMsg": 0}, "no limit"),
        ("publish-rate", {"publishThrottlingRateInMsg": -1, "publishThrottlingRateInByte": 100}, "100 B a second"),
        ("subscribe-rate", {"subscribeThrottlingRatePerConsumer": 3, "ratePeriodInSecond": 30}, "3 times in 30 s"),
        ("subscribe-rate", {"subscribeThrottlingRatePerConsumer": 0, "ratePeriodInSecond": 30}, "no limit"),
        (SIZE_QUOTA, QUOTA, "1.0 MiB, then producers are blocked"),
        (
            AGE_QUOTA,
            {"limit": -1, "limitTime": 7200, "policy": "producer_exception"},
            "2.0 h, then producers are rejected",
        ),
        (SIZE_QUOTA, {"limit": -1, "limitTime": 7200, "policy": "producer_exception"}, "no limit"),
        (AGE_QUOTA, QUOTA | {"limitTime": 0}, "no limit"),
        (SIZE_QUOTA, QUOTA | {"policy": None}, "1.0 MiB, then producers are blocked"),
        (SIZE_QUOTA, {"limit": -1, "limitTime": -1, "policy": "producer_request_hold"}, "no limit"),
    ],
)
def test_values(name: str, value: Any, words: str) -> None:
    assert value_words(name, value) == words


def test_rows_of_a_topic_are_its_own_limits_and_those_of_each_subscription() -> None:
    own, of_subscription = report(), report(scope="subscription", messagesUsed=0, heldMillisLastMinute=0)
    found = stats(limits=[report("publish", bytesLimit=2048, bytesUsed=1024), own])
    found["subscriptions"] = {"s": {"limits": [own, of_subscription]}}
    rows = list(rows_of(TOPIC, found, {}, None))
    assert [(row["limit"], row["of"], row["allowed"], row["used"], row["held"]) for row in rows] == [
        ("publish", "orders", "10 messages and 2.0 KiB a second", "10 messages and 1.0 KiB", "35 s"),
        ("dispatch", "orders", "10 messages a second", "10 messages", "35 s"),
        ("dispatch", "s on orders", "10 messages a second", "0 messages", ""),
    ]
    assert [row["of"] for row in rows_of(TOPIC, found, {}, "s")] == ["orders", "s on orders"]


def test_a_quota_is_a_row_and_holds_while_the_backlog_is_larger() -> None:
    policies = {"backlog-quota:destination_storage": policy(("topic", QUOTA))}
    (row,) = rows_of(TOPIC, stats(backlogQuotaLimitSize=1 << 20), policies, None)
    assert (row["limit"], row["allowed"], row["used"], row["setBy"], row["waiting"], row["held"]) == (
        "backlog size", "1.0 MiB", "3.0 MiB", "topic", 2, "now",
    )  # fmt: skip
    (row,) = rows_of(TOPIC, stats(backlogQuotaLimitSize=4 << 20), policies, None)
    assert (row["waiting"], row["held"]) == (0, "")


def test_a_producer_that_waits_is_a_row(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(time, "time", lambda: 1000.0)
    found = stats(limits=[report("publish")], subscriptions={})
    why = {"reason": "suspended", "since": 940_000, "text": "suspended until its receipts are sent"}
    waiting = {"producerName": "p", "address": "/127.0.0.1:1", "held": {"receipts": 38, "bytes": 2 << 20}, "why": why}
    found["publishers"] = [{"producerName": "q", "address": "/127.0.0.1:1"}, waiting]
    _, row = rows_of(TOPIC, found, {}, None)
    assert (row["limit"], row["of"], row["used"], row["waiting"], row["held"], row["why"]) == (
        "producer", "p of 127.0.0.1:1", "2.0 MiB held", 38, "now",
        "suspended until its receipts are sent, 1.0 min ago",
    )  # fmt: skip
    assert explanation(TOPIC, found, {}, None)[-2:] == [
        "producer p of 127.0.0.1:1",
        "  waits      suspended until its receipts are sent, 1.0 min ago",
    ]
    assert list(rows_of(TOPIC, found | {"subscriptions": {"s": {}}}, {}, "s")) == []


def test_the_explanation_names_each_level_and_what_holds_now() -> None:
    policies = {
        "dispatch-rate": policy(("namespace", RATE), ("broker", None)),
        "backlog-quota:destination_storage": policy(("topic", QUOTA), ("broker", QUOTA | {"limitSize": -1})),
    }
    found = stats(backlogQuotaLimitSize=1 << 20, limits=[report()])
    found["subscriptions"] = {
        "s": {
            "limits": [report()],
            "msgBacklog": 3,
            "backlogMessages": 1200,
            "secondsToDrain": 120,
            "why": {"text": "the dispatch rate is reached", "since": 0},
        }
    }
    assert explanation(TOPIC, found, policies, "s") == [
        "s on orders: a backlog of 1,200 messages, drained in 2.0 min at the rates of the last minute",
        "  not dispatched: the dispatch rate is reached",
        "",
        "dispatch-rate",
        "  topic      not set",
        "  namespace  10 messages a second    <- in effect",
        "  broker     no limit",
        "  now        10 messages of 10 messages a second, next period in 0.4 s; 1 waits; throttled for 35 s of the"
        " last minute",
        "",
        "backlog-quota:destination_storage",
        "  topic      1.0 MiB, then producers are blocked    <- in effect",
        "  namespace  not set",
        "  broker     no limit",
        "  now        3.0 MiB of 1.0 MiB: producers are blocked",
    ]


def test_limits_of_the_box_and_of_groups_are_explained_too() -> None:
    found = stats(limits=[report(scope="broker", setBy="broker"), report("publish", "resource group", setBy="group")])
    lines = explanation(TOPIC, found, {}, None)
    assert lines[0] == "dispatch of the box: 10 messages a second, set for the broker"
    assert lines[3] == "publish of resource group n: 10 messages a second, set for the group"
