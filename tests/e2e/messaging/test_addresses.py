"""Clients that connect to the box at another address than its own: mapped ports, listeners.

The box listens on 127.0.0.2, and its clients connect through a forwarder on 127.0.0.1. The box's own port is
unreachable at that address, as with `docker run -p 16650:6650`.
"""

import contextlib
import json
import os
import socket
import subprocess
import time
import urllib.error
import urllib.request
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pulsar
import pytest

from pulsarbox.protocol import PulsarApi_pb2 as api
from pulsarbox.protocol.commands import encode_frame, parse_command
from pulsarbox.protocol.frames import FrameDecoder
from pulsarbox.protocol.PulsarApi_pb2 import BaseCommand
from tests.e2e.clients import EARLIEST, connect, take
from tests.tools.box import PULSARBOX, READY_SECONDS, BoxProcess, reserved_port
from tests.tools.forwarder import Forwarder
from tests.tools.go import GoError, build

INSIDE = "127.0.0.2"
TOPIC = "persistent://public/default/mapped"


def accepts(port: int) -> bool:
    with contextlib.suppress(OSError):
        socket.create_connection((INSIDE, port), timeout=1).close()
        return True
    return False


class Mapped:
    """Box on 127.0.0.2, and a forwarder to each of its ports."""

    def __init__(self, folder: Path) -> None:
        self.box = BoxProcess(
            folder / "data", (*PULSARBOX, "--host", INSIDE, "--config", str(folder / "box.conf")), host=INSIDE
        )
        self.extra_port = reserved_port(self, INSIDE)
        self.pulsar = Forwarder(self.box.port, INSIDE)
        self.web = Forwarder(self.box.web_port, INSIDE)
        self._config = folder / "box.conf"

    def start(self, **settings: str) -> None:
        self._config.write_text("".join(f"{name}={value}\n" for name, value in settings.items()))
        self.box.spawn()
        deadline = time.monotonic() + READY_SECONDS
        while not (accepts(self.box.port) and accepts(self.box.web_port)):
            assert time.monotonic() < deadline, self.box.said()
            assert self.box.process is not None
            assert self.box.process.poll() is None, self.box.said()
            time.sleep(0.01)

    @property
    def url(self) -> str:
        return f"pulsar://localhost:{self.pulsar.port}"

    @property
    def web_url(self) -> str:
        return f"http://localhost:{self.web.port}"

    def listeners(self) -> str:
        return f"in:pulsar://{INSIDE}:{self.box.port},out:pulsar://127.0.0.1:{self.pulsar.port}"


@pytest.fixture
def mapped(tmp_path: Path) -> Iterator[Mapped]:
    if "E2E_URL" in os.environ:
        pytest.skip("starts boxes of its own")
    made = Mapped(tmp_path)
    with made.pulsar, made.web:
        try:
            yield made
            assert made.box.process is None or made.box.stop() == 0
        finally:
            made.box.kill()


def converse(url: str, **options: Any) -> None:
    """Publish to a topic and consume from it, also through partitions."""
    client = connect(url, **options)
    with contextlib.closing(client):
        consumer = client.subscribe(TOPIC, "s", initial_position=EARLIEST)
        producer = client.create_producer(TOPIC)
        for number in range(3):
            producer.send(b"%d" % number)
        assert take(consumer, 3) == [b"0", b"1", b"2"]


def ask(url: str, listener: str = "") -> dict[str, str]:
    headers = {"X-Pulsar-ListenerName": listener} if listener else {}
    request = urllib.request.Request(f"{url}/lookup/v2/topic/persistent/public/default/mapped", headers=headers)
    with urllib.request.urlopen(request, timeout=60) as response:
        found: dict[str, str] = json.load(response)
        return found


def test_a_client_behind_a_mapped_port_stays_with_it(mapped: Mapped) -> None:
    mapped.start()
    converse(mapped.url)
    assert mapped.pulsar.connections > 0


def test_the_go_client_behind_a_mapped_port_stays_with_it(mapped: Mapped) -> None:
    try:
        program = build(Path(__file__).parents[1] / "go")
    except GoError as error:
        if "not installed" in str(error):
            pytest.skip(str(error))
        raise
    mapped.start()
    command = [str(program), "-url", mapped.url, "-web-url", mapped.web_url, "ack-receipts"]
    done = subprocess.run(command, capture_output=True, text=True, timeout=100, check=False)
    assert done.returncode == 0, done.stderr


def test_an_advertised_address_that_is_loopback_does_not_send_clients_away(mapped: Mapped) -> None:
    mapped.start(advertisedAddress="localhost")
    converse(mapped.url)


def test_over_http_the_listeners_give_the_mapped_port(mapped: Mapped) -> None:
    # The C++ client sends no listener name over HTTP, so the mapped port belongs to the default listener.
    mapped.start(advertisedListeners=mapped.listeners(), internalListenerName="out")
    outside, inside = f"pulsar://127.0.0.1:{mapped.pulsar.port}", f"pulsar://{INSIDE}:{mapped.box.port}"
    assert [ask(mapped.web_url, name)["brokerUrl"] for name in ("", "out", "in")] == [outside, outside, inside]
    with pytest.raises(urllib.error.HTTPError, match="503"):
        ask(mapped.web_url, "test")
    assert mapped.pulsar.connections == 0
    converse(mapped.web_url)
    assert mapped.pulsar.connections > 0


def test_an_unknown_listener_ends_the_clients_attempt(mapped: Mapped) -> None:
    mapped.start(advertisedListeners=mapped.listeners())
    converse(mapped.url, listener_name="out")
    client = connect(mapped.url, listener_name="test")
    with contextlib.closing(client), pytest.raises(pulsar.PulsarException):
        client.create_producer(TOPIC)


def test_a_listener_may_have_a_port_of_its_own(mapped: Mapped) -> None:
    bound = f"out:pulsar://{INSIDE}:{mapped.extra_port}"
    mapped.start(advertisedListeners=mapped.listeners(), bindAddresses=bound)
    assert looked_up(mapped.box.port) == f"pulsar://{INSIDE}:{mapped.box.port}"
    assert looked_up(mapped.extra_port) == f"pulsar://127.0.0.1:{mapped.pulsar.port}"


def looked_up(port: int) -> str:
    """Return the response to a lookup on a port without a listener name."""
    connect_command = BaseCommand(
        type=BaseCommand.CONNECT, connect=api.CommandConnect(client_version="test", protocol_version=21)
    )
    lookup = api.CommandLookupTopic(topic=TOPIC, request_id=1)
    decoder = FrameDecoder(1 << 20)
    with socket.create_connection((INSIDE, port), timeout=60) as connection:
        connection.sendall(encode_frame(connect_command))
        connection.sendall(encode_frame(BaseCommand(type=BaseCommand.LOOKUP, lookupTopic=lookup)))
        while data := connection.recv(4096):
            for frame, _ in decoder.feed(data):
                command = parse_command(frame)
                if command.type == BaseCommand.LOOKUP_RESPONSE:
                    return command.lookupTopicResponse.brokerServiceUrl
    raise AssertionError("no answer")
