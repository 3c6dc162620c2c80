"""HTTP and HTTPS requests to a broker's Admin API, with credentials.

Paths and bodies come from the caller. Redirects, by which a cluster names the broker that owns a topic, are followed;
credentials are forwarded only to brokers with the same scheme.
"""

import http.client
import json
from collections.abc import Callable, Iterator, Sequence
from typing import Any, BinaryIO, Final, NamedTuple
from urllib.parse import urljoin, urlsplit

from pulsarbox.client.credentials import NOBODY, Credentials
from pulsarbox.client.transport.multipart import CHUNK_BYTES, MultipartBody
from pulsarbox.errors import CODE_HEADER, WARNING_HEADER

__all__ = ["Credentials", "Reply", "TooSlow", "Unanswered", "Unwritten", "Web"]

REDIRECTS_MAX: Final = 20
ANSWER_BYTES_MAX: Final = 256 << 20
LINE_BYTES_MAX: Final = 1 << 20
_REASON_MAX: Final = 2000
"""Characters of a response that is not JSON in an error message."""
_REDIRECTED: Final = frozenset({301, 302, 307, 308})

Body = bytes | MultipartBody | None
"""Body of a request."""


class Unanswered(Exception):
    """The server is unreachable or does not speak HTTP; the message gives the reason."""


class TooSlow(Unanswered):
    """The request timed out."""


class Unwritten(Exception):
    """A downloaded file cannot be written; the message gives the reason."""


class Refusal(Exception):
    """A streaming request was rejected."""

    def __init__(self, reply: "Reply") -> None:
        super().__init__(reply.status)
        self.reply = reply


class Reply(NamedTuple):
    """A response with any status."""

    status: int
    headers: dict[str, str]
    """By lower-case name."""
    body: bytes

    @property
    def text(self) -> str:
        """The body as text; invalid UTF-8 is replaced."""
        return self.body.decode("utf-8", "replace").strip()

    @property
    def code(self) -> str:
        """The code of an error of a box, see ``PulsarBoxError.error_code``; empty if there is none."""
        return self.headers.get(CODE_HEADER.lower(), "")

    @property
    def warning(self) -> str:
        """The warning of a box about a change without effect; empty if there is none."""
        return self.headers.get(WARNING_HEADER.lower(), "")

    @property
    def reason(self) -> str:
        """The broker's error message, or the HTTP status if there is none."""
        text = self.text
        try:
            found: Any = json.loads(text)
        except ValueError:
            found = None
        if isinstance(found, dict) and isinstance(found.get("reason"), str):
            found = found["reason"]
            if "Stacktrace:" in found:  # a Java broker's error, whose message is one line within it
                found = found.partition("Message: ")[2].partition("\n")[0] or found
        reason = (found if isinstance(found, str) else text).strip()
        if not reason or reason.startswith("<"):
            return f"HTTP {self.status} {http.client.responses.get(self.status, '')}".strip()
        return reason[:_REASON_MAX]


class Web:
    """A broker's web service: sequential requests on a persistent connection."""

    def __init__(
        self,
        hosts: Sequence[tuple[str, int]],
        *,
        secure: bool = False,
        credentials: Credentials = NOBODY,
        seconds: float = 60.0,
        warn: Callable[[str], None] = lambda text: None,
    ) -> None:
        """``hosts``: tried in turn until one answers. ``seconds``: response timeout. ``warn``: called with the warning
        of each answer that has one."""
        self._hosts = tuple(hosts)
        self._secure = secure
        self._credentials = credentials
        self._seconds = seconds
        self._warn = warn
        self._connection: http.client.HTTPConnection | None = None

    def close(self) -> None:
        """Close the connection."""
        if self._connection is not None:
            self._connection.close()
            self._connection = None

    def exchange(
        self, method: str, target: str, body: Body = None, kind: str = "application/json", accept: str = "*/*"
    ) -> Reply:
        """Send a request and return the response; ``kind`` is the content type of a ``body`` of bytes. Raises
        Unanswered, TooSlow."""
        return self._followed(_Request(method, target, body, kind, accept))

    def download(self, target: str, file: BinaryIO) -> Reply:
        """Write the body of a successful response to a file, and return the response, without that body.

        Raises Unanswered, TooSlow and Unwritten. The file may then hold a part of the body.
        """
        try:
            return self._followed(_Request("GET", target, file=file))
        except Unwritten:
            self.close()
            raise

    def _followed(self, request: "_Request") -> Reply:
        reply = self._asked(request)
        for _ in range(REDIRECTS_MAX):
            if reply.status not in _REDIRECTED or not reply.headers.get("location"):
                if reply.warning:
                    self._warn(reply.warning)
                return reply
            request = request._replace(target=self._moved(request.target, reply.headers["location"]))
            reply = self._asked(request)
        raise Unanswered(f"too many redirects ({REDIRECTS_MAX}), the last to {request.target}")

    def lines(self, target: str) -> Iterator[bytes]:
        """Yield the lines of a streaming response as they arrive; empty lines are heartbeats. Uses a connection of its
        own.

        Raises Unanswered if the connection fails, TooSlow if nothing arrives for too long, and Refusal with the Reply
        for an unsuccessful response.
        """
        connection = self._new_connection()
        try:
            connection.request("GET", target, headers={"Accept": "*/*", **self._credentials.headers()})
            response = connection.getresponse()
            if response.status != http.client.OK:
                headers = {name.lower(): value for name, value in response.getheaders()}
                raise Refusal(Reply(response.status, headers, response.read(ANSWER_BYTES_MAX)))
            while line := response.readline(LINE_BYTES_MAX):
                yield line.rstrip(b"\n")
        except TimeoutError as error:
            raise TooSlow(f"no data received for {self._seconds:g} s") from error
        except (http.client.HTTPException, OSError) as error:
            raise Unanswered(_in_words(error)) from error
        finally:
            connection.close()

    def _moved(self, target: str, location: str) -> str:
        """Switch to the broker that a redirect names, and return the target there."""
        host, port = self._hosts[0]
        scheme = "https" if self._secure else "http"
        to = urlsplit(urljoin(f"{scheme}://{host}:{port}{target}", location))
        if to.scheme not in ("http", "https") or not to.hostname:
            raise Unanswered(f"the broker redirects to {location}, which is not an HTTP address")
        if to.scheme != scheme:
            raise Unanswered(f"the broker redirects from {scheme} to {location}: use this address for --admin-url")
        self.close()
        self._hosts = ((to.hostname, to.port or (443 if self._secure else 80)),)
        return to.path + (f"?{to.query}" if to.query else "")

    def _asked(self, request: "_Request") -> Reply:
        kept = self._connection is not None
        try:
            return self._once(request)
        except (ConnectionError, http.client.BadStatusLine) as error:
            self.close()
            if not kept or request.method == "POST":
                raise Unanswered(_in_words(error)) from error
        # An idle connection has been closed by the server: GET, PUT and DELETE may be repeated.
        try:
            return self._once(request)
        except (ConnectionError, http.client.BadStatusLine) as error:
            self.close()
            raise Unanswered(_in_words(error)) from error

    def _once(self, request: "_Request") -> Reply:
        connection = self._connected()
        try:
            self._send(connection, request)
            response = connection.getresponse()
            answer = _content(response, request.file)
            if response.length:  # a bounded read does not report missing bytes itself
                raise http.client.IncompleteRead(answer, response.length)
        except TimeoutError as error:
            self.close()
            raise TooSlow(f"no answer within {self._seconds:g} s") from error
        except (http.client.HTTPException, OSError) as error:
            if isinstance(error, ConnectionError | http.client.BadStatusLine):
                raise
            self.close()
            # TLS errors may surface here as OSError.
            what = "" if isinstance(error, OSError) else "the server does not speak HTTP: "
            raise Unanswered(f"{what}{error}") from error
        if response.will_close:
            self.close()
        return Reply(response.status, {name.lower(): value for name, value in response.getheaders()}, answer)

    def _send(self, connection: http.client.HTTPConnection, request: "_Request") -> None:
        headers = {"Accept": request.accept, **self._credentials.headers()}
        body = request.body
        if isinstance(body, MultipartBody):
            headers |= {"Content-Type": body.kind, "Content-Length": str(body.length)}
        elif body is not None:
            headers["Content-Type"] = request.kind
        try:
            connection.request(request.method, request.target, body, headers)
        except BrokenPipeError:
            # A server may reject a form before it has read all of it; its response has the reason.
            if not isinstance(body, MultipartBody):
                raise

    def _connected(self) -> http.client.HTTPConnection:
        if self._connection is None:
            self._connection = self._new_connection()
        return self._connection

    def _new_connection(self) -> http.client.HTTPConnection:
        reasons = []
        for host, port in self._hosts:
            connection = self._to(host, port)
            try:
                connection.connect()
            except TimeoutError:
                reasons.append(f"{host}:{port} does not answer")
            except OSError as error:
                reasons.append(f"{host}:{port}: {error.strerror or error}")
            else:
                return connection
            connection.close()
        raise Unanswered("; ".join(reasons))

    def _to(self, host: str, port: int) -> http.client.HTTPConnection:
        if not self._secure:
            return http.client.HTTPConnection(host, port, timeout=self._seconds)
        try:
            context = self._credentials.tls()
        except OSError as error:
            raise Unanswered(f"cannot load the certificates: {error}") from error
        return http.client.HTTPSConnection(host, port, timeout=self._seconds, context=context)


class _Request(NamedTuple):
    """A request, as it is sent and sent again."""

    method: str
    target: str
    body: Body = None
    kind: str = "application/json"
    """Media type of a body of bytes."""
    accept: str = "*/*"
    file: BinaryIO | None = None
    """Destination of the body of a successful response."""


def _content(response: http.client.HTTPResponse, file: BinaryIO | None) -> bytes:
    """Return the body of a response, or write it to the file if the response is successful."""
    if file is None or response.status != http.client.OK:
        return response.read(ANSWER_BYTES_MAX)
    while chunk := response.read(CHUNK_BYTES):
        try:
            file.write(chunk)
        except OSError as error:
            raise Unwritten(str(error)) from error
    return b""


def _in_words(error: Exception) -> str:
    if isinstance(error, http.client.RemoteDisconnected):
        return "connection closed without a response: is this the port of the Admin API?"
    return str(error) or type(error).__name__
