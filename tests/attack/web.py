"""Attacks over HTTP: path traversal, huge numbers in paths and bodies, endless headers and bodies."""

import contextlib
import itertools
from typing import Final

from tests.attack.victim import Broken, Victim, answered, send
from tests.attack.wire import ask

_UP: Final = ("..", "%2e%2e", "%252e%252e", ".%2e", "%c0%ae%c0%ae", "..%5c", "..;", "%2e%2e%00", "\x7f", "%ff")
_ROOTS: Final = (
    "/admin/v2/persistent/public/default/{}/stats",
    "/admin/v2/namespaces/public/{}",
    "/admin/v2/{}/{}/{}/etc/passwd",
    "/{}/{}/{}/etc/passwd",
    "/lookup/v2/topic/persistent/public/default/{}",
    "/admin/v2/brokers/configuration/{}/{}",
    "//{}//",
)


def paths(victim: Victim) -> None:
    """Path traversal: each request is answered, nothing of the machine is disclosed, and nothing breaks."""
    long = "x" * 100_000
    tricks = [root.replace("{}", up) for root, up in itertools.product(_ROOTS, _UP)]
    tricks += [
        f"/admin/v2/{long}",
        f"/{'/'.join('ab' * 3000)}",
        f"/?{'a=b&' * 20_000}",
        "/%",
        "/%zz",
        "*",
        "http://x/../..",
    ]
    for path in tricks:
        told = ask(victim, "GET", path)
        if not told.startswith(b"HTTP/1."):
            raise Broken(f"GET {path[:100]} is answered with {told[:100]!r}")
        if told[9:10] == b"5" or b"root:" in told:
            raise Broken(f"GET {path[:100]} is answered with {told[:300]!r}")


def numbers(victim: Victim) -> None:
    """Out-of-range partitions, positions, times and limits."""
    base = "/admin/v2/persistent/public/default/many"
    huge = (
        "2147483647",
        "-1",
        "99999999999999999999",
        "1e9",
        "NaN",
        "0x7fffffff",
        '{"partitions":2147483647}',
        "[" * 50_000,
    )
    for number in huge:
        for method, path in (
            ("PUT", f"{base}/partitions"),
            ("POST", f"{base}/retention"),
            ("POST", f"{base}/maxProducers"),
        ):
            told = with_body(victim, method, path, number.encode())
            if told[9:10] not in (b"2", b"4"):
                raise Broken(f"{method} {path} {number[:30]} is answered with {told[:300]!r}")
        ask(victim, "POST", f"{base}/subscription/s/skip/{number[:100]}")
        ask(victim, "GET", f"{base}/examinemessage?messagePosition={number[:100]}")


def with_body(victim: Victim, method: str, path: str, body: bytes) -> bytes:
    """Return the answer to a request with a token and a JSON body."""
    head = f"{method} {path} HTTP/1.1\r\nHost: x\r\nConnection: close\r\nContent-Type: application/json\r\n"
    head += f"Authorization: Bearer {victim.token.decode()}\r\nContent-Length: {len(body)}\r\n\r\n"
    with victim.connect(victim.doors[2]) as connection:
        send(connection, head.encode() + body)
        return answered(connection)


def heads(victim: Victim) -> None:
    """Endless lines and headers, oversized bodies, and chunks with false sizes."""
    start = b"POST /admin/v2/tenants/x HTTP/1.1\r\nHost: x\r\n"
    told = [
        b"GET /" + b"a" * (4 << 20),
        start + b"A: " + b"b" * (4 << 20),
        start + b"A: b\r\n" * 200_000,
        start + b"Content-Length: 99999999999999\r\n\r\n" + b"x" * (2 << 20),
        start + b"Content-Length: -1\r\n\r\n",
        start + b"Transfer-Encoding: chunked\r\n\r\nffffffffffffffff\r\n" + b"x" * (2 << 20),
        start + b"Transfer-Encoding: chunked\r\n\r\n" + b"1\r\nx\r\n" * 500_000,
        start + b"Content-Encoding: gzip\r\nContent-Length: 20\r\n\r\n" + b"\x1f\x8b" + b"x" * 18,
        b"\r\n" * 100_000,
    ]
    with contextlib.ExitStack() as closing:
        asked = [(closing.enter_context(victim.connect(door)), data) for data in told for door in victim.doors[2:]]
        for connection, data in asked:
            send(connection, data)
        for connection, _ in asked:
            answered(connection)
