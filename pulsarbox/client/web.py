"""One request of the Admin API and its answer, over HTTP or HTTPS, with a token or a certificate.

Nothing is known here of what is asked: paths and bodies come from the caller. A redirect, with which a cluster names
the broker that has the topic, is followed; credentials go along to brokers of the same scheme only.
"""

import json
from collections.abc import Iterator, Sequence
from typing import TYPE_CHECKING, Any, Final, NamedTuple
from urllib.parse import urljoin, urlsplit

from pulsarbox.client.credentials import NOBODY, Credentials
from pulsarbox.client.http1 import Connection, Ended, Malformed

if TYPE_CHECKING:
    import ssl

__all__ = ["Credentials", "Reply", "TooSlow", "Unanswered", "Web"]

REDIRECTS_MAX: Final = 20
ANSWER_BYTES_MAX: Final = 256 << 20
LINE_BYTES_MAX: Final = 1 << 20
_REASON_MAX: Final = 2000
"""Characters of an answer that is no JSON, in an error."""
_OK: Final = 200
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
            from http import HTTPStatus  # seldom: most say it in words

            try:
                return f"HTTP {self.status} {HTTPStatus(self.status).phrase}"
            except ValueError:
                return f"HTTP {self.status}"
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
        self._connection: Connection | None = None

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
            answer = connection.ask("GET", target, None, {"Accept": "*/*", **self._credentials.headers()})
            if answer.status != _OK:
                raise Refusal(Reply(answer.status, answer.headers, answer.body(ANSWER_BYTES_MAX)))
            yield from answer.lines(LINE_BYTES_MAX)
        except TimeoutError as error:
            raise TooSlow(f"nothing has come for {self._seconds:g} s") from error
        except (Malformed, OSError) as error:
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
        except ConnectionError as error:
            self.close()
            if not kept or method == "POST":
                raise Unanswered(_in_words(error)) from error
        # The connection was idle for too long: GET, PUT and DELETE may be repeated.
        try:
            return self._once(method, target, body, headers)
        except ConnectionError as error:
            self.close()
            raise Unanswered(_in_words(error)) from error

    def _once(self, method: str, target: str, body: bytes | None, headers: dict[str, str]) -> Reply:
        connection = self._connected()
        try:
            answer = connection.ask(method, target, body, headers)
            reply = Reply(answer.status, answer.headers, answer.body(ANSWER_BYTES_MAX))
        except TimeoutError as error:
            self.close()
            raise TooSlow(f"no answer within {self._seconds:g} s") from error
        except ConnectionError:
            raise
        except (Malformed, OSError) as error:  # TLS may fail this late
            self.close()
            raise Unanswered(str(error)) from error
        if answer.is_last:
            self.close()
        return reply

    def _connected(self) -> Connection:
        if self._connection is None:
            self._connection = self._new_connection()
        return self._connection

    def _new_connection(self) -> Connection:
        reasons = []
        tls = self._tls() if self._secure else None
        for host, port in self._hosts:
            try:
                return Connection(host, port, self._seconds, tls)
            except TimeoutError:
                reasons.append(f"{host}:{port} does not answer")
            except OSError as error:
                reasons.append(f"{host}:{port}: {error.strerror or error}")
        raise Unanswered("; ".join(reasons))

    def _tls(self) -> "ssl.SSLContext":
        try:
            return self._credentials.tls()
        except OSError as error:
            raise Unanswered(f"the certificates cannot be used: {error}") from error


def _in_words(error: Exception) -> str:
    if isinstance(error, Ended):
        return "the connection ended without an answer: is it the port of the Admin API?"
    return str(error) or type(error).__name__
