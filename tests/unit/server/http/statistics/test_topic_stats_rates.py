"""Throttling rates in statistics and metrics."""

from typing import Any

import pytest

from pulsarbox.config import Settings
from pulsarbox.names import parse_topic
from tests.unit.server.http.clients import Client
from tests.unit.server.http.harness import HttpBox
from tests.unit.server.http.statistics.test_metrics import one, recorded, scraped

T = "persistent://public/default/t"
STATS = "/persistent/public/default/t/stats"
LIMITED = Settings(
    dispatchThrottlingRatePerTopicInMsg=10,
    dispatchThrottlingRatePerSubscriptionInByte=1_000_000,
    maxPublishRatePerTopicInMessages=20,
    brokerPublisherThrottlingMaxByteRate=1_000_000,
    subscribeThrottlingRatePerConsumer=5,
)


def set_topic(box: HttpBox, key: str, value: Any) -> None:
    box.broker.policies.set_topic(parse_topic(T), key, value, box.shell.now())


async def test_nothing_is_told_where_nothing_is_limited(box: HttpBox) -> None:
    client = Client(box)
    client.publish(T, 10)
    client.subscribe(T, "s", permits=100)
    stats = (await box.get(STATS)).value
    assert "limits" not in stats
    assert "limits" not in stats["subscriptions"]["s"]
    found = await scraped(box)
    assert one(found, "pulsar_publish_rate_limit_times", topic=T) == 0
    assert "pulsar_subscription_dispatch_throttled_msg_events" not in found


@pytest.mark.settings(LIMITED)
async def test_limits_and_what_they_hold_back(box: HttpBox) -> None:
    client = Client(box)
    producer = client.producer(T, producer_name="p")
    for i in range(25):
        client.send(producer, i, b"x" * 100)
    client.subscribe(T, "s", permits=100)
    client.subscribe(T, "t", permits=100)
    stats = (await box.get(STATS)).value
    assert stats["publishRateLimitedTimes"] == 5
    (publisher,) = stats["publishers"]
    held = publisher["held"]
    assert (held["receipts"], held["connectionIsRead"], held["suspended"]) == (5, True, False)
    assert publisher["why"]["reason"] == "throttled"
    assert publisher["why"]["text"].startswith("5 receipts (")
    assert held["bytes"] > 5 * 356
    limits = {(each["limits"], each["scope"]): each for each in stats["limits"]}
    assert set(limits) == {
        ("publish", "broker"), ("publish", "topic"), ("dispatch", "topic"), ("subscribe", "consumer"),
    }  # fmt: skip
    of_topic = limits["publish", "topic"]
    assert of_topic["setBy"] == "broker"
    assert of_topic["name"] == T
    assert (of_topic["messagesUsed"], of_topic["messagesLimit"], of_topic["waiting"]) == (20, 20, 1)
    assert (of_topic["bytesUsed"], of_topic["bytesLimit"]) == (0, 0)
    assert 0 < of_topic["nextPeriodMillis"] <= 1000
    assert limits["publish", "broker"]["bytesUsed"] > 20 * 100
    dispatch = limits["dispatch", "topic"]
    assert (dispatch["messagesUsed"], dispatch["messagesLimit"], dispatch["waiting"]) == (10, 10, 2)
    one_subscription, other = stats["subscriptions"]["s"], stats["subscriptions"]["t"]
    assert [each["scope"] for each in one_subscription["limits"]] == ["topic", "subscription"]
    assert one_subscription["limits"][1]["bytesUsed"] > 0
    assert other["limits"][1]["bytesUsed"] == 0
    assert one_subscription["dispatchThrottledMsgEventsByTopicLimit"] == 2, "cut to ten, then held back"
    assert one_subscription["dispatchThrottledBytesEventsByTopicLimit"] == 0
    assert one_subscription["dispatchThrottledMsgEventsBySubscriptionLimit"] == 0
    assert one_subscription["why"]["reason"] == "throttled"
    assert "10 messages per second for the topic, set at broker level" in one_subscription["why"]["text"]


@pytest.mark.settings(LIMITED)
async def test_metrics_of_what_is_held_back(box: HttpBox) -> None:
    client = Client(box)
    producer = client.producer(T, producer_name="p")
    for i in range(25):
        client.send(producer, i, b"x" * 100)
    client.subscribe(T, "s", permits=100)
    found = await scraped(box)
    assert one(found, "pulsar_publish_rate_limit_times", topic=T) == 5
    events = "pulsar_subscription_dispatch_throttled_msg_events"
    assert one(found, events, subscription="s", reason="topic") == 2
    assert one(found, events, subscription="s", reason="broker") == 0
    facts = recorded()
    for name in (events, "pulsar_subscription_dispatch_throttled_bytes_events"):
        for sample in found[name]:
            assert sample.kind == facts[name].kind
            assert ",".join(sample.labels) in facts[name].labels


@pytest.mark.settings(LIMITED)
async def test_partitions_add_up(box: HttpBox) -> None:
    await box.put("/persistent/public/default/p/partitions", 2)
    client = Client(box)
    for i in range(2):
        topic = f"persistent://public/default/p-partition-{i}"
        client.publish(topic, 25)
        client.subscribe(topic, "s", permits=100)
    stats = (await box.get("/persistent/public/default/p/partitioned-stats")).value
    assert stats["subscriptions"]["s"]["dispatchThrottledMsgEventsByTopicLimit"] == 4
    assert "limits" not in stats["subscriptions"]["s"]
    parts = stats["partitions"].values()
    assert [each["subscriptions"]["s"]["limits"][0]["messagesLimit"] for each in parts] == [10, 10]
