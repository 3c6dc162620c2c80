"""``spark.read`` with a box."""

import json
import time
from collections.abc import Callable
from typing import TYPE_CHECKING, Any

import pulsar
import pytest
from pulsar.schema import AvroSchema, Integer, JsonSchema, Record, String

from tests.e2e.conftest import Running

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, DataFrameReader, SparkSession


class Order(Record):  # type: ignore[misc]
    id = Integer()
    name = String()


@pytest.fixture
def reader(spark: "SparkSession", box: Running) -> "Callable[..., DataFrameReader]":
    """Return a reader of the format with options; an underscore in a name replaces a dot."""

    def made(**options: str) -> "DataFrameReader":
        found = spark.read.format("pulsarbox").option("service.url", box.url).option("admin.url", box.web_url)
        for name, value in options.items():
            found = found.option(name.replace("_", "."), value)
        return found

    return made


Reader = Callable[..., "DataFrameReader"]


def test_all_columns_of_a_topic_are_read(reader: Reader, client: Any, topic: str) -> None:
    producer = client.create_producer(topic)
    ids = []
    for number in range(20):
        properties = {"n": str(number)} if number % 2 else {}
        key = f"k{number}" if number % 3 else None
        ids.append(
            producer.send(b"m%d" % number, partition_key=key, properties=properties, event_timestamp=1000 * number)
        )
    rows = reader(topic=topic, columns="all").load().orderBy("__ledgerId", "__entryId").collect()
    assert [bytes(row["value"]) for row in rows] == [b"m%d" % number for number in range(20)]
    assert [row["__key"] and bytes(row["__key"]).decode() for row in rows][:4] == [None, "k1", "k2", None]
    assert rows[3]["__messageProperties"] == {"n": "3"} and rows[2]["__messageProperties"] == {}
    assert {row["__topic"] for row in rows} == {topic}
    assert [bytes(row["__messageId"]) for row in rows] == [each.serialize() for each in ids]
    assert rows[5]["__eventTime"].timestamp() == 5.0 and rows[0]["__eventTime"] is None
    assert [row["__sequenceId"] for row in rows] == list(range(20))


@pytest.mark.campaign
def test_batches_are_unpacked_and_compressed_ones_too(reader: Reader, client: Any, topic: str) -> None:
    producer = client.create_producer(
        topic, batching_enabled=True, batching_max_messages=7, compression_type=pulsar.CompressionType.ZSTD
    )
    for number in range(50):
        producer.send_async(b"m%d" % number, lambda *_: None)
    producer.flush()
    frame = reader(topic=topic, columns="value,__batchIndex").load()
    assert {bytes(row["value"]) for row in frame.collect()} == {b"m%d" % number for number in range(50)}
    assert frame.where("__batchIndex > 0").count() > 0


@pytest.mark.campaign
def test_partitions_lists_and_patterns_are_read(
    reader: Reader, client: Any, box: Running, fresh: Callable[[str], str]
) -> None:
    first, second = fresh("many"), fresh("many")
    box.admin("PUT", f"{first.replace('://', '/')}/partitions", "3")
    for topic in (first, second):
        producer = client.create_producer(
            topic, message_routing_mode=pulsar.PartitionsRoutingMode.RoundRobinDistribution
        )
        for number in range(6):
            producer.send(b"%d" % number)
    pattern = first.rpartition("/")[2].rpartition("-")[0] + "-.*"
    for options in ({"topics": f"{first},{second}"}, {"topicsPattern": pattern}):
        found = reader(**options).load().groupBy("__topic").count().collect()
        counts = {row["__topic"]: row["count"] for row in found}
        assert set(counts) == {second, *(f"{first}-partition-{number}" for number in range(3))}
        assert sum(counts.values()) == 12
    partition = reader(topic=first, columns="__partition").load().distinct().collect()
    assert {row["__partition"] for row in partition} == {0, 1, 2}


def values(frame: "DataFrame") -> list[str]:
    return sorted(bytes(row["value"]).decode() for row in frame.select("value").collect())


@pytest.mark.campaign
def test_ranges_are_half_open(reader: Reader, client: Any, topic: str) -> None:
    producer = client.create_producer(topic)
    ids = [producer.send(b"%d" % number) for number in range(9)]
    places = [f"{each.ledger_id()}:{each.entry_id()}" for each in ids]
    begin, end = json.dumps({topic: places[3]}), json.dumps({topic: places[6]})
    assert values(reader(topic=topic, startingOffsets=begin, endingOffsets=end).load()) == ["3", "4", "5"]
    assert values(reader(topic=topic, startingOffsets="latest").load()) == []
    assert values(reader(topic=topic, endingOffsets=begin).load()) == ["0", "1", "2"]
    subscribed = client.subscribe(topic, "s", initial_position=pulsar.InitialPosition.Earliest)
    for _ in range(7):
        subscribed.acknowledge(subscribed.receive(timeout_millis=10_000))
    subscribed.close()
    frame = reader(topic=topic, startingOffsets="subscription", subscription="s").load()
    assert values(frame) == ["7", "8"]


@pytest.mark.campaign
def test_ranges_go_by_time(reader: Reader, client: Any, topic: str) -> None:
    producer = client.create_producer(topic)
    for number in range(6):
        producer.send(b"%d" % number)
        time.sleep(0.002)  # publish times have a resolution of one millisecond
    rows = reader(topic=topic, columns="value,__publishTime").load().orderBy("__publishTime").collect()
    middle = round(rows[3]["__publishTime"].timestamp() * 1000)
    later = reader(topic=topic, startingTime=str(middle)).load()
    earlier = reader(topic=topic, endingTime=str(middle)).load()
    assert sorted(values(later) + values(earlier)) == [str(number) for number in range(6)]
    assert "5" in values(later) and "0" in values(earlier)


@pytest.mark.campaign
@pytest.mark.parametrize("made", [AvroSchema, JsonSchema])
def test_records_become_columns(reader: Reader, client: Any, topic: str, made: Any) -> None:
    producer = client.create_producer(topic, schema=made(Order))
    for number in range(5):
        producer.send(Order(id=number, name=f"n{number}" if number else None))
    client.create_producer(topic + "x").send(b"\xff")
    frame = reader(topic=topic).load()
    assert frame.columns[:2] == ["id", "name"] and frame.columns[-1] == "_corrupt_record"
    rows = frame.orderBy("id").collect()
    assert [(row["id"], row["name"]) for row in rows] == [
        (0, None),
        *((number, f"n{number}") for number in range(1, 5)),
    ]
    assert frame.where("_corrupt_record is not null").count() == 0
    whole = reader(topic=topic).schema("value binary").load().collect()
    assert len(whole) == 5 and b"n3" in b"".join(bytes(row["value"]) for row in whole)
    both = reader(topics=f"{topic},{topic}x").load()
    assert both.schema["value"].dataType.typeName() == "binary"


def test_user_columns_choose_what_is_read(reader: Reader, client: Any, topic: str) -> None:
    client.create_producer(topic).send(b'{"a": 5, "b": [1.5]}', partition_key="k")
    columns = "a int, b array<double>, __key string"
    (row,) = reader(topic=topic, valueFormat="json").schema(columns).load().collect()
    assert row.asDict() == {"a": 5, "b": [1.5], "__key": "k"}


@pytest.mark.campaign
def test_small_parts_read_every_message_once(reader: Reader, client: Any, topic: str) -> None:
    producer = client.create_producer(topic, batching_enabled=True, batching_max_messages=5)
    for number in range(200):
        producer.send_async(b"%d" % number, lambda *_: None)
    producer.flush()
    frame = reader(topic=topic, minPartitions="7").load()
    assert frame.rdd.getNumPartitions() == 7
    assert values(frame) == sorted(str(number) for number in range(200))
    assert reader(topic=topic, maxBytesPerPartition="300").load().rdd.getNumPartitions() > 7


def test_a_topic_that_is_not_there_is_told(reader: Reader, topic: str) -> None:
    from pyspark.errors import AnalysisException

    with pytest.raises(AnalysisException, match=f"topic {topic} does not exist.*waitForTopic"):
        reader(topic=topic).load()
    with pytest.raises(AnalysisException, match="still missing after 300 ms"):
        reader(topic=topic, waitForTopic="true", pollTimeoutMs="300").load()


@pytest.mark.campaign
def test_filters_leave_out_what_they_exclude(
    spark: "SparkSession", reader: Reader, client: Any, box: Running, fresh: Any
) -> None:
    topic = fresh("pruned")
    box.admin("PUT", f"{topic.replace('://', '/')}/partitions", "4")
    producer = client.create_producer(topic, message_routing_mode=pulsar.PartitionsRoutingMode.RoundRobinDistribution)
    for number in range(12):
        producer.send(b"%d" % number)
    wanted = f"__topic = '{topic}-partition-2' and __publishTime > '2020-01-01' and __ledgerId >= 0"
    plain = values(reader(topic=topic, columns="all").load().where(wanted))
    spark.conf.set("spark.sql.python.filterPushdown.enabled", "true")
    try:
        frame = reader(topic=topic, pushdown="true", columns="all", minPartitions="12").load()
        assert frame.rdd.getNumPartitions() == 12
        pruned = frame.where(wanted)
        assert pruned.rdd.getNumPartitions() == 3
        assert values(pruned) == plain and len(plain) == 3
    finally:
        spark.conf.unset("spark.sql.python.filterPushdown.enabled")
