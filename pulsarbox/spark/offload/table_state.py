"""State of an offload into an Iceberg table: what its snapshots say of a topic. Does not import pyspark."""

from collections.abc import Iterator
from typing import TYPE_CHECKING, Final, NamedTuple

from pulsarbox.spark.lakehouse.epoch_commit import WRITER as OF_WRITER
from pulsarbox.spark.lakehouse.epoch_commit import kept_as, last_epoch
from pulsarbox.spark.offload.table_progress import Progress, decode
from pulsarbox.spark.topic_segments import ReadPosition

if TYPE_CHECKING:
    from pyiceberg.table import Table
    from pyiceberg.table.snapshots import Snapshot

WRITER: Final = "offload-"
"""Prefix of the writers of epochs; the base name of the topic follows."""
PROGRESS: Final = "pulsarbox.offload.progress"
"""Property of a snapshot: the position after all offloaded ledgers of its topic, and what the next commit needs."""
RANGES: Final = "pulsarbox.offload.ranges"
"""Property of a snapshot: the first position that it added and the position after the last, by topic or partition."""
LOSSES: Final = "pulsarbox.offload.lost"
"""Property of a snapshot: ranges that were lost before they were offloaded, and accepted by the operator."""
COLUMNS: Final = "pulsarbox.offload.columns"
"""Property of a snapshot: the columns of its topic, as Spark's JSON. The table may have those of other topics too."""


class TableState(NamedTuple):
    """The part of a topic that is in a table."""

    epoch: int
    """Number of the last commit; -1 for none."""
    progress: Progress
    lost: tuple[str, ...] = ()
    """Accepted losses that no snapshot names yet."""
    columns: str = ""
    """Columns of the topic at that commit, as Spark's JSON; empty if unknown."""


def state_of(table: "Table", topic: str, at: "Snapshot | None" = None) -> TableState:
    """Return what a snapshot of a table has of a topic. ``at``: None for the current snapshot.

    Raises OffloadError for invalid properties.
    """
    writer = WRITER + topic
    last = last_epoch(table, writer, at)
    if last is None:
        return TableState(-1, {})
    progress, columns = (
        last.told.get(name) or table.properties.get(kept_as(writer, name), "") for name in (PROGRESS, COLUMNS)
    )
    return TableState(last.epoch, decode(progress, name_of(table)), columns=columns)


def name_of(table: "Table") -> str:
    """Return ``namespace.table``."""
    return ".".join(table.name())


def held_since(table: "Table", topic: str, until: int) -> dict[str, ReadPosition]:
    """Return the positions from which the box must retain a topic, by partition: those of the last snapshot committed
    by ``until`` (ms since 1970), so that readers of later ones find the rest. Partitions without one are absent.

    Raises OffloadError for invalid properties.
    """
    told = ""
    for snapshot in _of_topic(table, topic):
        assert snapshot.summary is not None
        told = snapshot.summary.additional_properties.get(PROGRESS, "")
        if snapshot.timestamp_ms <= until:
            break
    else:
        if not _has_expired(table):
            return {}  # each commit is recent
    progress = decode(told, name_of(table)) if told else state_of(table, topic).progress
    return {partition: each.held for partition, each in progress.items()}


def _of_topic(table: "Table", topic: str) -> "Iterator[Snapshot]":
    """Yield the snapshots that added ledgers of a topic, the newest first."""
    for snapshot in _line(table):
        if snapshot.summary is not None and snapshot.summary.additional_properties.get(OF_WRITER) == WRITER + topic:
            yield snapshot


def _line(table: "Table") -> "Iterator[Snapshot]":
    snapshot = table.current_snapshot()
    while snapshot is not None:
        yield snapshot
        before = snapshot.parent_snapshot_id
        snapshot = None if before is None else table.snapshot_by_id(before)


def _has_expired(table: "Table") -> bool:
    """Return whether the oldest snapshots of a table's history have expired."""
    oldest = next(iter(reversed(list(_line(table)))), None)
    return oldest is not None and (oldest.sequence_number or 0) > 1
