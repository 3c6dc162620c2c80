"""Quotas and expiry in statistics and metrics, and deadlines that complete before a clock advance is answered."""

from typing import Any

import pytest

from pulsarbox.config import Settings
from pulsarbox.names import parse_topic
from tests.unit.server.http.clients import Client
from tests.unit.server.http.harness import HttpBox, running_box
from tests.unit.server.http.statistics.test_metrics import one, scraped

T = "persistent://public/default/t"
STATS = "/persistent/public/default/t/stats"
VIRTUAL = Settings(brokerClock="virtual")
QUOTAS = {
    "destination_storage": {"limitSize": 5000, "limitTime": -1, "policy": "consumer_backlog_eviction"},
    "message_age": {"limitSize": -1, "limitTime": 3600, "policy": "consumer_backlog_eviction"},
}


def set_policy(box: HttpBox, **values: Any) -> None:
    for key, value in values.items():
        box.broker.tenants.set_policy("public/default", key, value, box.shell.now())
    box.shell.kick()


async def advance(box: HttpBox, by: str) -> None:
    got = await box.ask("POST", "/pulsarbox/v1/clock/advance", {"by": by})
    assert got.status == 200, got.text


@pytest.mark.settings(VIRTUAL)
async def test_quotas_the_age_of_the_backlog_and_evictions_are_told(box: HttpBox) -> None:
    client = Client(box)
    client.subscribe(T, "s")
    client.subscribe(T, "other")
    producer = client.producer(T)
    stats = (await box.get(STATS)).value
    assert (stats["backlogQuotaLimitSize"], stats["backlogQuotaLimitTime"]) == (-1, -1)
    assert stats["oldestBacklogMessageAgeSeconds"] == -1
    assert "oldestBacklogMessageSubscriptionName" not in stats
    set_policy(box, backlog_quota_map=QUOTAS)
    for i in range(3):
        client.send(producer, i, b"x" * 1000)
    await advance(box, "90s")
    stats = (await box.get(STATS)).value
    assert (stats["backlogQuotaLimitSize"], stats["backlogQuotaLimitTime"]) == (5000, 3600)
    assert stats["oldestBacklogMessageAgeSeconds"] == 90
    assert stats["oldestBacklogMessageSubscriptionName"] in ("s", "other")
    for i in range(3, 9):
        client.send(producer, i, b"x" * 1000)
    await advance(box, "1h")
    found = await scraped(box)
    assert one(found, "pulsar_storage_backlog_quota_limit", topic=T) == 5000
    assert one(found, "pulsar_storage_backlog_quota_limit_time", topic=T) == 3600
    assert one(found, "pulsar_storage_backlog_age_seconds", topic=T) == -1
    name = "storage_backlog_quota_exceeded_evictions_total"
    by_size = one(found, f"pulsar_{name}", topic=T, quota_type="destination_storage")
    assert by_size >= 1
    assert one(found, f"pulsar_{name}", topic=T, quota_type="message_age") == 1
    assert one(found, f"pulsar_broker_{name}", quota_type="destination_storage") == by_size


@pytest.mark.settings(VIRTUAL)
async def test_what_has_expired_is_told_with_its_rate(box: HttpBox) -> None:
    client = Client(box)
    client.subscribe(T, "s")
    producer = client.producer(T)
    for i in range(5):
        client.send(producer, i)
    set_policy(box, message_ttl_in_seconds=60)
    await advance(box, "61s")
    stats = (await box.get(STATS)).value["subscriptions"]["s"]
    assert (stats["msgBacklog"], stats["totalMsgExpired"], stats["msgRateExpired"]) == (0, 5, 5.0)
    (of_all,) = (await box.get("/broker-stats/topics")).value["public/default"].values()
    assert of_all["persistent"][T]["subscriptions"]["s"]["msgRateExpired"] == 5.0
    assert stats["lastExpireTimestamp"] == box.shell.now().wall
    found = await scraped(box)
    assert one(found, "pulsar_subscription_total_msg_expired", subscription="s") == 5
    assert one(found, "pulsar_subscription_msg_rate_expired", subscription="s") == 5


async def test_a_clock_that_was_advanced_answers_when_topics_that_nobody_has_in_memory_are_done_too() -> None:
    names = [f"{T}-{number}" for number in range(60)]
    async with running_box(VIRTUAL) as box:
        client = Client(box)
        for number, name in enumerate(names):
            client.subscribe(name, "s")
            client.send(client.producer(name), number)
        client.cnx.closed(box.shell.now())
        for topic in box.broker.topics:
            box.broker.topics.unload(topic, lambda now: None, box.shell.now())
        box.shell.kick()
        assert not list(box.broker.topics)
        set_policy(box, message_ttl_in_seconds=10 * 86_400)
        await advance(box, "11d")
        for name in names:
            stored = box.broker.store.topic(str(parse_topic(name)))
            assert stored is not None
            assert [cursor.backlog_messages for cursor in stored.cursors.values()] == [0], name
