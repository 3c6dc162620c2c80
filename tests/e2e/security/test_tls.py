"""TLS and mutual TLS on both ports: the official client, the commands, and certificates replaced at runtime."""

import contextlib
import json
import os
import socket
import ssl
import urllib.error
import urllib.request
from collections.abc import Iterator
from datetime import timedelta
from pathlib import Path
from typing import Any, NamedTuple
from urllib.parse import urlsplit

import pulsar
import pytest
from click.testing import CliRunner, Result

from pulsarbox import PulsarBox
from pulsarbox.cli.main import main
from pulsarbox.client.client import Client
from pulsarbox.client.credentials import Credentials
from pulsarbox.config.setting import OFF
from pulsarbox.protocol.PulsarApi_pb2 import BaseCommand, CommandLookupTopic
from tests.e2e import commands
from tests.e2e.clients import EARLIEST, connect, receive
from tests.tools.box import reserved_port
from tests.tools.certificates import Authority, Pair

pytestmark = pytest.mark.skipif("E2E_URL" in os.environ, reason="starts boxes of its own")


class Secure(NamedTuple):
    """Box with TLS, and its certificate authority."""

    box: PulsarBox
    authority: Authority
    own: Pair

    @property
    def trust(self) -> dict[str, Any]:
        """Return the official client's trust settings."""
        return {"tls_trust_certs_file_path": str(self.authority.file), "tls_validate_hostname": True}

    def web(self, path: str, client: Pair | None = None) -> bytes:
        """Return the response over HTTPS."""
        context = ssl.create_default_context(cafile=str(self.authority.file))
        if client is not None:
            context.load_cert_chain(client.certificate, client.key)
        with urllib.request.urlopen(self.box.admin_url_tls + path, timeout=30, context=context) as answer:
            body: bytes = answer.read()
            return body

    def shown(self) -> str:
        """Return the common name of the server certificate on a new connection."""
        url = urlsplit(self.box.service_url_tls)
        context = ssl.create_default_context(cafile=str(self.authority.file))
        with (
            socket.create_connection((url.hostname or "", url.port or 0), timeout=30) as plain,
            context.wrap_socket(plain, server_hostname="localhost") as wrapped,
        ):
            subject: Any = (wrapped.getpeercert() or {})["subject"]
            return str(dict(part[0] for part in subject)["commonName"])


@contextlib.contextmanager
def secure_box(folder: Path, **settings: Any) -> Iterator[Secure]:
    authority = Authority(folder / "tls")
    own = authority.signs("localhost")
    files: dict[str, Any] = {"tlsCertificateFilePath": str(own.certificate), "tlsKeyFilePath": str(own.key)}
    files["tlsTrustCertsFilePath"] = str(authority.file)
    ports: dict[str, Any] = {"brokerServicePortTls": 0, "webServicePortTls": 0, "bindAddress": "localhost"}
    with PulsarBox(ports | files | settings) as box:
        yield Secure(box, authority, own)


@pytest.fixture(scope="module")
def secure(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Secure]:
    with secure_box(tmp_path_factory.mktemp("secure")) as found:
        yield found


def converse(client: Any, topic: str, size: int = 10) -> None:
    """Produce and consume, including a message of several records."""
    consumer = client.subscribe(topic, "s", initial_position=EARLIEST)
    producer = client.create_producer(topic)
    for payload in (b"first", b"x" * size):
        producer.send(payload)
        assert receive(consumer).data() == payload
    client.close()


@pytest.mark.parametrize("scheme", ["pulsar+ssl", "https", "pulsar", "http"])
def test_the_official_client_on_every_port(secure: Secure, scheme: str) -> None:
    box = secure.box
    urls = (box.service_url_tls, box.admin_url_tls, box.service_url, box.admin_url)
    url = next(each for each in urls if each.startswith(f"{scheme}:"))
    converse(connect(url, **secure.trust), f"every-{scheme.replace('+', '-')}", 3_000_000)


def test_a_client_trusts_only_whom_it_knows(secure: Secure, tmp_path: Path) -> None:
    stranger = Authority(tmp_path, "stranger")
    trust = {"tls_trust_certs_file_path": str(stranger.file)}
    client = connect(secure.box.service_url_tls, operation_timeout_seconds=1, **trust)
    with pytest.raises(pulsar.PulsarException):
        client.create_producer("t")
    client.close()


def test_a_certificate_is_who_one_is(tmp_path: Path) -> None:
    with secure_box(tmp_path, authenticationEnabled=True, authenticationProviders="tls") as found:
        admin = found.authority.signs("admin")
        shows = pulsar.AuthenticationTLS(str(admin.certificate), str(admin.key))
        converse(connect(found.box.service_url_tls, authentication=shows, **found.trust), "t")
        assert found.web("/admin/v2/tenants", admin) == b'["public","pulsar"]'
        for url, more in ((found.box.service_url_tls, found.trust), (found.box.service_url, {})):
            client = connect(url, operation_timeout_seconds=1, **more)
            with pytest.raises(pulsar.PulsarException):  # the C++ client retries until its timeout
                client.create_producer("t")
            client.close()
        with pytest.raises(urllib.error.HTTPError, match="401"):
            found.web("/admin/v2/tenants")


def test_a_required_certificate_has_to_be_a_good_one(tmp_path: Path) -> None:
    with secure_box(tmp_path, tlsRequireTrustedClientCertOnConnect=True) as found:
        assert found.web("/admin/v2/brokers/health", found.authority.signs("somebody")) == b"ok"
        strange = Authority(tmp_path / "strange", "stranger").signs("admin")
        for nobody in (None, strange):
            with pytest.raises(OSError, match=r"(?i)alert|closed|reset|eof|broken pipe"):
                found.web("/admin/v2/brokers/health", nobody)


def test_a_new_certificate_is_shown_to_new_connections_and_the_old_ones_go_on(tmp_path: Path) -> None:
    with secure_box(tmp_path, brokerClock="virtual") as found:
        client = connect(found.box.service_url_tls, **found.trust)
        consumer = client.subscribe("t", "s", initial_position=EARLIEST)
        producer = client.create_producer("t")
        assert found.shown() == "localhost"
        found.authority.signs("renewed", file="localhost", key="another key")
        found.box.clock.advance(timedelta(minutes=5))
        assert found.shown() == "renewed"
        found.own.certificate.write_text("broken")
        found.box.clock.advance(timedelta(minutes=5))
        assert found.shown() == "renewed"
        producer.send(b"as before")
        assert receive(consumer).data() == b"as before"
        client.close()


def test_a_listener_has_a_port_with_tls_of_its_own(tmp_path: Path, request: pytest.FixtureRequest) -> None:
    port = reserved_port(request.node, "127.0.0.1")
    listeners = {"advertisedListeners": "in:pulsar://inside:1,in:pulsar+ssl://inside:2,out:pulsar+ssl://outside:3"}
    with secure_box(tmp_path, bindAddresses=f"out:pulsar+ssl://127.0.0.1:{port}", **listeners) as found:
        trust = Credentials(trusted=str(found.authority.file))
        for place, secure, urls in (
            (found.box.port, False, ("pulsar://inside:1", "pulsar+ssl://inside:2")),
            (port, True, ("", "pulsar+ssl://outside:3")),
        ):
            client = Client([("127.0.0.1", place)], secure=secure, credentials=trust)
            question = CommandLookupTopic(topic="persistent://public/default/t", request_id=1)
            command = BaseCommand(type=BaseCommand.LOOKUP, lookupTopic=question)
            answer = client.ask(client.service(), command, 1).lookupTopicResponse
            assert (answer.brokerServiceUrl, answer.brokerServiceUrlTls) == urls
            client.close()


@pytest.mark.parametrize("scheme", ["pulsar", "pulsar+ssl", "http", "https"])
def test_a_listener_for_each_port_and_certificates_of_both_sides(
    tmp_path: Path, request: pytest.FixtureRequest, scheme: str
) -> None:
    """Settings of the Node client's own tests. Over HTTP, clients of the C++ family send no listener name."""
    plain, tls, web_tls = (reserved_port(request.node, "127.0.0.1") for _ in range(3))
    listeners = (
        f"plain:pulsar://localhost:{plain},tls:pulsar+ssl://localhost:{tls},web:pulsar+ssl://localhost:{web_tls}"
    )
    ports: dict[str, Any] = {"brokerServicePort": plain, "brokerServicePortTls": tls, "webServicePortTls": web_tls}
    with secure_box(
        tmp_path, advertisedListeners=listeners, tlsRequireTrustedClientCertOnConnect=True, **ports
    ) as found:
        url, listener = {
            "pulsar": (found.box.service_url, None),
            "pulsar+ssl": (f"pulsar+ssl://localhost:{tls}", "tls"),
            "http": (found.box.admin_url, None),
            "https": (f"https://localhost:{web_tls}", "web"),
        }[scheme]
        own = found.authority.signs("client")
        shown = {"tls_certificate_file_path": str(own.certificate), "tls_private_key_file_path": str(own.key)}
        converse(connect(url, listener_name=listener, **shown, **found.trust), "t")


# Our own commands ----------------------------------------------------------------------------------------------------


def told(*words: str, code: int = 0, stdin: bytes = b"") -> Result:
    """Run a command in this process, and check its exit code."""
    done = CliRunner().invoke(main, words, input=stdin)
    assert done.exit_code == code, f"{words}: {done.exit_code}\n{done.stderr}"
    return done


@pytest.fixture(scope="module")
def tls_only(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Secure]:
    """Start a box with TLS ports only."""
    folder = tmp_path_factory.mktemp("only")
    off: dict[str, Any] = {"brokerServicePort": OFF, "webServicePort": OFF, "tlsTrustCertsFilePath": ""}
    with secure_box(folder, dataDirectory=str(folder / "data"), **off) as found:
        yield found


def test_commands_find_a_box_with_tls_only_and_know_its_certificate(tls_only: Secure) -> None:
    at = ("--data-dir", str(tls_only.own.certificate.parents[1] / "data"))
    document = json.loads(told("status", *at, "-o", "json").stdout)
    assert (document["health"], document["port"], document["webPort"]) == ("ok", OFF, OFF)
    assert document["brokerUrl"] == document["webUrl"] == ""
    assert f"pulsar   {tls_only.box.service_url}\nhttp     {tls_only.box.admin_url}\n" in told("status", *at).stdout
    told("produce", "t", "one", *at)
    told("produce", "t", "-i", "lines", "-", *at, stdin=(b"x" * 100_000 + b"\n") * 30)
    read = told("peek", "t", "-o", "raw", "-n", "31", *at).stdout
    assert (read.count("x"), read[:3]) == (3_000_000, "one")
    assert len(tls_only.box.messages("t")) == 31
    assert "public/default/t" in told("admin", *at, "topics", "list", "public/default").stdout
    assert told("topic", "list", *at).stdout


def test_commands_trust_whom_they_are_told_to(
    tls_only: Secure, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    url, web = ("--url", tls_only.box.service_url), ("--admin-url", tls_only.box.admin_url)
    authority, stranger = str(tls_only.authority.file), str(Authority(tmp_path, "stranger").file)
    looks = (("topic", "list", *web), ("top", "topics", "--once", *web), ("admin", "tenants", "list", *web))
    for words in (("produce", "u", "x", *url), *looks):
        assert "certificate" in told(*words, code=6).stderr
        assert "certificate" in told(*words, "--tls-trust-cert-path", stranger, code=6).stderr
        told(*words, "--tls-trust-cert-path", authority, "--tls-enable-hostname-verification")
        told(*words, "--tls-allow-insecure")
        with monkeypatch.context() as changed:
            changed.setenv("PULSARBOX_TLS_TRUST_CERT_PATH", authority)
            told(*words)
    monkeypatch.setenv("XDG_CONFIG_HOME", str(tmp_path))
    told("context", "add", "only", *url, *web, "--tls-trust-cert-path", authority)
    told("produce", "u", "x")
    told("topic", "list")


def test_commands_are_told_of_the_wrong_port(secure: Secure) -> None:
    box = secure.box
    trust = ("--tls-trust-cert-path", str(secure.authority.file))
    for wrong, words in (
        (box.service_url_tls.replace("pulsar+ssl", "pulsar"), "the port of the Pulsar protocol over TLS"),
        (box.service_url.replace("pulsar", "pulsar+ssl"), "TLS handshake failed"),
        (box.admin_url.replace("http", "pulsar"), "This is the port of the Admin API"),
        (box.admin_url_tls.replace("https", "pulsar"), "the port of the Admin API over TLS"),
    ):
        assert words in told("produce", "u", "x", "--url", wrong, *trust, code=6).stderr
    for url, words in (
        (box.service_url.replace("pulsar", "http"), f"HTTP is served at {box.admin_url}"),
        (box.service_url_tls.replace("pulsar+ssl", "http"), f"HTTP is served at {box.admin_url}"),
        (box.admin_url_tls.replace("https", "http"), f"HTTP is served at {box.admin_url}"),
    ):
        with pytest.raises(urllib.error.HTTPError, match="400") as refused:
            urllib.request.urlopen(f"{url}/admin/v2/clusters", timeout=30)
        assert words in json.loads(refused.value.read())["reason"]


def test_a_box_with_tls_only_is_started_and_stopped(tmp_path: Path) -> None:
    own = Authority(tmp_path).signs("localhost")
    words = ("--data-dir", "data", "--port", "off", "--web-port", "off", "--tls-port", "0", "--web-tls-port", "0")
    files = ("--tls-cert", str(own.certificate), "--tls-key", str(own.key))
    shown = commands.run("start", "--detach", *words, *files, folder=tmp_path).stdout
    assert b"pulsar   pulsar+ssl://localhost:" in shown
    assert b"http     https://localhost:" in shown
    assert b"stopped" in commands.run("stop", "--data-dir", "data", folder=tmp_path).stderr


def test_a_box_does_not_start_with_a_certificate_that_cannot_be_used(tmp_path: Path) -> None:
    authority = Authority(tmp_path)
    old, other = authority.signs("old", begins=-9, days=8), authority.signs("other")
    words = ("start", "--data-dir", "data", "--port", "0", "--web-port", "0", "--tls-port", "0")

    def said(certificate: Path, key: Path) -> str:
        given = (*words, "--tls-cert", str(certificate), "--tls-key", str(key))
        return commands.run(*given, code=1, folder=tmp_path).stderr.decode()

    assert "cannot start: tlsCertificateFilePath: the certificate of old in" in said(old.certificate, old.key)
    assert "does not match the certificate" in said(other.certificate, old.key)
    assert not (tmp_path / "data").exists()
