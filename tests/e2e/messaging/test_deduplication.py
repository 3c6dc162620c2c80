"""Deduplication with the official client: a producer that resends, across restarts of the box."""

from collections.abc import Callable
from contextlib import suppress
from typing import Any

import pulsar
import pytest

from pulsarbox import PulsarBox
from tests.e2e.clients import connect, read_to_end, receive

TOPIC = "persistent://public/default/once"


@pytest.fixture
def deduplicating(pulsarbox_make: Callable[..., PulsarBox]) -> PulsarBox:
    """Start a box with deduplication, as a process that can be killed."""
    return pulsarbox_make(process=True, disk=True, brokerDeduplicationEnabled=True).start()


def producer_of(client: Any, **options: Any) -> Any:
    return client.create_producer(TOPIC, producer_name="meter", batching_enabled=False, **options)


def send(producer: Any, sequence_ids: range) -> list[Any]:
    return [producer.send(b"%d" % number, sequence_id=number) for number in sequence_ids]


def everything(client: Any) -> list[bytes]:
    return read_to_end(client.create_reader(TOPIC, pulsar.MessageId.earliest))


@pytest.mark.parametrize("way", ["SIGKILL", "SIGTERM"])
def test_what_is_sent_again_after_a_restart_is_stored_once(deduplicating: PulsarBox, way: str) -> None:
    box = deduplicating
    client = connect(box.service_url)
    first = producer_of(client)
    assert first.last_sequence_id() == -1
    send(first, range(10))
    if way == "SIGKILL":
        box.kill()
    else:
        box.stop()
    with suppress(pulsar.PulsarException):  # it may have noticed the kill already
        client.close()
    box.start()
    client = connect(box.service_url)
    again = producer_of(client)
    assert again.last_sequence_id() == 9
    repeated = send(again, range(5, 15))
    assert [each.entry_id() for each in repeated[:5]] == [-1] * 5
    assert again.last_sequence_id() == 14
    assert everything(client) == [b"%d" % number for number in range(15)]
    client.close()


def test_a_client_that_stays_goes_on_where_it_was(deduplicating: PulsarBox) -> None:
    client = connect(deduplicating.service_url)
    consumer = client.subscribe(TOPIC, "s")
    producer = producer_of(client)
    # A C++ client that reconnects before its first receipt assigns the sequence ids of pending messages again.
    producer.send(b"0")
    for life in range(3):
        for number in range(max(20 * life, 1), 20 * life + 20):
            producer.send_async(b"%d" % number, lambda result, message_id: None)
        deduplicating.kill()
        deduplicating.start()
    producer.flush()
    got = [receive(consumer).data()]
    while got[-1] != b"59":
        got.append(receive(consumer).data())
    # Without acknowledgements, the consumer may receive messages again, but the log has each message once.
    assert everything(client) == [b"%d" % number for number in range(60)]
    client.close()


def test_chunks_that_are_sent_again_are_received_once(deduplicating: PulsarBox) -> None:
    client = connect(deduplicating.service_url)
    consumer = client.subscribe(TOPIC, "s")
    producer = client.create_producer(TOPIC, producer_name="meter", batching_enabled=False, chunking_enabled=True)
    large = b"x" * (6 << 20)
    producer.send(large, sequence_id=7)
    producer.close()
    again = client.create_producer(TOPIC, producer_name="meter", batching_enabled=False, chunking_enabled=True)
    assert again.last_sequence_id() == 7
    again.send(large, sequence_id=7)
    again.send(b"end", sequence_id=8)
    assert receive(consumer).data() == large
    assert receive(consumer).data() == b"end"
    client.close()
