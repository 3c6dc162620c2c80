"""A topic copied with ``consume -o ndjson`` and ``produce -i ndjson --preserve`` is complete, without duplicates.

The official client writes and reads the messages; entries are compared as stored by the box.
"""

import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pulsar
import pytest

from tests.e2e.clients import CODECS, EARLIEST, admin_path, numbered, receive, send_all, take
from tests.e2e.commands import envelopes, run
from tests.e2e.conftest import Running
from tests.e2e.messaging.test_passing import keys
from tests.tools.box import BoxProcess
from tests.tools.campaigns import short

__all__ = ["keys"]

BIG = b"chunk " * 1_500_000
OWN = ("topic", "id", "schema_definition", "redelivery")
"""Fields that describe the position of a message and its delivery."""


class Point(pulsar.schema.Record):  # type: ignore[misc] # the client has no types
    """Schema of a topic."""

    x = pulsar.schema.Integer()
    name = pulsar.schema.String()


def exported(box: Running, topic: str, *words: str) -> bytes:
    done = run("consume", topic, "-o", "ndjson", "--until", "end", "--no-progress", "--url", box.url, *words)
    return done.stdout


def imported(box: Running, topic: str, lines: bytes, *words: str, code: int = 0) -> str:
    done = run("produce", topic, "-i", "ndjson", "--preserve", "--url", box.url, *words, stdin=lines, code=code)
    return done.stderr.decode()


def partitioned(box: Running, topic: str, count: int) -> None:
    box.admin("PUT", f"{admin_path(topic)}/partitions", str(count))
    for number in range(count):
        box.admin("PUT", f"{admin_path(topic)}-partition-{number}/subscription/held")


def entries(lines: bytes) -> list[list[Any]]:
    """Return each partition's content, in order: for each message, its position among the entries, and all fields."""
    found: dict[str, list[Any]] = {}
    places: dict[str, dict[str, int]] = {}
    for each in envelopes(lines):
        ledger, entry, partition, index = each["id"].split(":")
        numbers = places.setdefault(partition, {})
        number = numbers.setdefault(f"{ledger}:{entry}", len(numbers))
        found.setdefault(partition, []).append((number, index, {k: v for k, v in each.items() if k not in OWN}))
    return [found[partition] for partition in sorted(found)]


@pytest.mark.parametrize("codec", short(CODECS, 2))
def test_a_partitioned_topic_of_several_producers_comes_in_whole(
    box: Running, client: Any, topic: str, codec: str
) -> None:
    copy = f"{topic}-copy"
    for name in (topic, copy):
        partitioned(box, name, 3)
    for name in ("one", "two"):  # whose sequence IDs both begin with 0
        producer = client.create_producer(
            topic,
            producer_name=f"{name}-{topic.rpartition('/')[2]}",
            batching_enabled=name == "one",
            batching_max_publish_delay_ms=20,
            compression_type=CODECS[codec],
        )
        for number in range(60):
            more = {"ordering_key": "o"} if number % 3 else {"properties": {"a": "ä", "n": str(number)}}
            producer.send_async(
                b"%d" % number, lambda *_: None, partition_key=f"k{number % 7}", event_timestamp=number + 1, **more
            )
        producer.flush()
    run("produce", topic, "--tombstone", "-k", "k1", "--url", box.url)
    lines = exported(box, topic)
    assert len(lines.splitlines()) == 121
    imported(box, copy, lines)
    assert entries(exported(box, copy)) == entries(lines)


def test_chunks_and_schemas_come_in_whole(box: Running, client: Any, topic: str) -> None:
    copy = f"{topic}-copy"
    subscribed = [client.subscribe(name, "held", initial_position=EARLIEST) for name in (topic, copy)]
    for each in subscribed:
        each.close()
    schema = pulsar.schema.AvroSchema(Point)
    producer = client.create_producer(topic, schema=schema)
    for number in range(5):
        producer.send(Point(x=number, name="n"))
    producer.close()
    lines = exported(box, topic)
    assert [("schema_definition" in each) for each in envelopes(lines)] == [True, False, False, False, False]
    imported(box, copy, lines)
    consumer = client.subscribe(copy, "s", initial_position=EARLIEST, schema=schema)
    assert [(each.value().x, each.value().name) for each in (receive(consumer) for _ in range(5))] == [
        (number, "n") for number in range(5)
    ]
    schemas = [json.loads(box.admin("GET", f"schemas/{name.partition('://')[2]}/schema")) for name in (topic, copy)]
    assert schemas[0]["data"] == schemas[1]["data"]
    large = f"{topic}-large"
    client.create_producer(large, batching_enabled=False, chunking_enabled=True).send(BIG)
    lines = exported(box, large)
    (envelope,) = envelopes(lines)
    assert envelope["chunks"] == 2
    imported(box, f"{large}-copy", lines)
    consumer = client.subscribe(f"{large}-copy", "s", initial_position=EARLIEST)
    assert take(consumer, 1) == [BIG]


@pytest.mark.parametrize("way", short(["single", "batched", "chunked"], 1))
def test_what_a_client_has_encrypted_can_be_decrypted_behind_an_import(
    box: Running, client: Any, topic: str, way: str, keys: Any
) -> None:
    copy = f"{topic}-copy"
    options: dict[str, Any] = {"batching_enabled": way == "batched", "chunking_enabled": way == "chunked"}
    if way == "batched":
        options |= {"compression_type": pulsar.CompressionType.ZSTD, "batching_max_publish_delay_ms": 50}
    secrets = [b"secret " * 900_000, b"end"] if way == "chunked" else [b"secret %d" % n for n in range(20)]
    producer = client.create_producer(topic, encryption_key="client-key", crypto_key_reader=keys, **options)
    send_all(producer, secrets)
    lines = exported(box, topic)
    assert all(each["encrypted"] for each in envelopes(lines)) and b"secret" not in lines
    refused = run("produce", copy, "-i", "ndjson", "--url", box.url, stdin=lines, code=1)
    assert b"use --preserve" in refused.stderr
    imported(box, copy, lines)
    consumer = client.subscribe(copy, "s", initial_position=EARLIEST, crypto_key_reader=keys)
    assert take(consumer, len(secrets)) == secrets


def test_messages_that_were_delivered_twice_are_stored_once(box: Running, client: Any, topic: str) -> None:
    """Part of a batch is acknowledged, and the rest is redelivered; then everything is exported again."""
    copy = f"{topic}-copy"
    held = client.subscribe(copy, "held")
    consumer = client.subscribe(topic, "s", pulsar.ConsumerType.Shared, batch_index_ack_enabled=True)
    producer = client.create_producer(topic, batching_enabled=True, batching_max_publish_delay_ms=10_000)
    send_all(producer, numbered(10))
    for number in range(10):
        message = receive(consumer)
        if number < 4:
            consumer.acknowledge(message)
    consumer.close()
    words = ("-s", "s", "--type", "shared", "--ack", "none")
    parts = [exported(box, topic, *words), exported(box, topic, *words), exported(box, topic)]
    assert [len(each.splitlines()) for each in parts] == [6, 6, 10]
    said = imported(box, copy, b"".join(parts))
    assert "skipped 12 messages with an ID that the input already contained" in said
    assert sorted(take(held, 10)) == sorted(numbered(10))
    assert [len(each) for each in entries(exported(box, copy))] == [10]


def test_the_deduplication_of_the_target_drops_nothing_of_an_import(box: Running, client: Any, topic: str) -> None:
    copy = f"{topic}-copy"
    held = client.subscribe(copy, "held")
    box.admin("POST", f"{admin_path(copy)}/deduplicationEnabled", "true")
    for start in (50, 0, 20):  # three producers of one name, the first with the highest sequence IDs
        producer = client.create_producer(topic, producer_name="again", initial_sequence_id=start)
        send_all(producer, numbered(10, start))
        producer.close()
    lines = exported(box, topic)
    assert [each["seq"] for each in envelopes(lines)] != sorted(each["seq"] for each in envelopes(lines))
    imported(box, copy, lines)
    assert take(held, 30) == [*numbered(10, 50), *numbered(10), *numbered(10, 20)]
    assert entries(exported(box, copy)) == entries(lines)


@pytest.fixture
def killed(tmp_path: Path) -> Iterator[BoxProcess]:
    """Provide a box of the test's own, to be killed."""
    box = BoxProcess(tmp_path / "data")
    box.start()
    yield box
    box.kill()


def test_an_export_goes_on_over_a_killed_box_and_comes_in_whole(killed: BoxProcess) -> None:
    """The file contains messages twice that were written but not acknowledged."""
    box = Running(killed.url, killed.web_url)
    run("sub", "create", "orders", "out", "--admin-url", box.web_url)
    run("produce", "orders", "--url", box.url, stdin=b"\n".join(numbered(2_000)))
    lines = run("consume", "orders", "-s", "out", "-n", "700", "-o", "ndjson", "--url", box.url).stdout
    killed.kill()
    killed.start()
    words = ("consume", "orders", "-s", "out", "-o", "ndjson", "--url", box.url)
    lines += run(*words, "-n", "600", "--ack", "none").stdout
    lines += exported(box, "orders", "-s", "out")
    assert len(lines.splitlines()) >= 2_600
    run("sub", "create", "copy", "held", "--admin-url", box.web_url)
    imported(box, "copy", lines)
    assert entries(exported(box, "copy")) == entries(exported(box, "orders"))
