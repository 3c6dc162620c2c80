"""Connections of proxies on behalf of clients, and of roles that are not proxies."""

from typing import Any

import pytest

from pulsarbox.broker.security.authorization import WEBSOCKET
from pulsarbox.errors import AuthorizationError
from tests.unit.broker.playbook import Client
from tests.unit.broker.roles import TOPIC, guarded_box
from tests.unit.broker.security.signing import token


def connected(role: str, **fields: Any) -> Client:
    """Return a client that has sent CONNECT with a token of the role."""
    client = guarded_box(proxyRoles="proxy", superUserRoles="root,proxy").client(connect=False)
    shown = {"auth_method_name": "token", "auth_data": token(sub=role)}
    client.ask("connect", client_version="test", protocol_version=21, **shown | fields)
    return client


@pytest.mark.parametrize(
    ("role", "fields", "reason"),
    [
        ("proxy", {}, "has to say for whom it asks"),
        ("proxy", {"original_principal": "proxy"}, "is a proxy itself"),
        ("producer", {"original_principal": "root"}, "is no proxy"),
        ("root", {"proxy_version": "4.2.4"}, "Must not set proxyVersion"),
    ],
)
def test_roles_that_do_not_go_together_are_refused_at_once(role: str, fields: dict[str, Any], reason: str) -> None:
    client = connected(role, **fields)
    error = client.take("error")
    assert (error.request_id, error.error) == (2**64 - 1, AuthorizationError.server_error)
    assert error.message.startswith("Invalid roles.")
    assert reason in error.message
    assert client.closed


@pytest.mark.parametrize(
    ("role", "original", "allowed"),
    [
        ("proxy", "producer", True),
        ("proxy", "stranger", False),
        ("proxy", "root", True),
        ("proxy", WEBSOCKET, True),
        ("producer", "", True),
        ("stranger", "", False),
    ],
)
def test_what_is_asked_by_a_proxy_both_must_be_allowed(role: str, original: str, allowed: bool) -> None:
    client = connected(role, **{"original_principal": original} if original else {})
    client.take("connected")
    reply = client.producer(topic=TOPIC)
    assert hasattr(reply, "producer_name") is allowed


def test_a_proxy_may_say_its_version() -> None:
    connected("proxy", original_principal="producer", proxy_version="4.2.4").take("connected")
