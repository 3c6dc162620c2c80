"""docs/spark.md, and the examples of the existing Pulsar connector, run unmodified."""

import re
import runpy
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pulsar
import pytest

from tests.e2e.conftest import Running

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession

PAGE = Path(__file__).parents[3] / "docs" / "spark.md"
PROGRAMS = re.findall(r"^```python\n(.*?)^```", PAGE.read_text("utf-8"), re.MULTILINE | re.DOTALL)


@pytest.fixture
def orders(client: Any) -> None:
    client.create_producer("orders").send(b"an order", partition_key="k")


@pytest.mark.campaign
@pytest.mark.usefixtures("orders")
def test_the_programs_of_the_page_run(spark: "SparkSession", box: Running, client: Any, tmp_path: Path) -> None:
    assert len(PROGRAMS) == 7
    url = f'"{box.url}").option("admin.url", "{box.web_url}"'
    options = {"service.url": box.url, "admin.url": box.web_url}
    file = tmp_path / "shown.py"
    programs = "\n".join(PROGRAMS).replace('"service.url": "pulsar://localhost:6650"', f"**{options}")
    programs = programs.replace("/data/history", str(tmp_path / "history"))
    file.write_text(programs.replace('"pulsar://localhost:6650"', url).replace("checkpoints", str(tmp_path)))
    runpy.run_path(str(file), {"spark": spark})
    assert b"an order" in {bytes(row["value"]) for row in spark.table("seen").collect()}
    reader = client.create_reader("bills", pulsar.MessageId.earliest)
    found = set()
    while reader.has_message_available():
        found.add(reader.read_next(5000).data())
    assert {b"AN ORDER", b"an order"} <= found


def serialised(found: pulsar.MessageId) -> str:
    """Return an ID as the existing connector serializes it: signed bytes."""
    return str([byte - 256 if byte > 127 else byte for byte in found.serialize()])


def moved(box: Running, which: str, name: str) -> dict[str, str]:
    """Return the existing connector's options for one topic, two topics, or a pattern."""
    of = {"topic": name, "topics": f"{name},{name}-2", "topicsPattern": f"{name}.*"}[which]
    given = {"service.url": box.url, "admin.url": box.web_url, which: of, "failOnDataLoss": "true"}
    return given | {"pollTimeoutMs": "60000", "pulsar.reader.receiverQueueSize": "10", "maxBytesPerTrigger": "1000000"}


def keyed(frame: "DataFrame") -> "DataFrame":
    return frame.selectExpr("CAST(__key AS STRING)", "CAST(value AS STRING)")


@pytest.mark.campaign
def test_jobs_of_the_existing_connector_run_with_another_format(
    spark: "SparkSession", box: Running, client: Any, topic: str, tmp_path: Path
) -> None:
    """Keys and values as text, from one topic, several and a pattern; batches from offsets that the connector has
    written.
    """
    name = topic.rpartition("/")[2]
    ids = {}
    for each in (name, f"{name}-2"):
        producer = client.create_producer(each)
        ids[each] = [producer.send(b"%d" % number, partition_key=each) for number in range(3)]
    stream = None
    for which in ("topic", "topics", "topicsPattern"):
        read = [name] if which == "topic" else [name, f"{name}-2"]
        begin = "{" + ", ".join(f'"{each}": {serialised(ids[each][1])}' for each in read) + "}"
        given = moved(box, which, name)
        batch = spark.read.format("pulsarbox").options(**given, startingOffsets=begin, endingOffsets="latest").load()
        assert sorted(tuple(row) for row in keyed(batch).collect()) == [
            (each, value) for each in read for value in "12"
        ]
        one = keyed(spark.readStream.format("pulsarbox").options(**given, startingOffsets="earliest").load())
        stream = one if stream is None else stream.union(one)
    assert stream is not None
    out = stream.writeStream.format("memory").queryName("moved").trigger(availableNow=True)
    assert out.option("checkpointLocation", str(tmp_path / "c")).start().awaitTermination(120)
    rows = sorted(tuple(row) for row in spark.table("moved").collect())
    assert rows == sorted([(name, value) for value in "012"] * 3 + [(f"{name}-2", value) for value in "012"] * 2)
