"""The Admin API client, against a server with scripted responses."""

import json
import socket
import threading
from collections.abc import Callable, Iterator
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any, NamedTuple

import pytest

from pulsarbox.client.admin import Admin, AdminRefused, path_of
from pulsarbox.client.errors import NoAnswer, NotConnected
from pulsarbox.names import parse_topic


class Asked(NamedTuple):
    """A received request."""

    method: str
    path: str
    body: str
    content_type: str | None


class Server:
    """Server that answers each request with the next of ``answers``: status, body, and error code."""

    def __init__(self) -> None:
        self.asked: list[Asked] = []
        self.answers: list[tuple[int, str] | tuple[int, str, str]] = []
        self.closes = False
        """Close the connection after each response, without notice."""
        self.hold = threading.Event()
        self.hold.set()
        outer = self

        class Handler(BaseHTTPRequestHandler):
            protocol_version = "HTTP/1.1"

            def _answer(self) -> None:
                body = self.rfile.read(int(self.headers.get("Content-Length", 0))).decode()
                outer.asked.append(Asked(self.command, self.path, body, self.headers.get("Content-Type")))
                outer.hold.wait(60)
                status, text, *code = outer.answers.pop(0) if outer.answers else (200, "[]")
                self.send_response(status)
                if code:
                    self.send_header("X-Pulsarbox-Error", code[0])
                self.send_header("Content-Length", str(len(text.encode())))
                self.end_headers()
                self.wfile.write(text.encode())
                self.close_connection = outer.closes

            do_GET = do_PUT = do_POST = do_DELETE = _answer  # noqa: N815

            def log_message(self, *args: Any) -> None:
                pass

        self._server = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
        self.port: int = self._server.server_address[1]
        self._thread = threading.Thread(target=self._server.serve_forever, daemon=True)
        self._thread.start()

    def stop(self) -> None:
        self.hold.set()
        self._server.shutdown()
        self._server.server_close()
        self._thread.join()


@pytest.fixture
def server() -> Iterator[Server]:
    made = Server()
    yield made
    made.stop()


@pytest.fixture
def admin(server: Server) -> Iterator[Admin]:
    with Admin([("127.0.0.1", server.port)], 5) as made:
        yield made


def test_requests_are_what_the_api_wants(server: Server, admin: Admin) -> None:
    server.answers = [(204, ""), (200, '["b","a"]'), (200, '{"partitions":3}')]
    assert admin.ask("PUT", "/tenants/x", {"a": "ü"}) is None
    assert admin.tenants() == ["a", "b"]
    assert admin.partitions(parse_topic("a?b")) == 3
    assert [(each.method, each.path) for each in server.asked] == [
        ("PUT", "/admin/v2/tenants/x"),
        ("GET", "/admin/v2/tenants"),
        ("GET", "/admin/v2/persistent/public/default/a%3Fb/partitions"),
    ]
    assert (json.loads(server.asked[0].body), server.asked[0].content_type) == ({"a": "ü"}, "application/json")
    assert path_of(parse_topic("t"), "subscription", "a/b c") == ("/persistent/public/default/t/subscription/a%2Fb%20c")


def test_a_policy_of_plain_text_is_sent_as_it_stands(server: Server, admin: Admin) -> None:
    server.answers = [(204, "")]
    admin.set_text("POST", "/namespaces/a/b/antiAffinity", "ü 1")
    assert (server.asked[0].method, server.asked[0].body) == ("POST", "ü 1")


def test_epochs_of_a_sink(server: Server, admin: Admin) -> None:
    server.answers = [
        (404, '{"reason":"no epoch of this sink"}', "SinkUnused"),
        (200, '{"sink":"public/default/a b","epoch":7,"committed":false}'),
        (200, '{"sink":"public/default/a b","epoch":7,"committedAt":5}'),
        (204, ""),
        (404, '{"reason":"Namespace not found"}'),
    ]
    sink = "public/default/a b"
    assert admin.last_epoch(sink) is None
    assert admin.commit_epoch(sink, 7, ["0:17", "0:18"]) is False
    found = admin.last_epoch(sink)
    assert found is not None and found["epoch"] == 7
    admin.forget_sink(sink)
    with pytest.raises(AdminRefused, match="Namespace"):
        admin.last_epoch(sink)
    where = "/pulsarbox/v1/epochs/public/default/a%20b"
    assert [(each.method, each.path) for each in server.asked] == [
        ("GET", where), ("POST", f"{where}/7"), ("GET", where), ("DELETE", where), ("GET", where),
    ]  # fmt: skip
    assert json.loads(server.asked[1].body) == {"transactions": ["0:17", "0:18"]}


JAVA = "\n --- An unexpected error occurred in the server ---\n\nMessage: cannot\n\nStacktrace:\n\njava.lang.X\n"


@pytest.mark.parametrize(
    ("status", "body", "reason"),
    [
        (404, '{"reason":"Topic t not found"}', "Topic t not found"),
        (409, "", "HTTP 409 Conflict"),
        (500, "<html>much</html>", "HTTP 500 Internal Server Error"),
        (500, json.dumps({"reason": JAVA}), "cannot"),
        (400, "plain words", "plain words"),
        (418, '{"other":1}', '{"other":1}'),
    ],
)
def test_what_is_refused_is_told_in_the_words_of_the_broker(
    server: Server, admin: Admin, status: int, body: str, reason: str
) -> None:
    server.answers = [(status, body)]
    with pytest.raises(AdminRefused) as caught:
        admin.ask("DELETE", "/tenants/x")
    assert (caught.value.status, str(caught.value), caught.value.method) == (status, reason, "DELETE")


def test_what_is_not_json(server: Server, admin: Admin) -> None:
    server.answers = [(200, "<html>")]
    with pytest.raises(AdminRefused, match="is this the Admin API"):
        admin.tenants()


def test_one_connection_is_kept_and_made_again_when_it_was_closed(server: Server, admin: Admin) -> None:
    server.closes = True
    assert [admin.tenants() for _ in range(3)] == [[], [], []]


def test_what_may_have_been_done_is_not_asked_again(server: Server, admin: Admin) -> None:
    server.closes = True
    admin.tenants()
    with pytest.raises(NotConnected):
        admin.ask("POST", "/skip")
    assert [each.method for each in server.asked] == ["GET"]
    assert admin.ask("POST", "/skip") == []


@pytest.fixture
def nobody() -> Iterator[int]:
    """A port without a listener, reserved for the duration of the test."""
    with socket.socket() as held:
        held.bind(("127.0.0.1", 0))
        yield held.getsockname()[1]


def test_nobody_is_there(nobody: int) -> None:
    with pytest.raises(NotConnected, match=f"127.0.0.1:{nobody}: Connection refused"):
        Admin([("127.0.0.1", nobody)]).tenants()


def test_the_next_host_is_tried(server: Server, nobody: int) -> None:
    with Admin([("127.0.0.1", nobody), ("127.0.0.1", server.port)]) as admin:
        assert admin.tenants() == []


def test_nobody_answers_in_time(server: Server) -> None:
    server.hold.clear()
    with Admin([("127.0.0.1", server.port)], 0.2) as admin, pytest.raises(NoAnswer, match=r"within 0\.2 s"):
        admin.tenants()


@pytest.mark.parametrize(
    ("answer", "words"),
    [(b"\x00\x00\x00\x01 what\r\n\r\n", "what"), (b"", "without a response: is this the port of the Admin API?")],
)
def test_what_answers_is_not_http(answer: bytes, words: str) -> None:
    with socket.create_server(("127.0.0.1", 0)) as listening:

        def speak() -> None:
            with listening.accept()[0] as connection:
                connection.recv(1000)
                connection.sendall(answer)

        thread = threading.Thread(target=speak)
        thread.start()
        with pytest.raises(NotConnected, match=words):
            Admin([listening.getsockname()], 5).tenants()
        thread.join()


def test_a_topic_that_does_not_exist_has_no_partitions_and_a_namespace_must(server: Server, admin: Admin) -> None:
    topic = parse_topic("t")
    server.answers = [(404, '{"reason":"Topic not found"}'), (404, '{"reason":"Namespace not found"}')]
    assert admin.partitions(topic) == 0
    with pytest.raises(AdminRefused):
        admin.partitions(topic)


CALLS: list[tuple[Callable[[Admin], Any], str]] = [
    (lambda admin: admin.namespaces("a b"), "/admin/v2/namespaces/a%20b"),
    (lambda admin: admin.topics("a/b"), "/admin/v2/persistent/a/b"),
    (lambda admin: admin.partitioned_topics("a/b", "non-persistent"), "/admin/v2/non-persistent/a/b/partitioned"),
    (lambda admin: admin.subscriptions(parse_topic("t")), "/admin/v2/persistent/public/default/t/subscriptions"),
    (
        lambda admin: admin.stats(parse_topic("t"), 2),
        "/admin/v2/persistent/public/default/t/partitioned-stats?getPreciseBacklog=true",
    ),
    (
        lambda admin: admin.dead_letter_policy(parse_topic("t"), "a+b/c d%"),
        "/pulsarbox/v1/dead-letter-policy/persistent/public/default/t/a%252Bb%252Fc%2520d%2525",
    ),
    (
        lambda admin: admin.internal_stats(parse_topic("t")),
        "/admin/v2/persistent/public/default/t/internalStats",
    ),
]


@pytest.mark.parametrize(("call", "path"), CALLS)
def test_paths(server: Server, admin: Admin, call: Callable[[Admin], Any], path: str) -> None:
    call(admin)
    assert server.asked[0].path == path
