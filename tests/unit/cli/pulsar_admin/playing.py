"""A command line of `pulsarbox admin`, run against scripted responses, with its requests recorded."""

import contextlib
import json
from collections.abc import Iterator
from email.parser import BytesParser
from typing import Any, BinaryIO
from urllib.parse import parse_qsl

import pytest
from click.testing import CliRunner, Result

from pulsarbox.cli.connect.target import Target
from pulsarbox.cli.main import main
from pulsarbox.cli.pulsar_admin import connecting
from pulsarbox.cli.pulsar_admin.session import Session
from pulsarbox.client.transport.multipart import MultipartBody
from pulsarbox.client.transport.web import Body, Reply, Web

NOTHING = {"status": 204}


class Played(Web):
    """Substitute for a broker that returns responses in turn and repeats the last one."""

    def __init__(self, answers: list[dict[str, Any]]) -> None:
        super().__init__(())
        self.answers = list(answers or [NOTHING])
        self.requests: list[tuple[str, str, str, Any]] = []
        self.kinds: list[str] = []
        """Content types of the request bodies."""

    def exchange(
        self, method: str, target: str, body: Body = None, kind: str = "application/json", accept: str = "*/*"
    ) -> Reply:
        path, _, query = target.partition("?")
        self.requests.append((method, path, query, content(body)))
        self.kinds.append(kind)
        return self._next()

    def download(self, target: str, file: BinaryIO) -> Reply:
        path, _, query = target.partition("?")
        self.requests.append(("GET", path, query, None))
        reply = self._next()
        if reply.status == 200:
            file.write(reply.body)
        return reply

    def _next(self) -> Reply:
        answer = self.answers.pop(0) if len(self.answers) > 1 else self.answers[0]
        headers = {"content-type": answer.get("type", "application/json"), **answer.get("headers", {})}
        lower = {name.lower(): text for name, text in headers.items()}
        return Reply(
            answer.get("status", 200),
            lower,
            answer.get("body", "").encode("latin-1" if "octet" in headers["content-type"] else "utf-8"),
        )


def content(body: Body) -> Any:
    """The body as JSON or text; a form as ``{"form": {name: [media type, content]}}``."""
    if not isinstance(body, MultipartBody):
        return value(body.decode()) if body else None
    form = BytesParser().parsebytes(f"Content-Type: {body.kind}\r\n\r\n".encode() + b"".join(body))
    return {"form": dict(map(_field, form.get_payload()))}


def _field(part: Any) -> tuple[str, list[Any]]:
    text = part.get_payload(decode=True).decode()
    name, file = part.get_param("name", header="content-disposition"), part.get_filename()
    return name, [part.get_content_type(), value(text) if file is None else {"file": file, "content": text}]


def value(text: str) -> Any:
    """The parsed JSON, or the text if it is not valid JSON."""
    try:
        return json.loads(text)
    except ValueError:
        return text


def same(request: Any) -> Any:
    """A request in canonical form, without the order of query parameters and sets, and without null values."""
    method, path, query, *body = request
    return method, path, sorted(parse_qsl(query, keep_blank_values=True)), _same(body[0] if body else None)


def _same(found: Any) -> Any:
    if isinstance(found, list):
        made = [_same(one) for one in found]
        return sorted(made) if all(isinstance(one, str) for one in made) else made
    if isinstance(found, dict):
        return {key: _same(one) for key, one in found.items() if one is not None}
    return found


class Player:
    """Runner of command lines."""

    def __init__(self, monkeypatch: pytest.MonkeyPatch) -> None:
        self.web = Played([])
        self.options: dict[str, Any] = {}
        monkeypatch.setattr(connecting, "session_for", self._session)

    @contextlib.contextmanager
    def _session(self, options: dict[str, Any]) -> Iterator[Session]:
        self.options = options
        yield Session(self.web, Target("http://test:8080", "the test", (("test", 8080),)), 5)

    def __call__(self, *args: str, answers: list[dict[str, Any]] | None = None) -> Result:
        """Run ``pulsarbox admin ARGS`` and return its result; ``web.requests`` records its requests."""
        self.web = Played(answers or [])
        return CliRunner().invoke(main, ["admin", *args])


def answer(found: Any, status: int = 200, **more: Any) -> dict[str, Any]:
    """A JSON response."""
    return {"status": status, "body": json.dumps(found), **more}
