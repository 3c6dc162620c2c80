"""`/metrics`: Prometheus text format, with names, labels and types recorded from Pulsar 4.2.4 (tests/data)."""

import asyncio
import gzip
from pathlib import Path
from typing import Final, NamedTuple

import aiohttp
import pytest
from prometheus_client.parser import text_string_to_metric_families

from pulsarbox.broker.topic.topic import PersistentTopic
from pulsarbox.broker.transactions.transaction_table import OPEN_MS
from pulsarbox.config import Settings
from pulsarbox.names import parse_topic
from pulsarbox.server.http.statistics import metrics
from pulsarbox.server.metrics import scrape as scraping
from pulsarbox.server.metrics.exposition import Metric, labels, text_of
from tests.unit.broker.security.signing import GUARDED, token
from tests.unit.server.http.clients import Client
from tests.unit.server.http.harness import HttpBox, running_box

DATA: Final = Path(__file__).parents[4] / "data"
T = "persistent://public/default/t"
EVERYTHING: Final = Settings(exposeConsumerLevelMetricsInPrometheus=True, exposeProducerLevelMetricsInPrometheus=True)
TXN: Final = (
    "active_count",
    *(
        f"{what}_{end}"
        for what in ("aborted", "append_log", "committed", "created", "timeout")
        for end in ("count", "total")
    ),
    *(f"execution_latency_le_{bound}" for bound in (*OPEN_MS, "overflow")),
)
OURS_BY_NAME: Final = frozenset(
    (
        "pulsar_delayed_message_index_size_bytes",  # in Pulsar's sources, but absent from the recording
        "pulsar_entry_size_overflow",  # dashboards use the name pulsar_entry_size_le_overflow
        *(f"pulsar_replication_{what}" for what in ("rate_in", "rate_out", "throughput_in", "throughput_out")),
        *(f"pulsar_txn_{what}" for what in TXN),  # the recorded Pulsar had transactions disabled
        "pulsar_replication_backlog",  # these five are absent without replication
    )
)


class Fact(NamedTuple):
    """Pulsar's definition of a metric."""

    kind: str
    labels: frozenset[str]


def recorded() -> dict[str, Fact]:
    rows = [line.split("\t") for line in (DATA / "pulsar-metrics.tsv").read_text().splitlines()[1:]]
    return {name: Fact(kind, frozenset(found.split(";"))) for name, kind, found in rows}


class Sample(NamedTuple):
    """One sample line."""

    kind: str
    labels: dict[str, str]
    value: float


Samples = dict[str, list[Sample]]


def samples(text: str) -> Samples:
    """Parse the text, and check that each metric family occurs once."""
    found: Samples = {}
    families: list[str] = []
    for family in text_string_to_metric_families(text):
        families.append(family.name)
        for each in family.samples:
            found.setdefault(each.name, []).append(Sample(family.type, dict(each.labels), each.value))
    assert len(families) == len(set(families))
    return found


async def scraped(box: HttpBox) -> Samples:
    got = await box.ask("GET", "/metrics/")
    assert got.status == 200
    return samples(got.text)


def one(found: Samples, metric: str, **given: str) -> float:
    """Return the value of the only sample with these labels."""
    (only,) = [each for each in found[metric] if given.items() <= each.labels.items()]
    return only.value


def traffic(box: HttpBox) -> Client:
    """Create a topic with producers, a Shared subscription with unacknowledged messages, and one without consumers."""
    client = Client(box)
    producer = client.producer(T, producer_name='the "first"')
    for i in range(10):
        client.send(producer, i, b"x" * 100 * i)
    consumer = client.subscribe(T, "shared", permits=100)
    client.subscribe(T, "ex\\cl", permits=4, subType=0)
    topic = box.broker.topics.find(parse_topic(T), box.shell.now())
    assert isinstance(topic, PersistentTopic)
    client.ack(consumer, (topic.ledger.current.ledger_id, 2))
    silent = client.producer("non-persistent://public/default/n")
    client.send(silent, 0)
    return client


async def test_names_labels_and_types_are_those_of_pulsar() -> None:
    facts = recorded()
    async with running_box(EVERYTHING) as box:
        traffic(box)
        found = await scraped(box)
        theirs = {name: each for name, each in found.items() if not name.startswith("pulsarbox_")}
        assert set(theirs) - set(facts) == OURS_BY_NAME
        for name in set(theirs) - OURS_BY_NAME:
            for sample in theirs[name]:
                assert sample.kind == facts[name].kind, name
                assert ",".join(sample.labels) in facts[name].labels, (name, sample.labels)


async def test_messages_that_a_non_persistent_topic_drops_are_counted(box: HttpBox) -> None:
    client, topic = Client(box), "non-persistent://public/default/n"
    producer = client.producer(topic)
    client.subscribe(topic, "slow", permits=1)
    for number in range(3):
        client.send(producer, number)
    found, slow = await scraped(box), {"topic": topic, "subscription": "slow"}
    assert one(found, "pulsar_subscription_msg_drop_rate", **slow) == 2
    assert one(found, "pulsarbox_subscription_dropped_messages", **slow) == 2


async def test_what_a_topic_and_its_subscriptions_show(box: HttpBox) -> None:
    traffic(box)
    found = await scraped(box)
    counts = {"subscriptions": 2, "producers": 1, "consumers": 2}
    for what, count in counts.items():
        assert one(found, f"pulsar_{what}_count", topic=T) == count
    assert one(found, "pulsar_in_messages_total", topic=T) == 10
    assert one(found, "pulsar_in_bytes_total", topic=T) == one(found, "pulsar_storage_size", topic=T) > 4500
    assert one(found, "pulsar_storage_backlog_size", topic=T) == one(found, "pulsar_storage_size", topic=T)
    assert one(found, "pulsar_msg_backlog", topic=T) == 9 + 10
    assert one(found, "pulsar_rate_in", topic=T) == 10, "younger than a second counts as one"
    assert one(found, "pulsar_storage_backlog_quota_limit", topic=T) == -1
    shared = {"topic": T, "subscription": "shared"}
    assert one(found, "pulsar_subscription_back_log", **shared) == 9
    assert one(found, "pulsar_subscription_unacked_messages", **shared) == 9
    assert one(found, "pulsar_out_messages_total", **shared) == 10
    assert one(found, "pulsar_subscription_msg_rate_out", **shared) == 10
    assert one(found, "pulsar_subscription_msg_ack_rate", **shared) == 1
    assert one(found, "pulsar_subscription_consumers_count", **shared) == 1
    assert one(found, "pulsarbox_subscription_ack_ranges", **shared) == 1
    assert one(found, "pulsarbox_subscription_standstill_seconds", reason="no-permits", subscription="ex\\cl") >= 0
    assert one(found, "pulsar_out_messages_total", subscription="ex\\cl") == 4
    assert one(found, "pulsar_subscription_msg_drop_rate", **shared) == 0
    silent = "non-persistent://public/default/n"
    assert one(found, "pulsar_in_messages_total", topic=silent) == 1
    assert one(found, "pulsar_storage_size", topic=silent) == 0
    assert one(found, "pulsar_topics_count", namespace="public/default") == 2


async def test_entries_of_the_last_minute_stand_in_their_buckets(box: HttpBox) -> None:
    traffic(box)
    found = await scraped(box)
    entries = one(found, "pulsar_entry_size_count", topic=T)
    assert entries == 10 * 60, "projected to a minute, as long as the topic is younger"
    sizes = [
        name for name in found if name.startswith("pulsar_entry_size_") and name.split("_")[-1] not in ("count", "sum")
    ]
    told = {name: one(found, name, topic=T) for name in sizes}
    assert sum(told.values()) == entries
    assert told["pulsar_entry_size_le_128"] == entries, "as the one commit that was looked into says"
    latencies = [name for name in found if name.startswith("pulsar_storage_write_latency_le_")]
    assert sum(one(found, name, topic=T) for name in [*latencies, "pulsar_storage_write_latency_overflow"]) == entries
    assert one(found, "pulsar_storage_write_latency_le_0_5", topic=T) == entries, "the clock stands"


@pytest.mark.settings(Settings(exposeTopicLevelMetricsInPrometheus=False, exposeProducerLevelMetricsInPrometheus=True))
async def test_without_topics_namespaces_are_told_of(box: HttpBox) -> None:
    traffic(box)
    client = Client(box)
    client.publish("persistent://public/default/other", 5)
    found = await scraped(box)
    assert not [name for name, lines in found.items() for line in lines if "topic" in line.labels]
    whole = {"namespace": "public/default"}
    assert one(found, "pulsar_topics_count", **whole) == 3
    assert one(found, "pulsar_in_messages_total", **whole) == 16
    assert one(found, "pulsar_msg_backlog", **whole, remote_cluster="local") == 19
    assert one(found, "pulsar_out_messages_total", **whole) == 14
    assert one(found, "pulsar_entry_size_count", **whole) >= 15 * 60
    assert "pulsar_subscription_back_log" not in found
    assert "pulsar_producer_msg_rate_in" not in found


@pytest.mark.settings(EVERYTHING)
async def test_producers_and_consumers_are_told_of_where_that_is_asked_for(box: HttpBox) -> None:
    traffic(box)
    found = await scraped(box)
    assert one(found, "pulsar_producer_msg_rate_in", producer_name='the "first"', producer_id="1") == 10
    told = found["pulsar_consumer_unacked_messages"]
    (consumer,) = [line for line in told if line.labels["subscription"] == "shared"]
    assert consumer.value == 9
    assert len(found["pulsar_out_messages_total"]) == 2 * 2, "once a subscription, once a consumer"


@pytest.mark.parametrize("split", [False, True])
async def test_how_partitions_are_called(split: bool) -> None:
    async with running_box(Settings(splitTopicAndPartitionLabelInPrometheus=split)) as box:
        await box.put("/persistent/public/default/p/partitions", 2)
        client = Client(box)
        client.publish("persistent://public/default/p-partition-1", 3)
        client.publish(T, 1)
        found = await scraped(box)
        name = "persistent://public/default/p"
        if split:
            assert one(found, "pulsar_in_messages_total", topic=name, partition="1") == 3
            assert one(found, "pulsar_in_messages_total", topic=T, partition="-1") == 1
        else:
            assert one(found, "pulsar_in_messages_total", topic=f"{name}-partition-1") == 3
            assert not [line for line in found["pulsar_in_messages_total"] if "partition" in line.labels]


async def test_the_box_as_a_whole(box: HttpBox) -> None:
    traffic(box)
    found = await scraped(box)
    assert one(found, "pulsar_version_info", version="4.2.4", cluster="standalone") == 1
    assert one(found, "pulsar_broker_topics_count") == 2
    assert one(found, "pulsar_broker_msg_backlog") == 19
    assert one(found, "pulsar_broker_in_bytes_total", system_topic="false") > 4500
    assert one(found, "pulsarbox_commit_entries_total") == 10
    commits = one(found, "pulsarbox_commit_seconds_count")
    assert one(found, "pulsarbox_commit_seconds_bucket", le="+Inf") == commits >= 10
    assert one(found, "pulsar_broker_publish_latency_count") == 10
    assert len(found["pulsar_broker_publish_latency"]) == 6
    assert one(found, "pulsar_active_connections") == 1
    assert one(found, "process_resident_memory_bytes") > 1 << 20
    assert one(found, "process_cpu_seconds_total") > 0
    assert one(found, "pulsarbox_refusing_messages") == 0
    assert one(found, "pulsar_broker_storage_read_rate") == 14
    assert one(found, "pulsar_ml_cache_misses_rate") >= 14, "nobody was there when they came: all were read"
    assert one(found, "pulsar_ml_cache_misses_throughput") > 4500
    assert one(found, "pulsar_ml_cache_hits_rate") == one(found, "pulsar_ml_cache_hits_throughput") == 0


async def test_the_text_comes_in_turns(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(scraping, "TOPICS_AT_ONCE", 2)
    async with running_box() as box:
        client = Client(box)
        for i in range(5):
            client.publish(f"{T}-{i}", 1)
        pieces = scraping.scrape(box.broker, box.shell.now())
        assert [next(pieces) for _ in range(3)] == [b""] * 3, "5 topics by twos"
        turns = 0

        def other() -> None:
            nonlocal turns
            turns += 1
            asyncio.get_running_loop().call_soon(other)

        other()
        assert len((await scraped(box))["pulsar_rate_in"]) == 5
        before = turns
        assert len((await scraped(box))["pulsar_rate_in"]) == 5
        monkeypatch.setattr(scraping, "TOPICS_AT_ONCE", 100)
        between = turns
        await scraped(box)
        assert between - before > turns - between, "more turns, the fewer topics one looks at"


async def test_head_gzip_and_both_paths(box: HttpBox) -> None:
    traffic(box)
    for path in ("/metrics", "/metrics/"):
        head = await box.ask("HEAD", path)
        assert (head.status, head.text) == (200, "")
        assert head.headers["Content-Type"] == "text/plain; version=0.0.4; charset=utf-8"
    url = f"http://127.0.0.1:{box.port}/metrics"
    async with aiohttp.ClientSession(auto_decompress=False) as session:
        async with session.get(url, headers={"Accept-Encoding": "gzip"}) as packed:
            assert packed.headers["Content-Encoding"] == "gzip"
            text = gzip.decompress(await packed.read()).decode()
        async with session.get(url, headers={"Accept-Encoding": "identity"}) as plain:
            assert "Content-Encoding" not in plain.headers
            assert set(samples(await plain.text())) == set(samples(text))
    assert (await box.ask("POST", "/metrics")).status == 405


async def test_a_client_that_leaves_hurts_nobody(box: HttpBox) -> None:
    traffic(box)
    _, writer = await asyncio.open_connection("127.0.0.1", box.port)
    writer.write(b"GET /metrics HTTP/1.1\r\nHost: box\r\n\r\n")
    await writer.drain()
    writer.transport.abort()
    assert (await box.ask("GET", "/metrics")).status == 200


@pytest.mark.settings(Settings(authenticateMetricsEndpoint=True))
async def test_the_endpoint_can_be_closed(box: HttpBox) -> None:
    got = await box.ask("GET", "/metrics")
    assert got.status == 401
    assert "authenticateMetricsEndpoint" in got.reason


@pytest.mark.settings(Settings(**GUARDED))
async def test_names_that_were_proved_are_counted(box: HttpBox) -> None:
    for shown in (token(), token(), token(exp=1), token(b"x" * 32)):
        headers = {"Authorization": f"Bearer {shown.decode()}"}
        await box.ask("GET", "/admin/v2/tenants", headers=headers)
    found = await scraped(box)
    of = {"provider_name": "AuthenticationProviderToken", "auth_method": "token"}
    assert one(found, "pulsar_authentication_success_total", **of) == 2
    assert one(found, "pulsar_authentication_failures_total", **of, reason="INVALID_TOKEN") == 2
    assert one(found, "pulsar_expired_token_total") == 1


async def test_a_file_decides_about_the_status_page(tmp_path: Path) -> None:
    file = tmp_path / "status"
    async with running_box(Settings(statusFilePath=str(file))) as box:
        gone = await box.ask("GET", "/status.html")
        assert gone.status == 404
        assert str(file) in gone.reason
        file.write_text("anything")
        there = await box.ask("GET", "/status.html")
        assert (there.status, there.text, there.headers["Content-Type"]) == (200, "OK", "text/plain")
        file.unlink()
        file.mkdir()
        assert (await box.ask("GET", "/status.html")).status == 404


async def test_without_a_file_there_is_no_status_page(box: HttpBox) -> None:
    got = await box.ask("GET", "/status.html")
    assert got.status == 404
    assert "statusFilePath" in got.reason


def test_labels_are_escaped() -> None:
    rows = [(labels(a='say "no"\n', b="back\\slash"), 1)]
    text = b"".join(text_of([(Metric("m", "help", lambda value: value), rows)])).decode()
    (family,) = text_string_to_metric_families(text)
    assert family.samples[0].labels == {"a": 'say "no"\n', "b": "back\\slash"}


def test_a_metric_without_lines_has_no_heading() -> None:
    assert list(text_of([(Metric("m", "help", float), [])])) == []


def test_the_routes_need_no_name() -> None:
    assert {route.permission.name for route in metrics.ROUTES} == {"ANYONE"}
