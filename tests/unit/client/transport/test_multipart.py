"""Forms as bodies of requests: parts, lengths, files, and what servers do with them."""

import http.server
import io
import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from email.parser import BytesParser
from pathlib import Path
from typing import Any

import pytest

from pulsarbox.client.transport import web as web_module
from pulsarbox.client.transport.multipart import CHUNK_BYTES, MultipartBody, Part
from pulsarbox.client.transport.web import Unanswered, Unwritten, Web

Handler = Callable[[http.server.BaseHTTPRequestHandler], None]


@contextmanager
def serving(handle: Handler) -> Iterator[Web]:
    """A client of a server that handles all requests by ``handle``."""

    class Requests(http.server.BaseHTTPRequestHandler):
        protocol_version = "HTTP/1.1"

        def do_POST(self) -> None:
            handle(self)

        do_GET = do_POST  # noqa: N815

        def log_message(self, *_: Any) -> None:
            pass

    server = http.server.ThreadingHTTPServer(("127.0.0.1", 0), Requests)
    thread = threading.Thread(target=server.serve_forever, kwargs={"poll_interval": 0.01})
    thread.start()
    web = Web([("127.0.0.1", server.server_port)], seconds=10)
    try:
        yield web
    finally:
        web.close()
        server.shutdown()
        thread.join()
        server.server_close()


def respond(request: http.server.BaseHTTPRequestHandler, status: int, body: bytes = b"", **headers: str) -> None:
    request.send_response(status)
    for name, value in {"Content-Length": str(len(body)), **headers}.items():
        request.send_header(name, value)
    request.end_headers()
    request.wfile.write(body)


def received(request: http.server.BaseHTTPRequestHandler) -> bytes:
    return request.rfile.read(int(request.headers["Content-Length"]))


def test_a_form_has_its_parts(tmp_path: Path) -> None:
    file = tmp_path / 'a "b".bin'
    file.write_bytes(bytes(range(256)) * 2000)
    form = MultipartBody(
        [Part("config", '{"a": "é"}', "application/json"), Part("data", file, "application/octet-stream")]
    )
    body = b"".join(form)
    assert len(body) == form.length
    assert max(map(len, form)) <= CHUNK_BYTES
    parsed: Any = BytesParser().parsebytes(f"Content-Type: {form.kind}\r\n\r\n".encode() + body).get_payload()
    assert [part.get_content_type() for part in parsed] == ["application/json", "application/octet-stream"]
    assert parsed[0].get_payload(decode=True).decode() == '{"a": "é"}'
    assert parsed[1].get_payload(decode=True) == file.read_bytes()
    assert parsed[1].get_filename() == "a %22b%22.bin"
    assert b"".join(form) == body


@pytest.mark.parametrize("name", ["missing", "."])
def test_a_file_that_cannot_be_read_is_reported_before_anything_is_sent(name: str, tmp_path: Path) -> None:
    with pytest.raises(OSError, match=r"No such file|Is a directory"):
        MultipartBody([Part("data", tmp_path / name, "text/plain")])


def test_a_form_is_sent_again_where_a_redirect_leads() -> None:
    seen: list[tuple[str, bytes, str]] = []

    def handle(request: http.server.BaseHTTPRequestHandler) -> None:
        seen.append((request.path, received(request), request.headers["Content-Type"]))
        if request.path == "/first":
            respond(request, 307, Location="/second")
        else:
            respond(request, 204)

    form = MultipartBody([Part("a", "b", "text/plain")])
    with serving(handle) as web:
        assert web.exchange("POST", "/first", form).status == 204
    assert seen == [("/first", b"".join(form), form.kind), ("/second", b"".join(form), form.kind)]


def test_the_reason_for_a_rejected_form_is_received_although_not_all_is_read(tmp_path: Path) -> None:
    big = tmp_path / "big"
    with big.open("wb") as file:
        file.truncate(32 << 20)

    def handle(request: http.server.BaseHTTPRequestHandler) -> None:
        respond(request, 413, b'{"reason": "too large"}')
        request.close_connection = True
        while request.rfile.read1(1 << 20):  # a server that reads on, but has answered
            pass

    with serving(handle) as web:
        reply = web.exchange("POST", "/", MultipartBody([Part("a", big, "text/plain")]))
    assert (reply.status, reply.reason) == (413, "too large")


def test_a_download_is_written_in_chunks(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(web_module, "CHUNK_BYTES", 1000)
    body = bytes(range(256)) * 100
    file = io.BytesIO()
    with serving(lambda request: respond(request, 200, body)) as web:
        reply = web.download("/file", file)
    assert (reply.status, reply.body, file.getvalue()) == (200, b"", body)


def test_nothing_is_written_for_an_error() -> None:
    file = io.BytesIO()
    with serving(lambda request: respond(request, 404, b'{"reason": "none"}')) as web:
        reply = web.download("/file", file)
    assert (reply.status, reply.reason, file.getvalue()) == (404, "none", b"")


def test_a_download_that_ends_early_fails() -> None:
    def handle(request: http.server.BaseHTTPRequestHandler) -> None:
        respond(request, 200, b"half", **{"Content-Length": "8"})
        request.close_connection = True

    with serving(handle) as web, pytest.raises(Unanswered):
        web.download("/file", io.BytesIO())


def test_a_full_disk_is_not_a_silent_server() -> None:
    with (
        serving(lambda request: respond(request, 200, b"x" * 100)) as web,
        Path("/dev/full").open("wb", buffering=0) as full,
    ):
        with pytest.raises(Unwritten, match="No space left"):
            web.download("/file", full)
        assert web.exchange("GET", "/file").status == 200
