"""Connections of `pulsarbox admin`: real sockets, TLS, tokens, client.conf, contexts, redirects."""

import json
import ssl
import subprocess
import threading
from collections.abc import Iterator
from http.server import BaseHTTPRequestHandler, HTTPServer
from pathlib import Path
from typing import Any

import pytest
from click.testing import CliRunner, Result

from pulsarbox.cli.main import main


class Broker:
    """Web server that records requests and responds with a list of tenants, or as configured."""

    def __init__(self, certificate: tuple[Path, Path] | None = None, client_ca: Path | None = None) -> None:
        self.asked: list[tuple[str, dict[str, str]]] = []
        self.redirect = ""
        self.warning = ""
        broker = self

        class Handler(BaseHTTPRequestHandler):
            def do_GET(self) -> None:
                broker.asked.append((self.path, {key.lower(): value for key, value in self.headers.items()}))
                body = b'["public"]'
                self.send_response(307 if broker.redirect else 200)
                if broker.redirect:
                    self.send_header("Location", broker.redirect + self.path)
                if broker.warning:
                    self.send_header("X-Pulsarbox-Warning", broker.warning)
                self.send_header("Content-Type", "application/json")
                self.send_header("Content-Length", str(len(body)))
                self.end_headers()
                self.wfile.write(body)

            def log_message(self, *args: Any) -> None:
                pass

        self.server = HTTPServer(("127.0.0.1", 0), Handler)
        self.server.handle_error = lambda *_: None  # type: ignore[method-assign] # failed handshakes are expected
        self.scheme = "http"
        if certificate is not None:
            context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
            context.load_cert_chain(*certificate)
            if client_ca is not None:
                context.verify_mode = ssl.CERT_REQUIRED
                context.load_verify_locations(client_ca)
            self.server.socket = context.wrap_socket(self.server.socket, server_side=True)
            self.scheme = "https"
        self.thread = threading.Thread(target=self.server.serve_forever, args=(0.01,))
        self.thread.start()

    @property
    def url(self) -> str:
        return f"{self.scheme}://127.0.0.1:{self.server.server_port}"

    def stop(self) -> None:
        self.server.shutdown()
        self.thread.join()
        self.server.server_close()


@pytest.fixture
def broker() -> Iterator[Broker]:
    made = Broker()
    yield made
    made.stop()


@pytest.fixture(scope="module")
def certificate(tmp_path_factory: pytest.TempPathFactory) -> tuple[Path, Path]:
    """A self-signed certificate for a different host, and its key."""
    folder = tmp_path_factory.mktemp("tls")
    certificate, key = folder / "cert.pem", folder / "key.pem"
    subprocess.run(
        [
            *("openssl", "req", "-x509", "-newkey", "ec", "-pkeyopt", "ec_paramgen_curve:prime256v1", "-nodes"),
            *("-days", "2", "-subj", "/CN=broker.example", "-addext", "subjectAltName=DNS:broker.example"),
            *("-keyout", str(key), "-out", str(certificate)),
        ],
        check=True,
        capture_output=True,
        timeout=60,
    )
    return certificate, key


@pytest.fixture
def secure(certificate: tuple[Path, Path]) -> Iterator[Broker]:
    made = Broker(certificate)
    yield made
    made.stop()


@pytest.fixture(autouse=True)
def home(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """Isolate the test from the configuration of the current user."""
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("XDG_CONFIG_HOME", str(tmp_path / "config"))
    for name in ("PULSARBOX_ADMIN_URL", "PULSARBOX_TOKEN", "PULSAR_CLIENT_CONF", "PULSARBOX_CONTEXT"):
        monkeypatch.delenv(name, raising=False)
    return tmp_path


def pulsarbox(*args: str, **environ: str) -> Result:
    return CliRunner().invoke(main, args, env=environ)


def tenants(*args: str, **environ: str) -> Result:
    return pulsarbox("admin", *args, "tenants", "list", **environ)


def header(broker: Broker, name: str = "authorization") -> str | None:
    return broker.asked[-1][1].get(name)


def test_the_warning_of_an_answer_is_printed_apart_from_it(broker: Broker) -> None:
    broker.warning = "persistence: stored, without effect: \x1b[1mone copy"
    words = ["admin", "--admin-url", broker.url, "tenants", "list"]
    done = CliRunner().invoke(main, words)
    assert (done.exit_code, done.stdout) == (0, "public\n")
    assert done.stderr == "pulsarbox: persistence: stored, without effect: \\x1b[1mone copy\n"
    of_commands = CliRunner().invoke(main, ["tenant", "list", "--admin-url", broker.url])
    assert of_commands.stderr == done.stderr
    broker.warning = ""
    assert CliRunner().invoke(main, words).stderr == ""


def test_without_credentials_none_are_sent(broker: Broker) -> None:
    result = tenants("--admin-url", broker.url)
    assert (result.exit_code, result.stdout) == (0, "public\n")
    assert header(broker) is None


def test_the_options_may_stand_behind_the_command(broker: Broker) -> None:
    result = pulsarbox("admin", "tenants", "list", "--admin-url", broker.url, "--token", "token:abc")
    assert result.exit_code == 0
    assert header(broker) == "Bearer abc"


@pytest.mark.parametrize(
    "options",
    [
        ["--token", "abc"],
        ["--token", "token:abc"],
        ["--auth-plugin", "token", "--auth-params", "token:abc"],
        ["--auth-plugin", "token", "--auth-params", '{"token": "abc"}'],
        ["--auth-plugin", "org.apache.pulsar.client.impl.auth.AuthenticationToken", "--auth-params", "file:///{file}"],
        ["--auth-params", "token:abc"],
        ["--token", "file:{file}"],
    ],
    ids=" ".join,
)
def test_a_token_is_sent(options: list[str], broker: Broker, tmp_path: Path) -> None:
    (tmp_path / "token").write_text("abc\n")
    given = [option.replace("{file}", str(tmp_path / "token")) for option in options]
    assert tenants("--admin-url", broker.url, *given).exit_code == 0
    assert header(broker) == "Bearer abc"


def test_the_environment_has_a_url_and_a_token(broker: Broker) -> None:
    assert tenants(PULSARBOX_ADMIN_URL=broker.url, PULSARBOX_TOKEN="abc").exit_code == 0
    assert header(broker) == "Bearer abc"


def test_a_user_with_a_password(broker: Broker) -> None:
    given = ["--auth-plugin", "basic", "--auth-params", '{"userId": "u", "password": "p:w"}']
    assert tenants("--admin-url", broker.url, *given).exit_code == 0
    assert header(broker) == "Basic dTpwOnc="


@pytest.mark.parametrize("how", ["option", "environment"])
def test_client_conf_has_a_url_and_credentials(how: str, broker: Broker, tmp_path: Path) -> None:
    conf = tmp_path / "client.conf"
    conf.write_text(
        f"# a comment\n\nwebServiceUrl={broker.url}/\nbrokerServiceUrl=pulsar://localhost:6650\n"
        "authPlugin=org.apache.pulsar.client.impl.auth.AuthenticationToken\nauthParams=token:abc\n"
    )
    if how == "option":
        result = tenants("--client-conf", str(conf))
    else:
        result = tenants(PULSAR_CLIENT_CONF=str(conf))
    assert (result.exit_code, result.stderr) == (0, "")
    assert header(broker) == "Bearer abc"


@pytest.mark.parametrize(
    ("options", "message"),
    [
        (["--auth-plugin", "org.example.Kerberos"], "unknown method org.example.Kerberos"),
        (["--auth-plugin", "tls", "--auth-params", "tlsCertFile:x"], "expected tlsCertFile"),
        (["--auth-plugin", "basic", "--auth-params", "{"], "invalid JSON"),
        (["--auth-plugin", "basic"], "--auth-params: expected {"),
        (["--token", "a\r\nX-Other: b"], "invalid token"),
        (["--token", "file:/nix/token"], "cannot read /nix/token"),
        (["--admin-url", "ftp://x"], "invalid scheme ftp"),
    ],
    ids=lambda given: " ".join(given) if isinstance(given, list) else "",
)
def test_credentials_that_cannot_be_used_are_exit_code_2(options: list[str], message: str, broker: Broker) -> None:
    result = tenants("--admin-url", broker.url, *options)
    assert result.exit_code == 2
    assert message in result.stderr
    assert broker.asked == []


def test_https_needs_a_certificate_that_is_trusted(secure: Broker, certificate: tuple[Path, Path]) -> None:
    refused = tenants("--admin-url", secure.url, "--token", "abc")
    assert refused.exit_code == 6
    assert "certificate verify failed" in refused.stderr.lower()
    assert secure.asked == []
    assert tenants("--admin-url", secure.url, "--tls-trust-cert-path", str(certificate[0])).stdout == "public\n"
    assert tenants("--admin-url", secure.url, "--tls-allow-insecure", "--token", "abc").exit_code == 0
    assert header(secure) == "Bearer abc"


def test_the_host_is_checked_on_request(secure: Broker, certificate: tuple[Path, Path]) -> None:
    trusted = ["--tls-trust-cert-path", str(certificate[0]), "--tls-enable-hostname-verification"]
    result = tenants("--admin-url", secure.url, *trusted)
    assert result.exit_code == 6
    assert "127.0.0.1" in result.stderr
    assert secure.asked == []


def test_a_certificate_of_ours_is_shown(certificate: tuple[Path, Path]) -> None:
    broker = Broker(certificate, client_ca=certificate[0])
    try:
        trusted = ["--admin-url", broker.url, "--tls-trust-cert-path", str(certificate[0])]
        assert tenants(*trusted).exit_code == 6
        ours = f"tlsCertFile:{certificate[0]},tlsKeyFile:{certificate[1]}"
        assert tenants(*trusted, "--auth-plugin", "tls", "--auth-params", ours).exit_code == 0
    finally:
        broker.stop()


def test_certificates_that_are_not_there(secure: Broker) -> None:
    result = tenants("--admin-url", secure.url, "--tls-trust-cert-path", "/nix/ca.pem")
    assert result.exit_code == 6
    assert "cannot load the certificates" in result.stderr


def test_a_redirect_to_another_broker_is_followed(broker: Broker) -> None:
    owner = Broker()
    try:
        broker.redirect = owner.url
        result = tenants("--admin-url", broker.url, "--token", "abc")
        assert result.stdout == "public\n"
        assert header(owner) == "Bearer abc"
    finally:
        owner.stop()


def test_a_redirect_from_tls_to_plain_text_is_not_followed(secure: Broker, broker: Broker) -> None:
    secure.redirect = broker.url
    result = tenants("--admin-url", secure.url, "--tls-allow-insecure", "--token", "abc")
    assert result.exit_code == 6
    assert "redirects from https to http://" in result.stderr
    assert broker.asked == []


def test_redirects_without_end(broker: Broker) -> None:
    broker.redirect = broker.url
    result = tenants("--admin-url", broker.url)
    assert result.exit_code == 6
    assert "too many redirects (20)" in result.stderr


def test_nobody_there() -> None:
    result = tenants("--admin-url", "http://127.0.0.1:1")
    assert result.exit_code == 6
    assert "cannot connect to http://127.0.0.1:1 (--admin-url): 127.0.0.1:1: Connection refused" in result.stderr


# Contexts


def test_a_context_has_a_url_and_a_token(broker: Broker, home: Path) -> None:
    (home / "token").write_text("abc")
    added = pulsarbox("context", "add", "there", "--admin-url", broker.url, "--token-file", str(home / "token"))
    assert added.exit_code == 0
    assert added.stdout == ""
    assert tenants().stdout == "public\n"
    assert header(broker) == "Bearer abc"
    file = home / "config" / "pulsarbox" / "contexts.json"
    assert file.stat().st_mode & 0o777 == 0o600
    assert "abc" not in file.read_text()


def test_a_url_goes_before_the_context_and_the_environment_names_another(broker: Broker) -> None:
    pulsarbox("context", "add", "nowhere", "--admin-url", "http://127.0.0.1:1")
    pulsarbox("context", "add", "there", "--admin-url", broker.url)
    assert tenants().exit_code == 6
    assert "the current context" in tenants().stderr
    assert tenants("--admin-url", broker.url).exit_code == 0
    assert tenants(PULSARBOX_ADMIN_URL=broker.url).exit_code == 0
    assert tenants(PULSARBOX_CONTEXT="there").exit_code == 0
    assert pulsarbox("context", "use", "there").exit_code == 0
    assert tenants().exit_code == 0


def test_the_life_of_contexts() -> None:
    assert pulsarbox("context", "list").stdout.split() == ["CURRENT", "NAME", "URL", "ADMIN", "URL"]
    assert pulsarbox("context", "show").exit_code == 3
    pulsarbox("context", "add", "a", "--url", "pulsar://a:6650", "--auth-params", "token:secret")
    pulsarbox("context", "add", "b", "--admin-url", "https://b:8443")
    rows = [line.split() for line in pulsarbox("context", "list").stdout.splitlines()[1:]]
    assert rows == [["yes", "a", "pulsar://a:6650", "-"], ["no", "b", "-", "https://b:8443"]]
    assert json.loads(pulsarbox("context", "list", "-o", "json").stdout)["current"] == "a"
    shown = json.loads(pulsarbox("context", "show").stdout)
    assert shown == {"name": "a", "url": "pulsar://a:6650", "auth_params": "..."}
    assert pulsarbox("context", "add", "a", "--url", "pulsar://c").exit_code == 4
    assert pulsarbox("context", "add", "a", "--url", "pulsar://c", "--force").exit_code == 0
    assert json.loads(pulsarbox("context", "show", "a").stdout)["url"] == "pulsar://c"
    assert pulsarbox("context", "remove", "a").exit_code == 0
    assert pulsarbox("context", "list").stdout.splitlines()[1].split() == ["no", "b", "-", "https://b:8443"]
    assert pulsarbox("context", "use", "-").exit_code == 0


@pytest.mark.parametrize(
    ("words", "code", "message"),
    [
        (["use", "x"], 3, "context 'x' does not exist"),
        (["show", "x"], 3, "context 'x' does not exist"),
        (["remove", "x"], 3, "context 'x' does not exist"),
        (["add", "x"], 2, "a context requires --url or --admin-url"),
        (["add", "x", "--admin-url", "localhost"], 2, "expected a URL such as http://localhost:8080"),
        (["add", "\x1b", "--url", "pulsar://x"], 2, "invalid context name: expected printable text"),
    ],
    ids=lambda given: " ".join(given) if isinstance(given, list) else "",
)
def test_contexts_that_cannot_be(words: list[str], code: int, message: str) -> None:
    result = pulsarbox("context", *words)
    assert result.exit_code == code
    assert message in result.stderr


@pytest.mark.parametrize("text", ["{", "[]", '{"contexts": {"a": 1}}'])
def test_a_file_that_holds_no_contexts_is_said(text: str, home: Path) -> None:
    file = home / "config" / "pulsarbox" / "contexts.json"
    file.parent.mkdir(parents=True)
    file.write_text(text)
    result = tenants()
    assert result.exit_code == 2
    assert str(file) in result.stderr
    assert "`pulsarbox context add`" in result.stderr
    assert file.read_text() == text
