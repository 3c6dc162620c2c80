"""The live overview: key figures of the box, and time series for graphs."""

import shutil
from collections.abc import Generator, Sequence
from contextlib import suppress
from typing import Any, Final

from pulsarbox import __version__
from pulsarbox.broker.broker import Broker
from pulsarbox.broker.connection.clients import suspended, unread
from pulsarbox.broker.stats.tenant_stats import Scoped
from pulsarbox.broker.stats.time_series import STEP_SECONDS
from pulsarbox.broker.stats.topic_totals import Totals
from pulsarbox.clock import Now
from pulsarbox.server.live.view import ViewScope
from pulsarbox.server.metrics import process
from pulsarbox.storage.ensemble.watch import OUT_OF_USE, lacking

Values = dict[str, Any]

NAME: Final = "overview"
TOPICS_AT_ONCE: Final = 500


def overview(broker: Broker, scope: ViewScope, now: Now) -> Values:
    """Run ``overviewed`` to completion."""
    work = overviewed(broker, scope, now)
    try:
        next(work)
        while True:
            work.send(now)
    except StopIteration as stop:
        found: Values = stop.value
        return found


def overviewed(
    broker: Broker, scope: ViewScope, now: Now, columns: tuple[str, ...] = ()
) -> Generator[None, Now, Values]:
    """Build the overview's part of an answer. The series of a tenant start with its first request.

    ``columns`` selects members of ``COLUMNS``, with the series under ``series``; empty for everything. Yields to serve
    others, and is sent the current time.
    """
    with_series = SERIES in columns or not columns
    if scope.prefix:
        part = yield from _within(broker, scope, now)
        totals = _of_topics(part.totals) | {"producers": part.producers, "consumers": part.consumers}
        totals |= dict.fromkeys(_BOX)
        series = part.series.values() if with_series else {}
    else:
        samples = broker.samples
        totals = _of_topics(samples.totals.plus(samples.stored.totals)) | _of_box(broker, now, columns or COLUMNS)
        series = samples.series.values() if with_series else {}
    if columns:
        totals = {name: totals[name] for name in columns if name != SERIES}
    return {"totals": totals} | ({"series": series, "seriesStep": STEP_SECONDS} if with_series else {})


def _within(broker: Broker, scope: ViewScope, now: Now) -> Generator[None, Now, Scoped]:
    samples = broker.samples
    part = samples.scopes.watched(scope.prefix, now)
    if part.passes == samples.passes and samples.stored.complete:
        return part
    found, passes = Totals(), samples.passes
    producers = consumers = 0
    for number, topic in enumerate(broker.samples.every()):
        if number % TOPICS_AT_ONCE == TOPICS_AT_ONCE - 1:
            yield
        if scope.holds(topic.namespace):
            found.add(topic)
            producers += topic.producers
            consumers += topic.consumers
    part.totals, part.producers, part.consumers, part.passes = found, producers, consumers, passes
    return part


def _of_topics(totals: Totals) -> Values:
    return {
        "publishRate": totals.publish_rate,
        "deliverRate": totals.deliver_rate,
        "publishBytes": totals.publish_bytes,
        "deliverBytes": totals.deliver_bytes,
        "backlog": totals.backlog,
        "unacked": totals.unacked,
        "size": totals.size,
        "offloadedSize": totals.offloaded,
        "topics": totals.topics,
        "subscriptions": totals.subscriptions,
        "deadLetters": totals.letters,
    }


_BOX: Final = (
    "connections", "p50", "p99", "throttled", "suspended", "unread", "memory", "diskUsed", "diskFree", "started",
    "uptime", "version", "clusterName", "lostDirectories", "lackingCopies",
)  # fmt: skip
"""Figures that are not available per tenant."""
SERIES: Final = "series"
COLUMNS: Final = (*_of_topics(Totals()), *_BOX, "producers", "consumers", SERIES)
"""Selectable columns."""


def _of_box(broker: Broker, now: Now, columns: Sequence[str]) -> Values:
    waits = broker.commits.times.last_minute(now)
    used = free = None
    if broker.host.folder is not None and ("diskUsed" in columns or "diskFree" in columns):
        with suppress(OSError):  # the first of several data directories may be lost
            disk = shutil.disk_usage(broker.host.folder)
            used, free = disk.used, disk.free
    values = (
        len(broker.cnxs),
        waits.quantile(0.5) if waits.entries else None,
        waits.quantile(0.99) if waits.entries else None,
        len(broker.limits.holding),
        suspended(broker),
        unread(broker),
        process.memory()[1],
        used,
        free,
        broker.started,
        max(now.wall - broker.started, 0),
        __version__,
        broker.settings.clusterName,
        *_of_copies(broker, columns),
    )
    producers = sum([len(cnx.producers) for cnx in broker.cnxs])
    consumers = sum([len(cnx.consumers) for cnx in broker.cnxs])
    return dict(zip(_BOX, values, strict=True)) | {"producers": producers, "consumers": consumers}


def _of_copies(broker: Broker, columns: Sequence[str]) -> tuple[int | None, int | None]:
    """Return the directories that are out of use, and the entries that lack copies; None for one data directory."""
    watched = broker.host.ensemble
    if watched is None or not {"lostDirectories", "lackingCopies"} & set(columns):
        return None, None
    status = watched.status()
    lost = sum(each.state in OUT_OF_USE for each in status.members)
    return lost, lacking(status) if status.under_replicated_count else 0
