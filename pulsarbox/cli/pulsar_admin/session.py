"""Requests built from command line values, and conversion of responses to values or errors."""

import os
import tempfile
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Any, BinaryIO, Final
from urllib.parse import quote, quote_plus, urlencode

from pulsarbox.cli.common.exits import Failed, Misused, ending_of_status
from pulsarbox.cli.connect.target import Target
from pulsarbox.cli.pulsar_admin.package_url import PackageUrl
from pulsarbox.cli.pulsar_admin.printing import compact, loads
from pulsarbox.cli.pulsar_admin.table import AdminRequest, Command
from pulsarbox.cli.pulsar_admin.values import UNITS
from pulsarbox.client.transport.multipart import MultipartBody, Part
from pulsarbox.client.transport.web import Reply, TooSlow, Unanswered, Unwritten, Web
from pulsarbox.names import TopicName

_MODE: Final = 0o644
"""Mode of a downloaded file. A temporary file is readable by its owner only."""
_NAME_MAX: Final = 100
"""Characters of its name in the name of a temporary file, which the file system limits to 255 bytes."""


class Session:
    """Connection to the broker for the requests of one command."""

    def __init__(self, web: Web, target: Target, seconds: float) -> None:
        self._web = web
        self._target = target
        self._seconds = seconds

    def ask(self, call: AdminRequest, values: dict[str, Any]) -> Any:
        """Send a request. Return JSON as a value, other content as text, None without content.

        Raises Failed for an error response, Unreachable, TimedOut.
        """
        return value_of(self.reply(call, values))

    def reply(self, call: AdminRequest, values: dict[str, Any]) -> Reply:
        """Send a request and return the raw response. Raises Failed for an error response, Unreachable, TimedOut."""
        body = body_of(call, values)
        data = None if body is None else (str(body) if call.plain else compact(body)).encode()
        return self._checked(call, lambda: self._web.exchange(call.method, target_of(call, values), data, call.kind))

    def send_form(self, call: AdminRequest, values: dict[str, Any], parts: Sequence[Part]) -> Reply:
        """Send a request with a form as its body, and return the raw response.

        Raises Misused for a file that cannot be read, Failed for an error response, Unreachable, TimedOut.
        """
        try:
            form = MultipartBody(parts)
        except OSError as error:
            raise Misused(f"cannot read {error.filename}: {error.strerror}") from None
        return self._checked(call, lambda: self._web.exchange(call.method, target_of(call, values), form))

    def download(self, call: AdminRequest, values: dict[str, Any], destination: str) -> None:
        """Write the content of a response to a file, created with its folders, or replaced once it is complete.

        Raises Failed for an error response or if the file cannot be written, Unreachable, TimedOut.
        """
        target = target_of(call, values)
        try:
            with _replacing(Path(destination)) as file:
                self._checked(call, lambda: self._web.download(target, file))
        except (OSError, Unwritten) as error:
            raise Failed(f"cannot write {destination}: {error}") from None

    def _checked(self, call: AdminRequest, exchange: Callable[[], Reply]) -> Reply:
        try:
            reply = exchange()
        except TooSlow:
            raise self._target.silent(self._seconds) from None
        except Unanswered as error:
            raise self._target.unreachable(str(error)) from error
        if reply.status >= 400:
            raise ending_of_status(reply.status, reply.reason, call.method)
        return reply


@contextmanager
def _replacing(path: Path) -> Iterator[BinaryIO]:
    """Open a file that replaces the one at ``path`` on exit without an error. Creates missing folders."""
    path.parent.mkdir(parents=True, exist_ok=True)
    handle, name = tempfile.mkstemp(dir=path.parent, prefix=f".{path.name[:_NAME_MAX]}.")
    try:
        with os.fdopen(handle, "wb") as file:
            yield file
        Path(name).chmod(_MODE)
        Path(name).replace(path)
    finally:
        Path(name).unlink(missing_ok=True)


def chosen(command: Command, values: dict[str, Any]) -> AdminRequest:
    """Return the first call of a command whose ``when`` options are all given."""
    return next(call for call in command.calls if all(values.get(name) not in (None, False) for name in call.when))


def target_of(call: AdminRequest, values: dict[str, Any]) -> str:
    """Return path and query with their values filled in."""
    return path_of(call, values) + query_of(call, values)


def path_of(call: AdminRequest, values: dict[str, Any]) -> str:
    """Return the path with its values filled in."""
    return "/".join(_segment(call, part, values) for part in call.path.split("/"))


def _segment(call: AdminRequest, part: str, values: dict[str, Any]) -> str:
    if not part.startswith("{"):
        return part
    name, _, what = part.strip("{}").partition(".")
    value = values[name]
    if isinstance(value, TopicName):
        words = [value.tenant, value.namespace_local, value.local]
        return "/".join(quote(word, safe="") for word in ([] if what else [value.domain]) + words)
    if isinstance(value, PackageUrl):
        return "/".join(quote(word, safe="") for word in value.path(version=not what))
    if name == "namespace":
        return quote(value, safe="/")
    if name == "subscription" and call.path.startswith("/admin/v2/{topic}"):
        return quote(quote_plus(value))  # brokers decode these twice
    return quote(str(value), safe=":")


def query_of(call: AdminRequest, values: dict[str, Any]) -> str:
    """Return the query with its question mark, empty without any."""
    pairs: list[tuple[str, str]] = []
    for key, optional, text in call.query:
        value = _filled(text, values)
        if optional and value in (None, False):
            continue
        if value is None:
            value = ""
        if isinstance(value, dict):
            value = ",".join(f"{name}={one}" for name, one in value.items())
        several = value if isinstance(value, list) else [value]
        pairs += ((key, str(one).lower() if isinstance(one, bool) else str(one)) for one in several)
    return f"?{urlencode(pairs)}" if pairs else ""


def body_of(call: AdminRequest, values: dict[str, Any]) -> Any:
    """Return the body with its values filled in, None without any."""
    return _built(call.body, values)


def _built(shape: Any, values: dict[str, Any]) -> Any:
    if isinstance(shape, dict):
        made = {}
        for key, part in shape.items():
            if isinstance(part, str) and part.startswith("?"):
                value = _filled("$" + part[1:], values)
                if value is None:
                    continue
                made[key] = value
            else:
                made[key] = _built(part, values)
        return made
    if isinstance(shape, list):
        return [_built(part, values) for part in shape]
    return _filled(shape, values) if isinstance(shape, str) else shape


def _filled(text: str, values: dict[str, Any]) -> Any:
    """Resolve ``$name``, ``!$name`` or ``$name/unit`` to its value; return other text unchanged."""
    if text.startswith("!$"):
        return not values[text[2:]]
    if not text.startswith("$"):
        return text
    name, _, unit = text[1:].partition("/")
    value = values[name]
    if isinstance(value, TopicName):
        value = str(value)
    return value if value is None or not unit else UNITS[unit](value)


def value_of(reply: Reply) -> Any:
    """Return the content of a response as JSON value or text, None without content."""
    kind = reply.headers.get("content-type", "")
    if not reply.body.strip():
        return None
    text = reply.body.decode("utf-8", "replace")
    if "json" in kind or not kind:
        try:
            return loads(text)
        except ValueError:
            return text
    return text
