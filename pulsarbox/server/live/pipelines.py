"""The live view of pipelines on Spark: one row per query, as reported by their runners."""

from collections.abc import Iterator
from typing import Final, NamedTuple

from pulsarbox.broker.broker import Broker
from pulsarbox.broker.stats.pipeline_status import QueryStatus
from pulsarbox.clock import Now
from pulsarbox.server.live.view import LiveView, Row, ViewColumn, ViewScope, kept

FIELDS: Final = (
    "pipeline", "query", "state", "inputs", "output", "lag", "rows", "rowsPerSecond", "batch", "lastBatchMs", "stages",
    "watermark", "stateRows", "stateBytes", "deadLetters", "lastError", "master", "host", "pid", "startedAt", "ui",
    "reportedAt", "by",
)  # fmt: skip
"""The fields of a query in the API."""


class Told(NamedTuple):
    """A query with its current row."""

    row: Row


def things(broker: Broker, scope: ViewScope, now: Now) -> Iterator[Told]:
    """Return all queries; of a tenant or namespace, only those that read and write there exclusively."""
    return (Told(each.as_json(now)) for each in broker.pipelines.all(now) if _is_within(each, scope))


def _is_within(query: QueryStatus, scope: ViewScope) -> bool:
    if not scope.prefix:
        return True
    namespaces = list(query.namespaces)
    return bool(namespaces) and all(scope.holds(each) for each in namespaces)


def _told(name: str) -> ViewColumn:
    return kept(lambda told: told.row[name])


COLUMNS: Final = {name: _told(name) for name in FIELDS}

PIPELINES: Final = LiveView(
    "pipelines",
    COLUMNS,
    things,
    sort="lag",
    searched=lambda told: (told.row["pipeline"], told.row["query"], *told.row["inputs"], told.row["output"]),
)
