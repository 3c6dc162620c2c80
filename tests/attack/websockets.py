"""Attacks over WebSockets: floods of handshakes and pings, false frames, endless messages, clients that do not read."""

import base64
import contextlib
import json
import socket
import struct
from collections.abc import Iterator
from typing import Final

from tests.attack.victim import HOSTS, Broken, Victim, answered, send

TEXT: Final = 0x1
FINAL: Final = 0x80
PING: Final = 0x9
TOPIC: Final = "persistent/public/default/sockets"
TEXT_MAX: Final = 1 << 20
"""webSocketMaxTextFrameSize of the broker."""
_MASK: Final = bytes(4)
_KEY: Final = base64.b64encode(b"0123456789abcdef").decode()


def frame(opcode: int, payload: bytes, *, length: int | None = None, masked: bool = True) -> bytes:
    """Return a frame, with a false ``length`` if it is given."""
    size = len(payload) if length is None else length
    bit = 0x80 if masked else 0
    if size < 126:
        head = struct.pack(">BB", opcode, bit | size)
    elif size < 1 << 16:
        head = struct.pack(">BBH", opcode, bit | 126, size)
    else:
        head = struct.pack(">BBQ", opcode, bit | 127, size)
    return head + (_MASK if masked else b"") + payload


def handshake(victim: Victim, path: str, token: str | None = None) -> bytes:
    """Return the request that opens a WebSocket."""
    bearer = victim.token.decode() if token is None else token
    head = f"GET /ws/v2/{path} HTTP/1.1\r\nHost: x\r\nUpgrade: websocket\r\nConnection: Upgrade\r\n"
    head += f"Sec-WebSocket-Version: 13\r\nSec-WebSocket-Key: {_KEY}\r\nAuthorization: Bearer {bearer}\r\n\r\n"
    return head.encode()


def opened(victim: Victim, path: str, host: str = HOSTS[0]) -> socket.socket:
    """Return an open WebSocket. Raises Broken."""
    connection = victim.connect(victim.doors[2], host)
    send(connection, handshake(victim, path))
    told = b""
    while b"\r\n\r\n" not in told and (part := connection.recv(1)):
        told += part
    if b" 101 " not in told:
        connection.close()
        raise Broken(f"a WebSocket to {path} is answered with {told[:200]!r}")
    return connection


def close_code(connection: socket.socket) -> int:
    """Return the code of the close frame that ends a stream of frames; 0 if there is none."""
    told, at = answered(connection), 0
    while at + 2 <= len(told):
        opcode, size = told[at] & 0xF, told[at + 1] & 0x7F
        extra = {126: 2, 127: 8}.get(size, 0)
        size = int.from_bytes(told[at + 2 : at + 2 + extra], "big") if extra else size
        body = told[at + 2 + extra : at + 2 + extra + size]
        if opcode == 0x8:
            return int.from_bytes(body[:2], "big")
        at += 2 + extra + size
    return 0


def handshakes(victim: Victim) -> str:
    """Handshakes without a token, to false paths, incomplete ones, and sockets that are left at once."""
    token = victim.token.decode()
    producer = f"producer/{TOPIC}"
    requests = (
        (handshake(victim, producer, "nonsense"), b" 401 "),
        (handshake(victim, "producer/persistent/public/none/t"), b" 404 "),
        (handshake(victim, f"producer/{TOPIC}?sendTimeoutMillis={'9' * 5000}"), b" 400 "),
        (handshake(victim, "consumer/" + "a/" * 2000), b" 400 "),
        (handshake(victim, producer).replace(_KEY.encode(), b"x"), b" 400 "),
        (handshake(victim, producer).replace(b"Version: 13", b"Version: 99"), b" 400 "),
        (handshake(victim, producer, token), b" 101 "),
        (handshake(victim, producer)[:-10], b""),
    )
    count = victim.times(2000)
    for number in range(count):
        request, expected = requests[number % len(requests)]
        with victim.connect(victim.doors[2], HOSTS[number % len(HOSTS)]) as connection:
            send(connection, request)
            told = connection.recv(4096) if expected else b""
            if expected not in told[:20]:
                raise Broken(f"{request[:100]!r} is answered with {told[:200]!r}, not {expected!r}")
    return f"{count} handshakes"


def _bad_frames() -> Iterator[tuple[str, bytes, tuple[int, ...]]]:
    """Yield what a client sends, and the codes with which the socket may be closed."""
    yield "a length of 2^63", frame(FINAL | TEXT, b"x" * 100, length=1 << 62), (1009, 1002)
    yield "a message above the limit", frame(FINAL | TEXT, b"x" * (TEXT_MAX + 2)), (1009,)
    yield "endless fragments", _fragments(b"x" * 65_536, 40), (1009,)
    yield "no mask", frame(FINAL | TEXT, b"{}", masked=False), (1002,)
    yield "reserved bits", frame(FINAL | 0x70 | TEXT, b"{}"), (1002,)
    yield "an unknown opcode", frame(FINAL | 0x5, b"{}"), (1002,)
    yield "a continuation of nothing", frame(FINAL, b"{}"), (1002,)
    yield "a fragmented ping", frame(PING, b"x"), (1002,)
    yield "a ping of 200 bytes", frame(FINAL | PING, b"x" * 200), (1002,)
    yield "not UTF-8", frame(FINAL | TEXT, b'{"payload":"\xff\xfe"}'), (1007,)
    yield "much that is not UTF-8", frame(FINAL | TEXT, b"a" * 500_000 + b"\xc3"), (1007,)
    yield "a close frame of one byte", frame(FINAL | 0x8, b"x"), (1002,)


def _fragments(part: bytes, count: int) -> bytes:
    return frame(TEXT, part) + frame(0, part) * count


def frames(victim: Victim) -> str:
    """False frames close their socket with the code of RFC 6455."""
    told = []
    for what, data, codes in _bad_frames():
        with opened(victim, f"producer/{TOPIC}") as connection:
            send(connection, data)
            if (code := close_code(connection)) not in codes:
                raise Broken(f"{what}: the socket is closed with {code}, not one of {codes}")
            told.append(code)
    return f"{len(told)} sockets closed"


def _bad_messages() -> Iterator[str]:
    yield "not JSON"
    yield "[" * 500_000
    yield '{"a":' * 100_000
    yield "[" + "1," * 400_000 + "1]"
    yield json.dumps({"payload": "not base64!"})
    yield json.dumps({"payload": "A" * 900_001 + "="})
    yield json.dumps({"payload": "\\/" * 300_000})
    yield json.dumps({"payload": "é" * 200_000}, ensure_ascii=False)
    yield json.dumps({"payload": "eA==", "key": "\ud800"})
    yield json.dumps({"payload": "eA==", "properties": {str(n): "\n" * 90 for n in range(5000)}, "deliverAt": "x"})
    yield json.dumps({"payload": "eA==", "deliverAfterMs": 10**30, "eventTime": "x" * 100_000})
    yield "9" * 500_000


def messages(victim: Victim) -> None:
    """Messages that are not JSON, not base64, deep or long: each gets its error, and the socket serves the next one."""
    with opened(victim, f"producer/{TOPIC}") as connection:
        for text in _bad_messages():
            send(connection, frame(FINAL | TEXT, text.encode(errors="surrogatepass")))
            told = _text(connection)
            if not str(json.loads(told)["result"]).startswith("send-error"):
                raise Broken(f"{text[:60]!r} is answered with {told[:200]!r}")
            victim.good.gets_on()
        send(connection, frame(FINAL | TEXT, b'{"payload":"eA=="}'))
        if json.loads(_text(connection))["result"] != "ok":
            raise Broken("a message after false ones is not stored")


def _text(connection: socket.socket) -> bytes:
    """Return the next frame's payload."""
    head = _exactly(connection, 2)
    size = head[1] & 0x7F
    if size > 125:
        size = int.from_bytes(_exactly(connection, 2 if size == 126 else 8), "big")
    return _exactly(connection, size)


def _exactly(connection: socket.socket, count: int) -> bytes:
    found = b""
    while len(found) < count:
        part = connection.recv(count - len(found))
        if not part:
            raise Broken(f"a socket ends after {found[:100]!r}")
        found += part
    return found


def pings(victim: Victim) -> str:
    """Floods of pings whose answers nobody reads, of empty messages and of empty fragments."""
    count, kinds = victim.times(200_000), (frame(FINAL | PING, b"x" * 125), frame(FINAL | TEXT, b""), frame(0, b""))
    with contextlib.ExitStack() as closing:
        for number in range(max(3, victim.times(20))):
            connection = closing.enter_context(opened(victim, f"producer/{TOPIC}", HOSTS[number % len(HOSTS)]))
            connection.settimeout(1)
            with contextlib.suppress(OSError):
                connection.sendall(frame(TEXT, b"") * (number % 3 == 2) + kinds[number % 3] * (count // 20 + 1))
            victim.check()
    return f"{count} frames"


def unread(victim: Victim) -> str:
    """Producers that read no results, and readers and consumers that read no messages or acknowledge none."""
    payload = base64.b64encode(b"x" * 50_000).decode()
    message = frame(FINAL | TEXT, json.dumps({"payload": payload}).encode())
    count = victim.times(100)
    with contextlib.ExitStack() as closing:
        for number in range(count):
            host = HOSTS[number % len(HOSTS)]
            producer = closing.enter_context(opened(victim, f"producer/{TOPIC}", host))
            producer.settimeout(0.2)
            with contextlib.suppress(OSError):
                producer.sendall(message * 10)
            for path in (f"reader/{TOPIC}?messageId=earliest", f"consumer/{TOPIC}/s{number}?receiverQueueSize=1000"):
                closing.enter_context(opened(victim, path, host))
            victim.check()
    return f"{3 * count} sockets"
