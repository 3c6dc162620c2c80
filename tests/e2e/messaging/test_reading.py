"""Readers, seeks and the last message ID."""

import time
from typing import Any

import pulsar
import pytest

from tests.e2e.clients import EARLIEST, is_quiet, numbered, read, read_to_end, receive, send_all, take


@pytest.fixture(params=[False, True], ids=["single", "batched"])
def ids(request: pytest.FixtureRequest, client: Any, topic: str) -> Any:
    """Publish ten messages to ``topic`` and return their IDs."""
    producer = client.create_producer(
        topic, batching_enabled=request.param, batching_max_messages=4, batching_max_publish_delay_ms=50
    )
    return send_all(producer, numbered(10))


def test_a_reader_from_earliest_reads_all(client: Any, topic: str, ids: list[Any]) -> None:
    reader = client.create_reader(topic, pulsar.MessageId.earliest)
    assert read_to_end(reader) == numbered(10)
    assert not reader.has_message_available()


def test_a_reader_from_latest_reads_what_comes(client: Any, topic: str, ids: list[Any]) -> None:
    reader = client.create_reader(topic, pulsar.MessageId.latest)
    assert not reader.has_message_available()
    client.create_producer(topic).send(b"new")
    assert read(reader, 1) == [b"new"]


def test_a_reader_begins_after_an_id(client: Any, topic: str, ids: list[Any]) -> None:
    assert read_to_end(client.create_reader(topic, ids[5])) == numbered(4, start=6)


def test_a_reader_begins_at_an_id_if_told_so(client: Any, topic: str, ids: list[Any]) -> None:
    reader = client.create_reader(topic, ids[5], start_message_id_inclusive=True)
    assert read_to_end(reader) == numbered(5, start=5)


def test_a_reader_of_an_empty_topic_has_nothing(client: Any, topic: str) -> None:
    assert not client.create_reader(topic, pulsar.MessageId.earliest).has_message_available()


def test_a_reader_seeks(client: Any, topic: str, ids: list[Any]) -> None:
    reader = client.create_reader(topic, pulsar.MessageId.earliest)
    assert read(reader, 10) == numbered(10)
    reader.seek(pulsar.MessageId.earliest)
    assert read_to_end(reader) == numbered(10)
    reader.seek(pulsar.MessageId.latest)
    assert not reader.has_message_available()


def test_the_last_message_id(client: Any, topic: str, ids: list[Any]) -> None:
    consumer = client.subscribe(topic, "s")
    assert consumer.get_last_message_id() == ids[-1]
    newest = client.create_producer(topic).send(b"new")
    assert consumer.get_last_message_id() == newest


def test_a_seek_by_id_goes_back(client: Any, topic: str, ids: list[Any]) -> None:
    consumer = client.subscribe(topic, "s", initial_position=EARLIEST)
    assert take(consumer, 10) == numbered(10)
    consumer.seek(ids[3])
    assert take(consumer, 6) == numbered(6, start=4)
    consumer.seek(pulsar.MessageId.earliest)
    assert take(consumer, 10) == numbered(10)
    consumer.seek(pulsar.MessageId.latest)
    assert is_quiet(consumer)


def test_a_seek_by_time(client: Any, topic: str) -> None:
    producer = client.create_producer(topic)
    send_all(producer, numbered(3))
    consumer = client.subscribe(topic, "s", initial_position=EARLIEST)
    older = [receive(consumer) for _ in range(3)]
    last = max(message.publish_timestamp() for message in older)
    while time.time() * 1000 <= last + 2:
        time.sleep(0.001)
    middle = int(time.time() * 1000)
    send_all(producer, numbered(3, start=3))
    consumer.seek(middle)
    assert take(consumer, 3) == numbered(3, start=3)
    consumer.seek(last - 3_600_000)
    assert take(consumer, 6) == numbered(6)
    consumer.seek(middle + 3_600_000)
    assert is_quiet(consumer)


def test_a_table_view_holds_the_newest_of_each_key(client: Any, topic: str) -> None:
    producer = client.create_producer(topic)
    for number in range(6):
        producer.send(b"%d" % number, partition_key=f"k{number % 2}")
    view = client.create_table_view(topic)
    assert {key: view.get(key) for key in ("k0", "k1")} == {"k0": b"4", "k1": b"5"}
