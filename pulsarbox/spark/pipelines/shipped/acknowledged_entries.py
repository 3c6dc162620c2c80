"""Acknowledged entries of a subscription: whole entries from the topic's internal statistics, and single messages of
batches as a box reports them."""

import re
from bisect import bisect_left
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, field, replace
from functools import partial
from typing import TYPE_CHECKING, Any, Final

from pulsarbox.errors import PulsarBoxError
from pulsarbox.names import parse_topic
from pulsarbox.spark.connect.broker_api import Service
from pulsarbox.spark.connect.connections import admin_of
from pulsarbox.spark.topic_segments import Reach

if TYPE_CHECKING:
    from pyarrow import RecordBatch
    from pyspark.sql import DataFrame

_RANGE: Final = re.compile(r"\((-?\d+):(-?\d+)\.\.(-?\d+):(-?\d+)\]")

_PLACE: Final = ("__topic", "__ledgerId", "__entryId", "__batchIndex")

Place = tuple[int, int]


@dataclass(frozen=True)
class AcknowledgedEntries:
    """Entries that a subscription has acknowledged."""

    mark: Place
    """Last entry of the contiguous acknowledged range: the mark-delete position."""
    ranges: tuple[tuple[Place, Place], ...] = ()
    """Acknowledged ranges after the mark, in order: from (exclusive) and to (inclusive)."""
    batches: Mapping[Place, int] = field(default_factory=dict)
    """Partially acknowledged batches: a bitmap of the unacknowledged messages."""

    def holds(self, ledger: int, entry: int, index: int | None = None) -> bool:
        """Return whether an entry is acknowledged, or the message ``index`` of a batch."""
        here = (ledger, entry)
        at = bisect_left(self.ranges, (here,)) - 1
        if here <= self.mark or (at >= 0 and here <= self.ranges[at][1]):
            return True
        left = self.batches.get(here) if index is not None else None
        return left is not None and not left >> (index or 0) & 1


def left_of(rows: "DataFrame", acked: Mapping[str, AcknowledgedEntries]) -> "DataFrame":
    """Filter rows with ``columns=all`` for unacknowledged messages; ``acked`` is by topic or partition."""
    if not any(each.ranges or each.batches for each in acked.values()):
        return rows  # a read starts after the mark
    from pulsarbox.spark.arrow_functions import map_in_arrow

    return map_in_arrow(rows, partial(_left, acked), rows.schema)


def _left(acked: Mapping[str, AcknowledgedEntries], batches: "Iterable[RecordBatch]") -> "Iterator[RecordBatch]":
    """Filter the batches of a task."""
    import pyarrow as pa

    for batch in batches:
        places = zip(*(batch.column(name).to_pylist() for name in _PLACE), strict=True)
        yield batch.filter(pa.array([not acked[topic].holds(*place) for topic, *place in places], pa.bool_()))


def acked_of(to: Reach, topic: str, subscription: str) -> AcknowledgedEntries:
    """Return the acknowledged entries of a topic or partition.

    Raises PulsarBoxError for a missing subscription, and the broker's errors.
    """
    with admin_of(to) as admin:
        stats = admin.internal_stats(parse_topic(topic))
    found = read(stats, topic, subscription)
    with Service(to) as service:
        return replace(found, batches=service.in_part(topic, subscription))


def read(stats: Mapping[str, Any], topic: str, subscription: str) -> AcknowledgedEntries:
    """Parse the acknowledged entries out of internal statistics. Raises PulsarBoxError."""
    cursors = stats.get("cursors", {})
    cursor = cursors.get(subscription)
    if cursor is None:
        raise PulsarBoxError(
            f"{topic} has no subscription {subscription}; existing: {', '.join(sorted(cursors)) or 'none'}. Create it "
            f"with `pulsarbox sub create {parse_topic(topic).base} {subscription} --at earliest`"
        )
    found = _RANGE.findall(str(cursor.get("individuallyDeletedMessages", "")))
    ranges = tuple(sorted(((int(a), int(b)), (int(c), int(d))) for a, b, c, d in found))
    told = int(cursor.get("totalNonContiguousDeletedMessagesRange", len(ranges)))
    if told > len(ranges):
        raise PulsarBoxError(
            f"{topic}: {subscription} has acknowledged {told} ranges, of which the broker reports {len(ranges)}: use "
            "`pulsarbox dlq replay` for dead letters, or omit -s"
        )
    ledger, _, entry = str(cursor["markDeletePosition"]).partition(":")
    return AcknowledgedEntries((int(ledger), int(entry)), ranges)
