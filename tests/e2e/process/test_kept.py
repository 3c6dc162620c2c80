"""Retention, expiry and quotas as seen by the official client, with the virtual clock."""

import threading
from collections.abc import Iterator
from datetime import timedelta
from pathlib import Path
from typing import Any

import pulsar
import pytest

from pulsarbox import BoxError, PulsarBox
from tests.e2e.clients import (
    EARLIEST,
    PATIENCE_SECONDS,
    QUIET_MS,
    connect,
    is_quiet,
    numbered,
    read_to_end,
    send_all,
    take,
    until,
)
from tests.tools.campaigns import short

NS = "/admin/v2/namespaces/public/default"
MIB = 1 << 20


@pytest.fixture
def kept(tmp_path: Path) -> Iterator[PulsarBox]:
    with PulsarBox(
        data_dir=tmp_path / "data",
        clock="virtual",
        managedLedgerMaxSizePerLedgerMbytes=1,
        journalVolumeSizeMbytes=2,
        journalMaxBatchMbytes=1,
        maxMessageSize=1_000_000,
        brokerUnloadIdleTopicsAfterSeconds=1,
    ) as box:
        yield box


@pytest.fixture
def client(kept: PulsarBox) -> Iterator[Any]:
    opened = connect(kept.service_url)
    yield opened
    opened.close()


def of(box: PulsarBox, topic: str, path: str = "stats") -> Any:
    return box.admin("GET", f"/admin/v2/persistent/public/default/{topic}/{path}")


def backlog(box: PulsarBox, topic: str, subscription: str = "s") -> int:
    found: int = of(box, topic)["subscriptions"][subscription]["msgBacklog"]
    return found


def exists(box: PulsarBox, topic: str) -> bool:
    return f"persistent://public/default/{topic}" in box.admin("GET", "/admin/v2/persistent/public/default")


def unloaded(box: PulsarBox, topic: str) -> None:
    """Unload the topic. A request for its statistics loads it again."""
    box.admin("PUT", f"/admin/v2/persistent/public/default/{topic}/unload")


def quota(
    box: PulsarBox, kind: str, follows: str, *, size: int = -1, seconds: int = -1, exclude_delayed: bool = False
) -> None:
    body = {"limitSize": size, "limitTime": seconds, "policy": follows, "excludeDelayed": exclude_delayed}
    box.admin("POST", f"{NS}/backlogQuota?backlogQuotaType={kind}", body)


@pytest.mark.parametrize("in_memory", [True, False])
def test_messages_expire_after_ten_days(kept: PulsarBox, client: Any, *, in_memory: bool) -> None:
    kept.admin("POST", f"{NS}/messageTTL", 10 * 86_400)
    client.subscribe("t", "s", initial_position=EARLIEST).close()
    client.subscribe("t", "delayed", initial_position=EARLIEST).close()
    producer = client.create_producer("t")
    send_all(producer, numbered(100))
    producer.send(b"later", deliver_after=timedelta(days=20))
    producer.close()
    if not in_memory:
        unloaded(kept, "t")
    kept.clock.advance(days=9, hours=23)
    assert backlog(kept, "t") == 101
    if not in_memory:
        unloaded(kept, "t")
    kept.clock.advance(hours=2)
    until(lambda: (backlog(kept, "t"), backlog(kept, "t", "delayed")) == (0, 0))
    client.create_producer("t").send(b"new")
    assert take(client.subscribe("t", "s"), 1) == [b"new"]


@pytest.mark.parametrize("in_memory", short([True, False], 1))
def test_what_is_acknowledged_is_kept_for_three_hours_and_its_disk_comes_back(
    kept: PulsarBox, client: Any, *, in_memory: bool
) -> None:
    kept.admin("POST", f"{NS}/retention", {"retentionTimeInMinutes": 180, "retentionSizeInMB": -1})
    consumer = client.subscribe("t", "s", initial_position=EARLIEST)
    producer = client.create_producer("t")
    send_all(producer, [b"x" * (MIB // 4)] * 12)
    assert len(take(consumer, 12)) == 12
    consumer.close()
    producer.close()
    data = kept.data_dir
    assert data is not None
    before = disk(data)
    for _ in range(2):
        if not in_memory:
            unloaded(kept, "t")
        kept.clock.advance(hours=1, minutes=29)
    assert of(kept, "t")["storageSize"] >= 3 * MIB
    reader = client.create_reader("t", pulsar.MessageId.earliest)
    assert len(read_to_end(reader)) == 12
    reader.close()
    if not in_memory:
        unloaded(kept, "t")
    kept.clock.advance(minutes=5)
    until(lambda: of(kept, "t")["storageSize"] == 0)
    until(lambda: disk(data) < before - 2 * MIB)


def disk(path: Path) -> int:
    return sum(each.stat().st_blocks * 512 for each in (path / "volumes").rglob("*") if each.is_file())


def test_a_size_limit_keeps_the_newest_and_readers_hold_nothing(kept: PulsarBox, client: Any) -> None:
    kept.admin("POST", f"{NS}/retention", {"retentionTimeInMinutes": -1, "retentionSizeInMB": 3})
    waiting = client.create_reader("t", pulsar.MessageId.earliest, receiver_queue_size=1)
    producer = client.create_producer("t", batching_enabled=False)
    send_all(producer, [b"x" * (MIB // 4)] * 40)
    until(lambda: 3 * MIB <= of(kept, "t")["storageSize"] <= 4.5 * MIB)
    reader = client.create_reader("t", pulsar.MessageId.earliest)
    assert 12 <= len(read_to_end(reader)) <= 18
    assert len(read_to_end(waiting)) < 25, "it goes on where the topic begins now"
    kept.admin("POST", f"{NS}/retention", {"retentionTimeInMinutes": 0, "retentionSizeInMB": 0})
    kept.clock.advance(minutes=11)
    until(lambda: of(kept, "t")["storageSize"] == 0)


def filled(box: PulsarBox, client: Any) -> Any:
    """Return a producer and a topic whose backlog has reached its quota; the producer's client has no notice yet."""
    client.subscribe("t", "s", initial_position=EARLIEST).close()
    producer = client.create_producer("t", batching_enabled=False, send_timeout_millis=60_000)
    send_all(producer, [b"x" * 10_000] * 11)
    until(lambda: len(of(box, "t")["publishers"]) == 0)
    return producer


def test_a_held_producer_waits_and_goes_on_when_the_backlog_falls(kept: PulsarBox, client: Any) -> None:
    quota(kept, "destination_storage", "producer_request_hold", size=110_000)
    producer = filled(kept, client)
    with pytest.raises(pulsar.ProducerBlockedQuotaExceededError):
        connect(kept.service_url).create_producer("t")
    sent = threading.Event()
    producer.send_async(b"held", lambda result, _: sent.set() if result == pulsar.Result.Ok else None)
    assert not sent.wait(QUIET_MS / 1000)
    assert backlog(kept, "t") == 11
    consumer = client.subscribe("t", "s")
    assert take(consumer, 11) == [b"x" * 10_000] * 11
    assert sent.wait(PATIENCE_SECONDS)
    assert take(consumer, 1) == [b"held"]
    assert is_quiet(consumer), "nothing is stored twice"


def test_a_producer_gets_an_exception_and_can_come_back_later(kept: PulsarBox, client: Any) -> None:
    quota(kept, "destination_storage", "producer_exception", size=110_000)
    producer = filled(kept, client)
    with pytest.raises(pulsar.ProducerBlockedQuotaExceededException):
        producer.send(b"refused")
    with pytest.raises(pulsar.ProducerBlockedQuotaExceededException):
        connect(kept.service_url).create_producer("t")
    assert len(take(client.subscribe("t", "s"), 11)) == 11
    until(lambda: backlog(kept, "t") == 0)
    client.create_producer("t").send(b"again")


def test_the_oldest_messages_go_where_the_policy_evicts(kept: PulsarBox, client: Any) -> None:
    quota(kept, "destination_storage", "consumer_backlog_eviction", size=110_000)
    client.subscribe("t", "s", initial_position=EARLIEST).close()
    producer = client.create_producer("t", batching_enabled=False)
    for number in range(30):
        producer.send(b"%d" % number + b"x" * 10_000)
    until(lambda: of(kept, "t")["backlogSize"] < 110_000)
    stats = of(kept, "t")
    assert stats["backlogQuotaLimitSize"] == 110_000
    consumer = client.subscribe("t", "s")
    left = stats["subscriptions"]["s"]["msgBacklog"]
    assert 9 <= left <= 10
    numbers = [int(payload.rstrip(b"x")) for payload in take(consumer, left)]
    assert numbers == list(range(30 - left, 30))


@pytest.mark.parametrize("in_memory", [True, False])
@pytest.mark.parametrize("follows", ["producer_request_hold", "producer_exception", "consumer_backlog_eviction"])
def test_a_backlog_that_is_too_old(kept: PulsarBox, client: Any, follows: str, *, in_memory: bool) -> None:
    quota(kept, "message_age", follows, seconds=3600)
    client.subscribe("t", "s", initial_position=EARLIEST).close()
    producer = client.create_producer("t", send_timeout_millis=60_000)
    producer.send(b"old")
    kept.clock.advance(minutes=30)
    if not in_memory:
        producer.close()
        unloaded(kept, "t")
    kept.clock.advance(minutes=31)
    if follows == "consumer_backlog_eviction":
        until(lambda: backlog(kept, "t") == 0)
        return
    error = (
        pulsar.ProducerBlockedQuotaExceededError
        if follows == "producer_request_hold"
        else pulsar.ProducerBlockedQuotaExceededException
    )
    with pytest.raises(error):
        connect(kept.service_url).create_producer("t")
    stats = of(kept, "t")
    assert 3600 <= stats["oldestBacklogMessageAgeSeconds"] < 3900
    assert stats["oldestBacklogMessageSubscriptionName"] == "s"
    assert take(client.subscribe("t", "s"), 1) == [b"old"]
    until(lambda: backlog(kept, "t") == 0)
    if in_memory and follows == "producer_request_hold":
        producer.send(b"new")
    else:
        client.create_producer("t").send(b"new")


@pytest.mark.parametrize("follows", ["producer_request_hold", "consumer_backlog_eviction"])
def test_a_quota_by_age_that_leaves_out_what_is_delayed(kept: PulsarBox, client: Any, follows: str) -> None:
    quota(kept, "message_age", follows, seconds=3600, exclude_delayed=True)
    consumer = client.subscribe("t", "s", consumer_type=pulsar.ConsumerType.Shared)
    producer = client.create_producer("t", send_timeout_millis=60_000)
    producer.send(b"late", deliver_after=timedelta(days=10))
    kept.clock.advance(days=5)
    producer.send(b"plain")
    producer.close()
    kept.clock.advance(minutes=61)
    if follows == "consumer_backlog_eviction":
        until(lambda: backlog(kept, "t") == 1)
    else:
        with pytest.raises(pulsar.ProducerBlockedQuotaExceededError):
            connect(kept.service_url).create_producer("t")
        assert take(consumer, 1) == [b"plain"]
        until(lambda: backlog(kept, "t") == 1)
    client.create_producer("t").send(b"after")
    consumer.close()
    consumer = client.subscribe("t", "s", consumer_type=pulsar.ConsumerType.Shared)
    assert take(consumer, 1) == [b"after"]
    kept.clock.advance(days=5)
    assert take(consumer, 1) == [b"late"]


def test_topics_that_nobody_uses_go_after_a_minute_and_used_ones_stay(kept: PulsarBox, client: Any) -> None:
    client.create_producer("unused").close()
    producer = client.create_producer("produced")
    client.subscribe("subscribed", "s").close()
    kept.clock.advance(seconds=30)
    assert exists(kept, "unused")
    kept.clock.advance(seconds=31)
    until(lambda: not exists(kept, "unused"))
    assert [exists(kept, name) for name in ("produced", "subscribed")] == [True, True]
    kept.clock.advance(days=1)
    assert [exists(kept, name) for name in ("produced", "subscribed")] == [True, True]
    producer.send(b"works")
    body = {
        "inactiveTopicDeleteMode": "delete_when_subscriptions_caught_up",
        "maxInactiveDurationSeconds": 3600,
        "deleteWhileInactive": True,
    }
    kept.admin("POST", f"{NS}/inactiveTopicPolicies", body)
    unloaded(kept, "subscribed")
    kept.clock.advance(hours=1, seconds=1)
    until(lambda: not exists(kept, "subscribed"))
    assert exists(kept, "produced")


@pytest.mark.parametrize("in_memory", [True, False])
def test_subscriptions_that_nobody_uses_expire(kept: PulsarBox, client: Any, *, in_memory: bool) -> None:
    kept.admin("POST", f"{NS}/subscriptionExpirationTime", 60)
    client.subscribe("t", "unused", initial_position=EARLIEST).close()
    used = client.subscribe("t", "used", initial_position=EARLIEST)
    if not in_memory:
        used.close()
        unloaded(kept, "t")
    kept.clock.advance(minutes=58)
    assert set(of(kept, "t")["subscriptions"]) == {"unused", "used"}
    if not in_memory:
        unloaded(kept, "t")
    kept.clock.advance(minutes=3)
    left = {"used"} if in_memory else set()
    until(lambda: set(of(kept, "t")["subscriptions"] if exists(kept, "t") else {}) == left)


def test_a_policy_holds_over_a_restart_for_topics_that_nobody_loads(kept: PulsarBox) -> None:
    kept.admin("POST", f"{NS}/messageTTL", 3600)
    client = connect(kept.service_url)
    client.subscribe("t", "s", initial_position=EARLIEST).close()
    client.create_producer("t").send(b"x")
    client.close()
    kept.restart()
    kept.clock.advance(hours=1, seconds=1)
    until(lambda: backlog(kept, "t") == 0)


@pytest.mark.parametrize("what", ["trim", "truncate"])
def test_trim_obeys_retention_and_truncate_does_not(kept: PulsarBox, client: Any, what: str) -> None:
    kept.admin("POST", f"{NS}/retention", {"retentionTimeInMinutes": 60, "retentionSizeInMB": -1})
    client.subscribe("t", "s", initial_position=EARLIEST).close()
    send_all(client.create_producer("t", batching_enabled=False), [b"x" * (MIB // 4)] * 8)
    method, left = ("POST", 8) if what == "trim" else ("DELETE", 0)
    kept.admin(method, f"/admin/v2/persistent/public/default/t/{what}")
    stats = of(kept, "t")
    assert (stats["subscriptions"]["s"]["msgBacklog"], stats["storageSize"] > 0) == (left, left > 0)


def test_the_clock_of_a_box_that_is_real_cannot_be_moved(tmp_path: Path) -> None:
    with PulsarBox(data_dir=tmp_path / "d") as box, pytest.raises(BoxError, match="--clock virtual"):
        box.clock.advance(days=1)
