"""Requests of web pages through a browser are rejected on every port of a box with default settings."""

import contextlib
import os
import socket
import ssl
from collections.abc import Iterator
from pathlib import Path
from typing import Any, NamedTuple
from urllib.parse import urlsplit

import pulsar
import pytest

from pulsarbox import PulsarBox
from tests.e2e.clients import connect
from tests.tools.certificates import Authority, Pair

pytestmark = pytest.mark.skipif("E2E_URL" in os.environ, reason="starts boxes of its own")

TOPIC = "persistent/public/default/t"
EVIL = "http://evil.example"
FOREIGN = {
    "a page of another origin": {
        "Host": "localhost",
        "Origin": EVIL,
        "Sec-Fetch-Site": "cross-site",
        "Content-Type": "text/plain",
    },
    "a frame": {"Host": "localhost", "Origin": "null", "Content-Type": "text/plain"},
    "a form of old": {"Host": "localhost", "Sec-Fetch-Site": "cross-site"},
    "a rebound name": {"Host": "evil.example", "Origin": EVIL, "Sec-Fetch-Site": "same-origin"},
    "a websocket": {"Host": "localhost", "Origin": EVIL, "Connection": "Upgrade", "Upgrade": "websocket"},
}


class Ports(NamedTuple):
    """Box, and the trusted certificates of its TLS ports."""

    box: PulsarBox
    authority: Authority

    def ask(self, url: str, method: str, path: str, headers: dict[str, str], pair: Pair | None = None) -> bytes:
        """Send a request to the port of a URL, whatever its protocol; return the whole response."""
        place = urlsplit(url)
        body = b"" if method == "GET" else b'{"payload":"x"}'
        head = "".join(f"{name}: {value}\r\n" for name, value in headers.items())
        close = "" if "Connection" in headers else "Connection: close\r\n"
        request = f"{method} {path} HTTP/1.1\r\n{head}{close}Content-Length: {len(body)}\r\n\r\n".encode() + body
        with contextlib.ExitStack() as closing:
            found: Any = closing.enter_context(socket.create_connection((place.hostname, place.port), timeout=60))
            if place.scheme in ("https", "pulsar+ssl"):
                context = ssl.create_default_context(cafile=str(self.authority.file))
                if pair is not None:
                    context.load_cert_chain(pair.certificate, pair.key)
                found = closing.enter_context(context.wrap_socket(found, server_hostname="localhost"))
            found.sendall(request)
            told = b""
            with contextlib.suppress(ConnectionError):
                while data := found.recv(65536):
                    told += data
        return told


@contextlib.contextmanager
def box_with_tls(folder: Path, **settings: Any) -> Iterator[Ports]:
    """Start a box with all four ports."""
    authority = Authority(folder)
    own = authority.signs("localhost")
    files = {"tlsCertificateFilePath": str(own.certificate), "tlsKeyFilePath": str(own.key)}
    files["tlsTrustCertsFilePath"] = str(authority.file)
    with PulsarBox({"brokerServicePortTls": 0, "webServicePortTls": 0, **files, **settings}) as box:
        yield Ports(box, authority)


@pytest.fixture(scope="module")
def ports(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Ports]:
    with box_with_tls(tmp_path_factory.mktemp("tls")) as found:
        client = connect(found.box.service_url)
        client.create_producer("t").send(b"secret")
        client.close()
        yield found


@pytest.mark.parametrize("page", FOREIGN)
@pytest.mark.parametrize("port", ["admin_url", "admin_url_tls", "service_url", "service_url_tls"])
def test_a_page_neither_changes_nor_reads_anything(ports: Ports, port: str, page: str) -> None:
    url = getattr(ports.box, port)
    status = b"HTTP/1.1 403 " if port.startswith("admin") else b"HTTP/1.1 400 "  # other ports do not answer HTTP
    for method, path in (
        ("POST", f"/topics/{TOPIC}"),
        ("POST", f"/admin/v2/{TOPIC}/terminate"),
        ("POST", f"/admin/v2/{TOPIC}/subscription/s/skip_all"),
        ("POST", "/admin/v2/brokers/shutdown"),
        ("GET", f"/admin/v2/{TOPIC}/examinemessage?messagePosition=1"),
        ("GET", "/pulsarbox/v1/browse/public/default/t"),
        ("OPTIONS", f"/admin/v2/{TOPIC}"),
    ):
        told = ports.ask(url, method, path, FOREIGN[page])
        assert told.startswith(status), (method, path, told)
        assert b"secret" not in told
    client = connect(ports.box.service_url)
    reader = client.create_reader("t", pulsar.MessageId.earliest)
    assert reader.read_next(60_000).data() == b"secret"
    assert not reader.has_message_available()
    client.close()


def test_what_is_no_page_of_others_is_answered(ports: Ports) -> None:
    port = urlsplit(ports.box.admin_url).port
    for headers in (
        {"Host": f"localhost:{port}"},
        {"Host": f"127.0.0.1:{port}"},
        {"Host": f"[::1]:{port}"},
        {"Host": f"localhost:{port}", "Origin": f"http://localhost:{port}", "Sec-Fetch-Site": "same-origin"},
        {"Host": "localhost", "Sec-Fetch-Site": "none"},
    ):
        assert ports.ask(ports.box.admin_url, "GET", "/admin/v2/clusters", headers).startswith(b"HTTP/1.1 200 ")


def test_a_page_cannot_use_the_certificate_of_its_visitor(tmp_path: Path) -> None:
    with box_with_tls(tmp_path, authenticationEnabled=True, authenticationProviders="tls") as found:
        admin = found.authority.signs("admin")
        for headers, status in (
            ({"Host": "localhost"}, b"HTTP/1.1 200 "),
            ({"Host": "box.example.com"}, b"HTTP/1.1 200 "),
            ({"Host": "localhost", "Origin": "http://evil.example"}, b"HTTP/1.1 403 "),
            ({"Host": "localhost", "Sec-Fetch-Site": "cross-site"}, b"HTTP/1.1 403 "),
        ):
            told = found.ask(found.box.admin_url_tls, "GET", "/admin/v2/tenants", headers, admin)
            assert told.startswith(status), (headers, told)
