"""Topic statistics, with field names and types recorded from Pulsar 4.2.4 (tests/data)."""

import json
from pathlib import Path
from typing import Any, Final

import pytest

from pulsarbox.clock import Now
from pulsarbox.config import Settings
from tests.unit.server.http.clients import Client
from tests.unit.server.http.harness import HttpBox

RECORDED: Final = json.loads((Path(__file__).parents[4] / "data" / "admin-stats.json").read_text())
OURS: Final = {"why", "backlogMessages", "secondsToDrain", "droppedMessages"}
"""Fields of a subscription that Pulsar does not have."""
SHARED, FAILOVER, KEY_SHARED = 1, 2, 3
T = "persistent://public/default/t"
PATH = "/persistent/public/default"


def kind(value: object) -> str:
    kinds = {bool: "boolean", int: "integer", float: "number", str: "string", list: "array", dict: "object"}
    return kinds[type(value)]


def same_fields(what: str, found: dict[str, Any]) -> None:
    """Check that all fields of Pulsar are present with their types, and that no others exist."""
    recorded = RECORDED[what]
    kinds = {name: kind(value) for name, value in found.items() if name not in OURS}
    assert kinds == recorded


async def test_a_persistent_topic_has_the_fields_of_pulsar(box: HttpBox) -> None:
    client = Client(box)
    client.producer(T, producer_name="p")
    client.publish(T, 10)
    consumer = client.subscribe(T, "shared", permits=100)
    await box.put(f"{PATH}/t/subscription/idle", "earliest")
    client.ack(consumer, (1, 2))
    stats = (await box.get(f"{PATH}/t/stats")).value
    same_fields("topic", stats)
    same_fields("publisher", stats["publishers"][0])
    same_fields("subscription", stats["subscriptions"]["idle"])
    same_fields("shared subscription", stats["subscriptions"]["shared"])
    same_fields("consumer", stats["subscriptions"]["shared"]["consumers"][0])
    same_fields("internal", internal := (await box.get(f"{PATH}/t/internalStats")).value)
    same_fields("ledger", internal["ledgers"][0])
    same_fields("cursor", internal["cursors"]["shared"])
    same_fields("compacted ledger", internal["compactedLedger"])


async def test_each_type_of_subscription_has_the_fields_of_pulsar(box: HttpBox) -> None:
    client = Client(box)
    for name, sub_type in (("ex", 0), ("fo", FAILOVER), ("ks", KEY_SHARED)):
        client.subscribe(T, name, subType=sub_type)
    found = (await box.get(f"{PATH}/t/stats")).value["subscriptions"]
    same_fields("exclusive subscription", found["ex"])
    same_fields("failover subscription", found["fo"])
    same_fields("key_shared subscription", found["ks"])
    same_fields("key_shared consumer", found["ks"]["consumers"][0])
    assert found["ks"]["consumers"][0]["keyHashRangeArrays"] == [[1, 65535]]
    assert found["ks"]["keySharedMode"] == "AUTO_SPLIT"
    assert [found[name]["type"] for name in ("ex", "fo", "ks")] == ["Exclusive", "Failover", "Key_Shared"]
    client.cnx.closed(box.shell.now())
    left = (await box.get(f"{PATH}/t/stats")).value["subscriptions"]["ks"]
    assert (left["consumers"], left["keySharedMode"]) == ([], "AUTO_SPLIT")


async def test_a_topic_that_is_not_persistent_has_the_fields_of_pulsar(box: HttpBox) -> None:
    client = Client(box)
    topic = "non-persistent://public/default/n"
    producer = client.producer(topic)
    client.subscribe(topic, "ns", permits=10)
    client.send(producer, 0)
    stats = (await box.get("/non-persistent/public/default/n/stats")).value
    same_fields("non-persistent topic", stats)
    same_fields("non-persistent publisher", stats["publishers"][0])
    same_fields("non-persistent subscription", stats["subscriptions"]["ns"])
    same_fields("non-persistent consumer", stats["subscriptions"]["ns"]["consumers"][0])
    assert (stats["msgInCounter"], stats["msgOutCounter"]) == (1, 1)
    internal = (await box.get("/non-persistent/public/default/n/internalStats")).value
    same_fields("non-persistent internal", internal)
    same_fields("non-persistent cursor", internal["cursors"]["ns"])
    client.ask("close_producer", producer_id=producer, request_id=90)
    stats = (await box.get("/non-persistent/public/default/n/stats")).value
    assert stats["msgInCounter"] == 1, "what those sent that have gone still counts"


async def test_drops_are_counted_for_the_subscription_the_publisher_and_the_topic(box: HttpBox) -> None:
    """Rates treat intervals shorter than one second as one second."""
    client = Client(box)
    names = [f"non-persistent://public/default/n-partition-{i}" for i in range(2)]
    await box.put("/non-persistent/public/default/n/partitions", 2)
    producers = [client.producer(name) for name in names]
    for name in names:
        client.subscribe(name, "slow", permits=2)
        client.subscribe(name, "slower", permits=1)
    for producer, count in zip(producers, (5, 3), strict=True):
        for number in range(count):
            client.send(producer, number)
    first = (await box.get("/non-persistent/public/default/n-partition-0/stats")).value
    of = {name: each["msgDropRate"] for name, each in first["subscriptions"].items()}
    assert (of, first["msgDropRate"]) == ({"slow": 3.0, "slower": 4.0}, 7.0)
    assert [each["msgDropRate"] for each in first["publishers"]] == [4.0], "a message that two lost counts once"
    whole = (await box.get("/non-persistent/public/default/n/partitioned-stats")).value
    assert (whole["msgDropRate"], whole["publishers"][0]["msgDropRate"]) == (7.0 + 3.0, 4.0 + 2.0)
    of = {name: each["msgDropRate"] for name, each in whole["subscriptions"].items()}
    assert of == {"slow": 4.0, "slower": 6.0}
    assert whole["subscriptions"]["slower"]["droppedMessages"] == 6
    bundles = json.loads((await box.get("/broker-stats/topics")).text)["public/default"].values()
    (told,) = [each["non-persistent"][names[0]] for each in bundles if names[0] in each.get("non-persistent", {})]
    assert told["subscriptions"]["slow"]["msgDropRate"] == 3.0


async def test_chunks_are_counted_where_they_come_in_and_go_out(box: HttpBox) -> None:
    await box.put(f"{PATH}/c/partitions", 2)
    client = Client(box)
    topic = "persistent://public/default/c-partition-0"
    producer = client.producer(topic)
    client.subscribe(topic, "s", permits=100)
    client.send(producer, 0)
    plain = (await box.get(f"{PATH}/c-partition-0/stats")).value
    assert (plain["msgChunkPublished"], plain["publishers"][0]["chunkedMessageRate"]) == (False, 0.0)
    for number in range(3):
        client.send(producer, 1, uuid="u", chunk_id=number, num_chunks_from_msg=3, total_chunk_msg_size=9)
    found = (await box.get(f"{PATH}/c-partition-0/stats")).value
    whole = (await box.get(f"{PATH}/c/partitioned-stats")).value
    for stats in (found, whole):
        assert stats["msgChunkPublished"] is True
        assert stats["publishers"][0]["chunkedMessageRate"] == 3.0
        assert stats["subscriptions"]["s"]["chunkedMessageRate"] == 3.0
        assert stats["subscriptions"]["s"]["consumers"][0]["chunkedMessageRate"] == 3.0


async def test_a_partitioned_topic_has_the_fields_of_pulsar_and_its_numbers_are_sums(box: HttpBox) -> None:
    await box.put(f"{PATH}/p/partitions", 3)
    client = Client(box)
    for i in range(3):
        client.publish(f"persistent://public/default/p-partition-{i}", i + 1)
        client.producer(f"persistent://public/default/p-partition-{i}")
        client.subscribe(f"persistent://public/default/p-partition-{i}", "s", permits=100)
    await box.put(f"{PATH}/p-partition-1/subscription/one", "earliest")
    got = (await box.get(f"{PATH}/p/partitioned-stats")).value
    same_fields("partitioned topic", got)
    same_fields("partitioned publisher", got["publishers"][0])
    same_fields("partitioned subscription", got["subscriptions"]["s"])
    same_fields("partitioned consumer", got["subscriptions"]["s"]["consumers"][0])
    assert (got["msgInCounter"], got["msgOutCounter"]) == (6, 6)
    assert got["metadata"] == {"partitions": 3, "deleted": False}
    assert len(got["publishers"]) == len(got["subscriptions"]["s"]["consumers"]) == 1
    assert got["subscriptions"]["s"]["consumers"][0]["availablePermits"] == 300 - 6
    assert got["subscriptions"]["s"]["unackedMessages"] == 6
    assert got["subscriptions"]["one"]["msgBacklog"] == 2
    assert sorted(got["partitions"]) == [f"persistent://public/default/p-partition-{i}" for i in range(3)]
    same_fields("topic", got["partitions"]["persistent://public/default/p-partition-0"])
    short = (await box.get(f"{PATH}/p/partitioned-stats?perPartition=false")).value
    assert (short["partitions"], short["msgInCounter"]) == ({}, 6)
    internal = (await box.get(f"{PATH}/p/partitioned-internalStats")).value
    same_fields("partitioned internal", internal)
    assert len(internal["partitions"]) == 3
    assert internal["metadata"] == {"partitions": 3, "deleted": False}
    await box.put(f"{PATH}/p/properties", {"owner": "me"})
    for path in ("partitioned-internalStats", "partitioned-stats"):
        assert (await box.get(f"{PATH}/p/{path}")).value["metadata"]["properties"] == {"owner": "me"}


async def test_many_partitions_take_several_turns(box: HttpBox) -> None:
    await box.put(f"{PATH}/p/partitions", 120)
    got = (await box.get(f"{PATH}/p/partitioned-stats?getEarliestTimeInBacklog=true")).value
    assert len(got["partitions"]) == 120
    await box.put("/non-persistent/public/default/p/partitions", 2)
    got = (await box.get("/non-persistent/public/default/p/partitioned-stats")).value
    same_fields("partitioned non-persistent topic", got)


@pytest.mark.parametrize(
    ("path", "reason"),
    [
        ("public/default/nope/stats", "Topic persistent://public/default/nope not found"),
        ("public/default/nope/internalStats", "Topic persistent://public/default/nope not found"),
        ("public/default/nope/partitioned-stats", "Partitioned Topic persistent://public/default/nope not found"),
        ("public/default/t/partitioned-stats", "Partitioned Topic persistent://public/default/t not found"),
        ("public/default/t/partitioned-internalStats", "Partitioned Topic persistent://public/default/t not found"),
        ("public/default/p/stats", "Topic persistent://public/default/p not found"),
        ("public/default/p/internalStats", "Topic persistent://public/default/p not found"),
        ("public/default/p-partition-7/stats", "Topic partitions were not yet created"),
        ("public/nope/t/stats", "Namespace not found"),
        ("nope/nope/t/stats", "Namespace not found"),
    ],
)
async def test_what_is_missing(box: HttpBox, path: str, reason: str) -> None:
    await box.put(f"{PATH}/t")
    await box.put(f"{PATH}/p/partitions", 1)
    got = await box.get(f"/persistent/{path}")
    assert (got.status, got.reason) == (404, reason)


async def test_counters_and_the_backlog_are_what_was_done(box: HttpBox) -> None:
    client = Client(box)
    positions = client.publish(T, 10)
    consumer = client.subscribe(T, "s", permits=100, metadata=[{"key": "k", "value": "v"}], consumer_name="c")
    for i in (2, 3, 6):
        client.ack(consumer, positions[i])
    stats = (await box.get(f"{PATH}/t/stats")).value
    sub = stats["subscriptions"]["s"]
    assert (stats["msgInCounter"], stats["bytesInCounter"]) == (10, stats["storageSize"])
    assert (sub["msgBacklog"], sub["backlogMessages"], sub["unackedMessages"]) == (7, 7, 7)
    assert (sub["msgOutCounter"], sub["bytesOutCounter"]) == (10, stats["bytesInCounter"])
    assert sub["nonContiguousDeletedMessagesRanges"] == 2
    assert sub["why"]["reason"] == "end-of-log"
    assert sub["secondsToDrain"] == 2  # 3 messages were acknowledged in the last second, and publishing has stopped
    assert (sub["lastAckedTimestamp"], sub["lastConsumedTimestamp"]) == (box.shell.now().wall,) * 2
    one = sub["consumers"][0]
    assert (one["consumerName"], one["metadata"], one["availablePermits"]) == ("c", {"k": "v"}, 90)
    assert (one["address"], one["clientVersion"]) == ("/127.0.0.1:4711", "test-client")
    assert (one["avgMessagesPerEntry"], one["connectedSince"]) == (1, "2023-11-14T22:13:20Z")
    client.ask("close_consumer", consumer_id=consumer, request_id=77)
    stats = (await box.get(f"{PATH}/t/stats?excludeConsumers=true")).value
    sub = stats["subscriptions"]["s"]
    assert (sub["msgOutCounter"], stats["msgOutCounter"], sub["consumers"]) == (10, 10, [])
    assert (sub["type"], sub["why"]["reason"], sub["secondsToDrain"]) == ("Shared", "no-consumer", -1)
    cursor = (await box.get(f"{PATH}/t/internalStats")).value["cursors"]["s"]
    first = positions[0][0]
    ranges = f"[({first}:1..{first}:3],({first}:5..{first}:6]]"
    assert (cursor["individuallyDeletedMessages"], cursor["markDeletePosition"]) == (ranges, f"{first}:-1")
    client.ask("subscribe", topic=T, subscription="s", consumer_id=50, request_id=51, subType=0)
    client.ask("unsubscribe", consumer_id=50, request_id=52)
    assert (await box.get(f"{PATH}/t/stats")).value["msgOutCounter"] == 10


async def test_publishers_and_consumers_can_be_left_out(box: HttpBox) -> None:
    client = Client(box)
    client.producer(T)
    client.subscribe(T)
    stats = (await box.get(f"{PATH}/t/stats?excludePublishers=true&excludeConsumers=true")).value
    assert (stats["publishers"], stats["subscriptions"]["s"]["consumers"]) == ([], [])


async def test_the_oldest_message_of_a_backlog_is_looked_up_where_that_is_wanted(box: HttpBox) -> None:
    client = Client(box)
    producer = client.producer(T)
    for i in range(3):
        client.send(producer, i, publish_time=1000 + i)
    consumer = client.subscribe(T, "s", permits=10)
    client.subscribe(T, "all", permits=10)
    client.ack(consumer, *[(1, 0)])
    ledger = (await box.get(f"{PATH}/t/internalStats")).value["ledgers"][0]["ledgerId"]
    client.ack(consumer, (ledger, 0))
    plain = (await box.get(f"{PATH}/t/stats")).value
    assert plain["earliestMsgPublishTimeInBacklogs"] == 0
    got = (await box.get(f"{PATH}/t/stats?getEarliestTimeInBacklog=true")).value
    assert got["subscriptions"]["s"]["earliestMsgPublishTimeInBacklog"] == 1001
    assert got["subscriptions"]["all"]["earliestMsgPublishTimeInBacklog"] == 1000
    assert got["earliestMsgPublishTimeInBacklogs"] == 1000


async def test_rates_are_those_of_the_last_minute(box: HttpBox) -> None:
    client = Client(box)
    producer = client.producer(T)
    client.subscribe(T, "s", permits=1000)
    at = 0.0

    def now() -> Now:
        return Now(at, 1_700_000_000_000)

    box.shell.now = now  # type: ignore[method-assign]
    for i in range(60):
        client.send(producer, i)
    at = 10.0
    topic = next(iter(box.broker.topics))
    topic.sample(now())
    stats = (await box.get(f"{PATH}/t/stats")).value
    assert (stats["msgRateIn"], stats["msgRateOut"]) == (6.0, 6.0)
    assert stats["msgThroughputIn"] == pytest.approx(stats["averageMsgSize"] * 6)
    for later in range(20, 150, 10):
        at = float(later)
        topic.sample(now())
    stats = (await box.get(f"{PATH}/t/stats")).value
    assert (stats["msgRateIn"], stats["msgRateOut"]) == (0.0, 0.0)


@pytest.mark.settings(Settings(maxUnackedMessagesPerSubscription=5))
async def test_a_limit_that_is_reached_is_told(box: HttpBox) -> None:
    client = Client(box)
    client.publish(T, 10)
    client.subscribe(T, "s", permits=100)
    sub = (await box.get(f"{PATH}/t/stats")).value["subscriptions"]["s"]
    assert (sub["blockedSubscriptionOnUnackedMsgs"], sub["why"]["reason"]) == (True, "unacked-limit")
