"""The connector's calls for streams and batches without a JVM: limits, waits, restarts, data loss."""

import json
from collections.abc import Iterator
from functools import partial
from pathlib import Path
from typing import Any

import pytest
from pyspark.sql.datasource import DataSourceReader
from pyspark.sql.streaming.datasource import ReadLimit
from pyspark.sql.types import BinaryType, StructField, StructType

from pulsarbox import PulsarBox
from pulsarbox.spark.connect.broker_api import LATEST, Service
from pulsarbox.spark.source import stream_reader
from pulsarbox.spark.source.data_source import PulsarboxSource
from pulsarbox.spark.source.stream_reader import StreamReader
from pulsarbox.spark.topic_segments import BEGINNING, DataLost, Reach, ReadPosition
from tests.e2e.clients import admin_path, connect, until

TOPIC = "persistent://public/default/t"
VALUE = StructType([StructField("value", BinaryType())])


@pytest.fixture
def box(tmp_path: Path) -> Iterator[PulsarBox]:
    """Return a box that a test may restart."""
    keep: dict[str, Any] = {"defaultRetentionTimeInMinutes": -1, "defaultRetentionSizeInMB": -1}
    with PulsarBox(data_dir=tmp_path / "data", managedLedgerMaxEntriesPerLedger=10, **keep) as box:
        yield box


def options(box: PulsarBox, **more: str) -> dict[str, str]:
    urls = {"service.url": box.service_url, "admin.url": box.admin_url, "access": "wire"}
    topics = {} if "topicsPattern" in more else {"topic": TOPIC}
    return {**urls, **topics, "startingOffsets": "earliest", **more}


def publish(box: PulsarBox, *values: str, topic: str = TOPIC, key: str | None = None) -> None:
    client = connect(box.service_url)
    producer = client.create_producer(topic)
    for value in values:
        producer.send(value.encode(), partition_key=key)
    client.close()


class Steps:
    """Reader that is called micro-batch by micro-batch, as Spark does."""

    def __init__(self, box: PulsarBox, **more: str) -> None:
        reader = PulsarboxSource(options(box, **more)).streamReader(VALUE)
        assert isinstance(reader, StreamReader)
        self.reader = reader
        self.at: dict[str, Any] = reader.initialOffset()

    @property
    def limit(self) -> ReadLimit:
        return self.reader.getDefaultReadLimit()

    def next(self) -> list[str]:
        """Return the values of a micro-batch, or none if no messages are available."""
        end = json.loads(json.dumps(self.reader.latestOffset(self.at, self.limit)))
        if end == self.at:
            return []
        found = []
        for part in self.reader.partitions(self.at, end):
            found += [value.decode() for some in self.reader.read(part) for value in some.column(0).to_pylist()]
        self.at = end
        return found

    def __enter__(self) -> "Steps":
        return self

    def __exit__(self, *_: object) -> None:
        self.reader.stop()


def test_a_query_may_begin_with_a_micro_batch_though_nothing_is_new(box: PulsarBox) -> None:
    publish(box, "a")
    with Steps(box) as steps:
        assert steps.next() == ["a"]
    at = steps.at
    for _ in range(2):
        with Steps(box, batchAtStart="true") as again:
            end = again.reader.latestOffset(at, again.limit)
            assert end != at and again.reader.partitions(at, end) == []
            assert again.reader.latestOffset(end, again.limit) == end, "that was it"
            publish(box, "b")
            again.at = end
            assert again.next() == ["b"]
            at = again.at
    with Steps(box) as steps:
        assert steps.reader.latestOffset(at, steps.limit) == at, "what another one has begun with stays"


def test_so_many_bytes_a_micro_batch(box: PulsarBox) -> None:
    sent = [f"{number:04}" + "x" * 1000 for number in range(30)]
    publish(box, *sent)
    with Steps(box, maxBytesPerTrigger="5k") as steps:
        batches = []
        while some := steps.next():
            batches.append(some)
    assert [value for batch in batches for value in batch] == sent
    assert all(1 <= len(batch) <= 5 for batch in batches) and len(batches) <= 15


def test_few_messages_wait_for_more_or_for_the_longest_wait(box: PulsarBox) -> None:
    publish(box, "a", "b")
    with Steps(box, minEntriesPerTrigger="3", maxTriggerDelay="1h") as steps:
        assert steps.next() == [], "two are too few"
        publish(box, "c")
        assert steps.next() == ["a", "b", "c"]
        publish(box, "d")
        assert steps.next() == []
    with Steps(box, minEntriesPerTrigger="9", maxTriggerDelay="0s") as steps:
        assert steps.next() == ["a", "b", "c", "d"]


def test_a_box_that_restarts_is_waited_for(box: PulsarBox) -> None:
    publish(box, "a")
    with Steps(box) as steps:
        assert steps.next() == ["a"]
        box.restart()
        assert steps.next() == []
        publish(box, "b")
        assert steps.next() == ["b"]


def test_many_topics_and_one_of_them_gone(box: PulsarBox) -> None:
    topics = [f"{TOPIC}-{number}" for number in range(5)]
    for each in topics:
        publish(box, each[-1], topic=each)
    with Steps(box, topicsPattern="t-.*", failOnDataLoss="false") as steps:
        assert sorted(steps.next()) == list("01234")
        box.admin("DELETE", f"/admin/v2/{admin_path(topics[2])}?force=true")
        publish(box, "again", topic=topics[0])
        assert steps.next() == ["again"]


@pytest.mark.parametrize("fails", [True, False])
def test_a_topic_that_was_made_anew_with_as_many_messages_is_noticed(box: PulsarBox, fails: bool) -> None:
    publish(box, "a", "b")
    with Steps(box, failOnDataLoss=str(fails).lower()) as steps:
        assert steps.next() == ["a", "b"]
        box.admin("DELETE", f"/admin/v2/{admin_path(TOPIC)}?force=true")
        publish(box, "c", "d")
        if fails:
            with pytest.raises(DataLost, match="the topic was recreated"):
                steps.next()
        else:
            assert (steps.next(), steps.next()) == (["c", "d"], [])


@pytest.mark.parametrize("fails", [True, False])
def test_what_was_trimmed_ends_a_stream_or_is_passed_over(box: PulsarBox, fails: bool) -> None:
    publish(box, "a")
    with Steps(box, failOnDataLoss=str(fails).lower()) as steps:
        assert steps.next() == ["a"]
        publish(box, *(f"lost {number}" for number in range(20)))
        box.admin("DELETE", f"/admin/v2/{admin_path(TOPIC)}/truncate")
        publish(box, "b")
        if fails:
            with pytest.raises(Exception, match=r"no longer exist.*failOnDataLoss=false"):
                steps.next()
        else:
            assert steps.next() == ["b"]


@pytest.mark.parametrize("fails", [True, False])
def test_what_a_batch_names_and_is_not_there_is_told(box: PulsarBox, fails: bool) -> None:
    publish(box, *(f"lost {number}" for number in range(5)))
    first = places(box)[0]
    box.admin("DELETE", f"/admin/v2/{admin_path(TOPIC)}/truncate")
    publish(box, "a", "b")
    start = json.dumps({TOPIC: f"{first.ledger}:{first.entry + 2}"})
    reader = PulsarboxSource(options(box, startingOffsets=start, failOnDataLoss=str(fails).lower())).reader(VALUE)
    if not fails:
        assert values(reader) == ["a", "b"]
        return
    stays = places(box)[0]
    said = f"{TOPIC}: entries from {first.ledger}:2 up to {stays.ledger}:0 .not included. no longer exist[.] Set"
    with pytest.raises(DataLost, match=said):
        reader.partitions()


def places(box: PulsarBox) -> list[ReadPosition]:
    """Return the start positions of the parts."""
    with Service(Reach(box.service_url, box.admin_url)) as service:
        return [ReadPosition(each.ledger, each.first) for each in service.segments(TOPIC, BEGINNING, LATEST)]


def values(reader: DataSourceReader) -> list[str]:
    found: list[str] = []
    for part in reader.partitions():
        batches: Any = reader.read(part)
        found += [value.decode() for some in batches for value in some.column(0).to_pylist()]
    return found


def test_a_topic_that_comes_later_is_read_from_its_beginning(box: PulsarBox) -> None:
    with Steps(box, waitForTopic="true", startingOffsets="latest") as steps:
        assert steps.next() == []
        publish(box, "a", "b")
        found: list[str] = []

        def is_read() -> bool:
            found.extend(steps.next())
            return found == ["a", "b"]

        until(is_read)


def test_compacted_reads_have_the_latest_of_each_key_and_what_came_behind(box: PulsarBox) -> None:
    for value in ("a1", "a2", "a3"):
        publish(box, value, key="a")
    publish(box, "b1", key="b")
    box.admin("PUT", f"/admin/v2/{admin_path(TOPIC)}/compaction")
    until(lambda: box.admin("GET", f"/admin/v2/{admin_path(TOPIC)}/compaction")["status"] == "SUCCESS")
    publish(box, "a4", key="a")

    def read(compacted: str) -> list[str]:
        return values(PulsarboxSource(options(box, readCompacted=compacted)).reader(VALUE))

    assert sorted(read("true")) == ["a3", "a4", "b1"]
    assert sorted(read("false")) == ["a1", "a2", "a3", "a4", "b1"]


def test_a_micro_batch_that_follows_another_does_not_wait_for_what_has_time(
    box: PulsarBox, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The subscription advances only now and then, or when no message is new. End positions are requested once."""
    monkeypatch.setattr(stream_reader, "ACKNOWLEDGE_SECONDS", 3600.0)
    calls: list[str] = []
    for name in ("all_bounds", "acknowledge"):
        method = getattr(Service, name)
        counted = partial(_counted, calls, name, method)
        monkeypatch.setattr(Service, name, lambda self, *args, _counted=counted: _counted(self, *args))
    publish(box, "a")
    with Steps(box, subscription="s") as steps:
        calls.clear()  # requests at the start of a query are not counted
        for value in ("b", "c", "d"):
            assert len(steps.next()) == 1
            publish(box, value)
            steps.reader.commit(steps.at)
        assert calls == ["all_bounds", "acknowledge", "all_bounds", "all_bounds"], "the first was told"
        end = steps.reader.latestOffset(steps.at, steps.limit)
        assert (steps.reader.reportLatestOffset(), calls[4:]) == (end, ["all_bounds"])
        assert steps.reader.reportLatestOffset() == end, "whenever it is asked"
        steps.at = end
        assert steps.next() == []
        assert calls.count("acknowledge") == 2, "now there is the time"
    stats = box.admin("GET", f"/admin/v2/{admin_path(TOPIC)}/stats")
    assert stats["subscriptions"]["s"]["msgBacklog"] == 0


def _counted(calls: list[str], name: str, method: Any, *args: Any) -> Any:
    calls.append(name)
    return method(*args)
