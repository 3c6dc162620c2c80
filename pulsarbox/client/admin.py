"""A thin client of the Admin REST API, of a box or of Apache Pulsar: synchronous, one connection that is kept.

It knows the paths that our commands use. What a broker refuses is a ``Refused`` with its status and its own words.
"""

import contextlib
import http.client
import json
from collections.abc import Sequence
from types import TracebackType
from typing import Any, Final
from urllib.parse import quote, urlencode

from pulsarbox.client.errors import NoAnswer, NotConnected
from pulsarbox.errors import PulsarBoxError
from pulsarbox.names import TopicName

ANSWER_BYTES_MAX: Final = 256 << 20
EARLIEST: Final = {"ledgerId": -1, "entryId": -1}
LATEST: Final = {"ledgerId": 2**63 - 1, "entryId": 2**63 - 1}
_TEXT_MAX: Final = 500
"""Characters of an answer that is no JSON, in an error."""


class Refused(PulsarBoxError):
    """The broker does not do it; ``status`` is the HTTP status, ``method`` that of the request, the text its reason."""

    def __init__(self, status: int, reason: str, method: str) -> None:
        super().__init__(reason)
        self.status = status
        self.method = method


class Admin:
    """The Admin API at one of some hosts and ports, the first that answers."""

    def __init__(self, hosts: Sequence[tuple[str, int]], seconds: float = 30.0) -> None:
        """``seconds``: how long an answer is waited for."""
        self._hosts = tuple(hosts)
        self._seconds = seconds
        self._connection: http.client.HTTPConnection | None = None

    def __enter__(self) -> "Admin":
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.close()

    def close(self) -> None:
        """Let the connection go."""
        if self._connection is not None:
            self._connection.close()
            self._connection = None

    # Asking

    def ask(
        self, method: str, path: str, body: Any = None, content_type: str = "application/json", **query: str
    ) -> Any:
        """The JSON of an answer, None where there is none. ``path`` is what follows /admin/v2, quoted.

        Raises Refused, NotConnected, NoAnswer.
        """
        target = f"/admin/v2{path}" + (f"?{urlencode(query)}" if query else "")
        data = None if body is None else json.dumps(body).encode()
        kept = self._connection is not None
        try:
            status, answer = self._exchange(method, target, data, content_type)
        except (ConnectionError, http.client.RemoteDisconnected, http.client.BadStatusLine) as error:
            self.close()
            if not kept or method not in ("GET", "PUT", "DELETE"):
                raise NotConnected(str(error) or type(error).__name__) from error
            # The broker closes connections that were idle for a while: these requests may be repeated.
            status, answer = self._again(method, target, data, content_type)
        if status >= 400:
            raise Refused(status, _reason(status, answer), method)
        if not answer.strip():
            return None
        try:
            return json.loads(answer)
        except ValueError:
            raise Refused(
                status, f"The answer to {method} {target} is not JSON: is this the Admin API?", method
            ) from None

    def _again(self, method: str, target: str, data: bytes | None, content_type: str) -> tuple[int, bytes]:
        try:
            return self._exchange(method, target, data, content_type)
        except (ConnectionError, http.client.HTTPException) as error:
            self.close()
            raise NotConnected(str(error) or type(error).__name__) from error

    def _exchange(self, method: str, target: str, data: bytes | None, content_type: str) -> tuple[int, bytes]:
        connection = self._connected()
        headers = {"Content-Type": content_type} if data is not None else {}
        try:
            connection.request(method, target, data, headers)
            response = connection.getresponse()
            answer = response.read(ANSWER_BYTES_MAX)
        except TimeoutError as error:
            self.close()
            raise NoAnswer(f"{method} {target} was not answered within {self._seconds:g} s") from error
        except http.client.HTTPException as error:
            self.close()
            if isinstance(error, ConnectionError | http.client.BadStatusLine):
                raise
            raise NotConnected(f"what answers is not HTTP: {error}") from error
        if response.will_close:
            self.close()
        return response.status, answer

    def _connected(self) -> http.client.HTTPConnection:
        if self._connection is not None:
            return self._connection
        errors = []
        for host, port in self._hosts:
            connection = http.client.HTTPConnection(host, port, timeout=self._seconds)
            try:
                connection.connect()
            except TimeoutError:
                errors.append(f"{host}:{port} does not answer")
            except OSError as error:
                errors.append(f"{host}:{port}: {error.strerror or error}")
            else:
                self._connection = connection
                return connection
            with contextlib.suppress(OSError):
                connection.close()
        raise NotConnected("; ".join(errors))

    # Names

    def tenants(self) -> list[str]:
        """All tenants."""
        return sorted(self.ask("GET", "/tenants"))

    def clusters(self) -> list[str]:
        """All clusters."""
        return sorted(self.ask("GET", "/clusters"))

    def namespaces(self, tenant: str) -> list[str]:
        """The namespaces of a tenant, as ``tenant/namespace``."""
        return sorted(self.ask("GET", f"/namespaces/{quoted(tenant)}"))

    def topics(self, namespace: str, domain: str = "persistent") -> list[str]:
        """The topics of a namespace by full name, partitions one by one."""
        return sorted(self.ask("GET", f"/{domain}/{quoted(*namespace.split('/'))}"))

    def partitioned_topics(self, namespace: str, domain: str = "persistent") -> list[str]:
        """The partitioned topics of a namespace by full name."""
        return sorted(self.ask("GET", f"/{domain}/{quoted(*namespace.split('/'))}/partitioned"))

    def partitions(self, topic: TopicName) -> int:
        """The number of partitions of a topic; 0 where it has none, and where it does not exist."""
        try:
            count = self.ask("GET", f"{path_of(topic)}/partitions")["partitions"]
        except Refused as error:
            if error.status == 404 and "amespace" not in str(error):
                return 0
            raise
        assert isinstance(count, int)
        return count

    def subscriptions(self, topic: TopicName) -> list[str]:
        """The subscriptions of a topic, those of all its partitions."""
        return sorted(self.ask("GET", f"{path_of(topic)}/subscriptions"))

    # Statistics

    def stats(self, topic: TopicName, partitions: int) -> dict[str, Any]:
        """The statistics of a topic, its partitions summed up where it has any."""
        which = "partitioned-stats" if partitions else "stats"
        found: dict[str, Any] = self.ask("GET", f"{path_of(topic)}/{which}", getPreciseBacklog="true")
        return found

    def internal_stats(self, topic: TopicName) -> dict[str, Any]:
        """The ledgers and cursors of a topic that is not partitioned."""
        found: dict[str, Any] = self.ask("GET", f"{path_of(topic)}/internalStats")
        return found


def quoted(*parts: str) -> str:
    """Names as parts of a path."""
    return "/".join(quote(part, safe="") for part in parts)


def path_of(topic: TopicName, *more: str) -> str:
    """Where a topic is, and what there is below it."""
    return "/" + quoted(topic.domain, topic.tenant, topic.namespace_local, topic.local, *more)


def _reason(status: int, answer: bytes) -> str:
    """Why a broker refuses, in its words where it has any."""
    text = answer.decode(errors="replace").strip()
    try:
        found = json.loads(text)
    except ValueError:
        found = None
    if isinstance(found, dict) and isinstance(found.get("reason"), str):
        reason: str = found["reason"].strip()
        if "Stacktrace:" in reason:  # of a Java broker, which says in one line what it means
            said = reason.partition("Message: ")[2].partition("\n")[0]
            return said or reason[:_TEXT_MAX]
        return reason
    if not text or text.startswith("<"):
        return f"HTTP {status} {http.client.responses.get(status, '')}".strip()
    return text[:_TEXT_MAX]
