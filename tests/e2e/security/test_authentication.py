"""Authentication: the official client with tokens and passwords, expiring tokens, the commands, and the log."""

import base64
import itertools
import json
import os
import stat
import threading
import time
import urllib.error
import urllib.request
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import bcrypt
import pulsar
import pytest
from click.testing import CliRunner

from pulsarbox import PulsarBox
from pulsarbox.cli.main import main
from pulsarbox.client.client import Client
from pulsarbox.client.credentials import Credentials
from pulsarbox.client.multi_topic_consumer import MultiTopicConsumer, Subscribing
from pulsarbox.embed.errors import BoxError
from tests.e2e import commands
from tests.e2e.clients import EARLIEST, connect, numbered, receive, send_all, take, until
from tests.tools.box import PULSARBOX, BoxProcess
from tests.unit.broker.security.signing import GUARDED, SECRET, named, token

pytestmark = pytest.mark.skipif("E2E_URL" in os.environ, reason="starts boxes of its own")

TOPIC = "persistent://public/default/guarded"
_names = itertools.count()


def valid(**claims: Any) -> str:
    return token(**claims).decode()


@pytest.fixture(scope="module")
def guarded() -> Iterator[PulsarBox]:
    """Start a box with authentication but without authorization, and with a manual clock."""
    with PulsarBox(GUARDED, clock="virtual", anonymousUserRole="nobody") as box:
        yield box


@pytest.fixture(scope="module")
def strict() -> Iterator[PulsarBox]:
    """Start a box that rejects anonymous clients."""
    with PulsarBox(GUARDED) as box:
        yield box


def exchange(client: Any) -> None:
    """Publish and receive some messages."""
    topic = f"{TOPIC}-{next(_names)}"
    consumer = client.subscribe(topic, "s", initial_position=EARLIEST)
    send_all(client.create_producer(topic), numbered(3))
    assert take(consumer, 3) == numbered(3)


@pytest.mark.parametrize(
    "shown",
    [
        pulsar.AuthenticationToken(valid(exp=int(time.time()) + 10**8)),
        pulsar.AuthenticationToken(valid),
        pulsar.AuthenticationBasic("admin", "123456"),
        None,
    ],
    ids=["token", "supplier", "basic", "nobody"],
)
@pytest.mark.parametrize("binary", [True, False], ids=["pulsar", "http"])
def test_the_official_client_is_let_in(guarded: PulsarBox, shown: Any, binary: bool) -> None:
    url = guarded.service_url if binary else guarded.admin_url  # its lookup uses HTTP
    client = connect(url, authentication=shown)
    exchange(client)
    client.close()


@pytest.mark.parametrize(
    "shown",
    [
        pulsar.AuthenticationToken("token"),
        pulsar.AuthenticationToken(valid(exp=1)),
        pulsar.AuthenticationToken(valid(key=b"x" * 32)),
        pulsar.AuthenticationBasic("admin", "1234567"),
        pulsar.AuthenticationBasic("nobody", "123456"),
    ],
    ids=["no token", "expired", "another key", "another password", "another user"],
)
def test_the_official_client_is_told_that_it_proves_nothing(strict: PulsarBox, shown: Any) -> None:
    """Over HTTP. On the binary port the client accepts only CONNECTED, and retries until its own timeout."""
    client = connect(strict.admin_url, authentication=shown)
    with pytest.raises(pulsar.ConnectError):  # the client's error for 401
        client.create_producer(TOPIC)
    client.close()


def in_an_hour(box: PulsarBox) -> str:
    """Return a token that expires in an hour by the clock of the box."""
    return valid(exp=int(box.clock.now().timestamp()) + 3600)


def test_a_token_is_renewed_before_its_end_costs_anything(guarded: PulsarBox) -> None:
    """The client requests a new token from its supplier; connection, producer and consumer remain."""
    asked: list[str] = []

    def supply() -> str:
        asked.append(in_an_hour(guarded))
        return asked[-1]

    client = connect(guarded.service_url, authentication=pulsar.AuthenticationToken(supply))
    topic = f"{TOPIC}-{next(_names)}"
    consumer = client.subscribe(topic, "s")
    producer = client.create_producer(topic)
    producer.send(b"0")
    since = connected_since(guarded, topic)
    for number in range(1, 4):
        before = len(asked)
        guarded.clock.advance(hours=1)
        until(lambda before=before: len(asked) > before)  # type: ignore[misc] # it is its own default
        producer.send(b"%d" % number)
    assert take(consumer, 4) == numbered(4)
    assert connected_since(guarded, topic) == since
    client.close()


def connected_since(box: PulsarBox, topic: str) -> Any:
    path = "/admin/v2/" + topic.replace("://", "/") + "/stats"
    return [each["connectedSince"] for each in box.admin("GET", path)["publishers"]]


def test_a_token_that_is_not_renewed_ends_the_connection(guarded: PulsarBox) -> None:
    client = connect(guarded.service_url, authentication=pulsar.AuthenticationToken(in_an_hour(guarded)))
    topic = f"{TOPIC}-{next(_names)}"
    client.subscribe(topic, "s")
    guarded.clock.advance(hours=1)
    path = "/admin/v2/" + topic.replace("://", "/") + "/stats"
    until(lambda: guarded.admin("GET", path)["subscriptions"]["s"]["consumers"] == [])
    client.shutdown()


def test_the_program_that_has_the_box_needs_no_token(guarded: PulsarBox) -> None:
    client = connect(guarded.service_url, authentication=pulsar.AuthenticationToken(valid()))
    topic = f"{TOPIC}-{next(_names)}"
    client.create_producer(topic).send(b"x")
    assert [each.payload for each in guarded.messages(topic)] == [b"x"]
    assert "public" in guarded.admin("GET", "/admin/v2/tenants")
    client.close()


def test_a_program_is_told_what_cannot_work() -> None:
    with pytest.raises(BoxError, match="the token provider has no key"):
        PulsarBox(authenticationEnabled=True, authenticationProviders="token").start()


@pytest.fixture
def own(tmp_path: Path) -> Iterator[BoxProcess]:
    """Start a box in a process, with users in files."""
    (tmp_path / "secret.key").write_bytes(SECRET)
    (tmp_path / "htpasswd").write_text("admin:$apr1$FG4AO6aX$KGYPuMoLUou3i6vUkPUUf.\n")
    (tmp_path / "box.toml").write_text(
        "[authentication]\n"
        'authenticationEnabled = true\nauthenticationProviders = "token,basic"\n'
        f'tokenSecretKey = "{tmp_path}/secret.key"\nbasicAuthConf = "{tmp_path}/htpasswd"\n'
        '[logging]\nlogLevel = "debug"\n'
    )
    words = [word for word in PULSARBOX if word not in ("--log-level", "warning")]
    box = BoxProcess(tmp_path / "data", [*words, "--config", str(tmp_path / "box.toml")])
    try:
        yield box
    finally:
        box.kill()


def run(*words: str, code: int = 0, variables: dict[str, str] | None = None) -> str:
    """Return the stdout and stderr of a command."""
    unset: dict[str, str | None] = {name: None for name in os.environ if name.startswith("PULSARBOX_")}
    done = CliRunner().invoke(main, words, env={**unset, **(variables or {})})
    assert done.exit_code == code, done.output
    return done.output


def test_commands_prove_who_asks_and_nobody_reads_how(own: BoxProcess, tmp_path: Path) -> None:
    own.start()
    until((own.data / "RUNNING").exists)  # commands on the data directory read this file
    ann = tmp_path / "ann.token"
    run("token", "create", "ann", "--key", str(tmp_path / "secret.key"), "--to", str(ann))
    here, service, web = ["--data-dir", str(own.data)], ["--url", own.url], ["--admin-url", own.web_url]
    # On its data directory, without credentials.
    run("produce", "t", "one", *here)
    assert "one" in run("peek", "t", *here) and "t" in run("topic", "list", *here)
    assert "ok" in run("status", *here)
    # Remote.
    assert "--token-file" in run("produce", "t", "x", *service, code=5)
    assert "--token-file" in run("topic", "list", *web, code=5)
    run("produce", "t", "two", *service, "--token-file", str(ann))
    assert "t" in run("topic", "list", *web, variables={"PULSARBOX_TOKEN": f"file:{ann}"})
    basic = {"PULSARBOX_AUTH_PLUGIN": "basic", "PULSARBOX_AUTH_PARAMS": '{"userId":"admin","password":"123456"}'}
    assert "two" in run("consume", "t", "--until", "end", *service, variables=basic)
    run("tenant", "create", "acme", *web, variables=basic)
    wrong = basic | {"PULSARBOX_AUTH_PARAMS": '{"userId":"admin","password":"hunter2"}'}
    assert "--token-file" in run("tenant", "list", *web, code=5, variables=wrong)
    assert "public" in run("admin", "--token", f"file:{ann}", *web, "tenants", "list")
    secret = (own.data / "OPERATOR").read_text()
    assert stat.S_IMODE((own.data / "OPERATOR").stat().st_mode) == 0o600
    assert own.stop() == 0
    assert not (own.data / "OPERATOR").exists()
    said = own.log.read_text()
    assert "'admin' at 127.0.0.1: PUT /admin/v2/tenants/acme: done" in said and "authentication of 127.0.0.1" in said
    encoded = base64.b64encode(b"admin:123456").decode()
    for hidden in (secret, ann.read_text().strip(), "hunter2", "123456", encoded, "$apr1$", SECRET.decode()):
        assert hidden not in said


def test_a_configuration_that_cannot_work_does_not_start(own: BoxProcess, tmp_path: Path) -> None:
    (tmp_path / "htpasswd").write_text("admin:123456\n")
    config = ["--config", str(tmp_path / "box.toml")]
    started = commands.run("start", *config, "--data-dir", str(own.data), code=2).stderr.decode()
    for said in (started, run("doctor", *config, "-o", "json", code=1)):
        assert "basicAuthConf" in said and "line 1, user admin" in said and "123456" not in said
    assert "line 1, user admin" in run("config", "check", str(tmp_path / "box.toml"), code=1)
    assert not own.data.exists()


def test_settings_are_shown_without_secrets(tmp_path: Path) -> None:
    hidden = base64.b64encode(SECRET).decode()
    (tmp_path / "box.toml").write_text(f'[authentication]\ntokenSecretKey = "{hidden}"\nbasicAuthConf = "file:/x"\n')
    shown = json.loads(run("config", "show", "--config", str(tmp_path / "box.toml"), "-o", "json"))
    assert shown["tokenSecretKey"]["value"] == "..." and shown["basicAuthConf"]["value"] == "file:/x"
    with PulsarBox(GUARDED) as box:
        runtime = box.admin("GET", "/admin/v2/brokers/configuration/runtime")
    assert runtime["tokenSecretKey"] == runtime["basicAuthConf"] == "..."
    assert runtime["authenticationEnabled"] == "true"


def test_a_token_of_a_file_is_read_again(guarded: PulsarBox, tmp_path: Path) -> None:
    """A changed token file needs no signal to the client, ours or the official one."""
    file = tmp_path / "token"
    file.write_text(in_an_hour(guarded))
    client = connect(guarded.service_url, authentication=pulsar.Authentication("token", f"file://{file}"))
    topic = f"{TOPIC}-{next(_names)}"
    consumer = client.subscribe(topic, "s")
    own = Client([("127.0.0.1", guarded.port)], credentials=Credentials(token_file=str(file)))
    theirs = MultiTopicConsumer(own, Subscribing("ours"))
    (part,) = theirs.add(topic)
    guarded.clock.advance(minutes=59)
    file.write_text(in_an_hour(guarded))
    guarded.clock.advance(minutes=2)
    client.create_producer(topic).send(b"x")
    assert receive(consumer).data() == b"x"
    until(lambda: own.turn(0.1) and part.has_some)
    assert own.comebacks == []
    own.close()
    client.close()


def test_a_box_that_runs_takes_the_users_of_a_changed_file(tmp_path: Path) -> None:
    file = tmp_path / "users"
    hashed = "$apr1$FG4AO6aX$KGYPuMoLUou3i6vUkPUUf."
    file.write_text(f"admin:{hashed}\n")
    with PulsarBox(GUARDED, basicAuthConf=str(file), authenticationRefreshCheckSeconds=1) as box:
        exchange(connect(box.service_url, authentication=pulsar.AuthenticationBasic("admin", "123456")))
        file.write_text(f"another:{hashed}\n")
        until(lambda: status_of(box, "another") == 200)
        assert status_of(box, "admin") == 401


def test_passwords_are_hashed_in_threads_of_their_own_and_once(monkeypatch: pytest.MonkeyPatch) -> None:
    threads: list[str] = []
    hashpw = bcrypt.hashpw

    def recorded(password: bytes, salt: bytes) -> bytes:
        threads.append(threading.current_thread().name)
        return hashpw(password, salt)

    hashed = hashpw(b"123456", bcrypt.gensalt(4))
    with PulsarBox(GUARDED, basicAuthConf=named(b"admin:" + hashed)) as box:
        monkeypatch.setattr(bcrypt, "hashpw", recorded)
        exchange(connect(box.service_url, authentication=pulsar.AuthenticationBasic("admin", "123456")))
        assert (status_of(box, "admin"), status_of(box, "another")) == (200, 401)
    assert threads == ["password"] * 2  # admin's at CONNECT, then the other user's over HTTP


def status_of(box: PulsarBox, user: str) -> int:
    """Return the status of a request with the user's password."""
    credentials = base64.b64encode(f"{user}:123456".encode()).decode()
    request = urllib.request.Request(f"{box.admin_url}/admin/v2/tenants")
    request.add_header("Authorization", f"Basic {credentials}")
    try:
        with urllib.request.urlopen(request, timeout=10) as answer:
            return int(answer.status)
    except urllib.error.HTTPError as error:
        return error.code
