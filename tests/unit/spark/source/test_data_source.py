"""The processes in which Spark plans reads exclude what is loaded from garbage collection, as workers do."""

from types import SimpleNamespace

import pytest
from pyspark.sql.types import BinaryType, StructField, StructType

from pulsarbox.spark import worker_gc
from pulsarbox.spark.schema import inference
from pulsarbox.spark.source import batch_reader, topic_selection
from pulsarbox.spark.source.batch_reader import BatchReader
from pulsarbox.spark.source.data_source import PulsarboxSource
from pulsarbox.spark.source.jvm_plan import plan_of_nothing
from pulsarbox.spark.source.partition_read import PartitionPart

COLUMNS = StructType([StructField("value", BinaryType())])
OPTIONS = {"topic": "orders", "service.url": "pulsar://localhost:1", "access": "wire"}


def test_the_process_that_finds_the_columns_settles(monkeypatch: pytest.MonkeyPatch) -> None:
    settled: list[str] = []
    monkeypatch.setattr(inference, "described", lambda _: COLUMNS)
    monkeypatch.setattr(worker_gc, "settle", lambda: settled.append("schema"))
    assert PulsarboxSource(OPTIONS).schema() == COLUMNS
    assert settled == ["schema"]


def test_the_process_that_plans_a_batch_settles_after_planning(monkeypatch: pytest.MonkeyPatch) -> None:
    done: list[str] = []
    parts = SimpleNamespace(reach=SimpleNamespace(is_in_place=False), parts=lambda _: done.append("planned"))
    monkeypatch.setattr(topic_selection, "awaited", lambda *_: [])
    monkeypatch.setattr(batch_reader, "reading", lambda *_: parts)
    monkeypatch.setattr(batch_reader, "settle", lambda: done.append("settled"))
    reader = PulsarboxSource(OPTIONS).reader(COLUMNS)
    assert isinstance(reader, BatchReader)
    (part,) = reader.partitions()
    assert isinstance(part, PartitionPart)
    assert done == ["planned", "settled"]
    assert part.plan == plan_of_nothing()
