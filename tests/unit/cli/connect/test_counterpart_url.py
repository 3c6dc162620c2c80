"""Given one URL of a broker, the derived one belongs to the same broker, or the command fails."""

import json
import os
import tempfile
import threading
from collections.abc import Iterator
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from typing import Any, ClassVar

import pytest

from pulsarbox.cli.common.exits import Misused, Unreachable
from pulsarbox.cli.connect import context_store, counterpart_url
from pulsarbox.cli.connect.credentials import credentials_for
from pulsarbox.cli.connect.target import TargetOptions, admin_target, service_target
from pulsarbox.cli.pulsar_admin.connecting import session_for
from pulsarbox.server.process.runtime_file import RuntimeFile


class Broker(BaseHTTPRequestHandler):
    """Admin API of a broker with the given responses."""

    answers: ClassVar[dict[str, Any]] = {}
    tokens: ClassVar[list[str | None]] = []

    def do_GET(self) -> None:
        self.tokens.append(self.headers.get("Authorization"))
        answer = self.answers.get(self.path, 404)
        body = json.dumps({"reason": "no"} if isinstance(answer, int) else answer).encode()
        self.send_response(answer if isinstance(answer, int) else 200)
        self.send_header("Content-Length", str(len(body)))
        self.end_headers()
        self.wfile.write(body)

    def log_message(self, format: str, *args: Any) -> None:  # noqa: A002 - name from the base class
        """Discard log messages."""


LOOKUP = "/lookup/v2/topic/persistent/public/default/pulsarbox"


def knows(**urls: str) -> None:
    """Set the brokers of the cluster."""
    Broker.answers = {"/admin/v2/clusters": ["c"], "/admin/v2/clusters/c": urls}


@pytest.fixture
def port(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[int]:
    """Port of a broker's Admin API, isolated from all other brokers."""
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("XDG_CONFIG_HOME", str(tmp_path))
    monkeypatch.delenv("XDG_RUNTIME_DIR", raising=False)
    monkeypatch.setattr(tempfile, "gettempdir", lambda: str(tmp_path))
    for name in [name for name in os.environ if name.startswith("PULSARBOX_")]:
        monkeypatch.delenv(name)
    Broker.tokens.clear()
    with ThreadingHTTPServer(("127.0.0.1", 0), Broker) as server:
        threading.Thread(target=server.serve_forever, daemon=True).start()
        monkeypatch.setattr(counterpart_url, "_WEB_PORT", server.server_port)
        yield server.server_port
        server.shutdown()


def test_the_variable_of_the_admin_url_alone_names_the_broker_for_messages_too(port: int) -> None:
    knows(brokerServiceUrl="pulsar://broker:6650", brokerServiceUrlTls="pulsar+ssl://broker:6651")
    url = f"http://127.0.0.1:{port}"
    found = service_target(environ={"PULSARBOX_ADMIN_URL": url})
    assert (found.url, found.origin) == ("pulsar://broker:6650", f"of {url}, PULSARBOX_ADMIN_URL")
    assert admin_target(environ={"PULSARBOX_ADMIN_URL": url}).url == url
    assert service_target(TargetOptions(admin_url=url), {}).url == "pulsar://broker:6650"


def test_a_broker_with_tls_only(port: int) -> None:
    knows(brokerServiceUrlTls="pulsar+ssl://broker:6651")
    assert service_target(TargetOptions(admin_url=f"http://127.0.0.1:{port}"), {}).url == "pulsar+ssl://broker:6651"


def test_where_both_are_named_both_are_taken_as_they_are(port: int) -> None:
    environ = {"PULSARBOX_ADMIN_URL": f"http://127.0.0.1:{port}", "PULSARBOX_SERVICE_URL": "pulsar://other:1"}
    assert service_target(environ=environ).url == "pulsar://other:1"
    assert service_target(TargetOptions("pulsar://third:1"), environ).url == "pulsar://third:1"
    assert Broker.tokens == []


@pytest.mark.parametrize("refused", [401, 403, 404])
def test_a_role_that_may_not_read_clusters_looks_a_topic_up(port: int, refused: int) -> None:
    Broker.answers = {
        "/admin/v2/clusters": ["c"],
        "/admin/v2/clusters/c": refused,
        LOOKUP: {"brokerUrl": "pulsar://broker:1", "brokerUrlSsl": ""},
    }
    assert service_target(TargetOptions(admin_url=f"http://127.0.0.1:{port}"), {}).url == "pulsar://broker:1"


def test_of_several_clusters_it_is_that_of_the_broker(port: int) -> None:
    Broker.answers = {"/admin/v2/clusters": ["c", "d"], LOOKUP: {"brokerUrl": "pulsar://broker:1"}}
    assert service_target(TargetOptions(admin_url=f"http://127.0.0.1:{port}"), {}).url == "pulsar://broker:1"


def test_a_broker_that_does_not_tell_is_refused_with_what_to_do(port: int) -> None:
    url = f"http://127.0.0.1:{port}"
    Broker.answers = {"/admin/v2/clusters": 403, LOOKUP: 403}
    with pytest.raises(Misused) as refused:
        service_target(environ={"PULSARBOX_ADMIN_URL": url})
    assert str(refused.value) == (
        f"the service URL of {url} (PULSARBOX_ADMIN_URL) is unknown: the Admin API responds with HTTP 403: no;"
        " set it with --url, PULSARBOX_SERVICE_URL or in the context"
    )
    knows()
    Broker.answers[LOOKUP] = {"brokerUrl": ""}
    with pytest.raises(Misused, match=r"the service URL of .* is unknown: the broker reports none"):
        service_target(environ={"PULSARBOX_ADMIN_URL": url})


def test_a_broker_that_cannot_be_asked_is_unreachable() -> None:
    with pytest.raises(Unreachable, match=r"^cannot connect to http://127\.0\.0\.1:1 \(PULSARBOX_ADMIN_URL\)"):
        service_target(environ={"PULSARBOX_ADMIN_URL": "http://127.0.0.1:1"})


@pytest.mark.parametrize(
    ("told", "meant"),
    [
        ("pulsar://localhost:7", "pulsar://far:7"),
        ("pulsar://0.0.0.0:7", "pulsar://far:7"),
        ("pulsar://[::1]:7", "pulsar://far:7"),
        ("pulsar://127.0.0.1", "pulsar://far"),
        ("pulsar://broker:7,localhost:8", "pulsar://broker:7,far:8"),
    ],
)
def test_localhost_of_another_machine_is_that_machine(monkeypatch: pytest.MonkeyPatch, told: str, meant: str) -> None:
    monkeypatch.setattr(counterpart_url, "_asked", lambda admin, seconds: (told, ""))
    assert service_target(TargetOptions(admin_url="http://far:8080"), {}).url == meant
    assert service_target(TargetOptions(admin_url="http://127.0.0.1:8080"), {}).url == told


def test_the_service_url_alone_means_the_usual_port_of_that_host_if_it_is_that_broker(port: int) -> None:
    knows(brokerServiceUrl="pulsar://container:6650")
    found = admin_target(environ={"PULSARBOX_SERVICE_URL": "pulsar://127.0.0.1:6650"})
    assert found.url == f"http://127.0.0.1:{port}"
    assert found.origin == "of pulsar://127.0.0.1:6650, PULSARBOX_SERVICE_URL"
    with pytest.raises(Misused) as refused:
        admin_target(TargetOptions("pulsar://127.0.0.1:16650"), {})
    assert str(refused.value) == (
        "the Admin API of pulsar://127.0.0.1:16650 (--url) is unknown: "
        f"http://127.0.0.1:{port} belongs to another broker, pulsar://container:6650; set it with --admin-url,"
        " PULSARBOX_ADMIN_URL or in the context"
    )


def test_the_service_url_of_a_box_here_means_that_box(port: int) -> None:
    running = RuntimeFile(7, 1, "1", "pulsar://far:1", "http://far:2", "127.0.0.1", 16650, 18080, "/data")
    named = service_target(TargetOptions("pulsar://localhost:16650"), {})
    assert counterpart_url.admin_url_of(named, [running]) == ("http://127.0.0.1:18080", False)
    far = service_target(TargetOptions("pulsar://far:16650"), {})
    with pytest.raises(Misused, match="http://far:"):
        counterpart_url.admin_url_of(far, [running], seconds=0.5)


SERVICE = "pulsar://127.0.0.1:6650"
BASIC = '{"userId":"ann","password":"secret"}'


@pytest.mark.parametrize(
    ("options", "environ"),
    [
        ({"token": "token:secret"}, {}),
        ({"auth_plugin": "token", "auth_params": "token:secret"}, {}),
        ({"auth_plugin": "basic", "auth_params": BASIC}, {}),
        ({}, {"PULSARBOX_TOKEN": "secret"}),
        ({}, {"PULSARBOX_AUTH_PLUGIN": "basic", "PULSARBOX_AUTH_PARAMS": BASIC}),
    ],
)
def test_no_secret_is_sent_to_a_port_that_nobody_named(
    port: int, monkeypatch: pytest.MonkeyPatch, options: dict[str, str], environ: dict[str, str]
) -> None:
    """A server that claims to be the broker does not receive the token either."""
    knows(brokerServiceUrl=SERVICE)
    for name, value in environ.items():
        monkeypatch.setenv(name, value)
    with pytest.raises(Misused) as refused:
        admin_target(TargetOptions(SERVICE, options=options), {})
    assert str(refused.value) == (
        f"credentials are not sent to http://127.0.0.1:{port}: its port is a guess (of {SERVICE}, --url);"
        " set the Admin URL with --admin-url, PULSARBOX_ADMIN_URL or in the context"
    )
    assert Broker.tokens == [], "nothing was asked"
    named = admin_target(TargetOptions(SERVICE, f"http://127.0.0.1:{port}", options=options), {})
    assert named.credentials().secret, "a server that is named gets it"


def test_a_context_with_a_service_url_alone_sends_its_secret_to_no_other_port(port: int) -> None:
    knows(brokerServiceUrl=SERVICE)
    context_store.save({"current": "a", "contexts": {"a": {"url": SERVICE, "auth_params": "token:secret"}}})
    with pytest.raises(Misused, match="credentials are not sent to"):
        admin_target(environ={"XDG_CONFIG_HOME": os.environ["XDG_CONFIG_HOME"]})
    assert Broker.tokens == []


def test_without_secrets_the_usual_port_is_asked(port: int) -> None:
    knows(brokerServiceUrl=SERVICE)
    certificate = {"auth_plugin": "tls", "auth_params": "tlsCertFile:a.pem,tlsKeyFile:a.key"}
    found = admin_target(TargetOptions(SERVICE, options=certificate), {})
    assert Broker.tokens == [None, None]
    assert found.credentials().certificate == "a.pem", "its key is not sent"


def test_the_secrets_of_client_conf_are_for_named_servers_too(
    port: int, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    knows(brokerServiceUrl=SERVICE)
    conf = tmp_path / "client.conf"
    conf.write_text("authPlugin=token\nauthParams=token:secret\n")
    monkeypatch.setenv("PULSARBOX_SERVICE_URL", SERVICE)
    with pytest.raises(Misused, match="credentials are not sent to"), session_for({"client_conf": conf}):
        pass
    assert Broker.tokens == [None, None], "only its service URL was asked"


def test_a_context_is_one_broker(port: int) -> None:
    knows(brokerServiceUrl="pulsar://broker:6650")
    url = f"http://127.0.0.1:{port}"
    environ = {"XDG_CONFIG_HOME": os.environ["XDG_CONFIG_HOME"]}
    context_store.save({"current": "a", "contexts": {"a": {"admin_url": url, "auth_params": "token:abc"}}})
    found = service_target(environ=environ)
    assert (found.url, found.origin) == ("pulsar://broker:6650", f"of {url}, the current context")
    assert Broker.tokens == ["Bearer abc", "Bearer abc"], "with the credentials of the context"
    assert credentials_for({}, {}, found).token == "abc", "which are for both ports of its broker"
    both = {"url": "pulsar://context:1", "admin_url": "http://context:2"}
    context_store.save({"current": "a", "contexts": {"a": both}})
    assert (service_target(environ=environ).url, admin_target(environ=environ).url) == tuple(both.values())
    environ["PULSARBOX_ADMIN_URL"] = url
    assert service_target(environ=environ).url == "pulsar://broker:6650", "not that of the context"
