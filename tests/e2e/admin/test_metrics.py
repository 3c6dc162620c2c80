"""`/metrics` beside the official client has every metric that public Grafana boards request of a broker.

``tests/data/grafana-boards.tsv`` lists the metrics in the expressions of three public sets of boards
(streamnative/apache-pulsar-grafana-dashboard at 9a61a26, lhotari/pulsar-grafana-dashboards at 75a9067, and grafana/ of
apache/pulsar), with the boards that use them. docs/operations.md documents those that are not ``filled``, by that word.
"""

import os
from collections.abc import Iterator
from pathlib import Path
from typing import Any, Final, NamedTuple
from urllib.request import Request, urlopen

import pulsar
import pytest
from prometheus_client.parser import text_string_to_metric_families

from tests.e2e.clients import connect, receive, send_all, take, until
from tests.tools.box import PULSARBOX, BoxProcess

ROOT: Final = Path(__file__).parents[3]
BOARDS: Final = ROOT / "tests" / "data" / "grafana-boards.tsv"
OF_THE_BOX: Final = (
    "pulsar_version_info", "pulsar_broker_publish_latency", "process_", "pulsar_lb_", "pulsar_ml_cache_", "jvm_info",
    "pulsar_txn_",
)  # fmt: skip
"""Metrics without a topic label."""


class Asked(NamedTuple):
    """Metric that a board requests."""

    name: str
    standing: str
    boards: str


def asked() -> list[Asked]:
    return [Asked(*line.split("\t")) for line in BOARDS.read_text().splitlines()[1:]]


class Told(NamedTuple):
    """Metrics of a box at one moment."""

    lines: dict[str, list[tuple[dict[str, str], float]]]

    def of(self, metric: str, **labels: str) -> float:
        (value,) = [value for found, value in self.lines[metric] if labels.items() <= found.items()]
        return value


def scrape(box: BoxProcess, path: str = "/metrics") -> Told:
    with urlopen(f"{box.web_url}{path}", timeout=30) as response:
        text = response.read().decode()
    lines: dict[str, list[tuple[dict[str, str], float]]] = {}
    for family in text_string_to_metric_families(text):
        for sample in family.samples:
            lines.setdefault(sample.name, []).append((dict(sample.labels), sample.value))
    return Told(lines)


@pytest.fixture(scope="module")
def everything(tmp_path_factory: pytest.TempPathFactory) -> Iterator[BoxProcess]:
    """Start a box that also exposes metrics of producers and consumers."""
    if "E2E_URL" in os.environ:
        pytest.skip("starts a box of its own")
    folder = tmp_path_factory.mktemp("box")
    settings = folder / "settings.toml"
    settings.write_text(
        "[metrics]\nexposeConsumerLevelMetricsInPrometheus = true\nexposeProducerLevelMetricsInPrometheus = true\n"
    )
    box = BoxProcess(folder / "data", (*PULSARBOX, "--config", str(settings)))
    box.start()
    try:
        yield box
        assert box.stop() == 0
    finally:
        box.kill()


@pytest.fixture(scope="module")
def client(everything: BoxProcess) -> Iterator[Any]:
    opened = connect(everything.url)
    yield opened
    opened.close()


def test_boards_get_every_metric_that_one_broker_can_fill(everything: BoxProcess, client: Any) -> None:
    topic = "persistent://public/default/of-boards"
    consumer = client.subscribe(topic, "s", consumer_type=pulsar.ConsumerType.Shared)
    producer = client.create_producer(topic)
    send_all(producer, [b"x" * 1000] * 50)
    take(consumer, 50)
    told = scrape(everything)
    missing = {each.name for each in asked() if each.standing == "filled"} - set(told.lines)
    assert missing == set()
    for name in (each.name for each in asked() if each.standing == "filled"):
        for labels, _ in told.lines[name]:
            assert labels["cluster"] == "standalone", name
        if name.startswith("pulsar_topics_count"):
            assert any(labels.get("namespace") == "public/default" for labels, _ in told.lines[name])
        elif not name.startswith(OF_THE_BOX):
            of_topic = [labels for labels, _ in told.lines[name] if labels.get("topic") == topic]
            assert of_topic, name
            assert {labels["namespace"] for labels in of_topic} == {"public/default"}, name
            if name.startswith(("pulsar_subscription_", "pulsar_consumer_")):
                assert {labels["subscription"] for labels in of_topic} == {"s"}, name


def test_the_figures_are_those_of_the_traffic(everything: BoxProcess, client: Any) -> None:
    topic = "persistent://public/default/of-traffic"
    consumer = client.subscribe(topic, "s", consumer_type=pulsar.ConsumerType.Shared)
    producer = client.create_producer(topic, producer_name="the-producer")
    send_all(producer, [b"y" * 3000] * 40)
    received = [receive(consumer) for _ in range(40)]
    consumer.acknowledge(received[0])
    until(lambda: scrape(everything).of("pulsar_subscription_back_log", topic=topic) == 39)
    told = scrape(everything)
    assert told.of("pulsar_in_messages_total", topic=topic) == 40
    assert told.of("pulsar_in_bytes_total", topic=topic) > 40 * 3000
    assert told.of("pulsar_rate_in", topic=topic) > 0
    assert told.of("pulsar_subscription_unacked_messages", topic=topic) == 39
    assert told.of("pulsar_producer_msg_rate_in", producer_name="the-producer") > 0
    assert told.of("pulsar_entry_size_le_4_kb", topic=topic) == told.of("pulsar_entry_size_count", topic=topic) > 0
    buckets = "pulsar_storage_write_latency_le", "pulsar_storage_write_latency_overflow"
    latencies = [name for name in told.lines if name.startswith(buckets)]
    assert sum(told.of(name, topic=topic) for name in latencies) == told.of("pulsar_entry_size_count", topic=topic)
    assert told.of("pulsar_broker_publish_latency", quantile="0.5") > 0
    assert told.of("pulsarbox_commit_entries_total") >= 40
    assert told.of("pulsarbox_commit_seconds_count") > 0


def test_what_is_not_filled_is_told_of_in_the_documents() -> None:
    text = (ROOT / "docs" / "operations.md").read_text()
    told = text[text.index("### Boards") :]
    standings = {each.standing for each in asked()} - {"filled"}
    assert {word for word in standings if f"| `{word}` |" not in told} == set()


def test_both_paths_and_their_type(everything: BoxProcess) -> None:
    for path in ("/metrics", "/metrics/"):
        with urlopen(Request(f"{everything.web_url}{path}", method="HEAD"), timeout=60) as response:
            assert response.status == 200
            assert response.headers["Content-Type"] == "text/plain; version=0.0.4; charset=utf-8"
