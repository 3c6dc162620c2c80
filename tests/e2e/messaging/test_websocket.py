"""WebSockets with client libraries of several languages, beside the official clients."""

import base64
import contextlib
import json
import os
import ssl
import subprocess
import time
from collections.abc import Callable, Iterator
from contextlib import closing
from http.client import HTTPSConnection
from pathlib import Path
from typing import Any
from urllib.parse import urlsplit

import psutil
import pulsar
import pytest
import websocket

from pulsarbox import PulsarBox
from pulsarbox.protocol.PulsarApi_pb2 import MessageIdData
from tests.e2e.clients import receive
from tests.e2e.conftest import Running
from tests.tools.box import BoxProcess
from tests.tools.certificates import Authority
from tests.tools.go import GoError, build

SECONDS = 60
FOLDER = Path(__file__).parents[1]


def path_of(topic: str) -> str:
    return topic.replace("://", "/")


def opened(web_url: str, path: str, **more: Any) -> Any:
    """Open a WebSocket. The library takes seconds to check the UTF-8 of large messages."""
    url = f"{web_url.replace('http', 'ws', 1)}/ws/{path}"
    return closing(websocket.create_connection(url, SECONDS, skip_utf8_validation=True, **more))


def publish(socket: Any, payload: bytes, **fields: Any) -> Any:
    socket.send(json.dumps({"payload": base64.b64encode(payload).decode(), **fields}))
    return json.loads(socket.recv())


def received(socket: Any) -> tuple[bytes, Any]:
    message = json.loads(socket.recv())
    return base64.b64decode(message["payload"]), message


def acknowledge(socket: Any, message: Any) -> None:
    socket.send(json.dumps({"messageId": message["messageId"]}))


@pytest.fixture
def topic(fresh: Callable[[str], str]) -> str:
    return fresh("websocket")


def test_a_message_of_a_socket_reaches_the_official_client(box: Running, client: Any, topic: str) -> None:
    consumer = client.subscribe(topic, "s")
    with opened(box.web_url, f"v2/producer/{path_of(topic)}") as producer:
        result = publish(producer, b"hello", key="k", properties={"a": "b"}, context="1")
    assert (result["result"], result["context"]) == ("ok", "1")
    message = receive(consumer)
    assert (message.data(), message.partition_key(), message.properties()) == (b"hello", "k", {"a": "b"})
    stored = MessageIdData.FromString(base64.b64decode(result["messageId"]))
    assert (stored.ledgerId, stored.entryId) == (message.message_id().ledger_id(), message.message_id().entry_id())


@pytest.mark.parametrize("kind", ["plain", "batched", "compressed", "chunked"])
def test_a_message_of_the_official_client_reaches_a_socket(box: Running, client: Any, topic: str, kind: str) -> None:
    options: dict[str, dict[str, Any]] = {
        "plain": {"batching_enabled": False},
        "batched": {"batching_enabled": True, "batching_max_publish_delay_ms": 1000},
        "compressed": {"compression_type": pulsar.CompressionType.LZ4},
        "chunked": {"batching_enabled": False, "chunking_enabled": True},
    }
    size = 12_000_000 if kind == "chunked" else 100_000
    payloads = [bytes([number]) * size for number in range(3)]
    with opened(box.web_url, f"v2/consumer/{path_of(topic)}/s") as consumer:
        producer = client.create_producer(topic, **options[kind])
        for payload in payloads:
            producer.send_async(payload, lambda *found: None, properties={"a": "b"})
        producer.flush()
        for payload in payloads:
            data, message = received(consumer)
            assert data == payload
            assert message["properties"] == {"a": "b"}
            acknowledge(consumer, message)
        until_backlog(box, topic, 0)


def until_backlog(box: Running, topic: str, count: int) -> None:
    deadline = time.monotonic() + SECONDS
    while json.loads(box.admin("GET", f"{path_of(topic)}/stats"))["subscriptions"]["s"]["msgBacklog"] != count:
        assert time.monotonic() < deadline
        time.sleep(0.02)


def test_a_reader(box: Running, client: Any, topic: str) -> None:
    producer = client.create_producer(topic)
    for number in range(3):
        producer.send(str(number).encode())
    with opened(box.web_url, f"v2/reader/{path_of(topic)}?messageId=earliest") as reader:
        assert [received(reader)[0] for _ in range(3)] == [b"0", b"1", b"2"]


def test_sockets_share_a_subscription_with_the_official_client(box: Running, client: Any, topic: str) -> None:
    query = "subscriptionType=Shared&receiverQueueSize=1"
    with opened(box.web_url, f"v2/consumer/{path_of(topic)}/s?{query}") as socket:
        consumer = client.subscribe(topic, "s", pulsar.ConsumerType.Shared, receiver_queue_size=1)
        producer = client.create_producer(topic, batching_enabled=False)
        for number in range(4):
            producer.send(str(number).encode())
        found = {received(socket)[0], receive(consumer).data()}
        assert len(found) == 2


@pytest.fixture(scope="module")
def secure(tmp_path_factory: pytest.TempPathFactory) -> Iterator[tuple[PulsarBox, Authority]]:
    if "E2E_URL" in os.environ:
        pytest.skip("starts boxes of its own")
    authority = Authority(tmp_path_factory.mktemp("tls"))
    pair = authority.signs("localhost")
    settings: dict[str, Any] = {
        "brokerServicePortTls": 0,
        "webServicePortTls": 0,
        "bindAddress": "localhost",
        "tlsCertificateFilePath": str(pair.certificate),
        "tlsKeyFilePath": str(pair.key),
        "tlsTrustCertsFilePath": str(authority.file),
        "authenticationEnabled": True,
        "authenticationProviders": "tls",
        "authorizationEnabled": True,
        "superUserRoles": "admin",
    }
    with PulsarBox(settings) as box:
        yield box, authority


def test_mutual_tls(secure: tuple[PulsarBox, Authority]) -> None:
    box, authority = secure
    path = "v2/producer/persistent/public/default/secure"
    for role, status in (("admin", 101), ("bob", 403), ("", 401)):
        context = ssl.create_default_context(cafile=str(authority.file))
        if role:
            pair = authority.signs(role)
            context.load_cert_chain(pair.certificate, pair.key)
        assert upgrade(box, path, context) == status
        if status == 101:
            with opened(box.admin_url_tls, path, sslopt={"context": context}, suppress_origin=True) as producer:
                assert publish(producer, b"x" * 300_000)["result"] == "ok"


def upgrade(box: PulsarBox, path: str, context: ssl.SSLContext) -> int:
    """Return the status of a handshake."""
    url = urlsplit(box.admin_url_tls)
    headers = {"Connection": "Upgrade", "Upgrade": "websocket", "Sec-WebSocket-Version": "13"}
    headers["Sec-WebSocket-Key"] = base64.b64encode(bytes(16)).decode()
    with closing(HTTPSConnection(url.hostname or "", url.port, timeout=SECONDS, context=context)) as connection:
        connection.request("GET", f"/ws/{path}", headers=headers)
        return connection.getresponse().status


def test_a_box_that_stops_closes_its_sockets() -> None:
    with PulsarBox() as box:
        socket: Any = websocket.create_connection(
            f"{box.admin_url.replace('http', 'ws', 1)}/ws/v2/consumer/persistent/public/default/t/s", SECONDS
        )
    with closing(socket.sock):
        opcode, frame = socket.recv_data_frame(control_frame=True)
    assert opcode == websocket.ABNF.OPCODE_CLOSE
    assert int.from_bytes(frame.data[:2], "big") == 1001


def test_what_a_socket_stores_survives_a_restart(tmp_path: Path) -> None:
    path = "persistent/public/default/durable"
    with PulsarBox(data_dir=tmp_path / "data") as box, opened(box.admin_url, f"v2/consumer/{path}/s") as consumer:
        with opened(box.admin_url, f"v2/producer/{path}") as producer:
            publish(producer, b"first")
            publish(producer, b"second")
        acknowledge(consumer, received(consumer)[1])
        assert received(consumer)[0] == b"second"
    with PulsarBox(data_dir=tmp_path / "data") as box, opened(box.admin_url, f"v2/consumer/{path}/s") as consumer:
        assert received(consumer)[0] == b"second"


SOCKETS = 1000
SOCKET_BYTES_MAX = 150_000


@pytest.mark.campaign
def test_a_thousand_sockets(own_box: BoxProcess) -> None:
    own_box.start()
    path = "v2/consumer/persistent/public/default/many-{}/s{}"
    with contextlib.ExitStack() as stack:
        stack.enter_context(opened(own_box.web_url, path.format("first", 0)))
        process = psutil.Process(own_box.pid)
        before = process.memory_full_info().uss
        sockets = [
            stack.enter_context(opened(own_box.web_url, path.format(number % 10, number))) for number in range(SOCKETS)
        ]
        assert process.memory_full_info().uss - before < SOCKETS * SOCKET_BYTES_MAX
        with opened(own_box.web_url, "v2/producer/persistent/public/default/many-0") as producer:
            publish(producer, b"to all")
        assert {received(socket)[0] for socket in sockets[::10]} == {b"to all"}
    assert own_box.stop() == 0


def test_the_go_client(box: Running, topic: str) -> None:
    try:
        program = build(FOLDER / "go-websocket")
    except GoError as error:
        if "not installed" in str(error):
            pytest.skip(str(error))
        raise
    url = f"{box.web_url.replace('http', 'ws', 1)}/ws/v2"
    done = subprocess.run([str(program), url, path_of(topic)], capture_output=True, text=True, timeout=120, check=False)
    assert (done.returncode, done.stdout) == (0, "10 messages\n"), done.stderr


def test_node(box: Running, topic: str) -> None:
    try:
        found = subprocess.run(["node", "--version"], capture_output=True, text=True, check=True).stdout
    except OSError:
        pytest.skip("Node.js is not installed")
    if int(found.strip("v \n").split(".")[0]) < 20:
        pytest.skip("Node.js 20 or newer is required for its WebSocket client")
    url = f"{box.web_url.replace('http', 'ws', 1)}/ws/v2"
    command = ["node", "--experimental-websocket", str(FOLDER / "node" / "websocket.js"), url, path_of(topic)]
    done = subprocess.run(command, capture_output=True, text=True, timeout=120, check=False)
    assert (done.returncode, done.stdout) == (0, "10 messages\n"), done.stderr
