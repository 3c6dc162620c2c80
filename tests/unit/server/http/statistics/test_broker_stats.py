"""Statistics of all topics, with the fields recorded from Pulsar 4.2.4 (tests/data/broker-stats.json)."""

import json
from pathlib import Path
from typing import Any, Final

from tests.unit.server.http.clients import Client
from tests.unit.server.http.harness import HttpBox, running_box
from tests.unit.server.http.statistics.test_topic_stats_resource import kind

RECORDED: Final = json.loads((Path(__file__).parents[4] / "data" / "broker-stats.json").read_text())
T = "persistent://public/default/t"
N = "non-persistent://public/default/n"
LEFT_OUT: Final = (
    "brk_ml_LedgerAddEntryLatency", "brk_ml_LedgerSwitchLatency", "brk_ml_cache_pool", "brk_ml_MarkDeleteRate",
    "brk_ml_cache_entries", "brk_ml_cache_evicted", "brk_ml_cache_inserted", "brk_ml_AddEntryWithReplicas",
    "brk_ml_ReadEntriesOpsCacheMisses", "brk_ml_ReadEntriesSucceeded", "brk_AddEntryLatencyBuckets",
)  # fmt: skip
"""Metrics of Pulsar components that a box does not have, and metrics that a box reports only as totals."""
NUMBERS: Final = {"integer", "number"}


def traffic(box: HttpBox) -> None:
    client = Client(box)
    producer = client.producer(T, producer_name="p")
    for i in range(10):
        client.send(producer, i, b"x" * 1000)
    client.subscribe(T, "s", permits=4)
    client.subscribe(N, "n", permits=4)
    client.send(client.producer(N), 0)


def like_pulsars(what: str, found: dict[str, Any], more: frozenset[str] = frozenset()) -> None:
    """Check that all fields of Pulsar are present with their types, and that no others exist except ``more``."""
    recorded = {name: is_ for name, is_ in RECORDED[what].items() if not name.startswith(LEFT_OUT)}
    assert set(found) - more == set(recorded), what
    wrong = {name: kind(found[name]) for name in recorded if kind(found[name]) != recorded[name]}
    assert not [name for name, is_ in wrong.items() if {is_, recorded[name]} != NUMBERS], (what, wrong)


async def bundle_of(box: HttpBox, topic: str) -> str:
    found: str = (await box.ask("GET", f"/lookup/v2/topic/{topic.replace('://', '/')}/bundle")).text
    return found


OTHER_NAMES: Final = {
    "msgInCount": "msgInCounter",
    "msgOutCount": "msgOutCounter",
    "bytesInCount": "bytesInCounter",
    "bytesOutCount": "bytesOutCounter",
    "totalNonContiguousDeletedMessagesRange": "nonContiguousDeletedMessagesRanges",
}
"""Names of fields in the statistics of a single topic, by their names here."""
HERE_ONLY: Final = {
    "producerCount", "filteredEntriesCount", "pendingAddEntriesCount", "numberOfEntriesSinceFirstNotAckedMessage",
}  # fmt: skip


def says_the_same(here: Any, there: Any) -> None:
    """Check that a topic's entry equals its own statistics."""
    if isinstance(here, dict):
        for name in set(here) - HERE_ONLY:
            says_the_same(here[name], there[OTHER_NAMES.get(name, name)])
    elif isinstance(here, list):
        assert len(here) == len(there)
        for one, other in zip(here, there, strict=True):
            says_the_same(one, other)
    else:
        assert here == there


async def test_what_is_told_of_a_topic_among_all_is_what_its_own_statistics_say(box: HttpBox) -> None:
    traffic(box)
    client = Client(box)
    client.subscribe(T, "idle", permits=0)
    found = (await box.get("/broker-stats/topics")).value["public/default"]
    for topic, domain in ((T, "persistent"), (N, "non-persistent")):
        here = found[await bundle_of(box, topic)][domain][topic]
        assert here["msgOutCount"] > 0 < len(here["subscriptions"])
        says_the_same(here, (await box.get(f"/{topic.replace('://', '/')}/stats")).value)


async def subscription_of(box: HttpBox, name: str) -> dict[str, Any]:
    """Return the subscription on ``T`` as reported in the statistics of all topics."""
    found = (await box.get("/broker-stats/topics")).value["public/default"]
    subscription: dict[str, Any] = found[await bundle_of(box, T)]["persistent"][T]["subscriptions"][name]
    return subscription


async def test_entries_since_the_first_unacknowledged_one_are_those_up_to_the_read_position() -> None:
    name = "numberOfEntriesSinceFirstNotAckedMessage"
    async with running_box() as box:

        async def reported() -> int:
            cursors = (await box.get(f"/{T.replace('://', '/')}/internalStats")).value["cursors"]
            number: int = (await subscription_of(box, "s"))[name]
            assert number == cursors["s"][name]
            return number

        client = Client(box)
        consumer = client.subscribe(T, "s", permits=4)
        positions = client.publish(T, 10)
        assert (await subscription_of(box, "s"))["msgBacklog"] == 10
        assert await reported() == 5, "four dispatched entries and the one to be read next"
        client.ack(consumer, *positions[:4])
        assert (await subscription_of(box, "s"))["msgBacklog"] == 6
        assert await reported() == 1


async def test_all_topics_by_bundle(box: HttpBox) -> None:
    traffic(box)
    found = (await box.get("/broker-stats/topics")).value
    assert list(found) == ["public/default"]
    stored = found["public/default"][await bundle_of(box, T)]["persistent"][T]
    silent = found["public/default"][await bundle_of(box, N)]["non-persistent"][N]
    assert sum(len(topics) for bundle in found["public/default"].values() for topics in bundle.values()) == 2
    like_pulsars("persistent topic", stored)
    like_pulsars("non-persistent topic", silent)
    like_pulsars("publisher", stored["publishers"][0])
    like_pulsars("persistent subscription", stored["subscriptions"]["s"])
    like_pulsars("persistent consumer", stored["subscriptions"]["s"]["consumers"][0])
    unacked = frozenset(("unackedMessages", "blockedConsumerOnUnackedMsgs", "blockedSubscriptionOnUnackedMsgs"))
    like_pulsars("non-persistent subscription", silent["subscriptions"]["n"], unacked)
    like_pulsars("non-persistent consumer", silent["subscriptions"]["n"]["consumers"][0], unacked)
    assert (stored["msgInCount"], stored["producerCount"], stored["msgRateIn"]) == (10, 1, 10.0)
    assert stored["subscriptions"]["s"]["msgBacklog"] == 10
    assert stored["subscriptions"]["s"]["unackedMessages"] == 4
    assert stored["backlogSize"] == stored["storageSize"] > 10_000
    assert (silent["msgInCount"], silent["msgOutCount"]) == (1, 1)
    assert (await box.get("/broker-stats/destinations")).value == found


async def test_a_box_without_topics(box: HttpBox) -> None:
    assert (await box.get("/broker-stats/topics")).value == {}
    assert (await box.get("/broker-stats/load-report")).value["numTopics"] == 0
    assert len((await box.get("/broker-stats/metrics")).value) == 4


async def test_metrics_as_json(box: HttpBox) -> None:
    traffic(box)
    by_what = {}
    for each in (await box.get("/broker-stats/metrics")).value:
        dimensions = each["dimensions"]
        what = dimensions.get("metric") or dimensions.get("namespace", "cache")
        by_what[what] = each["metrics"]
    names = {"public/default": "namespace", "public/default/persistent": "managed ledger"}
    assert set(by_what) == {"cache", "broker_health", "broker_connection", "loadBalancing", *names}
    for what, metrics in by_what.items():
        like_pulsars(f"metrics of {names.get(what, what)}", metrics)
    assert by_what["broker_connection"]["brk_active_connections"] == 1
    whole = by_what["public/default"]
    assert (whole["brk_in_rate"], whole["brk_msg_backlog"], whole["brk_no_of_consumers"]) == (11.0, 10.0, 2)
    ledgers = by_what["public/default/persistent"]
    assert ledgers["brk_ml_AddEntryMessagesRate"] == 10.0
    sizes = [ledgers[name] for name in ledgers if name.startswith("brk_ml_EntrySizeBuckets")]
    assert sum(sizes) == 10.0
    assert ledgers["brk_ml_EntrySizeBuckets_1024.0_2048.0"] + ledgers["brk_ml_EntrySizeBuckets_512.0_1024.0"] == 10.0


async def test_the_load(box: HttpBox) -> None:
    traffic(box)
    found = (await box.get("/broker-stats/load-report")).value
    like_pulsars("load report", found)
    bundles = {f"public/default/{await bundle_of(box, topic)}" for topic in (T, N)}
    assert found["bundles"] == sorted(bundles) == sorted(found["lastStats"])
    for bundle in found["lastStats"].values():
        like_pulsars("load of a bundle", bundle)
    assert (found["numTopics"], found["numProducers"], found["numConsumers"], found["msgRateIn"]) == (2, 2, 2, 11.0)
    assert 0 < found["memory"]["usage"] < found["memory"]["limit"]
