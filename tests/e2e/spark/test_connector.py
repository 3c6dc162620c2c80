"""``format("pulsar")``: a program of the existing connector, with its columns, offsets and defaults."""

import json
from typing import TYPE_CHECKING, Any

import pulsar
import pytest
from pulsar.schema import Integer, JsonSchema, Record

from tests.e2e.conftest import Running

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

    from tests.e2e.spark.conftest import Take


class Order(Record):  # type: ignore[misc]
    id = Integer()


METADATA = ["__key", "__topic", "__messageId", "__publishTime", "__eventTime", "__messageProperties"]


def serialized(found: pulsar.MessageId) -> list[int]:
    """Return an ID as the existing connector serializes it: signed bytes."""
    return [byte - 256 if byte > 127 else byte for byte in found.serialize()]


def test_a_program_of_the_existing_connector_runs_unchanged(
    spark: "SparkSession", box: Running, client: Any, topic: str, take: "Take"
) -> None:
    producer = client.create_producer(topic, schema=JsonSchema(Order))
    ids = [producer.send(Order(id=number), partition_key=f"k{number}") for number in range(5)]
    name = topic.rpartition("/")[2]
    urls = {"service.url": box.url, "admin.url": box.web_url}
    offsets = {
        "startingOffsets": json.dumps({name: serialized(ids[1])}),
        "endingOffsets": json.dumps({name: serialized(ids[3])}),
    }
    read = spark.read.format("pulsar").options(**urls, **offsets).option("topic", name).load()
    assert read.columns == ["id", *METADATA]
    rows = read.selectExpr("CAST(__key AS STRING)", "id").collect()
    assert [tuple(row) for row in rows] == [("k1", 1), ("k2", 2), ("k3", 3)]
    out = f"{name}-out"
    frame = read.selectExpr("__key", "CAST(id AS STRING) AS value")
    frame.write.format("pulsar").mode("append").options(**urls).option("topic", out).save()
    assert sorted(message.data() for message in take(out)) == [b"1", b"2", b"3"]


def test_a_write_without_a_mode_says_which_to_use(spark: "SparkSession") -> None:
    with pytest.raises(Exception, match='use either the "Append"'):
        spark.range(1).write.format("pulsar").option("topic", "t").save()
