"""The live view of the store: volumes with their live share, maps, readers, commits, disk."""

from itertools import accumulate
from typing import Any

from pulsarbox.broker.broker import Broker
from pulsarbox.broker.stats.commit_stats import FINE_MS, CommitTimes
from pulsarbox.clock import Now
from pulsarbox.errors import AuthorizationError
from pulsarbox.server.http.box.live_views import STORAGE, around
from pulsarbox.server.http.framework.request import DeferredAnswer, HttpRequest, answer
from pulsarbox.server.http.framework.routes import HttpRoute, Permission
from pulsarbox.server.live.asking import scope_of


def storage(call: HttpRequest) -> DeferredAnswer:
    """Return ``rows`` of the volumes, newest first, and ``totals`` of the box. Not available per tenant."""
    scope = scope_of(call.query)
    if scope.prefix:
        raise AuthorizationError("The store belongs to the whole box: it is not shown per tenant")
    later, broker = DeferredAnswer(), call.broker

    def told(found: dict[str, Any] | None, error: Exception | None) -> None:
        if error is not None:
            later.failed(error)
            return
        document = dict(found or {})
        rows = document.pop("rows", [])
        totals = commit_totals(broker, call.now) | document
        counts = {"total": len(rows), "matching": len(rows), "offset": 0, "rows": rows, "totals": totals}
        later.complete(answer(around(call, STORAGE, scope, call.now) | counts))

    if broker.host.store_statistics is None:
        told(None, None)
    else:
        broker.host.run_in_thread("store", broker.host.store_statistics, told)
    return later


def commit_totals(broker: Broker, now: Now) -> dict[str, Any]:
    """Return the sizes and latencies of commits since startup, and of receipts over the last minute."""
    times, housekeeping = broker.commits.times, broker.commits.housekeeping
    commits = max(times.commits, 1)
    minute = times.last_minute(now)
    return {
        "commits": times.commits,
        "commitsFailed": times.failed,
        "groupEntries": times.entries / commits,
        "groupBytes": times.bytes / commits,
        "commitMs": 1000 * times.seconds / commits,
        "commitP50": _quantile(times, 0.5),
        "commitP99": _quantile(times, 0.99),
        "receiptP50": minute.quantile(0.5) if minute.entries else None,
        "receiptP99": minute.quantile(0.99) if minute.entries else None,
        "checkpointLag": housekeeping.lag,
        "refusal": housekeeping.refusal,
    }


def _quantile(times: CommitTimes, share: float) -> float | None:
    """Return the latency in milliseconds that this share of all commits did not exceed, rounded up to a bucket."""
    upto = list(accumulate(times.by_commit))
    if not upto[-1]:
        return None
    found = next(at for at, count in enumerate(upto) if count >= share * upto[-1])
    return FINE_MS[min(found, len(FINE_MS) - 1)]


ROUTES = (HttpRoute("GET", f"/pulsarbox/v1/top/{STORAGE}", Permission.WATCHER, storage),)
