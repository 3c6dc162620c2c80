"""Client on a suspended machine: it does not read, and the network reports no error."""

import contextlib
import json
import socket
import urllib.error
from collections.abc import Iterator

import pytest

from pulsarbox import PulsarBox
from pulsarbox.protocol.commands import encode_frame
from pulsarbox.protocol.PulsarApi_pb2 import (
    BaseCommand,
    CommandConnect,
    CommandFlow,
    CommandProducer,
    CommandSubscribe,
)
from tests.e2e.clients import EARLIEST, connect, receive, until
from tests.tools.box import admin

TOPIC = "persistent://public/default/held"
MESSAGES, SIZE = 30, 1 << 20


@pytest.fixture
def impatient() -> Iterator[PulsarBox]:
    """Start a box with a short timeout for unresponsive clients."""
    with PulsarBox(keepAliveIntervalSeconds=1) as box:
        yield box


def consumers(box: PulsarBox) -> int:
    path = f"{TOPIC.replace('://', '/')}/stats"
    try:
        subscriptions = json.loads(admin(box.admin_url, "GET", path))["subscriptions"]
    except urllib.error.HTTPError:  # the topic does not exist yet
        return -1
    return len(subscriptions["s"]["consumers"]) if "s" in subscriptions else -1


@contextlib.contextmanager
def sleeper(impatient: PulsarBox) -> Iterator[None]:
    """Open a connection with a named producer and an exclusive consumer, which never reads its pending data."""
    with socket.socket() as opened:
        opened.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, 4096)
        host, _, port = impatient.service_url.removeprefix("pulsar://").partition(":")
        opened.connect((host, int(port)))
        producer = CommandProducer(topic=TOPIC, producer_id=1, request_id=1, producer_name="only")
        subscribe = CommandSubscribe(
            topic=TOPIC, subscription="s", subType=CommandSubscribe.Exclusive, consumer_id=1, request_id=2
        )
        for command in (
            BaseCommand(type=BaseCommand.CONNECT, connect=CommandConnect(client_version="raw", protocol_version=21)),
            BaseCommand(type=BaseCommand.PRODUCER, producer=producer),
            BaseCommand(type=BaseCommand.SUBSCRIBE, subscribe=subscribe),
        ):
            opened.sendall(encode_frame(command))
        until(lambda: consumers(impatient) == 1)
        flow = CommandFlow(consumer_id=1, messagePermits=1000)
        opened.sendall(encode_frame(BaseCommand(type=BaseCommand.FLOW, flow=flow)))
        yield


def test_a_client_that_reads_nothing_gives_up_its_places(impatient: PulsarBox) -> None:
    with contextlib.closing(connect(impatient.service_url)) as client, sleeper(impatient):
        filling = client.create_producer(TOPIC, batching_enabled=False, block_if_queue_full=True)
        for _ in range(MESSAGES):
            filling.send_async(b"x" * SIZE, lambda result, message_id: None)
        filling.flush()
        until(lambda: consumers(impatient) == 0)
        consumer = client.subscribe(TOPIC, "s", initial_position=EARLIEST)
        assert len(receive(consumer).data()) == SIZE
        assert client.create_producer(TOPIC, producer_name="only").producer_name() == "only"
