"""The client over TLS: trusted certificates, and errors for others."""

import contextlib
import socket
import ssl
import threading
from collections.abc import Iterator
from pathlib import Path

import pulsar
import pytest

from pulsarbox.client.client import Client
from pulsarbox.client.credentials import Credentials
from pulsarbox.client.errors import NotConnected
from tests.tools.certificates import Authority, Pair


@contextlib.contextmanager
def shows(own: Pair, host: str = "127.0.0.1") -> Iterator[int]:
    """A port that performs a handshake, presents a certificate, and closes the connection."""
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    context.load_cert_chain(own.certificate, own.key)
    with socket.create_server((host, 0)) as listening:
        over = threading.Event()

        def serve() -> None:
            while not over.is_set():
                with contextlib.suppress(OSError):
                    accepted, _ = listening.accept()
                    with accepted, context.wrap_socket(accepted, server_side=True):
                        pass

        thread = threading.Thread(target=serve, daemon=True)
        thread.start()
        yield int(listening.getsockname()[1])
        over.set()
        with contextlib.suppress(OSError):
            socket.create_connection(listening.getsockname(), timeout=5).close()
        thread.join(30)


def refusal(port: int, credentials: Credentials, host: str = "127.0.0.1") -> str:
    """Return the reason of a failed connection."""
    client = Client([(host, port)], secure=True, credentials=credentials)
    try:
        with pytest.raises(NotConnected) as raised:
            client.service()
        return str(raised.value)
    finally:
        client.close()


@pytest.fixture
def authority(tmp_path: Path) -> Authority:
    return Authority(tmp_path)


def test_an_expired_certificate_is_refused_by_clients(authority: Authority) -> None:
    trusted = str(authority.file)
    with shows(authority.signs("localhost", begins=-9, days=8)) as port:
        assert "certificate has expired" in refusal(port, Credentials(trusted=trusted))
        assert "certificate" not in refusal(port, Credentials(trusted=trusted, insecure=True))
        client = pulsar.Client(
            f"pulsar+ssl://127.0.0.1:{port}",
            tls_trust_certs_file_path=trusted,
            operation_timeout_seconds=1,
            logger=pulsar.ConsoleLogger(pulsar.LoggerLevel.Error),
        )
        with pytest.raises(pulsar.PulsarException):
            client.create_producer("t")
        client.close()


def test_whom_a_client_trusts(authority: Authority, tmp_path: Path) -> None:
    own = authority.signs("localhost")
    stranger = Authority(tmp_path, "stranger")
    with shows(own) as port:
        assert "certificate" in refusal(port, Credentials())
        assert "certificate" in refusal(port, Credentials(trusted=str(stranger.file)))
        other = stranger.signs("localhost", file="other").certificate
        assert "certificate" in refusal(port, Credentials(pinned=str(other)))
        for good in (Credentials(trusted=str(authority.file)), Credentials(pinned=str(own.certificate))):
            assert refusal(port, good) == "the broker closed the connection"
        named = Credentials(trusted=str(authority.file), check_host=True)
        assert refusal(port, named) == "the broker closed the connection"
    with shows(own, "127.0.0.2") as port:
        assert "address mismatch" in refusal(port, named, "127.0.0.2")


def test_files_that_cannot_be_used(tmp_path: Path) -> None:
    with pytest.raises(NotConnected, match=r"cannot load the certificates: .*No such file"):
        Client([("h", 1)], secure=True, credentials=Credentials(trusted=str(tmp_path / "none.pem")))


def test_what_answers_without_tls(tmp_path: Path) -> None:
    with socket.create_server(("127.0.0.1", 0)) as listening:

        def answer() -> None:
            accepted, _ = listening.accept()
            with accepted:
                accepted.recv(1)
                accepted.sendall(b"HTTP/1.1 400 Bad Request\r\n\r\n")

        thread = threading.Thread(target=answer)
        thread.start()
        assert "the server does not speak TLS: use pulsar://" in refusal(listening.getsockname()[1], Credentials())
        thread.join(30)


@pytest.mark.parametrize(
    ("credentials", "proof"),
    [
        (Credentials(), ("", b"")),
        (Credentials(token="t"), ("token", b"t")),
        (Credentials(basic="a:b"), ("basic", b"a:b")),
        (Credentials(certificate="c", key="k"), ("tls", b"")),
    ],
)
def test_what_connect_shows(credentials: Credentials, proof: tuple[str, bytes]) -> None:
    assert credentials.proof() == proof
