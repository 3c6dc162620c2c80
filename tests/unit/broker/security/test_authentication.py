"""CONNECT with authentication: expiring credentials, challenges and their responses, proxies."""

import base64
from typing import Any

import pytest

from pulsarbox.broker.connection.cnx import ConnectionState
from pulsarbox.broker.security.credential_expiry import REFRESH
from pulsarbox.broker.security.password_checks import (
    ASKERS_MAX,
    THREADS_MAX,
    WAITING_MAX,
    WAITING_OF_HOST_MAX,
    PasswordChecks,
)
from pulsarbox.broker.security.principal import Principal
from pulsarbox.broker.security.provider import LongCheck, Overloaded
from pulsarbox.broker.security.refusals import LINES, PERIOD
from pulsarbox.clock import BEGINNING
from pulsarbox.protocol.PulsarApi_pb2 import ServerError
from tests.unit.broker.playbook import TOPIC, Box, Client
from tests.unit.broker.security.signing import GUARDED, NOW, SECRET, token


def guarded(**settings: Any) -> Box:
    """Build a box with authentication and without keep-alive checks, because the tests advance time without PONGs."""
    return Box(**(GUARDED | {"keepAliveIntervalSeconds": 1_000_000} | settings))


def connect(box: Box, method: str | None = "token", data: bytes = b"", *, refresh: bool = True, **more: Any) -> Client:
    """Return a client that has sent CONNECT."""
    client = box.client(connect=False)
    if method is not None:
        more["auth_method_name"] = method
    certificate = more.pop("certificate", "")
    client.cnx.certificate = certificate
    features = {"supports_auth_refresh": refresh}
    client.ask("connect", client_version="test", protocol_version=21, auth_data=data, feature_flags=features, **more)
    return client


def is_refused(client: Client) -> bool:
    told = client.take("error")
    assert (told.request_id, told.error, told.message) == (2**64 - 1, 3, "Failed to authenticate")
    assert client.cnx not in client.box.broker.cnxs
    return client.closed


def test_without_authentication_nobody_is_anybody() -> None:
    client = connect(Box(), data=b"whatever")
    assert client.names() == ["connected"]
    assert client.cnx.principal is None


@pytest.mark.parametrize(
    ("method", "data", "certificate", "who"),
    [
        ("token", token(), "", Principal("ann", "token")),
        ("token", token(exp=NOW + 60), "", Principal("ann", "token", (NOW + 60) * 1000)),
        ("basic", b"admin:123456", "", Principal("admin", "basic")),
        ("tls", b"", "cert", Principal("cert", "tls")),
    ],
)
def test_who_proves_a_name_has_it(method: str, data: bytes, certificate: str, who: Principal) -> None:
    client = connect(guarded(), method, data, certificate=certificate)
    assert client.names() == ["connected"]
    assert client.cnx.principal == who


@pytest.mark.parametrize(
    ("method", "data"),
    [
        *((None, b""), ("none", b""), ("", b"x"), ("kerberos", b"x"), ("token", b""), ("token", b"x")),
        *(("token", token(b"x" * 32)), ("token", token(exp=NOW)), ("basic", b"admin:12345"), ("tls", b"")),
    ],
)
def test_who_proves_nothing_is_told_so_and_no_more(method: str | None, data: bytes) -> None:
    assert is_refused(connect(guarded(), method, data))


def test_the_anonymous_role_is_for_who_shows_nothing() -> None:
    box = guarded(anonymousUserRole="nobody")
    for method in (None, "none", "kerberos"):
        client = connect(box, method)
        assert client.names() == ["connected"]
        assert client.cnx.principal == Principal("nobody", "anonymous")
    assert is_refused(connect(box, "token", b"x"))  # anonymous access does not cover bad credentials


def test_an_old_client_sends_a_number() -> None:
    box = guarded(anonymousUserRole="nobody")
    client = connect(box, None, auth_method=1)
    assert client.names() == ["connected"]


def test_an_expired_token_is_asked_for_again() -> None:
    box = guarded()
    client = connect(box, data=token(exp=NOW + 200))
    client.take("connected")
    box.advance(199)
    assert client.names() == []
    box.advance(1)
    asked = client.take("authChallenge")
    assert (asked.challenge.auth_method_name, asked.challenge.auth_data) == ("token", REFRESH)
    client.producer(1)  # the connection remains usable during the challenge
    assert "producer_success" in client.names() or not client.closed
    client.ask("authResponse", response={"auth_method_name": "token", "auth_data": token(exp=NOW + 400)})
    assert client.cnx.principal == Principal("ann", "token", (NOW + 400) * 1000)
    box.advance(199)
    assert client.names() == []
    box.advance(1)
    client.take("authChallenge")


def test_no_answer_in_time_costs_the_connection() -> None:
    box = guarded(authenticationRefreshCheckSeconds=30)
    client = connect(box, data=token(exp=NOW + 10))
    box.advance(10)
    assert client.names() == ["connected", "authChallenge"]
    box.advance(29)
    assert not client.closed
    box.advance(1)
    assert client.closed


def test_an_answer_that_proves_nothing_costs_the_connection() -> None:
    for answer in (token(exp=NOW + 10), token(b"x" * 32), b"", b"x"):
        box = guarded()
        client = connect(box, data=token(exp=NOW + 10))
        box.advance(10)
        client.names()
        client.ask("authResponse", response={"auth_method_name": "token", "auth_data": answer})
        assert is_refused(client)


def test_an_answer_of_somebody_else_costs_the_connection() -> None:
    box = guarded()
    client = connect(box, data=token(exp=NOW + 10))
    box.advance(10)
    client.ask("authResponse", response={"auth_method_name": "token", "auth_data": token(sub="bob")})
    assert client.closed and client.cnx.principal is not None
    assert client.cnx.principal.role == "ann"


def test_the_method_is_the_one_of_the_connection() -> None:
    """A password is rejected as a response to the challenge for an expired token, regardless of its declared method."""
    box = guarded()
    client = connect(box, data=token(sub="admin", exp=NOW + 10))
    box.advance(10)
    client.names()
    client.ask("authResponse", response={"auth_method_name": "basic", "auth_data": b"admin:123456"})
    assert is_refused(client)


@pytest.mark.parametrize("fields", [{}, {"response": {"auth_method_name": "token"}}])
def test_an_answer_without_anything_costs_the_connection(fields: dict[str, Any]) -> None:
    box = guarded()
    client = connect(box, data=token(exp=NOW + 10))
    box.advance(10)
    client.ask("authResponse", **fields)
    assert client.closed


def test_an_answer_nobody_asked_for_costs_the_connection() -> None:
    for box in (guarded(), Box()):
        client = connect(box, data=token(exp=NOW + 10))
        client.ask("authResponse", response={"auth_method_name": "token", "auth_data": token()})
        assert client.closed


def test_who_cannot_be_asked_is_dropped_when_the_token_expires() -> None:
    box = guarded()
    client = connect(box, data=token(exp=NOW + 100), refresh=False)
    box.advance(99.9)
    assert (client.names(), client.closed) == (["connected"], False)
    box.advance(0.1)
    assert (client.names(), client.closed) == ([], True)


def test_the_virtual_clock_lets_tokens_expire() -> None:
    box = guarded(brokerClock="virtual")
    client = connect(box, data=token(exp=NOW + 86_400), refresh=False)
    lasting = connect(box, data=token(), refresh=False)
    box.broker.advance_clock(2 * 86_400_000, box.now)
    box.turn()
    assert (client.closed, lasting.closed) == (True, False)
    assert is_refused(connect(box, data=token(exp=NOW + 86_400)))


def test_timers_of_connections_that_are_gone_do_not_stay() -> None:
    """Long-lived tokens leave no timers behind when their connections close."""
    box = guarded()
    for _ in range(3):
        client = connect(box, data=token(exp=NOW + 10**9))
        client.cnx.closed(box.now)
    box.advance(120)
    wall = box.broker.next_timer().wall
    assert wall is None or wall < box.wall + 10**9


def test_a_proxy_tells_on_whose_behalf_it_asks() -> None:
    client = connect(guarded(), data=token(sub="proxy"), original_principal="bob")
    assert client.names() == ["connected"]
    assert client.cnx.principal == Principal("proxy", "token", original="bob")


def test_pulsars_websocket_proxy_asks_for_itself() -> None:
    client = connect(guarded(), data=token(), original_principal="__websocket_dummy_original_principle")
    assert client.cnx.principal == Principal("ann", "token", original="__websocket_dummy_original_principle")


def test_what_a_proxy_hands_on_is_checked_where_that_is_wanted() -> None:
    box = guarded(authenticateOriginalAuthData=True)
    behind: dict[str, Any] = {"original_principal": "anybody", "original_auth_method": "token"}
    client = connect(box, data=token(sub="proxy"), original_auth_data=token(sub="bob").decode(), **behind)
    assert client.names() == ["connected"]
    assert client.cnx.principal == Principal("proxy", "token", original="bob")
    assert is_refused(connect(box, data=token(sub="proxy"), original_auth_data="x", **behind))
    assert is_refused(connect(box, data=token(sub="proxy"), **behind))
    # The proxy's own certificate does not authenticate its client.
    tls: dict[str, Any] = {"original_principal": "proxy", "original_auth_method": "tls"}
    assert is_refused(connect(box, "tls", certificate="proxy", **tls))


def test_what_a_proxy_handed_on_is_asked_for_again() -> None:
    box = guarded(authenticateOriginalAuthData=True)
    behind: dict[str, Any] = {"original_principal": "bob", "original_auth_method": "token"}
    expiring = token(sub="bob", exp=NOW + 10).decode()
    client = connect(box, data=token(sub="proxy"), original_auth_data=expiring, **behind)
    box.advance(10)
    assert client.names() == ["connected", "authChallenge"]
    client.ask("authResponse", response={"auth_method_name": "token", "auth_data": token(sub="bob", exp=NOW + 20)})
    assert client.cnx.principal == Principal("proxy", "token", (NOW + 20) * 1000, "bob")
    box.advance(10)
    assert client.names() == ["authChallenge"]
    client.ask("authResponse", response={"auth_method_name": "token", "auth_data": token(sub="proxy")})
    assert client.closed


def test_failures_are_counted_and_told_without_what_was_shown(caplog: pytest.LogCaptureFixture) -> None:
    box = guarded()
    connect(box, data=token(sub="ann", exp=NOW - 5))
    connect(box, "basic", b"admin:hunter2")
    connect(box, "basic", b"admin:123456")
    counts = box.broker.authentication
    assert counts is not None
    assert counts.failures["AuthenticationProviderToken", "token", "INVALID_TOKEN"] == 1
    assert counts.failures["AuthenticationProviderBasic", "basic", "INVALID_TOKEN"] == 1
    assert counts.successes["AuthenticationProviderBasic", "basic"] == 1
    first, second = (each.getMessage() for each in caplog.records)
    assert first == (
        "authentication of 127.0.0.1:1 as ann failed (method token): "
        "Failed to authentication token: invalid token: it has expired"
    )
    assert "as admin failed (method basic): Unknown user" in second
    assert "hunter2" not in caplog.text and base64.b64encode(SECRET).decode() not in caplog.text


def test_of_a_flood_not_all_is_told(caplog: pytest.LogCaptureFixture) -> None:
    box = guarded()
    for _ in range(LINES + 3):
        connect(box, "none")
    assert len(caplog.records) == LINES
    box.advance(PERIOD)
    connect(box, "none")
    assert caplog.records[-1].getMessage().endswith("(and 3 more that are not told)")


def pending(box: Box, password: bytes = b"123456") -> Client:
    """Return a client whose password verification is pending."""
    box.auto = False
    client = connect(box, "basic", b"admin:" + password)
    assert client.names() == [] and client.cnx.state is ConnectionState.AUTHENTICATING
    return client


def verify(box: Box, error: Exception | None = None) -> bool:
    for outbox in box.broker.take_waiting():  # no response before the verification
        assert not outbox.take()
    return box.verify(error)


def test_a_password_is_verified_outside_the_turn_and_once() -> None:
    box = guarded()
    client = pending(box)
    assert verify(box)
    assert client.names() == ["connected"] and client.cnx.principal == Principal("admin", "basic")
    assert connect(box, "basic", b"admin:123456").names() == ["connected"]  # immediately
    wrong = pending(box, b"1234567")
    assert verify(box) and is_refused(wrong)


def test_a_client_that_leaves_during_the_verification() -> None:
    box = guarded()
    client = pending(box)
    client.cnx.closed(box.now)
    assert verify(box)
    assert client.names() == [] and client.cnx.principal is None and not box.broker.cnxs
    assert "client-connected" not in {each.kind for each in box.broker.events.after(0, 100)}


def test_nothing_else_is_accepted_during_the_verification() -> None:
    box = guarded()
    client = pending(box)
    client.ask("lookupTopic", topic=TOPIC, request_id=1)
    box.flush()
    assert client.closed
    assert verify(box) and client.names() == [] and client.cnx.principal is None


def test_a_verification_that_lasts_too_long_costs_the_connection() -> None:
    box = guarded(keepAliveIntervalSeconds=30)
    client = pending(box)
    box.advance(30)
    assert client.closed


def test_a_verification_that_fails_is_refused_and_logged(caplog: pytest.LogCaptureFixture) -> None:
    box = guarded()
    client = pending(box)
    assert verify(box, MemoryError("no memory"))
    assert is_refused(client)
    assert "the verification has failed: no memory" in caplog.text


def test_a_password_that_a_proxy_hands_on_is_verified_too() -> None:
    box = guarded(authenticateOriginalAuthData=True)
    behind: dict[str, Any] = {"original_principal": "x", "original_auth_method": "basic"}
    client = connect(box, data=token(sub="proxy"), original_auth_data="admin:123456", **behind)
    assert client.names() == ["connected"]
    assert client.cnx.principal == Principal("proxy", "token", original="admin")
    box.auto = False
    lost = connect(box, data=token(sub="proxy"), original_auth_data="admin:wrong", **behind)
    lost.cnx.closed(box.now)
    assert verify(box) and lost.cnx.principal is None


def test_verifications_are_bounded_and_hosts_take_turns() -> None:
    checks, order = PasswordChecks(), list[str]()

    def ask(host: str) -> None:
        check = LongCheck(object(), lambda: True, lambda matches: Principal("ann", "basic"))
        checks.ask(host, check, lambda matches, error, now: order.append(host))

    for _ in range(WAITING_OF_HOST_MAX):
        ask("flood")
    with pytest.raises(Overloaded, match="100 from this host; try again"):
        ask("flood")
    ask("other")
    started = checks.take()
    assert len(started) == THREADS_MAX and checks.take() == []
    while started:
        checks.done(started.pop(0), True, BEGINNING)
        started += checks.take()
    assert order[:4].count("other") == 1 and len(order) == WAITING_OF_HOST_MAX + 1
    for number in range(WAITING_MAX):
        ask(f"host {number}")
    with pytest.raises(Overloaded, match="1000 passwords are waiting"):
        ask("one more")


def test_clients_with_the_same_password_share_a_verification() -> None:
    box = guarded()
    clients = [pending(box) for _ in range(ASKERS_MAX)]
    one_more = connect(box, "basic", b"admin:123456")
    assert one_more.take("error").error == ServerError.ServiceNotReady and one_more.closed
    assert box.verify() and not box.verify()
    assert all(client.names() == ["connected"] for client in clients)


def test_too_many_waiting_verifications_refuse_the_next() -> None:
    box = guarded()
    clients = [pending(box, b"%d" % number) for number in range(WAITING_OF_HOST_MAX)]
    box.auto = False
    one_more = connect(box, "basic", b"admin:123456")
    told = one_more.take("error")
    assert told.error == ServerError.ServiceNotReady and told.message.endswith("100 from this host; try again")
    assert one_more.closed
    while box.verify():
        pass
    assert all(client.closed for client in clients)
