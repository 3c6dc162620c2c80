"""``spark.readStream`` with a box: every message once, in micro-batches, across restarts, with later messages."""

import json
from collections.abc import Callable
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pulsar
import pytest

from tests.e2e.conftest import Running

if TYPE_CHECKING:
    from pyspark.sql import SparkSession
    from pyspark.sql.streaming.query import StreamingQuery


class Stream:
    """Query that stores the rows it reads: each run resumes from the same checkpoint."""

    def __init__(self, spark: "SparkSession", box: Running, folder: Path) -> None:
        self._spark = spark
        self._box = box
        self._folder = folder
        self.batches: list[list[str]] = []
        """Values of each micro-batch, sorted."""

    def start(self, options: dict[str, str], once: bool = True) -> "StreamingQuery":
        """Start the query, to read the available messages or to run continuously."""
        reader = self._spark.readStream.format("pulsarbox")
        given = {"service.url": self._box.url, "admin.url": self._box.web_url, "startingOffsets": "earliest", **options}
        frame = reader.options(**given).schema("value binary").load()
        writer = frame.writeStream.option("checkpointLocation", str(self._folder)).foreachBatch(self._keep)
        return (writer.trigger(availableNow=True) if once else writer.trigger(processingTime="0 seconds")).start()

    def run(self, **options: str) -> list[str]:
        """Return all values of one run."""
        before = len(self.batches)
        query = self.start(options)
        assert query.awaitTermination(120)
        return sorted(value for batch in self.batches[before:] for value in batch)

    def _keep(self, frame: Any, number: int) -> None:
        del number
        self.batches.append(sorted(bytes(row["value"]).decode() for row in frame.collect()))

    def offsets(self) -> list[dict[str, Any]]:
        """Return the offsets of each micro-batch, as stored in the checkpoint."""
        files = sorted(self._folder.glob("offsets/[0-9]*"), key=lambda path: int(path.name))
        return [json.loads(path.read_text().splitlines()[2]) for path in files]


@pytest.fixture
def stream(spark: "SparkSession", box: Running, tmp_path: Path) -> Stream:
    return Stream(spark, box, tmp_path / "checkpoint")


def send(client: Any, topic: str, numbers: range, **options: Any) -> None:
    producer = client.create_producer(topic, **options)
    for number in numbers:
        producer.send(b"%03d" % number)
    producer.close()


def texts(numbers: range) -> list[str]:
    return [f"{number:03}" for number in numbers]


def test_every_message_is_read_once_in_limited_steps_and_over_a_restart(
    stream: Stream, client: Any, topic: str
) -> None:
    send(client, topic, range(10))
    assert stream.run(topic=topic, maxEntriesPerTrigger="4") == texts(range(10))
    assert [len(batch) for batch in stream.batches] == [4, 4, 2]
    send(client, topic, range(10, 15))
    assert stream.run(topic=topic) == texts(range(10, 15))
    assert [list(offset) for offset in stream.offsets()] == [["n", "p", "v"]] * len(stream.offsets())


@pytest.mark.campaign
def test_new_partitions_and_topics_are_read_from_their_beginning(
    stream: Stream, client: Any, box: Running, fresh: Callable[[str], str]
) -> None:
    first = fresh("grows")
    box.admin("PUT", f"{first.replace('://', '/')}/partitions", "1")
    send(client, first, range(5))
    pattern = first.rpartition("/")[2] + ".*"
    query = stream.start({"topicsPattern": pattern}, once=False)
    try:
        _wait(query, stream, texts(range(5)))
        box.admin("POST", f"{first.replace('://', '/')}/partitions", "3")
        routed = pulsar.PartitionsRoutingMode.RoundRobinDistribution
        send(client, first, range(5, 15), message_routing_mode=routed)
        send(client, first + "-b", range(15, 20))
        _wait(query, stream, texts(range(20)))
        count = len(stream.batches)
        assert not query.awaitTermination(1)
        assert len(stream.batches) == count, "nothing new is no micro-batch"
    finally:
        query.stop()
    assert any(len(offset["p"]) == 4 for offset in stream.offsets())


def _wait(query: "StreamingQuery", stream: Stream, wanted: list[str]) -> None:
    """Wait until all messages are read; a failed query raises its error."""
    for _ in range(60):
        if sorted(value for batch in stream.batches for value in batch) == wanted:
            return
        assert not query.awaitTermination(1), query.exception()
    assert sorted(value for batch in stream.batches for value in batch) == wanted


@pytest.mark.campaign
def test_a_subscription_is_acknowledged_with_what_comes_next(
    stream: Stream, client: Any, box: Running, topic: str
) -> None:
    client.subscribe(topic, "s", initial_position=pulsar.InitialPosition.Earliest).close()
    send(client, topic, range(6))
    options = {"topic": topic, "subscription": "s", "startingOffsets": "subscription"}
    assert stream.run(**options) == texts(range(6))
    send(client, topic, range(6, 8))
    assert stream.run(**options) == texts(range(6, 8))
    stats = json.loads(box.admin("GET", f"{topic.replace('://', '/')}/stats"))
    assert stats["subscriptions"]["s"]["msgBacklog"] <= 2


@pytest.mark.campaign
@pytest.mark.parametrize("by", ["truncate", ""], ids=["trimmed", "made-anew"])
def test_lost_messages_end_a_query_with_their_range(
    stream: Stream, client: Any, box: Running, topic: str, by: str
) -> None:
    from pyspark.errors import StreamingQueryException

    send(client, topic, range(10))
    assert stream.run(topic=topic) == texts(range(10))
    (place,) = stream.offsets()[-1]["p"].values()
    send(client, topic, range(10, 12))
    path = topic.replace("://", "/")
    box.admin("DELETE", f"{path}/truncate" if by else f"{path}?force=true")
    send(client, topic, range(12, 14))
    said = f"{topic}: entries from {place} up to .* no longer exist.*failOnDataLoss=false"
    with pytest.raises(StreamingQueryException, match=said):
        stream.run(topic=topic)
    if by:
        assert stream.run(topic=topic, failOnDataLoss="false") == texts(range(12, 14))
