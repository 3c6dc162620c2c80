"""A topic as one table: history in Parquet, and later messages in the box."""

from collections import Counter
from collections.abc import Iterator
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest
from pulsar.schema import AvroSchema, Integer, Record, String

from pulsarbox import PulsarBox
from pulsarbox.spark import table
from pulsarbox.spark.lakehouse.sink_options import parse_options
from pulsarbox.spark.offload import object_path
from pulsarbox.spark.offload.table_offload import TableOffload
from pulsarbox.spark.options import OptionError
from pulsarbox.spark.topic_segments import DataLost
from tests.e2e.clients import connect, until
from tests.e2e.histories import truth
from tests.e2e.offloaded import asked, box_options, files, offload
from tests.unit.spark.offload import s3_server

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession


class Order(Record):  # type: ignore[misc]
    id = Integer()
    name = String()


@pytest.fixture
def box(tmp_path: Path) -> Iterator[PulsarBox]:
    with PulsarBox(data_dir=tmp_path / "data", process=True, managedLedgerMaxEntriesPerLedger=10) as box:
        yield box


def publish(box: PulsarBox, topic: str, *values: Any, schema: Any = None, **options: Any) -> None:
    client = connect(box.service_url)
    more = {} if schema is None else {"schema": schema}
    producer = client.create_producer(topic, batching_enabled=False, **more, **options)
    for value in values:
        producer.send(value, partition_key=str(value)[:1] if schema is None else "k")
    client.close()


def need(box: PulsarBox, *topics: str) -> None:
    """Create a subscription that retains all messages: the topic has no retention."""
    client = connect(box.service_url)
    for topic in topics:
        client.subscribe(topic, "s").close()
    client.close()


def acknowledge(box: PulsarBox, topic: str) -> None:
    box.admin("POST", f"/admin/v2/persistent/public/default/{topic}/subscription/s/skip_all")


def numbers(first: int, end: int) -> list[bytes]:
    return [b"%d" % number for number in range(first, end)]


def values(frame: "DataFrame") -> Counter[bytes]:
    return Counter(bytes(row["value"]) for row in frame.select("value").collect())


def plan(frame: "DataFrame") -> str:
    found = frame._jdf.queryExecution().executedPlan().toString()
    assert isinstance(found, str)
    return found


def rows_read(executed: Any) -> int:
    """Return Spark's own count of rows read from the files."""
    left, found = [executed.executedPlan()], 0
    while left:
        node = left.pop()
        if node.nodeName().startswith("Scan parquet"):
            found += node.metrics().apply("numOutputRows").value()
        children = node.children()
        left += [children.apply(at) for at in range(children.size())]
    return found


def test_history_and_tail_while_it_is_offloaded_and_trimmed(
    spark: "SparkSession", box: PulsarBox, tmp_path: Path
) -> None:
    directory = tmp_path / "hi{s}t [o]ry"
    need(box, "t")
    publish(box, "t", *numbers(0, 35))
    whole = table(spark, "t", directory, **box_options(box))
    assert values(whole) == Counter(numbers(0, 35)), "nothing is offloaded: all of it is read from the box"
    assert offload(box, directory, "t", grace_ms=3_600_000) == [""]
    acknowledge(box, "t")
    begun = table(spark, "t", directory, columns="all", **box_options(box))
    publish(box, "t", *numbers(35, 60))
    assert offload(box, directory, "t", grace_ms=3_600_000) == [""]
    assert values(begun) == Counter(numbers(0, 60)), "what it was made of is still there"
    assert begun.columns == ["value", *[each for each in begun.columns if each.startswith("__")]]
    assert begun.where("__ledgerId IS NULL OR __entryId IS NULL").count() == 0
    assert offload(box, directory, "t") == [""], "what was offloaded is let go of"
    after = table(spark, "t", directory, columns="all", **box_options(box))
    publish(box, "t", *numbers(60, 63))
    acknowledge(box, "t")
    assert values(after) == Counter(numbers(0, 63))
    assert len(truth(box, "t")) < 20, "the box has trimmed what is in the files"
    assert len(files(directory, "persistent://public/default/t")) == 5
    history = table(spark, "t", directory, tail=False)
    assert values(history) == Counter(numbers(0, 50))
    first = after.agg({"__ledgerId": "min"}).collect()[0][0]
    found = after.where(f"__ledgerId = {first}").select("__entryId")
    assert "PushedFilters: [IsNotNull(__ledgerId), EqualTo(__ledgerId," in plan(found)
    assert "ReadSchema: struct<__ledgerId:bigint,__entryId:bigint>" in plan(found)
    executed = found._jdf.queryExecution()
    assert sorted(row[0] for row in found.collect()) == list(range(10))
    assert rows_read(executed) == 10, "row groups of other ledgers are left out"
    with pytest.raises(OptionError, match="startingTime does not apply to table"):
        table(spark, "t", directory, startingTime="-1h", **box_options(box))
    with pytest.raises(OptionError, match="tail=True"):
        table(spark, "other", directory, tail=False)


def test_history_in_a_table_and_tail_while_it_is_offloaded_and_trimmed(
    spark: "SparkSession", box: PulsarBox, tmp_path: Path
) -> None:
    place = tmp_path / "lake" / "shop.t"

    def offloaded(**more: Any) -> None:
        request = asked(box, tmp_path, "t", **{"grace_ms": 3_600_000, **more})
        (done,) = TableOffload(request, parse_options({"table": str(place)}), lambda _: None).round()
        assert done.problem == ""

    need(box, "t")
    publish(box, "t", *numbers(0, 25))
    offloaded()
    acknowledge(box, "t")
    begun = table(spark, "t", f"iceberg:{place}", columns="all", **box_options(box))
    publish(box, "t", *(Order(id=at, name=f"n{at}") for at in range(25, 45)), schema=AvroSchema(Order))
    offloaded()
    found = values(begun)
    assert len(found) == sum(found.values()) == 45 and not Counter(numbers(0, 25)) - found, "the rest is still held"
    acknowledge(box, "t")
    offloaded(grace_ms=0)
    until(lambda: len(truth(box, "t")) < 20)  # the box has trimmed what is in the table
    after = table(spark, "t", f"iceberg:{place}", **box_options(box))
    rows = after.collect()
    assert sorted(row["id"] for row in rows if row["id"] is not None) == list(range(25, 45))
    assert Counter(bytes(row["_corrupt_record"]) for row in rows if row["id"] is None) == Counter(numbers(0, 25))
    assert after.where("id = 30").select("name").collect()[0][0] == "n30" and after.count() == 45
    history = table(spark, "t", f"iceberg:{place}", tail=False)
    assert history.count() == 40 and history.columns == after.columns
    raw = table(spark, "t", f"iceberg:{place}", tail=False, valueFormat="bytes")
    assert len(values(raw)) == 40, "the payloads as they came, all different"
    with pytest.raises(OptionError, match=r"nothing of .*other was offloaded into iceberg:"):
        table(spark, "other", f"iceberg:{place}", tail=False)


@pytest.mark.campaign
def test_columns_that_came_later_are_null_before(spark: "SparkSession", box: PulsarBox, tmp_path: Path) -> None:
    directory = tmp_path / "history"
    need(box, "t")

    class More(Record):  # type: ignore[misc]
        id = Integer()
        name = String()
        note = String(default="none", required_default=True)

    More.__name__ = "Order"
    publish(box, "t", *(Order(id=at, name=f"n{at}") for at in range(15)), schema=AvroSchema(Order))
    assert offload(box, directory, "t") == [""]
    publish(box, "t", *(More(id=at, name="later", note="x") for at in range(15, 27)), schema=AvroSchema(More))
    assert offload(box, directory, "t") == [""]
    publish(box, "t", More(id=27, name="tail", note="y"), schema=AvroSchema(More))
    frame = table(spark, "t", directory, **box_options(box))
    rows = frame.orderBy("id").collect()
    assert [row["id"] for row in rows] == list(range(28))
    assert [row["note"] for row in rows] == [None] * 10 + ["none"] * 5 + ["x"] * 12 + ["y"]
    assert rows[3]["name"] == "n3" and {row["_corrupt_record"] for row in rows} == {None}
    raw = table(spark, "t", directory, valueFormat="bytes", **box_options(box))
    assert len(values(raw)) == 28, "the payloads as they came, all different"
    alone = table(spark, "t", directory, tail=False)
    assert alone.columns == frame.columns and alone.count() == 20


@pytest.mark.campaign
def test_partitions_and_patterns(spark: "SparkSession", box: PulsarBox, tmp_path: Path) -> None:
    directory = tmp_path / "history"
    box.admin("PUT", "/admin/v2/persistent/public/default/p/partitions", 2)
    need(box, "p-partition-0", "p-partition-1")
    for number in range(2):
        publish(box, f"p-partition-{number}", *numbers(100 * number, 100 * number + 12))
    publish(box, "p-2", b"only in the box")
    assert offload(box, directory, "p") == [""]
    assert values(table(spark, "p", directory, **box_options(box))) == Counter(numbers(0, 12) + numbers(100, 112))
    frame = table(spark, directory=directory, topicsPattern="public/default/p.*", columns="all", **box_options(box))
    assert frame.count() == 25
    assert {row["__partition"] for row in frame.select("__partition").distinct().collect()} == {None, 0, 1}


@pytest.mark.campaign
def test_what_is_gone_without_having_been_offloaded_is_said(
    spark: "SparkSession", box: PulsarBox, tmp_path: Path
) -> None:
    need(box, "t")
    publish(box, "t", *numbers(0, 12))
    assert offload(box, tmp_path / "history", "t", hold=False) == [""]
    publish(box, "t", *numbers(12, 35))
    acknowledge(box, "t")
    frame = table(spark, "t", tmp_path / "history", **box_options(box))
    with pytest.raises(Exception, match="no longer exist"):
        frame.count()
    (problem,) = offload(box, tmp_path / "history", "t", hold=False)
    assert "no longer exist" in problem and "--accept-loss" in problem
    assert offload(box, tmp_path / "history", "t", hold=False, accept_loss=True) == [""]
    assert values(table(spark, "t", tmp_path / "history", **box_options(box)))[b"34"] == 1
    box.admin("DELETE", "/admin/v2/persistent/public/default/t?force=true")
    publish(box, "t", b"anew")
    with pytest.raises(DataLost, match="recreated"):
        table(spark, "t", tmp_path / "history", **box_options(box))


@pytest.mark.campaign
def test_a_table_in_object_storage(spark: "SparkSession", box: PulsarBox) -> None:
    with s3_server.moto() as settings:
        object_path.use(settings)
        try:
            root = object_path.place_of(f"s3://{s3_server.BUCKET}/history")
            need(box, "t")
            publish(box, "t", *numbers(0, 12))
            assert offload(box, root, "t") == [""]
            publish(box, "t", Order(id=5, name="five"), schema=AvroSchema(Order))
            publish(box, "t", *(Order(id=each, name="x") for each in range(20)), schema=AvroSchema(Order))
            assert offload(box, root, "t") == [""]
            whole = table(spark, "t", str(root), valueFormat="bytes", **box_options(box))
            assert {bytes(row["value"]) for row in whole.collect()} >= set(numbers(0, 12)) and whole.count() == 33
            typed = table(spark, "t", str(root), columns="all", **box_options(box))
            assert sorted(row["id"] for row in typed.where("name = 'x'").collect()) == list(range(20))
            assert typed.where("id IS NULL AND _corrupt_record IS NOT NULL").count() == 12
            none = table(spark, "t", str(root), schema="missing string", tail=False)
            assert [row["missing"] for row in none.collect()] == [None] * len(none.collect())
        finally:
            object_path.use(None)
