"""Limits of the HTTP port: time, bytes, connections, and hostile bodies."""

import asyncio
import gzip
import json
import logging
import resource
import sys
import tracemalloc
from pathlib import Path

import pytest

from pulsarbox.config import Settings
from pulsarbox.protocol.commands import encode_frame, parse_command
from pulsarbox.protocol.frames import FrameDecoder
from pulsarbox.protocol.PulsarApi_pb2 import BaseCommand, CommandConnect
from pulsarbox.server.http.framework import connections
from tests.unit.server.http.harness import ADMIN, BROKER_URL, WEB_URL, HttpBox, running_box, until
from tests.unit.server.http.raw import connected, read_answer, said

T = f"{ADMIN}/persistent/public/default/t"
QUICK = Settings(httpServerIdleTimeout=150)
HEAD = "GET /admin/v2/tenants HTTP/1.1\r\nHost: localhost\r\n"


# Time


@pytest.mark.parametrize("begun", ["", "GET /adm", HEAD, HEAD + "X-Slow: a"])
@pytest.mark.settings(QUICK)
async def test_a_request_that_does_not_come_to_its_end_is_not_waited_for(box: HttpBox, begun: str) -> None:
    reader, writer = await connected(box)
    writer.write(begun.encode())
    assert (await read_answer(reader)).status == 0
    writer.close()


@pytest.mark.settings(QUICK)
async def test_headers_that_drip_are_no_sign_of_life(box: HttpBox) -> None:
    reader, writer = await connected(box)
    for i in range(1000):
        writer.write(HEAD.encode() if not i else b"X-%d: a\r\n" % i)
        await asyncio.sleep(0.02)
        if reader.at_eof() or reader.exception():
            break
    else:
        pytest.fail("it is still there")
    writer.close()


@pytest.mark.settings(Settings(httpServerIdleTimeout=1500))
async def test_a_connection_stays_for_the_next_request_as_long_as_that(box: HttpBox) -> None:
    reader, writer = await connected(box)
    for _ in range(6):
        writer.write(f"{HEAD}\r\n".encode())
        assert (await read_answer(reader)).status == 200
        await asyncio.sleep(0.3)
    assert (await read_answer(reader)).status == 0, "it is closed when it has been idle"
    writer.close()


@pytest.mark.parametrize("how", ["Content-Length: 100", "Transfer-Encoding: chunked"])
@pytest.mark.settings(QUICK)
async def test_a_body_that_does_not_come(box: HttpBox, how: str) -> None:
    reader, writer = await connected(box)
    writer.write(f"PUT {T} HTTP/1.1\r\nHost: localhost\r\n{how}\r\n\r\n".encode())
    got = await read_answer(reader)
    assert (got.status, got.closed, json.loads(got.body)["reason"]) == (
        408,
        True,
        "The body was not received within 0.15 s (httpServerIdleTimeout)",
    )
    assert not list(box.broker.topics)
    writer.close()


async def test_an_answer_that_is_not_read(monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture) -> None:
    monkeypatch.setattr(connections, "TAKEN_SECONDS_MAX", 0.2)
    async with running_box() as box:
        for i in range(500):
            await box.put(f"/persistent/public/default/{'long' * 50}{i}")
        _, writer = await asyncio.open_connection("127.0.0.1", box.port, limit=1024)
        for _ in range(120):
            writer.write(f"GET {ADMIN}/persistent/public/default HTTP/1.1\r\nHost: localhost\r\n\r\n".encode())
        await until(lambda: "to read a response" in caplog.text)
        assert "a client took more than 0.2 s to read a response" in caplog.text
        assert (await box.get("/tenants")).status == 200
        writer.close()


# Bytes


@pytest.mark.parametrize(
    ("text", "status"),
    [
        (f"GET /{'n' * 9000} HTTP/1.1\r\nHost: localhost\r\n\r\n", 414),
        (f"GET {ADMIN}/tenants?{'n' * 9000} HTTP/1.1\r\nHost: localhost\r\n\r\n", 414),
        (f"{HEAD}X-Big: {'n' * 9000}\r\n\r\n", 431),
        (HEAD + "".join(f"X-{i}: a\r\n" for i in range(500)) + "\r\n", 400),
        (f"{HEAD}Bad Header: a\r\n\r\n", 400),
        (f"{HEAD}Content-Length: -1\r\n\r\n", 400),
        (f"{HEAD}Content-Length: 1\r\nContent-Length: 2\r\n\r\n", 400),
        (f"{HEAD}Content-Length: 1\r\nTransfer-Encoding: chunked\r\n\r\n", 400),
        (f"GET {ADMIN}/tenants HTTP/9.9\r\nHost: localhost\r\n\r\n", 400),
        ("* * *\r\n\r\n", 400),
        (f"PUT {T} HTTP/1.1\r\nHost: localhost\r\nTransfer-Encoding: chunked\r\n\r\nzz\r\n", 400),
        (f"PUT {T} HTTP/1.1\r\nHost: localhost\r\nContent-Encoding: gzip\r\nContent-Length: 3\r\n\r\nabc", 415),
        (f"PUT {T} HTTP/1.1\r\nHost: localhost\r\nTransfer-Encoding: chunked\r\n\r\n1\r\na\r\nzz\r\n", 400),
        (f"PUT {T} HTTP/1.1\r\nHost: localhost\r\nContent-Length: 99999999999\r\n\r\n", 413),
    ],
)
async def test_what_is_no_request_gets_a_reason(text: str, status: int, caplog: pytest.LogCaptureFixture) -> None:
    async with running_box() as box:
        got = await said(box, text)
        assert (got.status, got.closed) == (status, True), got
        assert json.loads(got.body)["reason"]
        assert not list(box.broker.topics)
    assert "Traceback" not in caplog.text


@pytest.mark.parametrize("chunked", [True, False])
@pytest.mark.settings(Settings(httpMaxRequestSize=1 << 20))
async def test_a_body_is_not_gathered_beyond_its_limit(box: HttpBox, chunked: bool) -> None:
    reader, writer = await connected(box)
    how = "Transfer-Encoding: chunked" if chunked else f"Content-Length: {64 << 20}"
    writer.write(f"PUT {T} HTTP/1.1\r\nHost: localhost\r\n{how}\r\n\r\n".encode())
    piece = b"10000\r\n" + bytes(1 << 16) + b"\r\n" if chunked else bytes(1 << 16)
    tracemalloc.start()
    sent = 0
    try:
        while sent < 1024 and not writer.is_closing():
            writer.write(piece)
            await asyncio.wait_for(writer.drain(), 5)
            sent += 1
    except (ConnectionError, TimeoutError):
        pass
    _, peak = tracemalloc.get_traced_memory()
    tracemalloc.stop()
    assert peak < 6 << 20
    got = await read_answer(reader)
    assert got.status in (413, 0)  # the response may be lost if the client continues to send
    writer.close()
    assert (await box.get("/tenants")).status == 200


async def test_a_body_that_unpacks_to_much(box: HttpBox) -> None:
    data = gzip.compress(bytes(100 << 20))
    tracemalloc.start()
    head = f"PUT {T} HTTP/1.1\r\nHost: localhost\r\nContent-Encoding: gzip\r\nContent-Length: {len(data)}\r\n\r\n"
    got = await said(box, head.encode() + data)
    _, peak = tracemalloc.get_traced_memory()
    tracemalloc.stop()
    assert got.status == 415
    assert peak < 10 << 20


BODIES: list[tuple[bytes, int, str]] = [
    (b'{"a":"1","a":"2"}', 204, ""),
    (b'\xef\xbb\xbf{"a":"2"}', 204, ""),
    ('{"a":"2"}'.encode("utf-16"), 204, ""),
    (b'{"a":NaN}', 400, "The body is not JSON: NaN is not a JSON number"),
    (b'{"a":-Infinity}', 400, "The body is not JSON: -Infinity is not a JSON number"),
    (b'{"a":1e999}', 400, "The body is not JSON: 1e999 is too large"),
    (b'{"a":' + b"9" * 5000 + b"}", 400, "The body is not JSON"),
    (b'{"a":"1"} more', 400, "The body is not JSON: Extra data"),
    (b'{"a":"\xff"}', 400, "The body is not JSON"),
    (b'{"a":"\\ud800"}', 400, "The body is not JSON: it contains half of a surrogate pair"),
    (b'{"\\uD800":"a"}', 400, "The body is not JSON: it contains half of a surrogate pair"),
    (b'{"a":"\\ud83d\\udc20"}', 204, ""),
    (b'{"a":' * 10_000, 400, "The body is nested too deep"),
    (b"[" * 10_000 + b"]" * 10_000, 400, "The body is nested too deep"),
    (b"[" * 101 + b"]" * 101, 400, "The body is nested too deep: more than 100 levels"),
    (b"[" * 100 + b"]" * 100, 400, "Properties of a topic must be a JSON object"),
    (b'{"a":"' + b"[" * 1000 + b'"}', 204, ""),
    (b"{", 400, "The body is not JSON"),
    (b"\x00", 400, "The body is not JSON"),
    (b"0", 400, "Properties of a topic must be a JSON object with string values, not a number"),
    (b'"a"', 400, "Properties of a topic must be a JSON object with string values, not a string"),
    (b'{"a":{}}', 400, "Properties of a topic must be a JSON object with string values: 'a' has an object"),
]


@pytest.mark.parametrize(("body", "status", "reason"), BODIES, ids=[str(body[:24]) for body, *_ in BODIES])
async def test_json_that_is_awkward(box: HttpBox, body: bytes, status: int, reason: str) -> None:
    got = await box.put("/persistent/public/default/t", body)
    assert got.status == status, got
    if reason:
        assert got.reason.startswith(reason)
        assert not list(box.broker.topics)


@pytest.mark.parametrize("kind", ["text/plain", "application/xml", "application/x-www-form-urlencoded", "no type", ""])
async def test_a_body_is_read_as_json_whatever_its_type_says(box: HttpBox, kind: str) -> None:
    headers = {"Content-Type": kind}
    got = await box.ask("PUT", T, b'{"a":"1"}', headers=headers)
    assert got.status == 204
    assert (await box.get("/persistent/public/default/t/properties")).value == {"a": "1"}
    assert (await box.ask("PUT", f"{T}2", b"a=1", headers=headers)).status == 400


# Methods


async def test_options_and_head(box: HttpBox) -> None:
    got = await box.ask("OPTIONS", f"{ADMIN}/tenants/public")
    assert (got.status, got.text) == (200, "HEAD, DELETE, GET, POST, PUT, OPTIONS")
    assert got.headers["Allow"] == "HEAD,DELETE,GET,POST,PUT,OPTIONS"
    assert (await box.ask("OPTIONS", f"{ADMIN}/nothing")).status == 404
    got = await box.ask("PATCH", f"{ADMIN}/tenants")
    assert (got.status, got.headers["Allow"]) == (405, "HEAD,GET,OPTIONS")
    for path, status in (("/tenants", 200), ("/persistent/public/default/none/stats", 404), ("/nothing", 404)):
        got = await box.ask("HEAD", ADMIN + path)
        assert (got.status, got.text) == (status, "")
    assert (await box.ask("HEAD", f"{T}/unload")).status == 405


# Connections


async def test_pipelined_requests_are_answered_in_order(box: HttpBox) -> None:
    reader, writer = await connected(box)
    paths = [f"/persistent/public/default/t{i % 7}" for i in range(1000)]
    for i, path in enumerate(paths):
        method = "PUT" if i < 7 else "GET"
        end = "" if i < 7 else "/properties"
        writer.write(f"{method} {ADMIN}{path}{end} HTTP/1.1\r\nHost: localhost\r\n\r\n".encode())
    statuses = [(await read_answer(reader)).status for _ in paths]
    assert statuses == [204] * 7 + [200] * 993
    writer.close()


def room_for(files: int) -> bool:
    """Raise the open file limit of this process. Return whether this succeeded."""
    soft, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    if soft < files:
        try:
            resource.setrlimit(resource.RLIMIT_NOFILE, (files, max(hard, files)))  # root may raise both limits
        except (OSError, ValueError):
            return False
    return resource.getrlimit(resource.RLIMIT_NOFILE)[0] >= files


def resident() -> int:
    """Return the memory of this process in bytes."""
    return int(Path("/proc/self/statm").read_text().split()[1]) * resource.getpagesize()


HOLDER = """
import resource, socket, sys
port, count = map(int, sys.argv[1:])
hard = resource.getrlimit(resource.RLIMIT_NOFILE)[1]
resource.setrlimit(resource.RLIMIT_NOFILE, (hard, hard))
held = [socket.create_connection(("127.0.0.1", port), timeout=60) for _ in range(count)]
for each in held[::2]:
    each.sendall(b"GET /admin/v2/tenants HTTP/1.1\\r\\nX-Begun: ")
print("held", flush=True)
sys.stdin.read()
"""
"""A process that holds connections open, half of them with an incomplete request."""


@pytest.mark.parametrize("count", [500, pytest.param(10_000, marks=pytest.mark.slow)])
async def test_idle_connections_cost_little_and_hold_nobody_up(count: int) -> None:
    if not room_for(count + 200):
        pytest.skip(f"the system allows fewer than {count + 200} open files")
    async with running_box(Settings(httpServerIdleTimeout=300_000)) as box:
        await box.get("/tenants")
        before = resident()
        holder = await asyncio.create_subprocess_exec(
            sys.executable, "-c", HOLDER, str(box.port), str(count),
            stdin=asyncio.subprocess.PIPE, stdout=asyncio.subprocess.PIPE,
        )  # fmt: skip
        assert holder.stdout is not None and holder.stdin is not None
        try:
            assert await asyncio.wait_for(holder.stdout.readline(), 120) == b"held\n"
            async with asyncio.timeout(100):
                for _ in range(5):
                    assert (await box.get("/tenants")).status == 200
            assert (resident() - before) / count < 60_000
        finally:
            holder.stdin.close()
            await holder.wait()


async def test_one_connection_more_than_there_may_be(caplog: pytest.LogCaptureFixture) -> None:
    caplog.set_level(logging.WARNING)
    async with running_box(Settings(maxHttpServerConnections=5)) as box:
        held = [await connected(box) for _ in range(5)]
        for _ in range(20):
            reader, writer = await connected(box)
            writer.write(f"{HEAD}\r\n".encode())
            assert (await read_answer(reader)).status == 0
            writer.close()
        for reader, writer in held:
            writer.write(f"{HEAD}\r\n".encode())
            assert (await read_answer(reader)).status == 200
            writer.close()
        await until(lambda: not box.broker.cnxs)
        assert (await box.get("/tenants")).status == 200
    assert caplog.text.count("maxHttpServerConnections allows no more than 5") == 1


# Other protocols


async def test_the_pulsar_protocol_is_answered_in_its_own_words(box: HttpBox) -> None:
    reader, writer = await connected(box)
    writer.write(encode_frame(BaseCommand(type=BaseCommand.CONNECT, connect=CommandConnect(client_version="x"))))
    ((data, _),) = FrameDecoder(10_000).feed(await reader.read())
    error = parse_command(data).error
    assert error.message.endswith(f"This is the port of the Admin API ({WEB_URL}); the service URL is {BROKER_URL}")
    writer.close()


async def test_a_handshake_of_tls_is_cut_off_and_told(caplog: pytest.LogCaptureFixture) -> None:
    async with running_box() as box:
        for _ in range(3):
            reader, writer = await connected(box)
            writer.write(b"\x16\x03\x01\x02\x00\x01\x00\x01\xfc\x03\x03")
            assert await reader.read() == b""
            writer.close()
    assert caplog.text.count("the client speaks TLS: This is the port of the Admin API") == 1


@pytest.mark.settings(Settings(maxHalfOpenConnectionsPerIp=3))
async def test_half_open_connections_of_one_address_are_bounded(box: HttpBox) -> None:
    silent = [await connected(box) for _ in range(3)]
    await until(lambda: box.shell.gate.open == 3)
    assert (await said(box, f"{HEAD}\r\n")).status == 0
    silent[0][1].write(f"{HEAD}\r\n".encode())
    assert (await read_answer(silent[0][0])).status == 200
    assert (await said(box, f"{HEAD}\r\n")).status == 200
    for _, writer in silent:
        writer.close()
    await until(lambda: box.shell.gate.open == 0)


@pytest.mark.parametrize("rest", ["{}", '{"a": 1}'])
async def test_a_delete_with_a_body_of_no_stated_length_is_answered_then_the_connection_ends(
    box: HttpBox, rest: str
) -> None:
    """Node.js sends the body of a DELETE this way."""
    assert (await box.ask("PUT", T)).status == 204
    reader, writer = await connected(box)
    writer.write(f"DELETE {T} HTTP/1.1\r\nHost: localhost\r\n\r\n{rest}".encode())
    assert (await read_answer(reader)).status == 204
    assert (await read_answer(reader)).status == 400
    assert await reader.read() == b""
    writer.close()
    assert (await box.ask("GET", f"{T}/stats")).status == 404
