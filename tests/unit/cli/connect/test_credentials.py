"""Credentials of commands: precedence of their sources, and secrecy."""

import json
from pathlib import Path
from typing import Any

import pytest

from pulsarbox.cli.common.exits import Misused
from pulsarbox.cli.connect import context_store
from pulsarbox.cli.connect.credentials import credentials_for
from pulsarbox.cli.connect.target import CONTEXT_ORIGIN, DEFAULT_ORIGIN, Target
from pulsarbox.client.credentials import Credentials
from pulsarbox.errors import AuthenticationError


@pytest.fixture(autouse=True)
def home(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.setenv("XDG_CONFIG_HOME", str(tmp_path))
    for name in ("TOKEN", "AUTH_PLUGIN", "AUTH_PARAMS", "CONTEXT"):
        monkeypatch.delenv(f"PULSARBOX_{name}", raising=False)
    return tmp_path


def target(origin: str, operator: str = "") -> Target:
    by_context = origin == CONTEXT_ORIGIN
    return Target("http://h:1", origin, (("h", 1),), operator=operator, by_context=by_context)


def in_use(**fields: str) -> None:
    context_store.save({"current": "c", "contexts": {"c": fields}})


def shown(found: Credentials) -> tuple[str, bytes]:
    return found.proof()


def test_the_places_in_their_order(monkeypatch: pytest.MonkeyPatch) -> None:
    file = {"authPlugin": "token", "authParams": "token:conf"}
    here = target(CONTEXT_ORIGIN, "own")
    assert shown(credentials_for({}, {}, here)) == ("operator", b"own")
    assert shown(credentials_for({}, file, here)) == ("token", b"conf")
    in_use(auth_plugin="token", auth_params="token:context")
    assert shown(credentials_for({}, file, here)) == ("token", b"context")
    monkeypatch.setenv("PULSARBOX_AUTH_PARAMS", "token:params")
    assert shown(credentials_for({}, file, here)) == ("token", b"params")
    monkeypatch.setenv("PULSARBOX_TOKEN", "variable")
    assert shown(credentials_for({}, file, here)) == ("token", b"variable")
    assert shown(credentials_for({"auth_plugin": "basic", "auth_params": "userId:u,password:p"}, file, here)) == (
        "basic",
        b"u:p",
    )


@pytest.mark.parametrize("origin", ["--url", "--admin-url", "PULSARBOX_SERVICE_URL", "the box on data"])
def test_what_a_context_has_is_not_sent_to_others(origin: str) -> None:
    """The token of a context's broker is not sent to a different broker named on the command line."""
    in_use(url="pulsar://h:1", auth_plugin="token", auth_params="token:context")
    assert credentials_for({}, {}, target(origin)).method == ""
    assert shown(credentials_for({}, {}, target(DEFAULT_ORIGIN))) == ("token", b"context")


def test_a_token_in_a_file_is_read_each_time(home: Path) -> None:
    file = home / "token"
    file.write_text("token:one\n")
    found = credentials_for({"token_file": str(file)}, {}, None)
    assert shown(found) == ("token", b"one")
    file.write_text("two")
    assert found.headers() == {"X-Pulsar-Auth-Method-Name": "token", "Authorization": "Bearer two"}
    file.unlink()
    with pytest.raises(AuthenticationError, match="cannot read the token file"):
        found.proof()
    with pytest.raises(Misused, match="cannot read"):
        credentials_for({"token_file": str(file)}, {}, None)


@pytest.mark.parametrize("plugin", ["basic", "org.apache.pulsar.client.impl.auth.AuthenticationBasic"])
def test_a_password_may_stand_in_a_file(home: Path, plugin: str) -> None:
    (home / "who").write_text(json.dumps({"userId": "u", "password": "p:q"}))
    found = credentials_for({"auth_plugin": plugin, "auth_params": f"file:{home}/who"}, {}, None)
    assert shown(found) == ("basic", b"u:p:q")
    assert found.headers()["Authorization"] == "Basic dTpwOnE="


def test_the_operators_header() -> None:
    headers = credentials_for({}, {}, target("the box on data", "abc")).headers()
    assert headers == {"X-Pulsar-Auth-Method-Name": "operator", "Authorization": "Pulsarbox abc"}


def test_nobody_shows_nothing() -> None:
    assert credentials_for({}, {}, target("--url")).headers() == {}


@pytest.mark.parametrize("found", [Credentials(token="abc"), Credentials(basic="u:abc"), Credentials(operator="abc")])
def test_the_text_of_credentials_has_no_secret(found: Credentials) -> None:
    assert "abc" not in repr(found) and "abc" not in repr(target("--url", "abc"))


def test_what_is_asked_says_how_to_say_who_one_is() -> None:
    from pulsarbox.cli.common.exits import ending, ending_of_status

    told: list[Any] = [ending(AuthenticationError("Failed to authenticate")), ending_of_status(401, "No")]
    for each in told:
        assert each.exit_code == 5 and "--token-file" in each.message
    assert "--token-file" not in ending_of_status(403, "No").message
