"""Epoch commit, version 1: publishes the staged transactions of a sink atomically, once. Below ``/pulsarbox/v1``.

``POST /pulsarbox/v1/epochs/{tenant}/{namespace}/{sink}/{epoch}/stages`` begins a transaction for a part of an epoch:
``{"transaction": "0:17", "committed": false}``, or ``{"transaction": null, "committed": true}`` if the epoch was
published before. ``POST /pulsarbox/v1/epochs/{tenant}/{namespace}/{sink}/{epoch}`` with ``{"transactions": ["0:17",
"0:18"]}`` commits all of them and records the epoch, in one write to the disk. ``committed`` in the answer is false if
the epoch was published before: nothing is published then, and the transactions are aborted. 409 for an outdated epoch.
Both accept ``writer``, ``run`` and ``takeOver``, with 409 for a writer other than the sink's.
"""

from typing import Any

from pulsarbox.broker.transactions.sink_writers import NOTHING, SinkWriter
from pulsarbox.clock import Now
from pulsarbox.errors import BadRequest, NamespaceNotFound, SinkUnused
from pulsarbox.server.http.framework.request import DONE, DeferredAnswer, HttpRequest, HttpResponse, answer, long_of
from pulsarbox.server.http.framework.routes import HttpRoute, Permission
from pulsarbox.storage.catalog import Row
from pulsarbox.storage.transactions import TxnId

NAME_MAX = 256
SINKS_AT_ONCE = 1000
"""Maximum number of sinks in one answer."""


def get(call: HttpRequest) -> HttpResponse:
    """Return the sink's last epoch, and its commit time (ms since 1970)."""
    row = call.broker.epochs.last(_sink(call))
    if row is None or row["epoch"] == NOTHING:
        raise SinkUnused(f"Sink {_sink(call)} has committed nothing")
    return answer(_told(_sink(call), row))


def listed(call: HttpRequest) -> HttpResponse:
    """Return ``{"sinks": [...]}``: the sinks of a namespace with a committed epoch, each in the form of ``get``.

    ``after`` is an exclusive lower bound of the names; ``next`` is its value to continue a truncated answer, or null.
    """
    namespace = call.namespace()
    found: list[dict[str, Any]] = []
    if not call.tenants.has_namespace(namespace):
        raise NamespaceNotFound("Namespace not found")
    epochs, following = call.broker.epochs, None
    for sink in epochs.names(namespace, call.query.get("after", "")):
        if len(found) == SINKS_AT_ONCE:
            following = found[-1]["sink"].partition(f"{namespace}/")[2]
            break
        row = epochs.last(sink)
        if row is not None and row["epoch"] != NOTHING:
            found.append(_told(sink, row))
    return answer({"sinks": found, "next": following})


def _told(sink: str, row: Row) -> dict[str, Any]:
    found = {"sink": sink, "epoch": row["epoch"], "committedAt": row["committed"]}
    return found | {name: row[name] for name in ("writer", "run") if name in row}


def stage(call: HttpRequest) -> DeferredAnswer:
    """Begin a transaction that is a part of an epoch."""
    broker = call.broker
    broker.transactions.check_coordinator(0)
    sink, epoch, later, body = _sink(call), call.number("epoch"), DeferredAnswer(), call.json_object() or {}
    if epoch < 0:
        raise BadRequest("The epoch must be at least 0")
    txn = broker.epochs.stage(sink, epoch, _writer(body), _timeout(body), call, call.now)
    named = None if txn is None else f"{txn.id.most}:{txn.id.least}"
    begun = answer({"transaction": named, "committed": txn is None})
    broker.commits.after_commit(lambda now: later.complete(begun))
    return later


def commit(call: HttpRequest) -> DeferredAnswer:
    """Publish an epoch."""
    call.broker.transactions.check_coordinator(0)
    sink, epoch, later, body = _sink(call), call.number("epoch"), DeferredAnswer(), call.json_object() or {}

    def told(committed: bool, now: Now) -> None:
        later.complete(answer({"sink": sink, "epoch": epoch, "committed": committed}))

    call.broker.epochs.commit(sink, epoch, _transactions(body), call, told, call.now, _writer(body))
    return later


def forget(call: HttpRequest) -> HttpResponse:
    """Delete the state of a sink: it may begin again at any epoch."""
    call.broker.epochs.forget(_sink(call), call)
    return DONE


def _sink(call: HttpRequest) -> str:
    """Return the sink's name, prefixed with its namespace. Raises NamespaceNotFound, BadRequest."""
    namespace, sink = call.namespace(), call.path["sink"]
    if not call.tenants.has_namespace(namespace):
        raise NamespaceNotFound("Namespace not found")
    if not sink.strip() or len(sink) > NAME_MAX:
        raise BadRequest(f"The name of a sink must have 1 to {NAME_MAX} characters")
    return f"{namespace}/{sink}"


def _writer(body: dict[str, Any]) -> SinkWriter:
    """Return the writer named in a body. Raises BadRequest."""
    name, run, takes_over = body.get("writer", ""), body.get("run", ""), body.get("takeOver", False)
    if not (isinstance(name, str) and isinstance(run, str) and isinstance(takes_over, bool)):
        raise BadRequest("writer and run must be strings, takeOver must be true or false")
    if len(name) > NAME_MAX or len(run) > NAME_MAX or bool(name) != bool(run) or (takes_over and not name):
        raise BadRequest(
            f"writer and run must be given together, with 1 to {NAME_MAX} characters each; takeOver requires both"
        )
    return SinkWriter(name, run, takes_over)


def _timeout(body: dict[str, Any]) -> int:
    timeout = body.get("timeoutMs", 0)
    if not isinstance(timeout, int) or isinstance(timeout, bool) or timeout < 0:
        raise BadRequest("timeoutMs must be a whole number of milliseconds; 0 for the maximum that the box allows")
    return timeout


def _transactions(body: dict[str, Any]) -> list[TxnId]:
    named: Any = body.get("transactions")
    if not isinstance(named, list):
        raise BadRequest('The body must name transactions: {"transactions": ["0:17"]}')
    found = []
    for each in named:
        halves = each.split(":") if isinstance(each, str) else []
        numbers = [number for half in halves if (number := long_of(half)) is not None and number >= 0]
        if len(halves) != 2 or len(numbers) != 2:
            raise BadRequest(f"{str(each)[:40]!r} is not a transaction ID; expected the form 0:17")
        found.append(TxnId(*numbers))
    return found


_SINK = "/pulsarbox/v1/epochs/{tenant}/{namespace}/{sink}"

ROUTES = (
    HttpRoute("GET", "/pulsarbox/v1/epochs/{tenant}/{namespace}", Permission.NAMESPACE_USER, listed),
    HttpRoute("GET", _SINK, Permission.NAMESPACE_USER, get),
    HttpRoute("POST", f"{_SINK}/{{epoch}}", Permission.NAMESPACE_USER, commit),
    HttpRoute("POST", f"{_SINK}/{{epoch}}/stages", Permission.NAMESPACE_USER, stage),
    HttpRoute("DELETE", _SINK, Permission.NAMESPACE_USER, forget),
)
