"""Iceberg tables written by Spark and read by pyiceberg: types, epochs, batch writes. Delta without its jar."""

import datetime as dt
from collections import Counter
from decimal import Decimal
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest

from pulsarbox.pipelines import Frame, PipelineError
from pulsarbox.spark import register
from pulsarbox.spark.lakehouse.catalogs import opened
from pulsarbox.spark.lakehouse.epoch_commit import EPOCH, WRITER
from pulsarbox.spark.lakehouse.sink_options import parse_options
from pulsarbox.spark.pipelines import delta_output
from tests.e2e.conftest import Running
from tests.tools.campaigns import short

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

DAY = dt.datetime(2026, 11, 21, tzinfo=dt.UTC)


def rows_of(place: str) -> tuple[list[dict[str, Any]], list[dict[str, str]], Any]:
    """Return rows, properties of the snapshots, and the schema, as pyiceberg has them."""
    with opened(parse_options({"table": place})) as catalog:
        table = catalog.load_table("shop.orders")
        told = [dict(each.summary.additional_properties) for each in table.snapshots() if each.summary]
        return table.scan().to_arrow().to_pylist(), told, table.schema().as_arrow()


@pytest.mark.parametrize("with_batch", short([False, True], 1), ids=["stream", "stream and batch"])
def test_typed_rows_are_written_once(
    spark: "SparkSession", box: Running, client: Any, topic: str, tmp_path: Path, with_batch: bool
) -> None:
    register(spark)
    place = str(tmp_path / "lake" / "shop.orders")
    producer = client.create_producer(topic)
    for number in range(20):
        producer.send(b"%d" % number, partition_key=f"k{number % 3}", event_timestamp=round(DAY.timestamp() * 1000))
    read = spark.readStream.format("pulsarbox").option("service.url", box.url).option("admin.url", box.web_url)
    frame = read.option("topic", topic).option("startingOffsets", "earliest")
    rows = frame.load().selectExpr(
        "CAST(CAST(value AS STRING) AS INT) AS n", "__key", "__eventTime AS at", "CAST(1.5 AS DECIMAL(10,2)) AS price",
        "__messageProperties AS properties", "named_struct('a', array(1)) AS nested",
    )  # fmt: skip
    writer = rows.writeStream.format("pulsarbox-iceberg").option("table", place).option("partitionBy", "day(at)")
    query = writer.option("checkpointLocation", str(tmp_path / "checkpoint")).trigger(availableNow=True).start()
    query.awaitTermination()
    found, told, schema = rows_of(place)
    assert Counter(row["n"] for row in found) == Counter(range(20))
    expected = {"__key": b"k0", "at": DAY, "price": Decimal("1.50"), "properties": [], "nested": {"a": [1]}}
    assert {name: next(row for row in found if row["n"] == 0)[name] for name in expected} == expected
    assert str(schema.field("at").type) == "timestamp[us, tz=UTC]"
    assert [(each[WRITER], each[EPOCH]) for each in told] == [(query.id, "0")]
    if with_batch:
        more = spark.createDataFrame([(90,), (91,)], "n int").write.format("pulsarbox-iceberg").mode("append")
        more.option("table", place).option("jobId", "more").save()
        assert Counter(row["n"] for row in rows_of(place)[0]) == Counter([*range(20), 90, 91])


def test_a_delta_table_is_refused_without_its_jar(spark: "SparkSession", tmp_path: Path) -> None:
    step = Frame(build=lambda df: df, inputs="orders", output=f"delta:{tmp_path / 'orders'}", name="orders")
    with pytest.raises(
        PipelineError, match=r"has no jar of Delta: add one .* spark\.jars\.packages=io\.delta:delta-spark"
    ):
        delta_output.prepare(spark, step, spark.range(1), None)
    assert spark.sql("SELECT 1 AS n").first()["n"] == 1 and not list(tmp_path.iterdir())  # type: ignore[index]
