"""``pulsarbox.broker.connection.cnx``: states, keep-alive, and errors that fail a request or close the connection."""

import pytest

from pulsarbox.names import parse_topic
from pulsarbox.protocol.commands import encode_frame, encode_payload_frame
from pulsarbox.protocol.PulsarApi_pb2 import BaseCommand, CommandSend
from tests.unit.broker.playbook import TOPIC, Box


def test_connected_says_what_the_box_speaks() -> None:
    client = Box(maxMessageSize=1000_000).client(connect=False)
    client.ask("connect", client_version="old", protocol_version=15)
    connected = client.take("connected")
    assert connected.server_version.startswith("Pulsar Server")
    assert connected.protocol_version == 15
    assert connected.max_message_size == 1000_000


@pytest.mark.parametrize("field", ["ping", "producer", "lookupTopic"])
def test_nothing_is_taken_before_connect(field: str) -> None:
    client = Box().client(connect=False)
    fields = {"producer": {"topic": TOPIC, "producer_id": 1, "request_id": 1}, "ping": {}}
    client.ask(field, **fields.get(field, {"topic": TOPIC, "request_id": 1}))
    assert client.closed


def test_a_second_connect_closes_the_connection() -> None:
    client = Box().client()
    client.ask("connect", client_version="again", protocol_version=21)
    assert client.closed


@pytest.mark.parametrize(
    "data", [b"\x00\x00\x00\x04\x00\x00\x00\x10", b"\x7f\xff\xff\xff\x00\x00\x00\x02", b"GET / HTTP/1.1\r\n\r\n"]
)
def test_bytes_that_are_no_frames_close_the_connection(data: bytes) -> None:
    client = Box().client()
    client.raw(data)
    assert client.closed
    assert not client.box.broker.cnxs


def test_a_command_only_brokers_send_closes_the_connection() -> None:
    client = Box().client()
    client.raw(encode_frame(BaseCommand(type=BaseCommand.PONG, pong={})))
    assert not client.closed
    client.ask("success", request_id=1)
    assert client.closed


def test_ping_is_answered() -> None:
    client = Box().client()
    client.ask("ping")
    assert client.names() == ["pong"]


def test_a_silent_client_is_pinged_then_closed() -> None:
    box = Box(keepAliveIntervalSeconds=30)
    client = box.client()
    box.advance(31)
    assert client.names() == ["ping"]
    client.ask("pong")
    box.advance(30)
    assert client.names() == ["ping"]
    box.advance(30)
    assert client.closed


def test_a_client_that_never_connects_is_closed() -> None:
    box = Box(keepAliveIntervalSeconds=30)
    client = box.client(connect=False)
    box.advance(31)
    assert client.closed


def test_send_to_an_unknown_producer_closes_but_after_a_close_by_the_broker_it_does_not() -> None:
    box = Box()
    client = box.client()
    client.producer(1)
    box.broker.topics.delete(parse_topic(TOPIC), box.now, force=True)
    client.send(0, producer_id=1)
    assert not client.closed
    client.send(0, producer_id=2)
    assert client.closed


def test_a_message_that_does_not_match_its_checksum_is_refused_and_the_next_is_not() -> None:
    client = Box().client()
    client.producer(1)
    payload = b"\x0e\x01\x00\x00\x00\x00\x00\x00\x00\x02ab"
    send = CommandSend(producer_id=1, sequence_id=7)
    client.raw(encode_payload_frame(BaseCommand(type=BaseCommand.SEND, send=send), payload))
    error = client.take("send_error")
    assert (error.sequence_id, error.error) == (7, 9)
    client.send(8)
    assert client.take("send_receipt").sequence_id == 8


def test_a_message_without_metadata_closes_the_connection() -> None:
    client = Box().client()
    client.producer(1)
    send = CommandSend(producer_id=1, sequence_id=7)
    client.raw(encode_payload_frame(BaseCommand(type=BaseCommand.SEND, send=send), b"\x00"))
    assert client.closed
