"""Attacks with tokens: expired, of another key, truncated, extended, without algorithm, or for another service."""

import base64
import json
import time
from collections.abc import Iterator

from tests.attack.victim import Broken, Victim, answered, send
from tests.attack.wire import hello
from tests.unit.broker.security.signing import pair, token


def _tokens(victim: Victim) -> Iterator[bytes]:
    now = int(time.time())
    good = victim.token
    head, body, signature = good.split(b".")
    none = base64.urlsafe_b64encode(json.dumps({"alg": "none"}).encode()).rstrip(b"=")
    admin = base64.urlsafe_b64encode(json.dumps({"sub": "admin"}).encode()).rstrip(b"=")
    yield token(exp=now - 3600)
    yield token(b"another key, which is long enough for it" * 2)
    yield token(pair("RS256")[0], "RS256")
    yield from (
        none + b"." + body + b".",
        none + b"." + body + b"." + signature,
        head + b"." + admin + b"." + signature,
    )
    yield from (good[:-1], good[: len(good) // 2], good + b"x", good * 2, b"." * 50_000, b"a" * 60_000, b"\xff" * 1000)
    yield from (b"", b"..", b"eyJ.eyJ.eyJ", head + b"." + body + b"." + b"A" * 50_000)
    yield token(sub=None)


def tokens(victim: Victim) -> None:
    """No invalid token is accepted on either port."""
    for wrong in _tokens(victim):
        with victim.connect(victim.doors[0]) as connection:
            send(connection, hello(wrong))
            told = answered(connection)
        if b"authenticate" not in told and told:
            raise Broken(f"the token {wrong[:50]!r} is answered with {told[:200]!r}")
        if b"\r" in wrong or b"\xff" in wrong:
            continue
        with victim.connect(victim.doors[2]) as connection:
            head = b"GET /admin/v2/tenants HTTP/1.1\r\nHost: x\r\nConnection: close\r\nAuthorization: Bearer "
            send(connection, head + wrong + b"\r\n\r\n")
            told = answered(connection)
        if told[9:12] not in (b"401", b"431"):
            raise Broken(f"the token {wrong[:50]!r} is answered over HTTP with {told[:200]!r}")
    for _ in range(victim.times(2000)):  # guessing is this cheap for the attacker
        with victim.connect(victim.doors[0]) as connection:
            send(connection, hello(b"a.b.c"))
            answered(connection)
