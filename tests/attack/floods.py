"""Floods and slow clients: thousands of connections on every port, and idle ones."""

import contextlib
import itertools
import resource
import socket
import struct
import time
from collections.abc import Iterator

from tests.attack.victim import HALF_OPEN_MAX, HOSTS, Broken, Door, Victim, answered, send
from tests.attack.wire import hello

_OWN_FILES = 200
"""Descriptors that this process needs besides its connections."""


def raise_own_limit() -> int:
    """Raise the descriptor limit to its maximum and return it."""
    _, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    resource.setrlimit(resource.RLIMIT_NOFILE, (hard, hard))
    return hard


def crowd(victim: Victim) -> str:
    """Ten thousand clients with tokens, from ten addresses: all are accepted and served."""
    wanted = victim.times(10_000)
    count = min(wanted, raise_own_limit() - _OWN_FILES)
    before = victim.memory
    held: list[socket.socket] = []
    with _closing(held):
        for number in range(count):
            held.append(victim.connect(victim.doors[number % 2], HOSTS[number % len(HOSTS)]))
            send(held[-1], hello(victim.token))
        for each in held:
            if b"pulsar" not in each.recv(65536).lower():
                raise Broken("one of the crowd is not let in")
        per_connection = (victim.memory - before) // count
        victim.check()
    less = f" (of {wanted}: the limit of open files)" if count < wanted else ""
    return f"{count} clients{less}, {per_connection / 1024:.0f} KiB each"


def half_open(victim: Victim) -> str:
    """Silent connections above the limit of their address are rejected; those below, and other addresses, are not."""
    count, files, most = victim.times(2000) + 2 * HALF_OPEN_MAX, victim.files, 0
    with contextlib.ExitStack() as closing:
        silent: list[socket.socket] = []
        for door, host in zip(victim.doors, HOSTS, strict=False):
            for _ in range(count):
                silent.append(closing.enter_context(victim.connect(door, host, shake=False)))
                most = max(most, victim.files - files) if len(silent) % 50 == 0 else most
        allowed = len(victim.doors) * HALF_OPEN_MAX + 50
        if most > allowed:
            raise Broken(
                f"{most} half-open connections of {len(victim.doors)} addresses, {allowed} at most are allowed"
            )
        victim.wait_for(lambda: all(map(_is_closed, silent)), "half-open connections are closed")
    if "maxHalfOpenConnectionsPerIp allows no more" not in victim.box.log.read_text(errors="replace"):
        raise Broken("nobody is refused for being half-open")
    return f"{len(silent)} connections, {most} of them held at most"


def _is_closed(connection: socket.socket) -> bool:
    connection.setblocking(False)
    try:
        return not connection.recv(65536)
    except BlockingIOError:
        return False
    except OSError:
        return True


def _slow(victim: Victim) -> Iterator[tuple[Door, bytes, bytes]]:
    """Yield the port, the data sent at once, and the data sent byte by byte."""
    frame = struct.pack(">II", 60_000, 59_000) + b"\x08\x02"
    request = b"POST /admin/v2/tenants/x HTTP/1.1\r\nHost: x\r\n"
    body = b"Authorization: Bearer " + victim.token + b"\r\nContent-Length: 500000\r\n\r\n"
    for door in victim.doors:
        if door.web:
            yield door, request, b"a: b\r\n"
            yield door, request + body, b"{"
        else:
            yield door, frame[:4], frame[4:]
            yield door, hello(victim.token) + frame, b"x"


def slow(victim: Victim) -> str:
    """Headers, bodies, frames and handshakes sent byte by byte: each connection is eventually closed."""
    held: list[tuple[socket.socket, Iterator[int], str]] = []
    with contextlib.ExitStack() as closing:
        for door, first, rest in _slow(victim):
            for number in range(victim.times(100)):
                connection = closing.enter_context(victim.connect(door, HOSTS[number % len(HOSTS)]))
                send(connection, first)
                held.append((connection, itertools.cycle(rest), door.name))
        for door in victim.doors:
            if door.tls:
                for _ in range(victim.times(100)):
                    connection = closing.enter_context(victim.connect(door, shake=False))
                    held.append((connection, itertools.cycle(b"\x16\x03\x01\x02\x00\x01"), f"{door.name} handshake"))
        count, began = len(held), time.monotonic()
        while held:
            victim.check()
            if time.monotonic() > began + 60:
                raise Broken(f"{len(held)} slow clients go on, such as {held[0][2]}")
            still = []
            for each in held:
                send(each[0], bytes([next(each[1])]))
                if not _is_closed(each[0]):
                    still.append(each)
                each[0].setblocking(False)
            held = still
            time.sleep(0.2)
    return f"{count} slow clients, the last was cut off after {time.monotonic() - began:.1f} s"


def not_reading(victim: Victim) -> None:
    """A client that requests much and reads nothing is sent only a bounded amount."""
    held: list[socket.socket] = []
    with _closing(held):
        for number in range(victim.times(100)):
            connection = victim.connect(victim.doors[2], HOSTS[number % len(HOSTS)])
            connection.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, 4096)
            send(connection, b"GET /metrics HTTP/1.1\r\nHost: x\r\n\r\n" * 500)
            held.append(connection)
        victim.check()


def hangups(victim: Victim) -> str:
    """Connections on every port that close at once, after garbage or nothing."""
    nonsense = (b"", b"\x16", b"\x16\x03\x01\x02\x00" + b"\0" * 300, b"\0" * 8, b"GET / HTTP/1.1\r\n", b"\xff" * 50)
    count, began = victim.times(4000), time.monotonic()
    cpu = victim.cpu
    for number in range(count):
        door = victim.doors[number % len(victim.doors)]
        with contextlib.suppress(OSError), victim.connect(door, HOSTS[number % len(HOSTS)], shake=False) as connection:
            send(connection, nonsense[number % len(nonsense)])
            connection.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, struct.pack("ii", number % 2, 0))
    victim.check()
    taken = (victim.cpu - cpu) / count * 1e6
    return f"{count} in {time.monotonic() - began:.1f} s, {taken:.0f} us of the box's time each, good clients included"


def wrong_ports(victim: Victim) -> None:
    """Every protocol on every port: a mismatch is answered if possible, and always disconnected."""
    asked: list[tuple[Door, bytes, socket.socket]] = []
    with contextlib.ExitStack() as closing:
        for door in victim.doors:
            for data in (b"GET /x HTTP/1.1\r\n\r\n", hello(victim.token), b"\x16\x03\x01\x00\x05" + b"x" * 200):
                asked.append((door, data, closing.enter_context(victim.connect(door, shake=False))))
                send(asked[-1][2], data)
        for door, data, connection in asked:
            is_tls, is_http = data[:1] == b"\x16", data[:3] == b"GET"
            if (door.tls and is_tls) or (not door.tls and not is_tls and is_http == door.web):
                continue  # the protocol of this port
            told = answered(connection)
            if not is_tls and b"This is the port of" not in told:
                raise Broken(f"{data[:10]!r} on {door.name} is answered with {told[:200]!r}")


@contextlib.contextmanager
def _closing(held: list[socket.socket]) -> Iterator[None]:
    try:
        yield
    finally:
        for each in held:
            each.close()
