"""Opening and closing of WebSockets: authentication, permissions, origins, limits and invalid frames."""

import asyncio
from random import Random
from typing import Any

import aiohttp
import pytest

from pulsarbox.config import Settings
from pulsarbox.protocol.PulsarApi_pb2 import ServerError
from pulsarbox.server.websocket.server import STATUS_OF
from tests.unit.broker.security.signing import GUARDED, token
from tests.unit.server.http.harness import HttpBox, until
from tests.unit.server.websocket.sockets import TOPIC, opened, status_of

PRODUCER = f"v2/producer/{TOPIC}"
CONSUMER = f"v2/consumer/{TOPIC}/billing"
READER = f"v2/reader/{TOPIC}"
EVIL = "http://evil.example"


def bearer(role: str) -> str:
    return token(sub=role).decode()


def guarded(**more: Any) -> Settings:
    return Settings(**(GUARDED | {"authorizationEnabled": True, "superUserRoles": "admin"} | more))


def grant(box: HttpBox, role: str, *actions: str) -> None:
    box.broker.permissions.grant("public/default", role, list(actions), box.shell.now())


@pytest.mark.settings(guarded())
async def test_a_token_in_the_header_or_the_query(box: HttpBox) -> None:
    admin = bearer("admin")
    async with opened(box, PRODUCER, headers={"Authorization": f"Bearer {admin}"}) as producer:
        assert (await producer.publish())["result"] == "ok"
    for text in (admin, f"Bearer%20{admin}"):
        async with opened(box, f"{PRODUCER}?token={text}") as producer:
            assert (await producer.publish())["result"] == "ok"


@pytest.mark.settings(guarded())
@pytest.mark.parametrize("query", ["", "?token=x", "?token=", "?token=Basic%20eA=="])
async def test_without_a_valid_token(box: HttpBox, query: str) -> None:
    for path in (PRODUCER, CONSUMER, READER, "v2/nothing"):
        assert (await status_of(box, path + query))[0] == 401
    assert not box.broker.cnxs


@pytest.mark.settings(guarded())
@pytest.mark.parametrize(("action", "may"), [("produce", {PRODUCER}), ("consume", {CONSUMER, READER})])
async def test_permissions(box: HttpBox, action: str, may: set[str]) -> None:
    grant(box, "ann", action)
    for path in (PRODUCER, CONSUMER, READER):
        query = f"{path}?token={bearer('ann')}"
        if path in may:
            async with opened(box, query):
                pass
        else:
            assert (await status_of(box, query))[0] == 403
    assert (await status_of(box, f"{PRODUCER}?token={bearer('bob')}"))[0] == 403


@pytest.mark.settings(guarded())
async def test_permissions_for_all_topics_are_required(box: HttpBox) -> None:
    grant(box, "ann", "consume")
    path = f"v3/consumer/s?token={bearer('ann')}"
    assert (await status_of(box, f"{path}&topics=a,persistent://public/other/a"))[0] in (403, 404)
    assert (await status_of(box, f"{path}&topicsPattern=persistent://pulsar/system/.*"))[0] in (403, 404)
    async with opened(box, f"{path}&topics=a,b"):
        pass


@pytest.mark.settings(guarded())
async def test_expired_credentials_close_the_socket(box: HttpBox) -> None:
    now = box.shell.now().wall
    text = token(sub="admin", exp=now // 1000 + 5).decode()
    async with opened(box, f"{PRODUCER}?token={text}") as producer:
        assert (await producer.publish())["result"] == "ok"
        box.shell.core.advance(6)
        code, reason = await producer.closed()
        assert code == 1011
        assert "expired" in reason


@pytest.mark.parametrize(
    "headers", [{"Origin": EVIL}, {"Origin": "null"}, {"Sec-Fetch-Site": "cross-site"}, {"Host": "evil.example"}]
)
async def test_pages_of_others_are_refused(box: HttpBox, headers: dict[str, str]) -> None:
    for path in (PRODUCER, CONSUMER, READER):
        assert (await status_of(box, path, **headers))[0] == 403


@pytest.mark.settings(Settings(httpAllowedOrigins=EVIL))
async def test_pages_of_allowed_origins_may_connect(box: HttpBox) -> None:
    async with opened(box, PRODUCER, headers={"Origin": EVIL}) as producer:
        assert (await producer.publish())["result"] == "ok"


async def test_pages_of_the_box_may_connect(box: HttpBox) -> None:
    async with opened(box, PRODUCER, headers={"Origin": f"http://127.0.0.1:{box.port}"}):
        pass


@pytest.mark.settings(Settings(webSocketServiceEnabled=False))
async def test_the_api_can_be_disabled(box: HttpBox) -> None:
    assert (await status_of(box, PRODUCER))[0] == 404


async def test_a_plain_request_is_refused(box: HttpBox) -> None:
    for method in ("GET", "POST"):
        found = await box.ask(method, f"/ws/{PRODUCER}")
        assert found.status == 405
        assert "WebSocket client" in found.reason


@pytest.mark.parametrize(
    ("path", "status"),
    [
        ("v2/nothing", 404),
        ("v2/producer/persistent/nope/default/a", 404),
        ("v2/producer/persistent/public/nope/a", 404),
        ("v2/producer/persistent/public/default", 400),
        (f"{PRODUCER}?sendTimeoutMillis=x", 400),
        (f"{CONSUMER}?subscriptionType=x", 400),
        (f"{CONSUMER}?maxRedeliverCount=1&deadLetterTopic=a/b", 400),
        (f"{READER}?messageId=x", 400),
        ("v3/consumer/s?topicsPattern=((", 400),
    ],
)
async def test_refusals(box: HttpBox, path: str, status: int) -> None:
    assert (await status_of(box, path))[0] == status
    assert not box.broker.cnxs


@pytest.mark.parametrize("headers", [{"Sec-WebSocket-Version": "12"}, {"Sec-WebSocket-Key": "x"}])
async def test_invalid_handshakes(box: HttpBox, headers: dict[str, str]) -> None:
    assert (await status_of(box, PRODUCER, **headers))[0] == 400
    assert not box.broker.cnxs


def test_statuses_are_those_of_pulsar() -> None:
    assert STATUS_OF[ServerError.TopicTerminatedError] == 503
    assert ServerError.NotAllowedError not in STATUS_OF


@pytest.mark.settings(Settings(brokerMaxConnectionsPerIp=2))
async def test_sockets_count_as_connections(box: HttpBox) -> None:
    async with opened(box, PRODUCER), opened(box, CONSUMER):
        status, reason = await status_of(box, READER)
        assert status == 503
        assert "brokerMaxConnectionsPerIp" in reason
    await until(lambda: not box.shell.connections)
    async with opened(box, READER):
        pass


@pytest.mark.settings(Settings(brokerMaxConnections=1))
async def test_all_sockets_count(box: HttpBox) -> None:
    async with opened(box, PRODUCER):
        assert "brokerMaxConnections" in (await status_of(box, READER))[1]


@pytest.mark.settings(Settings(webSocketSessionIdleTimeoutMillis=150))
async def test_idle_sockets_are_closed(box: HttpBox) -> None:
    async with opened(box, CONSUMER) as consumer:
        assert await consumer.closed() == (1001, "Connection Idle Timeout")
    await until(lambda: not box.broker.cnxs)


@pytest.mark.settings(Settings(webSocketSessionIdleTimeoutMillis=250))
async def test_pings_keep_a_socket_open(box: HttpBox) -> None:
    async with opened(box, CONSUMER) as consumer:
        for _ in range(6):
            await consumer.socket.ping(b"alive")
            await asyncio.sleep(0.06)
        assert await consumer.is_quiet()


class Raw:
    """A socket whose frames the test writes itself."""

    def __init__(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        self.reader, self.writer = reader, writer

    @classmethod
    async def opened(cls, box: HttpBox, path: str) -> "Raw":
        """Open a socket."""
        raw = cls(*await asyncio.open_connection("127.0.0.1", box.port))
        raw.writer.write(
            f"GET /ws/{path} HTTP/1.1\r\nHost: localhost\r\nConnection: Upgrade\r\nUpgrade: websocket\r\n"
            "Sec-WebSocket-Version: 13\r\nSec-WebSocket-Key: AAAAAAAAAAAAAAAAAAAAAA==\r\n\r\n".encode()
        )
        head = await raw.reader.readuntil(b"\r\n\r\n")
        assert head.startswith(b"HTTP/1.1 101 ")
        return raw

    async def frame(self) -> tuple[int, bytes]:
        """Return the opcode and payload of the next short frame."""
        async with asyncio.timeout(60):
            first, size = await self.reader.readexactly(2)
            if size == 126:
                size = int.from_bytes(await self.reader.readexactly(2), "big")
            return first & 15, await self.reader.readexactly(size)

    async def close_code(self) -> int:
        """Return the code of the box's close frame, after which the connection ends."""
        opcode, data = await self.frame()
        assert opcode == 8
        self.writer.write(masked(0x88, data[:2]))
        async with asyncio.timeout(60):
            assert await self.reader.read() == b""
        self.writer.close()
        return int.from_bytes(data[:2], "big")


def masked(first: int, payload: bytes) -> bytes:
    assert len(payload) < 126
    return bytes([first, 0x80 | len(payload)]) + bytes(4) + payload


MESSAGE = b'{"payload":"","context":"c"}'


async def test_fragments_and_pings_between_them(box: HttpBox) -> None:
    raw = await Raw.opened(box, PRODUCER)
    raw.writer.write(masked(0x01, MESSAGE[:5]) + masked(0x00, MESSAGE[5:9]) + masked(0x89, b"hi"))
    assert await raw.frame() == (10, b"hi")
    raw.writer.write(masked(0x00, b"") + masked(0x80, MESSAGE[9:]))
    opcode, text = await raw.frame()
    assert opcode == 1
    assert b'"context":"c"' in text
    raw.writer.write(masked(0x88, b"\x03\xe8bye"))
    assert await raw.close_code() == 1000


@pytest.mark.parametrize(
    ("data", "code"),
    [
        (bytes([0x81, 2]) + b"{}", 1002),
        (masked(0xC1, b"{}"), 1002),
        (masked(0x83, b"{}"), 1002),
        (masked(0x80, b"{}"), 1002),
        (masked(0x01, b"{") + masked(0x81, b"}"), 1002),
        (masked(0x09, b""), 1002),
        (bytes([0x89, 0xFE, 0, 126]) + bytes(130), 1002),
        (masked(0x81, b"\xff\xfe"), 1007),
        (masked(0x88, b"\0\1"), 1002),
        (bytes([0x81, 0xFF]) + (1 << 40).to_bytes(8, "big") + bytes(4), 1009),
    ],
)
async def test_invalid_frames_close_the_socket(box: HttpBox, data: bytes, code: int) -> None:
    raw = await Raw.opened(box, PRODUCER)
    raw.writer.write(data)
    assert await raw.close_code() == code
    await until(lambda: not box.broker.cnxs)


@pytest.mark.settings(Settings(webSocketMaxTextFrameSize=1024))
async def test_fragments_are_bounded_together(box: HttpBox) -> None:
    raw = await Raw.opened(box, PRODUCER)
    raw.writer.write(masked(0x01, b"x" * 100) + masked(0x00, b"x" * 100) * 11)
    assert await raw.close_code() == 1009


async def test_a_client_that_goes_without_a_word(box: HttpBox) -> None:
    raw = await Raw.opened(box, CONSUMER)
    raw.writer.write(b"\x81")
    raw.writer.close()
    await until(lambda: not box.broker.cnxs)


async def test_frames_are_not_compressed(box: HttpBox) -> None:
    async with box.connect(f"/ws/{PRODUCER}", compress=15) as socket:
        assert isinstance(socket, aiohttp.ClientWebSocketResponse)
        assert not socket.compress


@pytest.mark.parametrize("pattern", ["persistent://nope/nope/.*", "a/b"])
async def test_a_pattern_without_topics(box: HttpBox, pattern: str) -> None:
    async with opened(box, f"v3/consumer/s?topicsPattern={pattern}") as consumer:
        assert await consumer.is_quiet()


async def test_a_pattern_of_an_invalid_namespace(box: HttpBox) -> None:
    assert (await status_of(box, "v3/consumer/s?topicsPattern=persistent://public/a%20b/x"))[0] == 400


def random_frames(seed: int) -> bytes:
    """Frames that are valid, nearly valid or nonsense."""
    random = Random(seed)
    texts = [MESSAGE, b"{}", b"[" * 100, b"\xff", b'{"messageId":"AAAA"}', b'{"type":"permit","permitMessages":-5}']
    found = b""
    for _ in range(random.randrange(1, 12)):
        match random.randrange(4):
            case 0:
                found += masked(0x81, random.choice(texts))
            case 1:
                found += masked(random.randrange(256), random.randbytes(random.randrange(125)))
            case 2:
                found += masked(random.choice((0x89, 0x8A, 0x01, 0x00, 0x80)), random.randbytes(random.randrange(9)))
            case _:
                found += random.randbytes(random.randrange(20))
    return found


async def attack(box: HttpBox, seed: int) -> None:
    for path in (PRODUCER, CONSUMER, READER):
        raw = await Raw.opened(box, path)
        raw.writer.write(random_frames(seed))
        raw.writer.write_eof() if seed % 2 else raw.writer.close()
        await until(lambda: not box.broker.cnxs)
        raw.writer.close()


@pytest.mark.parametrize("seed", range(8))
async def test_random_frames(box: HttpBox, seed: int) -> None:
    await attack(box, seed)


@pytest.mark.campaign
async def test_many_random_frames(box: HttpBox) -> None:
    for seed in range(2000):
        await attack(box, seed)
