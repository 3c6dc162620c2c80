"""Terminated topics with the official Python client. The Go client: ``terminated`` in go/."""

import json
from typing import Any

import pulsar
import pytest

from tests.e2e.clients import EARLIEST, admin_path, is_quiet, numbered, read, receive, send_all, take
from tests.e2e.conftest import Running


def terminate(box: Running, topic: str) -> Any:
    return json.loads(box.admin("POST", f"{admin_path(topic)}/terminate"))


def test_a_producer_is_told(box: Running, client: Any, topic: str) -> None:
    producer = client.create_producer(topic)
    ids = send_all(producer, numbered(5))
    end = terminate(box, topic)
    assert (end["ledgerId"], end["entryId"]) == (ids[-1].ledger_id(), ids[-1].entry_id())
    with pytest.raises((pulsar.TopicTerminated, pulsar.AlreadyClosed, pulsar.ProducerNotInitialized)):
        producer.send(b"too late")
    with pytest.raises(pulsar.TopicTerminated):
        client.create_producer(topic)


def test_a_consumer_keeps_its_connection_and_gets_the_rest(box: Running, client: Any, topic: str) -> None:
    consumer = client.subscribe(topic, "s")
    send_all(client.create_producer(topic), numbered(5))
    first = receive(consumer)
    terminate(box, topic)
    consumer.acknowledge(first)
    assert take(consumer, 4) == numbered(4, 1)
    assert is_quiet(consumer)  # a notification after the last acknowledgement would make this client disconnect
    stats = json.loads(box.admin("GET", f"{admin_path(topic)}/stats"))
    [told] = stats["subscriptions"]["s"]["consumers"]
    assert told["msgOutCounter"] == 5, "it was never away"
    assert json.loads(box.admin("GET", f"{admin_path(topic)}/internalStats"))["state"] == "Terminated"


def test_who_comes_later_gets_everything_and_a_reader_comes_to_the_end(box: Running, client: Any, topic: str) -> None:
    send_all(client.create_producer(topic), numbered(3))
    terminate(box, topic)
    assert take(client.subscribe(topic, "later", initial_position=EARLIEST), 3) == numbered(3)
    reader = client.create_reader(topic, pulsar.MessageId.earliest)
    assert read(reader, 3) == numbered(3)
    assert not reader.has_message_available()


def test_partitions_end_together(box: Running, client: Any, topic: str) -> None:
    box.admin("PUT", f"{admin_path(topic)}/partitions", "3")
    client.create_producer(topic)
    ends = json.loads(box.admin("POST", f"{admin_path(topic)}/terminate/partitions"))
    assert [(index, end["entryId"]) for index, end in ends.items()] == [("0", -1), ("1", -1), ("2", -1)]
    with pytest.raises(pulsar.TopicTerminated):
        client.create_producer(topic)
