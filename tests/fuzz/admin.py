"""A broker under partly invalid requests: permitted responses, and invariants afterwards."""

import gc
import http.client
import json
import logging
import os
import random
import time
from collections import Counter
from collections.abc import Iterator, Mapping
from pathlib import Path
from types import MappingProxyType
from typing import Any, Final
from urllib.parse import quote

import pulsar

from pulsarbox import PulsarBox
from pulsarbox.names import COMPACTION_SUBSCRIPTION
from pulsarbox.server.http.admin_endpoints import endpoints
from pulsarbox.server.http.framework.request import DeferredAnswer, HttpRequest
from tests.fuzz.requests import Request, made

FLEETING: Final = (
    "ids",
    "deadline/",
    "owner/",
    "acks/",
    "sequence/",
    "walk/",
    "kept",
    "delays/",
    "delayed/",
    "compact",
    "jobstate/",
)
"""Rows that change by themselves, or by reads."""
FLEETING_FIELDS: Final = ("deadline", "unused")
"""Fields of topic and subscription rows that change by themselves, or by reads."""
OF_TOPICS: Final = ("topic/", "partitions/", "ledger/", "cursor/", "policies/", "schema/")
"""Rows that policies may delete."""
GOING: Final = (b'"deleteWhileInactive":true', b"ubscription_expiration", b"ubscriptionExpiration")
"""Markers of such policies in their rows."""
PATIENCE_SECONDS = 60.0
OF_CHECKPOINTS: Final = "ledger/"
"""Rows whose values a checkpoint updates."""
SETTINGS: Final[dict[str, bool | int | float | str]] = {
    "brokerDeleteInactiveTopicsEnabled": False,
    "forceDeleteTenantAllowed": True,
    "forceDeleteNamespaceAllowed": True,
    "brokerUnloadIdleTopicsAfterSeconds": 0,
    "logLevel": "info",
}


class Broken(AssertionError):
    """A rule is broken; the text names the request."""


class Watch(logging.Handler):
    """Log handler that collects errors and tracebacks."""

    def __init__(self) -> None:
        super().__init__()
        self.seen: list[str] = []

    def emit(self, record: logging.LogRecord) -> None:
        if record.exc_info or record.levelno >= logging.ERROR:
            self.seen.append(self.format(record))


class Campaign:
    """One broker and one seed."""

    def __init__(self, seed: int, data: Path) -> None:
        self.requests: Counter[str] = Counter()
        """Successful requests (2xx), by the operation of the table."""
        self.statuses: Counter[int] = Counter()
        self._dice = random.Random(seed)
        self._box = PulsarBox(data_dir=data, settings=SETTINGS)
        self._watch = Watch()
        self._connection: http.client.HTTPConnection | None = None

    def run(self, requests: int) -> None:
        """Send this many requests, each to a row of the table, then check all invariants. Raises Broken."""
        rows = [*endpoints(), *(row for row in endpoints() if row.served for _ in range(9))]
        logging.getLogger().addHandler(self._watch)
        try:
            with self._box:
                self._furnish()
                self._settled()
                before = _objects()
                wildness = self._dice.choice((0.02, 0.1, 0.4))
                for _ in range(requests):
                    self._play(made(self._dice.choice(rows), self._dice, wildness))
                self._close()
                self._nothing_left(before)
                self._is_the_same_after_a_restart()
                self._still_serves()
        finally:
            self._close()
            logging.getLogger().removeHandler(self._watch)
        self._is_silent("the end")

    # Setup

    def _furnish(self) -> None:
        """Create the objects of the requests; repeated after requests have deleted them."""
        for method, path, body in (
            ("PUT", "tenants/acme", {"allowedClusters": ["standalone"]}),
            ("PUT", "namespaces/acme/prod", None),
            ("PUT", "tenants/second", {"allowedClusters": ["standalone"]}),
            ("PUT", "namespaces/second/default", None),
            ("PUT", "persistent/acme/prod/orders", None),
            ("PUT", "persistent/acme/prod/ended", None),
            ("POST", "persistent/acme/prod/ended/terminate", None),
            ("PUT", "persistent/acme/prod/parts/partitions", 3),
            ("PUT", "persistent/acme/prod/orders/subscription/billing", "earliest"),
            ("PUT", "persistent/acme/prod/parts/subscription/billing", "earliest"),
            ("PUT", "non-persistent/acme/prod/orders", None),
        ):
            status, _ = self._ask(method, f"/admin/v2/{path}", None if body is None else json.dumps(body).encode())
            if status >= 500:
                raise Broken(f"{method} {path}: {status}")
        client = _client(self._box, seconds=3)  # policies may hold producers back
        try:
            for topic in ("persistent://acme/prod/orders", "persistent://acme/prod/parts"):
                producer = client.create_producer(
                    topic, compression_type=pulsar.CompressionType.LZ4, batching_enabled=True
                )
                _send(producer, 5)
        except pulsar.PulsarException:
            pass  # terminated by a request
        finally:
            client.close()

    # Requests

    def _play(self, request: Request) -> None:
        if self._dice.random() < 0.01:
            self._furnish()
        before = self._rows() if request.method not in ("GET", "HEAD", "OPTIONS") else None
        status, body = self._ask(request.method, request.target, request.body, request.headers)
        self.statuses[status] += 1
        malformed = status == 400 and (b"Malformed HTTP request" in body or request.method == "HEAD")  # without a body
        if request.is_foreign and status != 403 and not malformed:
            raise Broken(f"{request} comes from a foreign page and is answered with {status}: {body[:200]!r}")
        if not request.is_foreign and b"docs/security.md" in body:
            raise Broken(f"{request} comes from no foreign page and is refused: {body[:200]!r}")
        if 200 <= status < 300:
            self.requests[request.endpoint.operation] += 1
        listed = status == 501 and (not request.endpoint.served or b"not supp" in body or b"cannot" in body)
        if not (200 <= status < 500 or listed):
            raise Broken(f"{request} is answered with {status}: {body[:500]!r}")
        if status >= 400 and request.method != "HEAD":
            _reason(request, status, body)
        if status >= 400 and before is not None:
            self._settled()
            after = self._rows()
            if after != before:
                changed = sorted(key for key in before.keys() | after if before.get(key) != after.get(key))
                raise Broken(f"{request} is refused with {status} {body[:200]!r} and has changed {changed[:10]}")
        self._is_silent(str(request))

    def _ask(
        self, method: str, target: str, body: bytes | None, source: Mapping[str, str] = MappingProxyType({})
    ) -> tuple[int, bytes]:
        if self._connection is None:
            self._connection = http.client.HTTPConnection("127.0.0.1", self._box.web_port, timeout=90)
        headers = {"Content-Type": "application/json"} if body is not None else {}
        headers |= {name: value.replace("{port}", str(self._box.web_port)) for name, value in source.items()}
        try:
            self._connection.putrequest(method, target, skip_host="Host" in headers, skip_accept_encoding=True)
            for name, value in (headers | {"Content-Length": str(len(body or b""))}).items():
                self._connection.putheader(name, value)
            self._connection.endheaders(body)
            answer = self._connection.getresponse()
            return answer.status, answer.read()
        except (OSError, http.client.HTTPException, UnicodeError) as error:
            self._close()
            raise Broken(f"{method} {target[:300]}: {error!r}") from error

    def _is_silent(self, after: str) -> None:
        if self._watch.seen:
            raise Broken(f"the log after {after}:\n{self._watch.seen[0]}")

    def _close(self) -> None:
        if self._connection is not None:
            self._connection.close()
            self._connection = None

    # Stored rows

    @property
    def _broker(self) -> Any:
        return self._box._started()._box._serving.broker  # type: ignore[union-attr]

    def _settled(self) -> None:
        """Wait until all work in progress is done, as shown by the answer to a request that waits for the disk."""
        self._ask("GET", "/admin/v2/brokers/health", None)

    def _rows(self) -> dict[str, Any]:
        catalog = self._broker.catalog
        keys = [key for key in list(catalog.keys("")) if not key.startswith(FLEETING)]
        rows = {key: b"" if key.startswith(OF_CHECKPOINTS) else _lasting(key, catalog.raw(key)) for key in keys}
        policies = b" ".join(row for key, row in rows.items() if key.startswith(("policies/", "namespace/")) and row)
        if any(word in policies for word in GOING):
            return {key: row for key, row in rows.items() if not key.startswith(OF_TOPICS)}
        return rows

    def _nothing_left(self, before: Counter[str]) -> None:
        """Check that no connection, read, unload or object of a request is left."""
        self._settled()
        deadline = time.monotonic() + PATIENCE_SECONDS
        while True:
            gc.collect()
            broker, topics = self._broker, self._broker.topics
            left = {
                "connections": len(broker.cnxs),
                "reads": len(broker.reads._answers),
                "unloading": len(topics._unloading),
            } | {name: count for name, count in (_objects() - before).items() if count > 5}
            if not any(left.values()):
                return
            if time.monotonic() > deadline:
                raise Broken(f"left behind: {left}")
            time.sleep(0.05)

    # Checks afterwards

    def _served(self) -> dict[str, Any]:
        """Return all stored state that the Admin API returns, by path."""
        found: dict[str, Any] = {}

        def ask(path: str) -> Any:
            status, body = self._ask("GET", f"/admin/v2/{path}", None)
            if status >= 500:
                raise Broken(f"GET {path}: {status} {body!r}")
            found[path] = status, json.loads(body) if body else None
            return found[path][1] if status == 200 else []

        ask("brokers/configuration/values")
        for tenant in ask("tenants"):
            ask(f"tenants/{tenant}")
            for namespace in ask(f"namespaces/{tenant}"):
                for path in ("", "/permissions", "/permissions/subscription", "/properties", "/bundles"):
                    ask(f"namespaces/{namespace}{path}")
                ask(f"persistent/{namespace}/partitioned")
                for name in ask(f"persistent/{namespace}?includeSystemTopic=true"):
                    topic = f"{namespace}/{quote(name.removeprefix(f'persistent://{namespace}/'), safe='')}"
                    for path in ("/subscriptions", "/properties", "/permissions", "/lastMessageId", "/internal-info"):
                        ask(f"persistent/{topic}{path}")
                    ask(f"schemas/{topic}/schemas")
                    stats = ask(f"persistent/{topic}/stats")
                    backlogs = {each: told["msgBacklog"] for each, told in stats["subscriptions"].items()}
                    found[f"persistent/{topic}/stats"] = stats["storageSize"], backlogs
                    for each in backlogs:
                        ask(f"persistent/{topic}/subscription/{quote(quote(each, safe=''), safe='')}/properties")
        return found

    def _is_the_same_after_a_restart(self) -> None:
        """Check that a copy of the disk, as after kill -9, yields the state that the Admin API returned."""
        before, rows = self._served(), self._rows()
        self._close()
        with self._box.snapshot() as taken:
            self._box.restore(taken)
        after = self._rows()
        changed = sorted(
            key for key in rows.keys() | after if rows.get(key) != after.get(key) and not key.startswith(OF_CHECKPOINTS)
        )
        if changed:
            raise Broken(f"a restart changes rows: {changed[:10]}")
        served = self._served()
        for path in sorted(path for path in before.keys() | served if before.get(path) != served.get(path)):
            raise Broken(f"a restart changes {path}: {before.get(path)} becomes {served.get(path)}")

    def _still_serves(self) -> None:
        """Check that producers and consumers exchange messages on a new topic and all topics not terminated."""
        for name in self._box.admin("GET", "/admin/v2/brokers/configuration/values"):
            self._box.admin("DELETE", f"/admin/v2/brokers/configuration/{quote(name, safe='')}")
        self._box.admin("PUT", "/admin/v2/tenants/after", {"allowedClusters": ["standalone"]})
        self._box.admin("PUT", "/admin/v2/namespaces/after/all")
        client = _client(self._box)
        try:
            consumer = client.subscribe("persistent://after/all/t", "s")
            client.create_producer("persistent://after/all/t").send(b"still there")
            message = consumer.receive(timeout_millis=60_000)
            assert message.data() == b"still there"
            consumer.acknowledge(message)
        finally:
            client.close()


def _client(box: PulsarBox, seconds: int = 60) -> Any:
    silent = pulsar.FileLogger(pulsar.LoggerLevel.Error, os.devnull)
    return pulsar.Client(box.service_url, operation_timeout_seconds=seconds, logger=silent)


def _send(producer: Any, count: int) -> None:
    """Send messages asynchronously: after ``send``, the client would resend a rejected message forever."""
    answered: list[Any] = []
    for number in range(count):
        producer.send_async(b"%d" % number, lambda result, _: answered.append(result))
    deadline = time.monotonic() + 2
    while len(answered) < count and time.monotonic() < deadline:
        time.sleep(0.01)


def _lasting(key: str, row: bytes | None) -> Any:
    """Return a row without its fleeting fields; None for a deleted row."""
    if row is None or not key.startswith(("topic/", "cursor/")):
        return row
    fields = json.loads(row)
    if fields.get("name") == COMPACTION_SUBSCRIPTION:
        return None  # created and deleted with compactions
    return {name: value for name, value in fields.items() if name not in FLEETING_FIELDS}


def _objects() -> Counter[str]:
    """Count the objects of requests, by type."""
    gc.collect()
    return Counter(type(each).__name__ for each in gc.get_objects() if isinstance(each, HttpRequest | DeferredAnswer))


def _reason(request: Request, status: int, body: bytes) -> None:
    try:
        reason = json.loads(body)["reason"]
    except (ValueError, TypeError, KeyError):
        raise Broken(f"{request} is refused with {status} and no reason: {body[:200]!r}") from None
    if not isinstance(reason, str) or not reason.strip():
        raise Broken(f"{request} is refused with {status} and an empty reason")


def seeds(first: int, count: int) -> Iterator[int]:
    """Return the seeds of a run."""
    return iter(range(first, first + count))
