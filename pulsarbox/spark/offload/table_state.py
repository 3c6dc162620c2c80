"""State of an offload into an Iceberg table: what its snapshots say of a topic. Does not import pyspark."""

from collections.abc import Iterator
from typing import TYPE_CHECKING, Final, NamedTuple

from pulsarbox.spark.lakehouse.epoch_commit import WRITER as OF_WRITER
from pulsarbox.spark.lakehouse.epoch_commit import LastEpoch, kept_as, last_epoch
from pulsarbox.spark.lakehouse.table_scan import has_row
from pulsarbox.spark.offload.manifest import OffloadError
from pulsarbox.spark.offload.table_progress import Progress, decode, positions
from pulsarbox.spark.source.offsets import text
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
ROWS: Final = "pulsarbox.offload.rows"
"""Property of a snapshot: the position of the last row that it added, by topic or partition."""
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


class RowsMissing(OffloadError):
    """A snapshot lacks the rows that a topic must have after its last commit, and earlier states are unknown."""

    def __init__(self, table: str, topic: str, rows: str) -> None:
        """``rows``: those that are missing."""
        super().__init__(
            f"table {table} may lack offloaded messages of {topic}: earlier snapshots of the topic have expired, and "
            f"the last offloaded rows ({rows}) are missing, as after a rollback. Roll the table forward to a snapshot "
            "that has them, or offload into another table. If they were deleted intentionally or may be lost, offload "
            "with --accept-loss, which continues after them"
        )
        self.lost = f"{topic}: last offloaded rows ({rows}), and possibly earlier ones, are missing in the table"


def state_of(table: "Table", topic: str, at: "Snapshot | None" = None) -> TableState:
    """Return what a snapshot of a table has of a topic. ``at``: None for the current snapshot.

    If the snapshots of the topic have expired, the properties of the table describe the last one that was committed, of
    which the snapshot must have the last rows: it lacks them after a rollback. Raises RowsMissing if it does, and
    OffloadError for invalid properties.
    """
    last = last_epoch(table, WRITER + topic, at)
    if last is not None and not last.told:
        _check_rows(table, topic, at or table.current_snapshot())
    return _state(table, topic, last)


def unchecked_state_of(table: "Table", topic: str) -> TableState:
    """Return what the current snapshot has of a topic by the properties of the table, even if it lacks the last rows.

    Raises OffloadError for invalid properties.
    """
    return _state(table, topic, last_epoch(table, WRITER + topic))


def accept(table: "Table", topic: str) -> None:
    """Have readers of later snapshots no longer require the last rows of a topic. Raises errors of the catalog."""
    with table.transaction() as transaction:
        transaction.set_properties({kept_as(WRITER + topic, ROWS): "{}"})


def _state(table: "Table", topic: str, last: LastEpoch | None) -> TableState:
    if last is None:
        return TableState(-1, {})
    writer = WRITER + topic
    progress, columns = (
        last.told.get(name) or table.properties.get(kept_as(writer, name), "") for name in (PROGRESS, COLUMNS)
    )
    return TableState(last.epoch, decode(progress, name_of(table)), columns=columns)


def _check_rows(table: "Table", topic: str, snapshot: "Snapshot | None") -> None:
    """Check that a snapshot has the last rows of a topic. Raises RowsMissing, and OffloadError for bad properties."""
    stored = table.properties.get(kept_as(WRITER + topic, ROWS), "")
    places = positions(stored, name_of(table)) if stored else {}
    missing = [
        f"{text(place)} of {partition}"
        for partition, place in places.items()
        if snapshot is None or not has_row(table, snapshot.snapshot_id, partition, place)
    ]
    if missing or not stored:
        raise RowsMissing(name_of(table), topic, ", ".join(missing) or "of unknown positions")


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
    progress = decode(told, name_of(table)) if told else unchecked_state_of(table, topic).progress
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
