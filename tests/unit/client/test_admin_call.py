"""Single HTTP requests: responses as values, refusals with reasons, anything else an OSError."""

import socket
import threading
from collections.abc import Iterator
from contextlib import contextmanager

import pytest

from pulsarbox.client.admin_call import WebRefused, ask


@contextmanager
def answering(answer: bytes) -> Iterator[tuple[str, list[bytes]]]:
    """Server that returns one response on one connection; yields its URL and the received bytes."""
    got: list[bytes] = []

    def serve() -> None:
        connection, _ = listening.accept()
        with connection:
            connection.settimeout(10)
            got.append(connection.recv(1 << 16))
            connection.sendall(answer)

    with socket.create_server(("127.0.0.1", 0)) as listening:
        thread = threading.Thread(target=serve)
        thread.start()
        yield f"http://127.0.0.1:{listening.getsockname()[1]}", got
        thread.join()


def http(status: str, body: bytes) -> bytes:
    return b"HTTP/1.1 %s\r\nContent-Length: %d\r\n\r\n%s" % (status.encode(), len(body), body)


@pytest.mark.parametrize(
    ("answer", "value"),
    [
        (http("200 OK", b'{"a": [1]}'), {"a": [1]}),
        (http("200 OK", b"plain"), "plain"),
        (http("204 No Content", b""), None),
    ],
)
def test_an_answer_is_a_value(answer: bytes, value: object) -> None:
    with answering(answer) as (url, got):
        assert ask(url, "PUT", "/x?y=1", {"b": 2}) == value
    assert got[0].startswith(b"PUT /x?y=1 HTTP/1.1\r\n")
    assert got[0].endswith(b'{"b": 2}') or b"Content-Length: 8" in got[0]


@pytest.mark.parametrize(
    ("answer", "status", "reason"),
    [
        (http("409 Conflict", b'{"reason": "in use"}'), 409, "in use"),
        (http("500 Oh", b"text"), 500, "text"),
        (http("404 Not Found", b""), 404, "HTTP 404 Not Found"),
        (http("400 Bad Request", b"[]"), 400, "[]"),
    ],
)
def test_a_refusal_says_why(answer: bytes, status: int, reason: str) -> None:
    with answering(answer) as (url, _), pytest.raises(WebRefused) as refused:
        ask(url, "GET", "/")
    assert (refused.value.status, str(refused.value)) == (status, reason)


@pytest.mark.parametrize("answer", [b"", b"SSH-2.0-OpenSSH\r\n", b"HTTP/1.1 200 OK\r\nContent-Length: 50\r\n\r\nshort"])
def test_what_is_no_http_is_an_os_error(answer: bytes) -> None:
    with answering(answer) as (url, _), pytest.raises(OSError):  # noqa: PT011  # system text, or ours
        ask(url, "GET", "/")


def test_nobody_there_and_no_answer() -> None:
    with socket.create_server(("127.0.0.1", 0)) as silent:
        url = f"http://127.0.0.1:{silent.getsockname()[1]}"
        with pytest.raises(TimeoutError):
            ask(url, "GET", "/", seconds=0.05)
    with pytest.raises(OSError, match="refused"):
        ask(url, "GET", "/")
