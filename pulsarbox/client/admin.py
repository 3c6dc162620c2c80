"""A thin client of the Admin REST API, of a box or of Apache Pulsar: synchronous, one connection that is kept.

It knows the paths that our commands use. What a broker refuses is a ``Refused`` with its status and its own words.
"""

import json
from collections.abc import Iterator, Mapping, Sequence
from types import TracebackType
from typing import Any, Final
from urllib.parse import quote, urlencode

from pulsarbox.client.credentials import NOBODY, Credentials
from pulsarbox.client.errors import NoAnswer, NotConnected
from pulsarbox.client.web import Refusal, TooSlow, Unanswered, Web
from pulsarbox.errors import PulsarBoxError
from pulsarbox.names import TopicName

ROWS_AT_ONCE: Final = 1000
"""Of a live view, as many as a box gives in one answer."""
PLACES_AT_ONCE: Final = 500
"""Of topics, as many as are asked about in one request."""
EARLIEST: Final = {"ledgerId": -1, "entryId": -1}
LATEST: Final = {"ledgerId": 2**63 - 1, "entryId": 2**63 - 1}
_EVENTS: Final = "/pulsarbox/v1/events"
_LOOKUP: Final = "/lookup/v2/topic/persistent/public/default/pulsarbox"
"""A lookup creates no topic."""


class Refused(PulsarBoxError):
    """The broker does not do it; ``status`` is the HTTP status, ``method`` that of the request, the text its reason."""

    def __init__(self, status: int, reason: str, method: str) -> None:
        super().__init__(reason)
        self.status = status
        self.method = method


class Admin:
    """The Admin API at one of some hosts and ports, the first that answers."""

    def __init__(
        self,
        hosts: Sequence[tuple[str, int]],
        seconds: float = 30.0,
        *,
        secure: bool = False,
        credentials: Credentials = NOBODY,
    ) -> None:
        """``seconds``: how long an answer is waited for. ``secure``: over HTTPS."""
        self._web = Web(hosts, secure=secure, credentials=credentials, seconds=seconds)

    def __enter__(self) -> "Admin":
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.close()

    def close(self) -> None:
        """Let the connection go."""
        self._web.close()

    # Asking

    def ask(
        self, method: str, path: str, body: Any = None, content_type: str = "application/json", **query: str
    ) -> Any:
        """The JSON of an answer, None where there is none. ``path`` is what follows /admin/v2, quoted.

        Raises Refused, NotConnected, NoAnswer.
        """
        return self._ask(method, f"/admin/v2{path}" + (f"?{urlencode(query)}" if query else ""), body, content_type)

    def _ask(self, method: str, target: str, body: Any = None, content_type: str = "application/json") -> Any:
        data = None if body is None else json.dumps(body).encode()
        try:
            reply = self._web.exchange(method, target, data, content_type)
        except TooSlow as error:
            raise NoAnswer(f"{method} {target}: {error}") from error
        except Unanswered as error:
            raise NotConnected(str(error)) from error
        if reply.status >= 400:
            raise Refused(reply.status, reply.reason, method)
        try:
            return json.loads(reply.text) if reply.text else None
        except ValueError:
            said = f"The answer to {method} {target} is not JSON: is this the Admin API?"
            raise Refused(reply.status, said, method) from None

    # Names

    def tenants(self) -> list[str]:
        """All tenants."""
        return sorted(self.ask("GET", "/tenants"))

    def clusters(self) -> list[str]:
        """All clusters."""
        return sorted(self.ask("GET", "/clusters"))

    def service_urls(self) -> tuple[str, str]:
        """Return the broker's service URLs, without and with TLS; empty for one that it does not have.

        The metadata of a cluster has the URL for clients, which may be that of a proxy; a role that may not read them,
        or one of several clusters, gets the URL of a broker by looking a topic up. Raises Refused, NotConnected,
        NoAnswer.
        """
        try:
            names = self.clusters()
            found = self.ask("GET", f"/clusters/{quoted(names[0])}") if len(names) == 1 else {}
        except Refused:
            found = {}
        urls = found.get("brokerServiceUrl") or "", found.get("brokerServiceUrlTls") or ""
        if any(urls):
            return urls
        found = self._ask("GET", _LOOKUP)
        return found.get("brokerUrl") or "", found.get("brokerUrlTls") or found.get("brokerUrlSsl") or ""

    def namespaces(self, tenant: str) -> list[str]:
        """The namespaces of a tenant, as ``tenant/namespace``."""
        return sorted(self.ask("GET", f"/namespaces/{quoted(tenant)}"))

    def topics(self, namespace: str, domain: str = "persistent") -> list[str]:
        """The topics of a namespace by full name, partitions one by one."""
        return sorted(self.ask("GET", f"/{domain}/{quoted(*namespace.split('/'))}"))

    def system_topics(self, namespace: str, domain: str = "persistent") -> list[str]:
        """Those that the broker keeps for itself."""
        path = f"/{domain}/{quoted(*namespace.split('/'))}"
        return sorted(set(self.ask("GET", path, includeSystemTopic="true")) - set(self.ask("GET", path)))

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

    def policies(self, of: TopicName | str) -> dict[str, dict[str, Any]]:
        """The policies of a topic, or of ``tenant/namespace``, by name: value, level, meaning. Of a box only."""
        path = path_of(of) if isinstance(of, TopicName) else f"/{quoted(*of.split('/'))}"
        found: dict[str, dict[str, Any]] = self._ask("GET", f"/pulsarbox/v1/policies{path}")
        return found

    def own_policy(self, method: str, of: TopicName | str, word: str, value: Any = None) -> Any:
        """Show, set or take away a policy of a topic, or of ``tenant/namespace``, that only a box knows."""
        path = path_of(of) if isinstance(of, TopicName) else f"/{quoted(*of.split('/'))}"
        return self._ask(method, f"/pulsarbox/v1/policies{path}/{word}", value)

    def own(self, path: str) -> Any:
        """What a box answers to GET below /pulsarbox/v1; ``path`` is what follows that, with its query, quoted."""
        return self._ask("GET", f"/pulsarbox/v1{path}")

    def places(self, topics: Sequence[str]) -> list[dict[str, Any] | None]:
        """Where topics begin and end, by full name, in their order; None for one that is not there. Of a box only."""
        found: list[dict[str, Any] | None] = []
        for at in range(0, len(topics), PLACES_AT_ONCE):
            body = {"topics": list(topics[at : at + PLACES_AT_ONCE])}
            found += self._ask("POST", "/pulsarbox/v1/places", body)["places"]
        return found

    def segments(self, ranges: Sequence[tuple[str, str, str]]) -> list[dict[str, Any] | None]:
        """What topics have, by full name, from a place to another: ``GET /pulsarbox/v1/segments`` of each, in their
        order, None for one that is not there. Of a box only."""
        found: list[dict[str, Any] | None] = []
        for at in range(0, len(ranges), PLACES_AT_ONCE):
            asked = [
                {"topic": topic, "from": start, "to": end} for topic, start, end in ranges[at : at + PLACES_AT_ONCE]
            ]
            found += self._ask("POST", "/pulsarbox/v1/segments", {"topics": asked})["segments"]
        return found

    def close_ledger(self, topic: TopicName, older_than: int = 0) -> int | None:
        """Close the ledger of a topic that grows, where it was opened ``older_than`` milliseconds ago; its id, or None
        where there was nothing to close. Of a box only."""
        path = quoted(topic.tenant, topic.namespace_local, topic.local)
        found: int | None = self._ask("POST", f"/pulsarbox/v1/ledgers/{path}/close", {"olderThanMs": older_than})[
            "closed"
        ]
        return found

    # Dead letters: of a box only

    def dead_letter_policy(
        self, topic: TopicName, subscription: str, method: str = "GET", value: dict[str, Any] | None = None
    ) -> dict[str, Any] | None:
        """The dead letter policy of a subscription, None where it has none; set with POST, taken away with DELETE."""
        path = f"/pulsarbox/v1/dead-letter-policy{path_of(topic)}/{subscription_segment(subscription)}"
        found: dict[str, Any] | None = self._ask(method, path, value)
        return found

    def dead_letter_topics(self, namespace: str) -> list[dict[str, Any]]:
        """The topics of ``tenant/namespace`` that dead letters are in."""
        found: list[dict[str, Any]] = self._ask("GET", f"/pulsarbox/v1/dead-letters/{quoted(*namespace.split('/'))}")
        return found

    def dead_letter_groups(self, topic: TopicName, **query: str) -> dict[str, Any]:
        """What the dead letters of a topic have in common."""
        path = quoted(topic.tenant, topic.namespace_local, topic.local)
        asked = f"?{urlencode(query)}" if query else ""
        found: dict[str, Any] = self._ask("GET", f"/pulsarbox/v1/dlq/{path}/groups{asked}")
        return found

    # Jobs: of a box only

    def jobs(self) -> list[dict[str, Any]]:
        """All jobs that may be seen, the newest first."""
        found: list[dict[str, Any]] = self._ask("GET", "/pulsarbox/v1/jobs")
        return found

    def job(self, number: int) -> dict[str, Any]:
        """One job."""
        found: dict[str, Any] = self._ask("GET", f"/pulsarbox/v1/jobs/{number}")
        return found

    def begin_job(self, asked: dict[str, Any]) -> dict[str, Any]:
        """Begin a job; the job."""
        found: dict[str, Any] = self._ask("POST", "/pulsarbox/v1/jobs", asked)
        return found

    def change_job(self, number: int, action: str) -> dict[str, Any]:
        """Pause, resume or cancel a job; the job."""
        found: dict[str, Any] = self._ask("POST", f"/pulsarbox/v1/jobs/{number}/{action}")
        return found

    def cancel_compaction(self, topic: TopicName) -> None:
        """Stop the compaction of a topic that is not partitioned. Of a box only."""
        self._ask("DELETE", f"/pulsarbox/v1/compaction{path_of(topic)}")

    def pipelines(self) -> list[dict[str, Any]]:
        """The queries of pipelines that their runners tell of. Of a box only."""
        found: list[dict[str, Any]] = self._ask("GET", "/pulsarbox/v1/pipelines")
        return found

    def tell_pipeline(self, name: str, told: dict[str, Any]) -> None:
        """Tell how a pipeline goes. Of a box only."""
        self._ask("PUT", f"/pulsarbox/v1/pipelines/{quoted(name)}", told)

    def plugins(self) -> list[dict[str, Any]]:
        """The plugins that a box has been asked for, what they cost and who goes by them. Of a box only."""
        found: list[dict[str, Any]] = self._ask("GET", "/pulsarbox/v1/plugins")
        return found

    # Transactions

    def transactions(self, age: int = 0) -> dict[str, dict[str, Any]]:
        """The transactions that have been open for ``age`` milliseconds, by id, as the broker shows them."""
        return self._ask("GET", f"/admin/v3/transactions/slowTransactions/{age}") or {}

    def transaction(self, most: int, least: int) -> dict[str, Any]:
        """One transaction, by the two halves of its id."""
        found: dict[str, Any] = self._ask("GET", f"/admin/v3/transactions/transactionMetadata/{most}/{least}")
        return found

    def abort_transaction(self, most: int, least: int) -> None:
        """Abort it."""
        self._ask("POST", f"/admin/v3/transactions/abortTransaction/{most}/{least}")

    # Sinks of epochs, named tenant/namespace/sink: of a box only

    def sinks(self, namespace: str) -> Iterator[dict[str, Any]]:
        """The sinks of ``tenant/namespace`` that have committed something, by name, each as ``last_epoch`` has it."""
        after: str | None = ""
        while after is not None:
            query = f"?{urlencode({'after': after})}" if after else ""
            told = self._ask("GET", f"/pulsarbox/v1/epochs/{quoted(*namespace.split('/'))}{query}")
            yield from told["sinks"]
            after = told["next"]

    def last_epoch(self, sink: str) -> dict[str, Any] | None:
        """``epoch``, the last one that a sink has committed, and ``committedAt`` (ms since 1970); None for none."""
        try:
            found: dict[str, Any] = self._ask("GET", _epochs_of(sink))
        except Refused as error:
            if error.status == 404 and "has committed nothing" in str(error):
                return None
            raise
        return found

    def stage_epoch(self, sink: str, epoch: int, body: Mapping[str, Any]) -> str | None:
        """Begin a transaction that is a part of an epoch: its id, as ``0:17``; None where the epoch was committed.

        ``body``: ``timeoutMs``, and who writes, see docs/transactions.md. Raises Refused, with 409 for an epoch behind
        the last and for a writer that is not the sink's.
        """
        found: str | None = self._ask("POST", f"{_epochs_of(sink)}/{epoch}/stages", body)["transaction"]
        return found

    def commit_epoch(
        self, sink: str, epoch: int, transactions: Sequence[str], who: Mapping[str, Any] | None = None
    ) -> bool:
        """Commit what an epoch has staged in transactions (their ids, as ``0:17``); false where the epoch was committed
        before: then they are aborted. ``who``: who writes, see docs/transactions.md.

        Raises Refused, with 409 for an epoch behind the last, a transaction that has ended and a writer that is not the
        sink's, 404 for a transaction not known.
        """
        body = {"transactions": list(transactions), **(who or {})}
        return bool(self._ask("POST", f"{_epochs_of(sink)}/{epoch}", body)["committed"])

    def forget_sink(self, sink: str) -> None:
        """The sink may begin again at any epoch."""
        self._ask("DELETE", _epochs_of(sink))

    # Events: of a box only

    def events(self, **query: str) -> dict[str, Any]:
        """Events of a box, oldest first, and the number behind which they go on: see GET /pulsarbox/v1/events."""
        found: dict[str, Any] = self._ask("GET", f"{_EVENTS}?{urlencode(query)}")
        return found

    def follow_events(self, **query: str) -> Iterator[dict[str, Any] | None]:
        """The events of a box as they happen; None is a sign of life. It ends where the box does.

        Raises Refused, NotConnected, NoAnswer.
        """
        try:
            for line in self._web.lines(f"{_EVENTS}?{urlencode({**query, 'follow': 'true'})}"):
                yield json.loads(line) if line else None
        except Refusal as error:
            raise Refused(error.reply.status, error.reply.reason, "GET") from error
        except TooSlow as error:
            raise NoAnswer(f"GET {_EVENTS}: {error}") from error
        except (Unanswered, ValueError) as error:
            raise NotConnected(str(error)) from error

    # Live views: of a box only

    def top(self, view: str, **query: str) -> dict[str, Any]:
        """What a live view answers: see docs/observing.md."""
        found: dict[str, Any] = self._ask("GET", f"/pulsarbox/v1/top/{quoted(view)}?{urlencode(query)}")
        return found

    def top_rows(self, view: str, **query: str) -> list[dict[str, Any]]:
        """All rows of a live view that pass the filter, page by page."""
        rows: list[dict[str, Any]] = []
        while True:
            found = self.top(view, **query | {"offset": str(len(rows)), "limit": str(ROWS_AT_ONCE)})
            rows += found["rows"]
            if len(found["rows"]) < ROWS_AT_ONCE:
                return rows

    def kick(self, client: str) -> None:
        """Let a client go, by its id in the view of clients."""
        self._ask("POST", f"/pulsarbox/v1/clients/{quoted(client)}/kick")

    # Statistics

    def stats(self, topic: TopicName, partitions: int, *, each: bool = False) -> dict[str, Any]:
        """The statistics of a topic, its partitions summed up where it has any; ``each``: and those of each beside."""
        which = "partitioned-stats" if partitions else "stats"
        query = {"getPreciseBacklog": "true"} | ({"perPartition": "true"} if each else {})
        found: dict[str, Any] = self.ask("GET", f"{path_of(topic)}/{which}", **query)
        return found

    def internal_stats(self, topic: TopicName) -> dict[str, Any]:
        """The ledgers and cursors of a topic that is not partitioned."""
        found: dict[str, Any] = self.ask("GET", f"{path_of(topic)}/internalStats")
        return found


def _epochs_of(sink: str) -> str:
    return f"/pulsarbox/v1/epochs/{quoted(*sink.split('/', 2))}"


def quoted(*parts: str) -> str:
    """Names as parts of a path."""
    return "/".join(quote(part, safe="") for part in parts)


def path_of(topic: TopicName, *more: str) -> str:
    """Where a topic is, and what there is below it."""
    return "/" + quoted(topic.domain, topic.tenant, topic.namespace_local, topic.local, *more)


def subscription_segment(name: str, *more: str) -> str:
    """A subscription in a path, behind its topic, and what there is below it: brokers decode its name twice."""
    return quoted(quoted(name), *more)


def path_of_subscription(topic: TopicName, name: str, *more: str) -> str:
    """Where a subscription of a topic is, and what there is below it."""
    return f"{path_of(topic)}/subscription/{subscription_segment(name, *more)}"
