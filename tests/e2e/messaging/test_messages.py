"""Messages arrive unchanged: payloads, metadata, batches, compression, sizes."""

from typing import Any

import pulsar
import pytest

from tests.e2e.clients import EARLIEST, is_quiet, numbered, receive, send_all, take, until

MAX_MESSAGE_SIZE = 5 * 1024 * 1024


def test_one_message_there_and_acknowledged(client: Any, topic: str) -> None:
    consumer = client.subscribe(topic, "s")
    message_id = client.create_producer(topic).send(b"hello")
    message = receive(consumer)
    assert (message.data(), message.message_id(), message.redelivery_count()) == (b"hello", message_id, 0)
    assert message.topic_name() == topic
    consumer.acknowledge(message)
    assert is_quiet(consumer)


def test_receipts_name_growing_positions(client: Any, topic: str) -> None:
    producer = client.create_producer(topic)
    ids = [producer.send(payload) for payload in numbered(20)]
    places = [(each.ledger_id(), each.entry_id(), each.batch_index()) for each in ids]
    assert places == sorted(set(places))
    assert {each.batch_index() for each in ids} == {-1}


def test_a_batch_is_one_entry(client: Any, topic: str) -> None:
    consumer = client.subscribe(topic, "s")
    producer = client.create_producer(
        topic, batching_enabled=True, batching_max_messages=10, batching_max_publish_delay_ms=10_000
    )
    ids = send_all(producer, numbered(30))
    assert [each.batch_index() for each in ids] == [*range(10)] * 3
    assert len({(each.ledger_id(), each.entry_id()) for each in ids}) == 3
    assert take(consumer, 30) == numbered(30)


def test_order_is_kept_over_a_thousand(client: Any, topic: str) -> None:
    consumer = client.subscribe(topic, "s")
    batching = client.create_producer(topic, batching_enabled=True, block_if_queue_full=True)
    send_all(batching, numbered(1000))
    send_all(client.create_producer(topic, block_if_queue_full=True), numbered(1000, start=1000))
    assert take(consumer, 2000) == numbered(2000)


def test_metadata_arrives(client: Any, topic: str) -> None:
    consumer = client.subscribe(topic, "s")
    producer = client.create_producer(topic, producer_name="press", initial_sequence_id=41)
    producer.send(
        b"x", properties={"a": "1", "ä": "ö"}, partition_key="key", ordering_key="order", event_timestamp=1_234_567
    )
    message = receive(consumer)
    assert message.properties() == {"a": "1", "ä": "ö"}
    assert (message.partition_key(), message.ordering_key()) == ("key", "order")
    assert (message.event_timestamp(), message.producer_name()) == (1_234_567, "press")
    assert message.publish_timestamp() > 1_600_000_000_000
    assert producer.last_sequence_id() == 42


@pytest.mark.parametrize("batched", [False, True], ids=["single", "batched"])
@pytest.mark.parametrize("kind", ["NONE", "LZ4", "ZLib", "ZSTD", "SNAPPY"])
def test_compressed_payloads_arrive(client: Any, topic: str, kind: str, batched: bool) -> None:
    consumer = client.subscribe(topic, "s")
    compression = getattr(pulsar.CompressionType, kind)
    producer = client.create_producer(topic, compression_type=compression, batching_enabled=batched)
    payloads = [bytes([65 + number]) * 3000 for number in range(5)]
    send_all(producer, payloads)
    assert take(consumer, 5) == payloads


def test_an_empty_payload_arrives(client: Any, topic: str) -> None:
    consumer = client.subscribe(topic, "s")
    client.create_producer(topic).send(b"")
    assert take(consumer, 1) == [b""]


def test_a_message_just_below_the_limit_arrives(client: Any, topic: str) -> None:
    consumer = client.subscribe(topic, "s")
    payload = bytes(range(256)) * (MAX_MESSAGE_SIZE // 256 - 1)
    client.create_producer(topic).send(payload)
    assert take(consumer, 1) == [payload]


def test_a_message_over_the_limit_is_refused_and_the_next_one_taken(client: Any, topic: str) -> None:
    consumer = client.subscribe(topic, "s")
    producer = client.create_producer(topic)
    with pytest.raises(pulsar.MessageTooBig):
        producer.send(bytes(MAX_MESSAGE_SIZE + 1))
    producer.send(b"small")
    assert take(consumer, 1) == [b"small"]


def test_a_large_message_in_chunks_arrives_whole(client: Any, topic: str) -> None:
    consumer = client.subscribe(topic, "s")
    payload = bytes(range(256)) * (MAX_MESSAGE_SIZE // 256 * 2 + 5)
    client.create_producer(topic, chunking_enabled=True).send(payload)
    assert take(consumer, 1) == [payload]


def test_producer_names_are_given_and_differ(client: Any, topic: str) -> None:
    names = {client.create_producer(topic).producer_name() for _ in range(3)}
    assert len(names) == 3
    assert "" not in names


def test_a_producer_name_is_used_once(client: Any, topic: str) -> None:
    client.create_producer(topic, producer_name="p")
    with pytest.raises(pulsar.ProducerBusy):
        client.create_producer(topic, producer_name="p")


def test_a_listener_is_called(client: Any, topic: str) -> None:
    heard: list[bytes] = []

    def listen(consumer: Any, message: Any) -> None:
        heard.append(message.data())
        consumer.acknowledge(message)

    consumer = client.subscribe(topic, "s", initial_position=EARLIEST, message_listener=listen)
    send_all(client.create_producer(topic), numbered(50))
    until(lambda: len(heard) == 50)
    assert heard == numbered(50)
    consumer.close()
