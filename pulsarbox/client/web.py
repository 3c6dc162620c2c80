"""One request of the Admin API and its answer, over HTTP or HTTPS, with a token or a certificate.

Nothing is known here of what is asked: paths and bodies come from the caller. A redirect, with which a cluster names
the broker that has the topic, is followed; credentials go along to brokers of the same scheme only.
"""

import http.client
import json
from collections.abc import Iterator, Sequence
from typing import Any, Final, NamedTuple
from urllib.parse import urljoin, urlsplit

from pulsarbox.client.credentials import NOBODY, Credentials

__all__ = ["Credentials", "Reply", "TooSlow", "Unanswered", "Web"]

REDIRECTS_MAX: Final = 20
ANSWER_BYTES_MAX: Final = 256 << 20
LINE_BYTES_MAX: Final = 1 << 20
_REASON_MAX: Final = 2000
"""Characters of an answer that is no JSON, in an error."""
_REDIRECTED: Final = frozenset({301, 302, 307, 308})


class Unanswered(Exception):
    """Nobody answers, or what answers is not HTTP; the text says which."""


class TooSlow(Unanswered):
    """There was no answer in time."""


class Refusal(Exception):
    """A request for lines was answered otherwise."""

    def __init__(self, reply: "Reply") -> None:
        super().__init__(reply.status)
        self.reply = reply


class Reply(NamedTuple):
    """An answer, whatever its status."""

    status: int
    headers: dict[str, str]
    """By name in lower case."""
    body: bytes

    @property
    def text(self) -> str:
        """The body as text, whatever it holds."""
        return self.body.decode("utf-8", "replace").strip()

    @property
    def reason(self) -> str:
        """Why a broker refuses, in its own words where it has any."""
        text = self.text
        try:
            found: Any = json.loads(text)
        except ValueError:
            found = None
        if isinstance(found, dict) and isinstance(found.get("reason"), str):
            found = found["reason"]
            if "Stacktrace:" in found:  # of a Java broker, which says in one line what it means
                found = found.partition("Message: ")[2].partition("\n")[0] or found
        reason = (found if isinstance(found, str) else text).strip()
        if not reason or reason.startswith("<"):
            return f"HTTP {self.status} {http.client.responses.get(self.status, '')}".strip()
        return reason[:_REASON_MAX]


class Web:
    """A broker's web service: requests one after the other, on a connection that is kept."""

    def __init__(
        self,
        hosts: Sequence[tuple[str, int]],
        *,
        secure: bool = False,
        credentials: Credentials = NOBODY,
        seconds: float = 60.0,
    ) -> None:
        """``hosts``: the first that answers is taken. ``seconds``: how long an answer is waited for."""
        self._hosts = tuple(hosts)
        self._secure = secure
        self._credentials = credentials
        self._seconds = seconds
        self._connection: http.client.HTTPConnection | None = None

    def close(self) -> None:
        """Let the connection go."""
        if self._connection is not None:
            self._connection.close()
            self._connection = None

    def exchange(
        self, method: str, target: str, body: bytes | None = None, kind: str = "application/json", accept: str = "*/*"
    ) -> Reply:
        """The answer to a request; ``kind`` is what the body is. Raises Unanswered, TooSlow."""
        reply = self._asked(method, target, body, kind, accept)
        for _ in range(REDIRECTS_MAX):
            if reply.status not in _REDIRECTED or not reply.headers.get("location"):
                return reply
            target = self._moved(target, reply.headers["location"])
            reply = self._asked(method, target, body, kind, accept)
        raise Unanswered(f"{REDIRECTS_MAX} redirects in a row, the last to {target}")

    def lines(self, target: str) -> Iterator[bytes]:
        """The lines of an answer that goes on, each when it comes; empty ones are signs of life. It has a connection of
        its own, which is gone when that ends.

        Raises Unanswered where it ends because of the connection, TooSlow where nothing comes for too long. An answer
        that refuses raises Refusal, with its Reply.
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
            raise TooSlow(f"nothing has come for {self._seconds:g} s") from error
        except (http.client.HTTPException, OSError) as error:
            raise Unanswered(_in_words(error)) from error
        finally:
            connection.close()

    def _moved(self, target: str, location: str) -> str:
        """The target at the broker that a redirect names, which is talked to from now on."""
        host, port = self._hosts[0]
        scheme = "https" if self._secure else "http"
        to = urlsplit(urljoin(f"{scheme}://{host}:{port}{target}", location))
        if to.scheme not in ("http", "https") or not to.hostname:
            raise Unanswered(f"the broker redirects to {location}, which is no web address")
        if to.scheme != scheme:
            raise Unanswered(f"the broker redirects from {scheme} to {location}: name that broker with --admin-url")
        self.close()
        self._hosts = ((to.hostname, to.port or (443 if self._secure else 80)),)
        return to.path + (f"?{to.query}" if to.query else "")

    def _asked(self, method: str, target: str, body: bytes | None, kind: str, accept: str) -> Reply:
        headers = {"Accept": accept, **self._credentials.headers()}
        if body is not None:
            headers["Content-Type"] = kind
        kept = self._connection is not None
        try:
            return self._once(method, target, body, headers)
        except (ConnectionError, http.client.BadStatusLine) as error:
            self.close()
            if not kept or method == "POST":
                raise Unanswered(_in_words(error)) from error
        # The connection was idle for too long: GET, PUT and DELETE may be repeated.
        try:
            return self._once(method, target, body, headers)
        except (ConnectionError, http.client.BadStatusLine) as error:
            self.close()
            raise Unanswered(_in_words(error)) from error

    def _once(self, method: str, target: str, body: bytes | None, headers: dict[str, str]) -> Reply:
        connection = self._connected()
        try:
            connection.request(method, target, body, headers)
            response = connection.getresponse()
            answer = response.read(ANSWER_BYTES_MAX)
            if response.length:  # a read with a bound does not say itself that the rest is missing
                raise http.client.IncompleteRead(answer, response.length)
        except TimeoutError as error:
            self.close()
            raise TooSlow(f"no answer within {self._seconds:g} s") from error
        except (http.client.HTTPException, OSError) as error:
            if isinstance(error, ConnectionError | http.client.BadStatusLine):
                raise
            self.close()
            what = "" if isinstance(error, OSError) else "what answers is not HTTP: "  # TLS may fail this late
            raise Unanswered(f"{what}{error}") from error
        if response.will_close:
            self.close()
        return Reply(response.status, {name.lower(): value for name, value in response.getheaders()}, answer)

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
            raise Unanswered(f"the certificates cannot be used: {error}") from error
        return http.client.HTTPSConnection(host, port, timeout=self._seconds, context=context)


def _in_words(error: Exception) -> str:
    if isinstance(error, http.client.RemoteDisconnected):
        return "the connection ended without an answer: is it the port of the Admin API?"
    return str(error) or type(error).__name__
