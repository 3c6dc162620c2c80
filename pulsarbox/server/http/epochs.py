"""Epoch commit, version 1: what a sink has staged in transactions is published whole, once. Below ``/pulsarbox/v1``.

``POST /pulsarbox/v1/epochs/{tenant}/{namespace}/{sink}/{epoch}`` with ``{"transactions": ["0:17", "0:18"]}`` commits
all of them and notes the epoch, with one write to the disk. The answer has ``committed``: false where the epoch was
published before; then nothing is published, and the transactions are aborted. 409 for an epoch that is behind.
"""

from typing import Any

from pulsarbox.clock import Now
from pulsarbox.errors import BadRequest, NotFound
from pulsarbox.server.http.call import DONE, Answer, Call, Later, answer
from pulsarbox.server.http.routes import Permission, Route
from pulsarbox.storage.transactions import TxnId

SINK_MAX = 256


def get(call: Call) -> Answer:
    """The sink's last epoch, and when it was committed (ms since 1970)."""
    row = call.broker.core.epochs.last(_sink(call))
    if row is None:
        raise NotFound(f"Sink {_sink(call)} has committed nothing")
    return answer({"sink": _sink(call), "epoch": row["epoch"], "committedAt": row["committed"]})


def commit(call: Call) -> Later:
    """Publish an epoch."""
    call.broker.core.transactions.check_coordinator(0)
    sink, epoch, later = _sink(call), call.number("epoch"), Later()

    def told(committed: bool, now: Now) -> None:
        later.give(answer({"sink": sink, "epoch": epoch, "committed": committed}))

    call.broker.core.epochs.commit(sink, epoch, _transactions(call), call, told, call.now)
    return later


def forget(call: Call) -> Answer:
    """Forget a sink: it may begin again at any epoch."""
    call.broker.core.epochs.forget(_sink(call), call)
    return DONE


def _sink(call: Call) -> str:
    """The sink's name, with its namespace before it. Raises NotFound, BadRequest."""
    namespace, sink = call.namespace(), call.path["sink"]
    if not call.broker.tenants.has_namespace(namespace):
        raise NotFound("Namespace not found")
    if not sink.strip() or len(sink) > SINK_MAX:
        raise BadRequest(f"The name of a sink has 1 to {SINK_MAX} characters")
    return f"{namespace}/{sink}"


def _transactions(call: Call) -> list[TxnId]:
    body = call.json_object() or {}
    named: Any = body.get("transactions")
    if not isinstance(named, list):
        raise BadRequest('The body must name transactions: {"transactions": ["0:17"]}')
    found = []
    for each in named:
        halves = each.split(":") if isinstance(each, str) else []
        if len(halves) != 2 or not all(half.isascii() and half.isdigit() for half in halves):
            raise BadRequest(f"{str(each)[:40]!r} is no transaction: it is written 0:17")
        found.append(TxnId(int(halves[0]), int(halves[1])))
    return found


_SINK = "/pulsarbox/v1/epochs/{tenant}/{namespace}/{sink}"

ROUTES = (
    Route("GET", _SINK, Permission.NAMESPACE_USER, get),
    Route("POST", f"{_SINK}/{{epoch}}", Permission.NAMESPACE_USER, commit),
    Route("DELETE", _SINK, Permission.NAMESPACE_USER, forget),
)
