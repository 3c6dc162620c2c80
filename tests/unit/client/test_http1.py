"""Answers as a web service may send them, in any portions, over a real connection."""

import contextlib
import socket
import threading
from collections.abc import Callable, Iterator

import pytest
from hypothesis import given
from hypothesis import strategies as st

from pulsarbox.client.http1 import Answer, Connection, Ended, Malformed

MOST = 1 << 20
COUNTED = b"HTTP/1.1 200 OK\r\nX-One: a b\r\nContent-Length: 5\r\n\r\nhello"
CHUNKED = (
    b"HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n3;part=1\r\nhel\r\n2\r\nlo\r\n0\r\nX-Behind: what\r\n\r\n"
)
UNTIL_THE_END = b"HTTP/1.1 200 OK\r\n\r\nhello"


@contextlib.contextmanager
def answering(*answers: bytes, portion: int = 1 << 20) -> Iterator[tuple[int, list[bytes]]]:
    """A service of one connection: an answer to each request, in portions, then the end. Its port; what it heard."""
    heard: list[bytes] = []
    with socket.create_server(("127.0.0.1", 0)) as listening:

        def serve() -> None:
            with contextlib.suppress(OSError):
                one, _ = listening.accept()
                with one, one.makefile("rb") as coming:
                    for answer in answers:
                        asked = b""
                        while not asked.endswith(b"\r\n\r\n") and (line := coming.readline()):
                            asked += line
                        heard.append(asked + coming.read(_length(asked)))
                        for at in range(0, len(answer), portion):
                            one.sendall(answer[at : at + portion])

        thread = threading.Thread(target=serve)
        thread.start()
        try:
            yield listening.getsockname()[1], heard
        finally:
            with contextlib.suppress(OSError):  # nobody has come
                socket.create_connection(listening.getsockname(), 1).close()
            thread.join()


def _length(asked: bytes) -> int:
    return int(asked.partition(b"Content-Length: ")[2].partition(b"\r\n")[0] or 0)


@contextlib.contextmanager
def connected(port: int) -> Iterator[Connection]:
    connection = Connection("127.0.0.1", port, 10)
    try:
        yield connection
    finally:
        connection.close()


def told(answer: bytes, read: Callable[[Answer], object] = lambda answer: answer.body(MOST)) -> object:
    with answering(answer) as (port, _), connected(port) as connection:
        return read(connection.ask("GET", "/", None, {}))


@given(st.sampled_from([COUNTED, CHUNKED, UNTIL_THE_END]), st.integers(1, 60))
def test_an_answer_is_the_same_however_it_comes(answer: bytes, portion: int) -> None:
    with answering(answer, portion=portion) as (port, _), connected(port) as connection:
        found = connection.ask("GET", "/", None, {})
        assert (found.status, found.body(MOST), found.is_last) == (200, b"hello", answer is UNTIL_THE_END)


def test_a_connection_is_kept_from_one_answer_to_the_next() -> None:
    empty = b"HTTP/1.1 204 No Content\r\n\r\n"
    with answering(COUNTED, CHUNKED, empty, COUNTED) as (port, heard), connected(port) as connection:
        assert connection.ask("GET", "/0", None, {}).body(MOST) == b"hello"
        assert connection.ask("GET", "/1", None, {}).body(MOST) == b"hello"
        assert connection.ask("DELETE", "/2", None, {}).body(MOST) == b""
        assert connection.ask("PUT", "/3", b"body", {"X-Mine": "1"}).headers == {"x-one": "a b", "content-length": "5"}
    assert heard[0] == f"GET /0 HTTP/1.1\r\nHost: 127.0.0.1:{port}\r\nAccept-Encoding: identity\r\n\r\n".encode()
    assert heard[3].startswith(b"PUT /3 HTTP/1.1\r\n")
    assert heard[3].endswith(b"\r\nX-Mine: 1\r\nContent-Length: 4\r\n\r\nbody")


def test_what_changes_something_says_that_it_has_no_body() -> None:
    with answering(COUNTED) as (port, heard), connected(port) as connection:
        connection.ask("POST", "/", None, {})
    assert b"\r\nContent-Length: 0\r\n" in heard[0]


def test_that_a_service_goes_on_is_no_answer_yet() -> None:
    assert told(b"HTTP/1.1 100 Continue\r\nX-Two: 2\r\n\r\n" + COUNTED) == b"hello"


@pytest.mark.parametrize(
    ("head", "last"),
    [
        (b"HTTP/1.1 200 OK\r\nConnection: Close", True),
        (b"HTTP/1.0 200 OK", True),
        (b"HTTP/1.0 200 OK\r\nConnection: keep-alive", False),
        (b"HTTP/1.1 200", False),
    ],
)
def test_an_answer_says_whether_it_is_the_last(head: bytes, last: bool) -> None:
    assert told(head + b"\r\nContent-Length: 0\r\n\r\n", lambda answer: answer.is_last) is last


def test_lines_come_one_by_one() -> None:
    chunks = b"".join(b"%x\r\n%s\r\n" % (len(part), part) for part in (b"one\ntw", b"o\n\nth", b"ree"))
    answer = b"HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n" + chunks + b"0\r\n\r\n"
    assert told(answer, lambda answer: list(answer.lines(MOST))) == [b"one", b"two", b"", b"three"]


@pytest.mark.parametrize(
    ("answer", "said"),
    [
        (b"SSH-2.0-OpenSSH\r\n", "is not HTTP: 'SSH-2.0-OpenSSH"),
        (b"HTTP/1.1 OK\r\n\r\n", "is not HTTP: 'HTTP/1.1 OK"),
        (b"HTTP/1.1 200 OK\r\nwhat\r\n\r\n", "is not HTTP: 'what' among the headers"),
        (b"HTTP/1.1 200 OK\r\nContent-Len", "the answer was cut off"),
        (b"HTTP/1.1 200 OK\r\nX: " + b"y" * 70_000, "too long a header"),
        (b"HTTP/1.1 200 OK\r\n" + b"X: y\r\n" * 300, "more than 200 headers"),
        (b"HTTP/1.1 200 OK\r\nContent-Length: -1\r\n\r\n", "a body of '-1' bytes"),
        (b"HTTP/1.1 200 OK\r\nContent-Length: 7\r\n\r\nhello", "cut off: 2 of 7 bytes"),
        (b"HTTP/1.1 200 OK\r\nContent-Length: 2000000\r\n\r\n" + b"x" * 2_000_000, "more than 1,048,576 bytes"),
        (b"HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n0x5\r\nhello\r\n0\r\n\r\n", "a chunk of '0x5' bytes"),
        (b"HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\nff\r\nhello", "cut off: 250 of 255 bytes"),
        (b"HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n5\r\nhello\r\n", "the answer was cut off"),
    ],
)
def test_what_is_no_answer_is_said(answer: bytes, said: str) -> None:
    with pytest.raises(Malformed, match=r".") as caught:
        told(answer)
    assert said in str(caught.value)


def test_a_line_without_an_end_is_not_waited_for() -> None:
    with pytest.raises(Malformed, match="a line of the answer has more than 100 bytes"):
        told(b"HTTP/1.1 200 OK\r\n\r\n" + b"x" * 1000, lambda answer: list(answer.lines(100)))


def test_where_an_answer_should_begin_the_connection_may_have_ended() -> None:
    with pytest.raises(Ended):
        told(b"")


@pytest.mark.parametrize(
    ("target", "headers"), [("/a b", {}), ("/ä", {}), ("/a\r\nX: 1", {}), ("/", {"X": "1\r\nY: 2"}), ("/", {"X": "€"})]
)
def test_what_cannot_be_said_is_not_sent(target: str, headers: dict[str, str]) -> None:
    said = pytest.raises(Malformed, match="cannot be said in HTTP")
    with answering(COUNTED) as (port, heard), connected(port) as connection, said:
        connection.ask("GET", target, None, headers)
    assert b"".join(heard) == b""


def test_no_answer_in_time_is_that() -> None:
    with socket.create_server(("127.0.0.1", 0)) as listening:
        connection = Connection("localhost", listening.getsockname()[1], 0.05)
        with pytest.raises(TimeoutError):
            connection.ask("GET", "/", None, {})
        connection.close()


def test_a_host_that_nobody_knows_is_an_error_of_the_network() -> None:
    with pytest.raises(OSError, match=r"."):
        Connection("no..host", 80, 1)
