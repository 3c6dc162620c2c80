"""Reads inside the JVM and by Python, to be compared, and a producer of raw entries: helpers and fixtures."""

from collections.abc import Callable, Iterator
from typing import TYPE_CHECKING, Any

import pytest

from pulsarbox.plugins.compression.wire import CODECS, compress
from pulsarbox.protocol.batch import encode_batch
from pulsarbox.protocol.PulsarApi_pb2 import SingleMessageMetadata
from pulsarbox.spark import accelerator
from tests.e2e.conftest import Running
from tests.e2e.raw import RawProducer

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession

ENABLED = "spark.pulsarbox.jvm"
Read = Callable[..., "DataFrame"]


def rows(frame: "DataFrame") -> list[str]:
    """Return the rows as text, in which NaN equals itself."""
    return sorted(repr(tuple(map(_plain, row))) for row in frame.collect())


def _plain(value: Any) -> Any:
    return bytes(value) if isinstance(value, bytearray) else sorted(value.items()) if isinstance(value, dict) else value


def metric(frame: "DataFrame", name: str) -> int:
    """Return a metric of the scan of a frame that was collected."""
    return int(scan_of(frame).metrics().apply(name).value())


def scan_of(frame: "DataFrame") -> Any:
    """Return the scan in the plan of a frame that was collected."""
    (scan,) = [
        leaf
        for leaf in leaves(frame._jdf.queryExecution().executedPlan().collectLeaves())
        if leaf.nodeName().startswith("BatchScan")
    ]
    return scan


def leaves(found: Any) -> list[Any]:
    return [found.apply(at) for at in range(found.size())]


def by_python(spark: "SparkSession", frame: Callable[[], "DataFrame"]) -> list[str]:
    spark.conf.set(ENABLED, "false")
    found = frame()
    try:
        expected = rows(found)
        assert metric(found, "jvmRows") == 0
    finally:
        spark.conf.set(ENABLED, "true")
    return expected


def check(spark: "SparkSession", frame: Callable[[], "DataFrame"], handed_over: bool = False) -> int:
    """Compare what the JVM and Python return; return the number of rows."""
    expected, found = by_python(spark, frame), frame()
    assert rows(found) == expected
    assert bool(metric(found, "handedOver")) is handed_over
    if not handed_over:
        assert metric(found, "jvmRows") >= len(expected)  # before filters
    return len(expected)


@pytest.fixture
def jvm(spark: "SparkSession") -> Iterator[None]:
    """Skip the test if there is no jar, and have it read."""
    if accelerator.jar() is None:
        pytest.skip("the jar of the reader needs javac to be built")
    yield
    spark.conf.set(ENABLED, "true")


@pytest.fixture
def read(spark: "SparkSession", box: Running, topic: str, sender: "Sender") -> Read:
    """Return a frame of the topic, with all that was sent."""

    def read(columns: str = "", **options: str) -> "DataFrame":
        sender.flush()
        found = spark.read.format("pulsarbox").option("service.url", box.url).option("admin.url", box.web_url)
        found = found.options(**{"topic": topic, "columns": "all", **options})
        return (found.schema(columns) if columns else found).load()

    return read


class Sender:
    """Producer of raw entries."""

    def __init__(self, producer: RawProducer) -> None:
        self.producer = producer
        self._sent = 0
        self._unanswered = 0

    def flush(self) -> None:
        """Wait until all is stored."""
        for _ in range(self._unanswered):
            self.producer.take("send_receipt")
        self._unanswered = 0

    def single(self, body: bytes, codec: str = "none", **fields: Any) -> None:
        self._sent += 1
        packed = compress(CODECS[codec], body)
        if codec != "none":
            fields |= {"compression": CODECS[codec], "uncompressed_size": len(body)}
        self.producer.post(self._sent, packed, **fields)
        self._unanswered += 1

    def chunks(self, *bodies: bytes) -> None:
        """Send a message in chunks."""
        self.flush()
        for at, body in enumerate(bodies):
            self.producer.chunk(1000, at, len(bodies), body)

    def batch(self, messages: list[tuple[dict[str, Any], bytes]], codec: str = "none", **fields: Any) -> None:
        body = encode_batch([(SingleMessageMetadata(**each), payload) for each, payload in messages])
        self.single(body, codec, num_messages_in_batch=len(messages), **fields)


@pytest.fixture
def sender(box: Running, topic: str, keeps: None) -> Iterator[Sender]:
    with RawProducer(box.url, topic, "p-é") as producer:
        yield Sender(producer)


@pytest.fixture
def keeps(client: Any, topic: str) -> None:
    client.subscribe(topic, "keeps").close()
