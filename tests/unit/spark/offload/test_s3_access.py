"""Credentials, and conditional writes."""

import datetime as dt
import threading
from collections.abc import Iterator
from http.server import BaseHTTPRequestHandler, HTTPServer
from pathlib import Path

import pytest

from pulsarbox.spark.offload import s3_access
from pulsarbox.spark.offload.s3_access import S3Settings, StorageError, put_new, settings


def test_settings_are_those_of_the_environment_and_of_aws_files(tmp_path: Path) -> None:
    assert settings({"HOME": str(tmp_path)}) == S3Settings("", "", "", "", "")
    (tmp_path / ".aws").mkdir()
    (tmp_path / ".aws" / "credentials").write_text("[default]\naws_access_key_id = a\naws_secret_access_key = b%b\n")
    (tmp_path / ".aws" / "config").write_text("[profile other]\nregion = eu-1\nendpoint_url = https://o\n")
    home = {"HOME": str(tmp_path)}
    assert settings(home) == S3Settings("", "", "a", "b%b", "")
    assert settings(home | {"AWS_PROFILE": "other"}) == S3Settings("https://o", "eu-1", "", "", "")
    keys = {"AWS_ACCESS_KEY_ID": "k", "AWS_SECRET_ACCESS_KEY": "s", "AWS_SESSION_TOKEN": "t"}
    found = settings(home | keys | {"AWS_ENDPOINT_URL": "http://h:9/"})
    assert found == S3Settings("http://h:9", "us-east-1", "k", "s", "t")
    with pytest.raises(StorageError, match="expected a URL"):
        settings({"AWS_ENDPOINT_URL_S3": "host:9000"})


def test_secrets_are_not_printed() -> None:
    assert "SECRET" not in f"{S3Settings('e', 'r', 'k', 'SECRET', 'SECRET')!r}"


def test_a_signature_is_that_of_the_documentation() -> None:
    """The key derivation of AWS's example, with the headers of a conditional PUT."""
    to = S3Settings("", "us-east-1", "AKIAIOSFODNN7EXAMPLE", "wJalrXUtnFEMI/K7MDENG/bPxRfiCYEXAMPLEKEY", "")
    now = dt.datetime(2013, 5, 24, tzinfo=dt.UTC)
    headers = s3_access._signed(to, "h", "/b/k", b"", now)
    scope = "Credential=AKIAIOSFODNN7EXAMPLE/20130524/us-east-1/s3/aws4_request"
    names = "SignedHeaders=host;if-none-match;x-amz-content-sha256;x-amz-date"
    assert headers["authorization"].startswith(f"AWS4-HMAC-SHA256 {scope}, {names}, Signature=")
    assert headers["x-amz-date"] == "20130524T000000Z"
    assert s3_access._signed(to._replace(secret="other"), "h", "/b/k", b"", now) != headers


class Server(HTTPServer):
    """Answers with a list of statuses, then with 200."""

    statuses: list[int]
    paths: list[str]


class Handler(BaseHTTPRequestHandler):
    server: Server

    def do_PUT(self) -> None:
        self.rfile.read(int(self.headers["Content-Length"]))
        self.server.paths.append(self.path)
        self.send_response(self.server.statuses.pop(0) if self.server.statuses else 200)
        self.send_header("Content-Length", "0")
        self.end_headers()

    def log_message(self, *_: object) -> None:
        pass


@pytest.fixture
def server(monkeypatch: pytest.MonkeyPatch) -> Iterator[Server]:
    monkeypatch.setattr(s3_access, "_PAUSE_SECONDS", 0.0)
    with Server(("127.0.0.1", 0), Handler) as server:
        server.statuses, server.paths = [], []
        thread = threading.Thread(target=server.serve_forever)
        thread.start()
        yield server
        server.shutdown()
        thread.join()


def test_busy_servers_are_asked_again_and_refusals_are_told(server: Server) -> None:
    to = S3Settings(f"http://127.0.0.1:{server.server_port}", "r", "k", "s", "t")
    server.statuses = [503, 409]
    assert put_new(to, "b", "a b/%41=ü", b"x")
    assert server.paths == ["/b/a%20b/%2541%3D%C3%BC"] * 3
    server.statuses = [412]
    assert not put_new(to, "b", "k", b"x")
    server.statuses = [403]
    with pytest.raises(StorageError, match="s3://b/k cannot be written: 403"):
        put_new(to, "b", "k", b"x")
    server.statuses = [500] * 10
    with pytest.raises(StorageError, match="cannot be written: 500"):
        put_new(to, "b", "k", b"x")
    with pytest.raises(StorageError, match="set AWS_ACCESS_KEY_ID"):
        put_new(to._replace(key=""), "b", "k", b"x")
