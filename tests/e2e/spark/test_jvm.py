"""The reader inside the JVM returns the rows that Python returns, and leaves to Python what only Python reads."""

import json
import time
from collections.abc import Callable
from itertools import product
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest

from pulsarbox import PulsarBox
from pulsarbox.plugins.compression.wire import CODECS
from pulsarbox.protocol.PulsarApi_pb2 import KeyValue
from tests.e2e.conftest import Running
from tests.e2e.histories import SMALL, History, truth, wait_for_packing
from tests.e2e.spark.jvm_reads import Read, Sender, by_python, check, leaves, metric, rows, scan_of
from tests.tools.campaigns import short

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession

pytestmark = pytest.mark.usefixtures("jvm")
FIELDS: list[dict[str, Any]] = [
    {},
    {"partition_key": "k"},
    {"partition_key": ""},
    {"partition_key": "/wA=", "partition_key_b64_encoded": True},
    {"properties": [KeyValue(key="a", value="1"), KeyValue(key="é", value=""), KeyValue(key="b", value="x" * 300)]},
    {"properties": [KeyValue(key="a", value="1"), KeyValue(key="b", value="2"), KeyValue(key="a", value="3")]},
    {"event_time": 1_700_000_000_123},
    {"event_time": (1 << 64) - 1},
    {"ordering_key": b"\xff\x00"},
    {"null_value": True},
]
"""Metadata that a message may have, in a batch or alone."""
LEAF_PARALLELISM = "spark.sql.leafNodeDefaultParallelism"
OF_ENTRIES: list[dict[str, Any]] = [
    {"schema_version": b"\x00\x00\x00\x00\x00\x00\x00\x01"},
    {"schema_version": b""},
    {"deliver_at_time": 1_700_000_000_000},
    {"replicated_from": "elsewhere"},
]


COUNT = 5 * (2 * 14 + 2 * 10 + 2 * 4)


def send_all_fields(sender: Sender) -> None:
    """Send COUNT messages with all that their metadata may have, by all codecs, alone and in batches."""
    for codec, fields in product(CODECS, FIELDS + OF_ENTRIES):
        sender.single(b"payload" * 30, codec, **fields)
        sender.single(b"", codec, **fields)
    for codec, fields in product(CODECS, FIELDS):
        sender.batch([(fields, b"one" * 50), ({**fields, "sequence_id": 77}, b"")], codec)
    for codec, fields in product(CODECS, OF_ENTRIES):
        sender.batch([({}, b"1"), ({"partition_key": "x", "compacted_out": True}, b"2")], codec, **fields)


def test_all_that_metadata_may_have_is_read_alike(spark: "SparkSession", read: Read, sender: Sender) -> None:
    send_all_fields(sender)
    assert check(spark, read) == COUNT
    assert read().count() == COUNT


def test_a_larger_read_has_as_many_tasks_as_the_session_runs_at_a_time(
    spark: "SparkSession", read: Read, sender: Sender
) -> None:
    for _ in range(9):
        sender.single(bytes(1 << 20), "none")
    assert read().rdd.getNumPartitions() == read("value binary").rdd.getNumPartitions() == 2
    spark.conf.set(LEAF_PARALLELISM, "1")
    try:
        assert read().rdd.getNumPartitions() == 1
        assert read(PARALLELISM="3").rdd.getNumPartitions() == 3
    finally:
        spark.conf.unset(LEAF_PARALLELISM)


@pytest.mark.campaign
def test_each_column_alone_is_read_alike(spark: "SparkSession", read: Read, sender: Sender) -> None:
    send_all_fields(sender)
    for name in read().columns:
        assert check(spark, lambda name=name: read().select(name)) == COUNT  # type: ignore[misc]


@pytest.mark.campaign
def test_large_entries_and_many_messages_in_one(spark: "SparkSession", read: Read, sender: Sender) -> None:
    sender.batch([({"partition_key": str(at)}, b"%d" % at) for at in range(9000)])
    for at in range(5):
        sender.single(bytes([at]) * 1_000_000, "zstd")
    sender.batch([({}, b"%d" % at) for at in range(3000)], "lz4")
    assert check(spark, read) == 12_005
    assert check(spark, lambda: read(maxBytesPerPartition="1m", minPartitions="9")) == 12_005


def test_ranges_within_batches(spark: "SparkSession", read: Read, sender: Sender, topic: str) -> None:
    for turn in range(3):
        sender.batch([({}, b"%d-%d" % (turn, at)) for at in range(10)])
    ids = sorted({(row["__ledgerId"], row["__entryId"]) for row in read().collect()})
    start, end = (f"{ledger}:{entry}:{index}" for (ledger, entry), index in ((ids[0], 3), (ids[2], 4)))
    options = {"startingOffsets": json.dumps({topic: start}), "endingOffsets": json.dumps({topic: end})}
    assert check(spark, lambda: read(**options)) == 7 + 10 + 4


def test_a_read_without_entries_runs_no_worker(read: Read, sender: Sender) -> None:
    sender.single(b"before")
    found = read(startingOffsets="latest")
    assert found.collect() == []
    assert scan_of(found).supportsColumnar()  # workers return rows
    assert metric(found, "handedOver") == 0
    assert read(startingOffsets="latest").count() == 0


UNUSUAL: dict[str, Callable[[Sender], object]] = {
    "a key that is not base64": lambda sender: sender.single(b"x", partition_key="-", partition_key_b64_encoded=True),
    "a chunked message": lambda sender: sender.chunks(b"abc", b"abc"),
    "too many messages": lambda sender: sender.batch([({}, b"")] * 70_000),
    "an encrypted message": lambda sender: sender.single(b"x", encryption_keys=[{"key": "k", "value": b"v"}]),
}


@pytest.mark.parametrize("name", short(list(UNUSUAL), 1))
def test_what_only_python_reads_is_handed_over(spark: "SparkSession", read: Read, sender: Sender, name: str) -> None:
    sender.single(b"before")
    sender.batch([({}, b"1"), ({}, b"2")])
    UNUSUAL[name](sender)
    sender.single(b"behind")
    assert check(spark, read, handed_over=True) > 4


@pytest.mark.campaign
def test_a_body_that_cannot_be_decompressed_is_lost_alike(spark: "SparkSession", read: Read, sender: Sender) -> None:
    sender.single(b"before")
    sender.flush()
    sender.producer.send(50, b"no frame", compression=CODECS["zstd"], uncompressed_size=100)
    sender.single(b"behind")
    assert check(spark, lambda: read(failOnDataLoss="false"), handed_over=True) == 2
    with pytest.raises(Exception, match="cannot be decoded"):
        read().collect()


@pytest.mark.parametrize("some_of_them", short([slice(4, 6), slice(None)], 1), ids=["two", "all"])
def test_filters_leave_out_what_they_exclude(
    spark: "SparkSession", read: Read, sender: Sender, some_of_them: slice
) -> None:
    for number in range(40):
        sender.single(b"%d" % number, partition_key=str(number % 5))
        if number == 19:
            time.sleep(0.01)  # later messages have later times
    sender.batch([({"partition_key": str(at)}, b"") for at in range(5)])
    sender.single(b"", partition_key="Mw==", partition_key_b64_encoded=True)
    some = read().collect()
    published = sorted(row["__publishTime"] for row in some)
    ledger = some[0]["__ledgerId"]
    conditions = [
        ("__key in (cast('3' as binary), cast('x' as binary)) and __entryId > 20", 6, 6),
        (f"__ledgerId = {ledger + 1000} or __ledgerId < 0", 0, 46),
        (f"__ledgerId > {ledger + 1000}", 0, 0),
        ("__topic = 'other'", 0, 0),
        ("__key = cast('3' as binary)", 10, 10),
        (f"__publishTime > timestamp_micros({int(published[30].timestamp() * 1_000_000)})", None, 26),
        (f"__publishTime = timestamp_micros({int(published[-1].timestamp() * 1_000_000)})", None, 26),
        ("__partition is null and __batchIndex = 2", 1, 46),
    ]
    for condition, matching, most in conditions[some_of_them]:
        expected, found = by_python(spark, lambda where=condition: read().where(where)), read().where(condition)  # type: ignore[misc]
        assert rows(found) == expected, condition
        assert matching is None or len(expected) == matching, condition
        assert len(expected) <= metric(found, "jvmRows") <= most, condition
    assert len(read().limit(7).collect()) == 7


@pytest.mark.campaign
def test_a_stream_reads_in_the_jvm(
    spark: "SparkSession", box: Running, sender: Sender, topic: str, tmp_path: Path
) -> None:
    seen: list[Any] = []
    in_jvm: list[int] = []

    def keep(frame: "DataFrame", number: int) -> None:
        del number
        seen.extend(bytes(row["value"]) for row in frame.collect())

    def run() -> None:
        sender.flush()
        reader = spark.readStream.format("pulsarbox").option("service.url", box.url).option("admin.url", box.web_url)
        frame = reader.option("topic", topic).option("startingOffsets", "earliest").option("maxEntriesPerTrigger", "4")
        query = frame.load().writeStream.option("checkpointLocation", str(tmp_path)).foreachBatch(keep)
        started = query.trigger(availableNow=True).start()
        assert started.awaitTermination(120)
        plan = started._jsq.streamingQuery().lastExecution().executedPlan()
        scans = [leaf for leaf in leaves(plan.collectLeaves()) if leaf.nodeName().startswith("MicroBatchScan")]
        in_jvm.extend(int(scan.metrics().apply("jvmRows").value()) for scan in scans)

    for number in range(10):
        sender.single(b"%d" % number)
    run()
    UNUSUAL["a chunked message"](sender)
    sender.single(b"10")
    run()
    assert seen == [b"%d" % number for number in range(10)] + [b"abcabc", b"10"]
    assert in_jvm[0] > 0


@pytest.mark.parametrize("seed", short([3, 5, 6, 9], 0))
def test_a_random_history_is_read_alike(spark: "SparkSession", tmp_path: Path, seed: int) -> None:
    kept: dict[str, Any] = {**SMALL, "managedLedgerMaxEntriesPerLedger": 20, "brokerDeleteInactiveTopicsEnabled": False}
    with PulsarBox(data_dir=tmp_path / "data", process=True, **kept) as box:
        box.admin("PUT", "/admin/v2/persistent/public/default/t")
        history = History(box, "t", seed)
        options = {"service.url": box.service_url, "admin.url": box.admin_url, "topic": "t", "columns": "all"}

        def frame() -> "DataFrame":
            return spark.read.format("pulsarbox").options(**options, maxBytesPerPartition="100k").load()

        for told in history.steps(20):
            expected, found = by_python(spark, frame), frame()
            assert rows(found) == expected, told
        wait_for_packing(box)
        expected, found = by_python(spark, frame), frame()
        assert rows(found) == expected
        assert len(expected) == len(truth(box, "t"))
        assert metric(found, "jvmRows") > 0
        history.close()
