"""A thin client of the Admin REST API of a box or of Apache Pulsar: synchronous, with one persistent connection.

It knows the paths that pulsarbox's commands use. A rejected request raises ``AdminRefused`` with the broker's status
and reason.
"""

import json
from collections.abc import Callable, Iterator, Mapping, Sequence
from types import TracebackType
from typing import Any, Final
from urllib.parse import urlencode

from pulsarbox.client.credentials import NOBODY, Credentials
from pulsarbox.client.errors import NoAnswer, NotConnected
from pulsarbox.client.transport.web import Refusal, Reply, TooSlow, Unanswered, Web
from pulsarbox.errors import PulsarBoxError, SinkUnused
from pulsarbox.names import TopicName
from pulsarbox.protocol.admin_paths import path_of, path_of_subscription, quoted, subscription_segment

__all__ = ["Admin", "AdminRefused", "path_of", "path_of_subscription", "quoted", "subscription_segment"]

ROWS_AT_ONCE: Final = 1000
"""Rows of a live view that a box returns in one response."""
PLACES_AT_ONCE: Final = 500
"""Topics in one request."""
EARLIEST: Final = {"ledgerId": -1, "entryId": -1}
LATEST: Final = {"ledgerId": 2**63 - 1, "entryId": 2**63 - 1}
_EVENTS: Final = "/pulsarbox/v1/events"
_LOOKUP: Final = "/lookup/v2/topic/persistent/public/default/pulsarbox"
"""A lookup path that creates no topic."""


class AdminRefused(PulsarBoxError):
    """The broker rejected a request; ``status`` is the HTTP status, ``method`` the request's, the message its
    reason. ``code`` names the error of a box, see ``PulsarBoxError.error_code``."""

    def __init__(self, status: int, reason: str, method: str, code: str = "") -> None:
        super().__init__(reason)
        self.status = status
        self.method = method
        self.code = code


class Admin:
    """The Admin API at the first of several addresses that answers."""

    def __init__(
        self,
        hosts: Sequence[tuple[str, int]],
        seconds: float = 30.0,
        *,
        secure: bool = False,
        credentials: Credentials = NOBODY,
        warn: Callable[[str], None] = lambda text: None,
    ) -> None:
        """``seconds``: response timeout. ``secure``: use HTTPS. ``warn``: called with each warning of a box."""
        self._web = Web(hosts, secure=secure, credentials=credentials, seconds=seconds, warn=warn)

    def __enter__(self) -> "Admin":
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.close()

    def close(self) -> None:
        """Close the connection."""
        self._web.close()

    # Requests

    def ask(
        self, method: str, path: str, body: Any = None, content_type: str = "application/json", **query: str
    ) -> Any:
        """Return the JSON of a response, or None if it is empty. ``path`` is the quoted path after /admin/v2.

        Raises Refused, NotConnected, NoAnswer.
        """
        return self._ask(method, f"/admin/v2{path}" + (f"?{urlencode(query)}" if query else ""), body, content_type)

    def _ask(self, method: str, target: str, body: Any = None, content_type: str = "application/json") -> Any:
        return self.send(method, target, None if body is None else json.dumps(body).encode(), content_type)

    def send(self, method: str, target: str, data: bytes | None, content_type: str) -> Any:
        """Return the JSON of a response, as ``ask``; ``target`` is the whole quoted path with its query."""
        reply = self._exchange(method, target, data, content_type)
        try:
            return json.loads(reply.text) if reply.text else None
        except ValueError:
            said = f"The response to {method} {target} is not JSON: is this the Admin API?"
            raise AdminRefused(reply.status, said, method) from None

    def _exchange(self, method: str, target: str, data: bytes | None, content_type: str) -> Reply:
        try:
            reply = self._web.exchange(method, target, data, content_type)
        except TooSlow as error:
            raise NoAnswer(f"{method} {target}: {error}") from error
        except Unanswered as error:
            raise NotConnected(str(error)) from error
        if reply.status >= 400:
            raise AdminRefused(reply.status, reply.reason, method, reply.code)
        return reply

    # Names

    def tenants(self) -> list[str]:
        """Return all tenants."""
        return sorted(self.ask("GET", "/tenants"))

    def clusters(self) -> list[str]:
        """Return all clusters."""
        return sorted(self.ask("GET", "/clusters"))

    def service_urls(self) -> tuple[str, str]:
        """Return the broker's service URLs, without and with TLS; a URL that does not exist is empty.

        The cluster's metadata has the URL for clients, which may be a proxy's. If there are several clusters, or the
        role may not read them, the broker's URL is obtained through a topic lookup. Raises Refused, NotConnected,
        NoAnswer.
        """
        try:
            names = self.clusters()
            found = self.ask("GET", f"/clusters/{quoted(names[0])}") if len(names) == 1 else {}
        except AdminRefused:
            found = {}
        urls = found.get("brokerServiceUrl") or "", found.get("brokerServiceUrlTls") or ""
        if any(urls):
            return urls
        found = self._ask("GET", _LOOKUP)
        return found.get("brokerUrl") or "", found.get("brokerUrlTls") or found.get("brokerUrlSsl") or ""

    def namespaces(self, tenant: str) -> list[str]:
        """Return the namespaces of a tenant, as ``tenant/namespace``."""
        return sorted(self.ask("GET", f"/namespaces/{quoted(tenant)}"))

    def topics(self, namespace: str, domain: str = "persistent") -> list[str]:
        """Return the topics of a namespace by full name, with each partition."""
        return sorted(self.ask("GET", f"/{domain}/{quoted(*namespace.split('/'))}"))

    def system_topics(self, namespace: str, domain: str = "persistent") -> list[str]:
        """Return the broker's system topics in a namespace."""
        path = f"/{domain}/{quoted(*namespace.split('/'))}"
        return sorted(set(self.ask("GET", path, includeSystemTopic="true")) - set(self.ask("GET", path)))

    def partitioned_topics(self, namespace: str, domain: str = "persistent") -> list[str]:
        """Return the partitioned topics of a namespace by full name."""
        return sorted(self.ask("GET", f"/{domain}/{quoted(*namespace.split('/'))}/partitioned"))

    def partitions(self, topic: TopicName) -> int:
        """Return the number of partitions of a topic; 0 if it is not partitioned or does not exist."""
        try:
            count = self.ask("GET", f"{path_of(topic)}/partitions")["partitions"]
        except AdminRefused as error:
            # Apache Pulsar answers 404 for a missing topic and a missing namespace: only the text tells them apart.
            if error.status == 404 and "amespace" not in str(error):
                return 0
            raise
        assert isinstance(count, int)
        return count

    def subscriptions(self, topic: TopicName) -> list[str]:
        """Return the subscriptions of a topic and its partitions."""
        return sorted(self.ask("GET", f"{path_of(topic)}/subscriptions"))

    def policies(self, of: TopicName | str) -> dict[str, dict[str, Any]]:
        """Return the policies of a topic or ``tenant/namespace`` by name: value, level, meaning. Requires a box."""
        path = path_of(of) if isinstance(of, TopicName) else f"/{quoted(*of.split('/'))}"
        found: dict[str, dict[str, Any]] = self._ask("GET", f"/pulsarbox/v1/policies{path}")
        return found

    def own_policy(self, method: str, of: TopicName | str, word: str, value: Any = None) -> Any:
        """Get, set or remove a policy that only a box has, of a topic or ``tenant/namespace``."""
        path = path_of(of) if isinstance(of, TopicName) else f"/{quoted(*of.split('/'))}"
        return self._ask(method, f"/pulsarbox/v1/policies{path}/{word}", value)

    def set_text(self, method: str, path: str, text: str) -> None:
        """Send a body of plain text to a path after /admin/v2."""
        self._exchange(method, f"/admin/v2{path}", text.encode(), "application/json")

    def own(self, path: str) -> Any:
        """Return a box's response to GET below /pulsarbox/v1; ``path`` is the quoted rest, with its query."""
        return self._ask("GET", f"/pulsarbox/v1{path}")

    def change_ensemble(self, method: str, path: str, body: Any = None, query: Mapping[str, str] | None = None) -> Any:
        """Change the data directories of a box: ``path`` below /pulsarbox/v1/ensemble. Returns their status."""
        return self._ask(method, f"/pulsarbox/v1/ensemble{path}" + (f"?{urlencode(query)}" if query else ""), body)

    def places(self, topics: Sequence[str]) -> list[dict[str, Any] | None]:
        """Return the first and last positions of topics by full name, in order; None if missing. Requires a box."""
        found: list[dict[str, Any] | None] = []
        for at in range(0, len(topics), PLACES_AT_ONCE):
            body = {"topics": list(topics[at : at + PLACES_AT_ONCE])}
            found += self._ask("POST", "/pulsarbox/v1/places", body)["places"]
        return found

    def segments(self, ranges: Sequence[tuple[str, str, str]]) -> list[dict[str, Any] | None]:
        """Return the contents of topics between two positions, as ``GET /pulsarbox/v1/segments`` does, in order; None
        for a missing topic. Requires a box."""
        found: list[dict[str, Any] | None] = []
        for at in range(0, len(ranges), PLACES_AT_ONCE):
            asked = [
                {"topic": topic, "from": start, "to": end} for topic, start, end in ranges[at : at + PLACES_AT_ONCE]
            ]
            found += self._ask("POST", "/pulsarbox/v1/segments", {"topics": asked})["segments"]
        return found

    def close_ledger(self, topic: TopicName, older_than: int = 0) -> int | None:
        """Close a topic's current ledger if it was opened at least ``older_than`` milliseconds ago. Return its ID, or
        None if nothing was closed. Requires a box."""
        path = quoted(topic.tenant, topic.namespace_local, topic.local)
        found: int | None = self._ask("POST", f"/pulsarbox/v1/ledgers/{path}/close", {"olderThanMs": older_than})[
            "closed"
        ]
        return found

    # Dead letters; require a box

    def dead_letter_policy(
        self, topic: TopicName, subscription: str, method: str = "GET", value: dict[str, Any] | None = None
    ) -> dict[str, Any] | None:
        """Return a subscription's dead letter policy, or None; POST sets it, DELETE removes it."""
        path = f"/pulsarbox/v1/dead-letter-policy{path_of(topic)}/{subscription_segment(subscription)}"
        found: dict[str, Any] | None = self._ask(method, path, value)
        return found

    def dead_letter_topics(self, namespace: str) -> list[dict[str, Any]]:
        """Return the dead letter topics of ``tenant/namespace``."""
        found: list[dict[str, Any]] = self._ask("GET", f"/pulsarbox/v1/dead-letters/{quoted(*namespace.split('/'))}")
        return found

    def dead_letter_groups(self, topic: TopicName, **query: str) -> dict[str, Any]:
        """Return the dead letters of a topic, grouped by common attributes."""
        path = quoted(topic.tenant, topic.namespace_local, topic.local)
        asked = f"?{urlencode(query)}" if query else ""
        found: dict[str, Any] = self._ask("GET", f"/pulsarbox/v1/dlq/{path}/groups{asked}")
        return found

    # Jobs; require a box

    def jobs(self) -> list[dict[str, Any]]:
        """Return all visible jobs, newest first."""
        found: list[dict[str, Any]] = self._ask("GET", "/pulsarbox/v1/jobs")
        return found

    def job(self, number: int) -> dict[str, Any]:
        """Return one job."""
        found: dict[str, Any] = self._ask("GET", f"/pulsarbox/v1/jobs/{number}")
        return found

    def begin_job(self, asked: dict[str, Any]) -> dict[str, Any]:
        """Start a job and return it."""
        found: dict[str, Any] = self._ask("POST", "/pulsarbox/v1/jobs", asked)
        return found

    def change_job(self, number: int, action: str) -> dict[str, Any]:
        """Pause, resume or cancel a job and return it."""
        found: dict[str, Any] = self._ask("POST", f"/pulsarbox/v1/jobs/{number}/{action}")
        return found

    def cancel_compaction(self, topic: TopicName) -> None:
        """Cancel the compaction of a non-partitioned topic. Requires a box."""
        self._ask("DELETE", f"/pulsarbox/v1/compaction{path_of(topic)}")

    def pipelines(self) -> list[dict[str, Any]]:
        """Return the pipeline queries that runners have reported. Requires a box."""
        found: list[dict[str, Any]] = self._ask("GET", "/pulsarbox/v1/pipelines")
        return found

    def report_pipeline(self, name: str, told: dict[str, Any]) -> None:
        """Report the progress of a pipeline. Requires a box."""
        self._ask("PUT", f"/pulsarbox/v1/pipelines/{quoted(name)}", told)

    def plugins(self) -> list[dict[str, Any]]:
        """Return the plugins in use with their cost and their users. Requires a box."""
        found: list[dict[str, Any]] = self._ask("GET", "/pulsarbox/v1/plugins")
        return found

    # Transactions

    def transactions(self, age: int = 0) -> dict[str, dict[str, Any]]:
        """Return the transactions open for at least ``age`` milliseconds, by ID, as the broker shows them."""
        return self._ask("GET", f"/admin/v3/transactions/slowTransactions/{age}") or {}

    def transaction(self, most: int, least: int) -> dict[str, Any]:
        """Return one transaction by the two halves of its ID."""
        found: dict[str, Any] = self._ask("GET", f"/admin/v3/transactions/transactionMetadata/{most}/{least}")
        return found

    def abort_transaction(self, most: int, least: int) -> None:
        """Abort a transaction."""
        self._ask("POST", f"/admin/v3/transactions/abortTransaction/{most}/{least}")

    # Epoch sinks, named tenant/namespace/sink; require a box

    def sinks(self, namespace: str) -> Iterator[dict[str, Any]]:
        """Yield the sinks of ``tenant/namespace`` with committed epochs, by name, in the form of ``last_epoch``."""
        after: str | None = ""
        while after is not None:
            query = f"?{urlencode({'after': after})}" if after else ""
            told = self._ask("GET", f"/pulsarbox/v1/epochs/{quoted(*namespace.split('/'))}{query}")
            yield from told["sinks"]
            after = told["next"]

    def last_epoch(self, sink: str) -> dict[str, Any] | None:
        """Return a sink's last committed ``epoch`` and its ``committedAt`` (ms since 1970), or None."""
        try:
            found: dict[str, Any] = self._ask("GET", _epochs_of(sink))
        except AdminRefused as error:
            if error.code == SinkUnused.error_code:
                return None
            raise
        return found

    def stage_epoch(self, sink: str, epoch: int, body: Mapping[str, Any]) -> str | None:
        """Begin a transaction as part of an epoch. Return its ID (``0:17``), or None if the epoch is already committed.

        ``body``: ``timeoutMs`` and the writer, see docs/transactions.md. Raises Refused, with 409 for an epoch before
        the last one and for a writer that is not the sink's.
        """
        found: str | None = self._ask("POST", f"{_epochs_of(sink)}/{epoch}/stages", body)["transaction"]
        return found

    def commit_epoch(
        self, sink: str, epoch: int, transactions: Sequence[str], who: Mapping[str, Any] | None = None
    ) -> bool:
        """Commit an epoch's staged transactions, given by their IDs (``0:17``). Return False, after aborting them, if
        the epoch was committed before. ``who``: the writer, see docs/transactions.md.

        Raises Refused, with 409 for an epoch before the last one, an ended transaction and a writer that is not the
        sink's, 404 for an unknown transaction.
        """
        body = {"transactions": list(transactions), **(who or {})}
        return bool(self._ask("POST", f"{_epochs_of(sink)}/{epoch}", body)["committed"])

    def forget_sink(self, sink: str) -> None:
        """Delete a sink's state, so that it may start again at any epoch."""
        self._ask("DELETE", _epochs_of(sink))

    # Events; require a box

    def events(self, **query: str) -> dict[str, Any]:
        """Return events of a box, oldest first, and the number to continue from: see GET /pulsarbox/v1/events."""
        found: dict[str, Any] = self._ask("GET", f"{_EVENTS}?{urlencode(query)}")
        return found

    def follow_events(self, **query: str) -> Iterator[dict[str, Any] | None]:
        """Yield the events of a box as they occur, and None as a heartbeat, until the box stops.

        Raises Refused, NotConnected, NoAnswer.
        """
        try:
            for line in self._web.lines(f"{_EVENTS}?{urlencode({**query, 'follow': 'true'})}"):
                yield json.loads(line) if line else None
        except Refusal as error:
            raise AdminRefused(error.reply.status, error.reply.reason, "GET") from error
        except TooSlow as error:
            raise NoAnswer(f"GET {_EVENTS}: {error}") from error
        except (Unanswered, ValueError) as error:
            raise NotConnected(str(error)) from error

    # Live views; require a box

    def top(self, view: str, **query: str) -> dict[str, Any]:
        """Return a page of a live view: see docs/observing.md."""
        found: dict[str, Any] = self._ask("GET", f"/pulsarbox/v1/top/{quoted(view)}?{urlencode(query)}")
        return found

    def top_rows(self, view: str, **query: str) -> list[dict[str, Any]]:
        """Return all rows of a live view that match the filter, fetched page by page."""
        rows: list[dict[str, Any]] = []
        while True:
            found = self.top(view, **query | {"offset": str(len(rows)), "limit": str(ROWS_AT_ONCE)})
            rows += found["rows"]
            if len(found["rows"]) < ROWS_AT_ONCE:
                return rows

    def kick(self, client: str) -> None:
        """Disconnect a client, by its ID in the view of clients."""
        self._ask("POST", f"/pulsarbox/v1/clients/{quoted(client)}/kick")

    # Statistics

    def unacknowledged_entry(self, topic: TopicName, subscription: str, number: int) -> str | None:
        """Return the position (``ledger:entry``) of the n-th unacknowledged entry of a subscription of a
        non-partitioned topic; None if it has fewer."""
        path = f"{path_of_subscription(topic, subscription)}/position/{number}"
        try:
            reply = self._exchange("GET", f"/admin/v2{path}", None, "application/json")
        except AdminRefused as error:
            if error.status == 404:
                return None
            raise
        return reply.headers.get("x-pulsar-message-id")

    def stats(self, topic: TopicName, partitions: int, *, each: bool = False) -> dict[str, Any]:
        """Return a topic's statistics, summed over its partitions if any; ``each`` adds those of each partition."""
        which = "partitioned-stats" if partitions else "stats"
        query = {"getPreciseBacklog": "true"} | ({"perPartition": "true"} if each else {})
        found: dict[str, Any] = self.ask("GET", f"{path_of(topic)}/{which}", **query)
        return found

    def internal_stats(self, topic: TopicName) -> dict[str, Any]:
        """Return the ledgers and cursors of a non-partitioned topic."""
        found: dict[str, Any] = self.ask("GET", f"{path_of(topic)}/internalStats")
        return found


def _epochs_of(sink: str) -> str:
    return f"/pulsarbox/v1/epochs/{quoted(*sink.split('/', 2))}"
