"""Writing to brokers other than a box: immediate publishing, and rejected modes.

No JVM: the tests make Spark's calls. The session's box acts as Apache Pulsar; with E2E_URL and E2E_WEB_URL, a real one
is used.
"""

import json
from collections.abc import Callable
from typing import Any

import pulsar
import pyarrow as pa
import pytest
from pyspark.sql.pandas.types import from_arrow_schema

from pulsarbox.spark.sink.data_sink import sinking_of
from pulsarbox.spark.sink.epoch_client import Sink, SinkError
from pulsarbox.spark.sink.write_job import Attempt, Sinking, WriteAttempt
from pulsarbox.spark.source.data_source import PulsarboxSource
from tests.e2e.clients import admin_path, receive
from tests.e2e.conftest import Running

Take = Callable[[str], list[pulsar.Message]]


@pytest.fixture
def take(client: Any) -> Take:
    """Return all messages that a topic retains for consumers."""

    def take(topic: str) -> list[pulsar.Message]:
        reader = client.create_reader(topic, pulsar.MessageId.earliest)
        found = []
        while reader.has_message_available():
            found.append(reader.read_next(timeout_millis=30_000))
        reader.close()
        return found

    return take


def sinking(box: Running, rows: pa.RecordBatch, **options: Any) -> Sinking:
    """Return the write of a frame with the columns of ``rows``, as the driver creates it."""
    given = {name.replace("_", "."): str(value) for name, value in options.items()}
    urls = {"service.url": box.url, "admin.url": box.web_url}
    return sinking_of({**urls, **given}, from_arrow_schema(rows.schema), overwrite=False, is_stream=True)


def write(found: Sinking, *tasks: pa.RecordBatch, epoch: int = 0, query: str = "q") -> list[WriteAttempt]:
    """Run an epoch with a task for each batch of rows, and commit the epoch."""
    sink = Sink(f"public/default/{query}", query, "run")
    parts = [found.write(Attempt(sink, epoch, number), iter([rows])) for number, rows in enumerate(tasks)]
    found.commit(parts)
    return parts


def rows(numbers: range, *, keys: bool = True) -> pa.RecordBatch:
    columns: dict[str, Any] = {"value": [f"v{number}" for number in numbers]}
    if keys:
        columns["__key"] = [f"k{number % 7}" for number in numbers]
    return pa.RecordBatch.from_pydict(columns)


def values(messages: list[pulsar.Message]) -> list[str]:
    return [message.data().decode() for message in messages]


# At least once --------------------------------------------------------------------------------------------------------


def test_what_a_row_says_of_its_message(box: Running, take: Take, fresh: Callable[[str], str]) -> None:
    first, second = fresh("to"), fresh("to")
    some = pa.RecordBatch.from_pydict(
        {
            "__topic": [first, second, first],
            "__key": pa.array([b"k1", None, b"\xff\x00"], pa.binary()),
            "__orderingKey": pa.array([b"o1", None, None], pa.binary()),
            "__messageProperties": pa.array([[("a", "1")], None, None], pa.map_(pa.string(), pa.string())),
            "__eventTime": pa.array([1_700_000_000_123_000, None, None], pa.timestamp("us", "UTC")),
            "value": pa.array([b"\x00\xff", b"plain", None], pa.binary()),
        }
    )
    write(sinking(box, some, delivery="at-least-once"), some)
    one, tombstone = take(first)
    assert (one.data(), one.partition_key(), one.ordering_key()) == (b"\x00\xff", "k1", "o1")
    assert (one.properties(), one.event_timestamp()) == ({"a": "1"}, 1_700_000_000_123)
    assert (tombstone.data(), tombstone.partition_key()) == (b"", "/wA=")
    assert values(take(second)) == ["plain"]


@pytest.mark.parametrize(
    ("batching", "compression"), [("key", "none"), ("mixed", "zstd"), ("mixed", "snappy"), ("none", "lz4")]
)
def test_batches_and_codecs(box: Running, take: Take, topic: str, batching: str, compression: str) -> None:
    how = {"delivery": "at-least-once", "batching": batching, "compression": compression}
    write(sinking(box, rows(range(1)), topic=topic, **how), rows(range(300)), rows(range(300, 400)))
    assert sorted(values(take(topic))) == sorted(f"v{number}" for number in range(400))


def test_keys_go_where_java_clients_send_them(box: Running, take: Take, topic: str) -> None:
    box.admin("PUT", f"{admin_path(topic)}/partitions", "3")
    write(sinking(box, rows(range(1)), topic=topic, delivery="at-least-once"), rows(range(50)))
    for partition in range(3):
        keys = {message.partition_key() for message in take(f"{topic}-partition-{partition}")}
        assert keys == {f"k{number}" for number in range(7) if (31 * ord("k") + ord(str(number))) % 3 == partition}


def test_messages_wait_until_they_are_due(box: Running, client: Any, topic: str) -> None:
    consumer = client.subscribe(topic, "s", pulsar.ConsumerType.Shared)
    some = pa.RecordBatch.from_pydict(
        {"value": ["later", "now"], "__deliverAfter": pa.array([600_000, None], pa.int64())}
    )
    write(sinking(box, some, topic=topic, delivery="at-least-once"), some)
    assert receive(consumer).data() == b"now"
    with pytest.raises(pulsar.Timeout):
        consumer.receive(timeout_millis=300)


# Exactly once ---------------------------------------------------------------------------------------------------------


def test_exactly_once_needs_a_box(box: Running, topic: str) -> None:
    if box.is_ours:
        assert sinking(box, rows(range(1)), topic=topic).options.delivery == "exactly-once"
        return
    with pytest.raises(SinkError, match=r"exactly-once requires the epoch commit of a box.*at-least-once"):
        sinking(box, rows(range(1)), topic=topic)


# Columns --------------------------------------------------------------------------------------------------------------


def read(box: Running, topic: str) -> list[dict[str, Any]]:
    """Return all messages, decoded with the topic's schema."""
    urls = {"service.url": box.url, "admin.url": box.web_url}
    source = PulsarboxSource({**urls, "topic": topic, "columns": "value,__key"})
    reader = source.reader(source.schema())
    found = []
    for part in reader.partitions():
        batches: Any = reader.read(part)
        found += [row for some in batches for row in some.to_pylist(maps_as_pydicts="strict")]
    return found


ONE: dict[str, Any] = {"type": "record", "name": "R", "fields": [{"name": "id", "type": "long"}]}
TWO = {**ONE, "fields": [*ONE["fields"], {"name": "more", "type": "string", "default": "none"}]}
COLUMNS: dict[str, Any] = {
    "id": [1, 2],
    "name": ["a", None],
    "many": [[1.5], []],
    "named": pa.array([[("x", 1)], []], pa.map_(pa.string(), pa.int64())),
    "inside": [{"b": "c"}, {"b": None}],
}


@pytest.mark.parametrize("form", ["avro", "json", "protobuf", "auto"])
def test_columns_by_a_schema_that_the_topic_is_given(box: Running, topic: str, form: str) -> None:
    some = pa.RecordBatch.from_pydict(COLUMNS)
    found = sinking(box, some, topic=topic, delivery="at-least-once", valueFormat=form)
    write(found, some)
    write(found, some.slice(0, 1), some.slice(0, 0))
    kind = json.loads(box.admin("GET", f"schemas/{topic.partition('://')[2]}/schema"))["type"]
    assert kind == {"auto": "AVRO", "protobuf": "PROTOBUF_NATIVE"}.get(form, form.upper())
    rows = [{name: row[name] for name in COLUMNS} for row in read(box, topic)]
    assert rows == [*some.to_pylist(maps_as_pydicts="strict"), *some.slice(0, 1).to_pylist(maps_as_pydicts="strict")]


def test_keys_and_values_by_their_schemas(box: Running, take: Take, topic: str) -> None:
    some = pa.RecordBatch.from_pydict({"key": [7, None, 8], "value": [{"x": "a"}, {"x": "b"}, None]})
    write(sinking(box, some, topic=topic, delivery="at-least-once", valueFormat="keyvalue"), some)
    assert [(row["key"], row["value"]) for row in read(box, topic)] == [(7, {"x": "a"}), (None, {"x": "b"}), (8, None)]
    assert [message.partition_key() for message in take(topic)] == ["AAAAAAAAAAc=", "", "AAAAAAAAAAg="]


def test_rows_that_name_their_schema(box: Running, take: Take, topic: str) -> None:
    texts = [json.dumps({"type": "AVRO", "schema": json.dumps(definition)}) for definition in (ONE, TWO)]
    some = pa.RecordBatch.from_pydict({"id": [1, 2, 3], "__schema": [texts[0], texts[1], None]})
    write(sinking(box, some, topic=topic, delivery="at-least-once"), some)
    assert [(row["id"], row["more"]) for row in read(box, topic)] == [(1, "none"), (2, "none"), (3, "none")]
    assert len({message.schema_version() for message in take(topic)}) == 2
