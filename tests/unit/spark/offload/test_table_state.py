"""The part of a topic that is in a table after rollbacks and expiry, and the positions from which a box retains it."""

from collections.abc import Iterator
from pathlib import Path
from typing import TYPE_CHECKING

import pyarrow as pa
import pytest

from pulsarbox.spark.lakehouse.data_files import WriterEpoch, for_tasks, write
from pulsarbox.spark.lakehouse.epoch_commit import commit
from pulsarbox.spark.offload.table_progress import PartitionProgress, Progress, encode, encode_positions
from pulsarbox.spark.offload.table_state import (
    PROGRESS,
    ROWS,
    WRITER,
    RowsMissing,
    accept,
    held_since,
    state_of,
    unchecked_state_of,
)
from pulsarbox.spark.source.offsets import Mark
from pulsarbox.spark.topic_segments import ReadPosition
from tests.unit.spark.lakehouse.tables import NAME, batch, made, options_in

if TYPE_CHECKING:
    from pyiceberg.catalog import Catalog
    from pyiceberg.table import Table

TOPIC = "persistent://public/default/t"


def test_the_box_retains_what_recent_commits_added(tmp_path: Path) -> None:
    options = options_in(tmp_path)
    first = Mark(ReadPosition(3, 0), 0)
    progress: Progress = {TOPIC: PartitionProgress("box", first, first)}
    with made(options) as (catalog, table):
        assert held_since(table, TOPIC, 1 << 60) == {}
        for epoch in range(3):
            progress[TOPIC].add(3 + epoch, 10, 10 * epoch + 10, [])
            of = WriterEpoch(WRITER + TOPIC, epoch)
            assert commit(
                catalog, NAME, of, write(for_tasks(table, 1 << 20), of, [batch(epoch)]), {PROGRESS: encode(progress)}
            )
        table.refresh()
        times = [each.timestamp_ms for each in table.snapshots()]
        assert held_since(table, TOPIC, times[0] - 1) == {}, "all of them are recent"
        assert held_since(table, TOPIC, times[-1]) == {TOPIC: ReadPosition(5, 10)}
        assert held_since(table, "persistent://public/default/other", times[-1]) == {}
        last = table.snapshots()[-1].snapshot_id
        table.maintenance.expire_snapshots().by_ids([each.snapshot_id for each in table.snapshots()[:-1]]).commit()
        table.refresh()
        assert [each.snapshot_id for each in table.snapshots()] == [last]
        assert held_since(table, TOPIC, times[0] - 1) == {TOPIC: ReadPosition(5, 10)}, "earlier ones have expired"
        assert state_of(table, TOPIC).progress == progress


OTHER = "persistent://public/default/other"
COLUMNS = pa.schema({"__topic": pa.string(), "__ledgerId": pa.int64(), "__entryId": pa.int64()})


class Offloads:
    """A table with snapshots of topics, each with a ledger of ten entries: that with the number of the epoch."""

    def __init__(self, catalog: "Catalog", table: "Table") -> None:
        self.catalog, self.table = catalog, table
        self._epochs: dict[str, int] = {}

    def add(self, topic: str) -> int:
        """Commit the next ledger of a topic; return the ID of the snapshot."""
        epoch = self._epochs[topic] = self._epochs.get(topic, -1) + 1
        told = {PROGRESS: encode(progress_after(epoch)), ROWS: encode_positions({TOPIC: ReadPosition(epoch, 9)})}
        of = WriterEpoch(WRITER + topic, epoch)
        rows = pa.record_batch([[topic] * 10, [epoch] * 10, range(10)], schema=COLUMNS)
        assert commit(self.catalog, NAME, of, write(for_tasks(self.table, 1 << 20), of, [rows]), told)
        self.table.refresh()
        return self.current()

    def current(self) -> int:
        found = self.table.current_snapshot()
        assert found is not None
        return found.snapshot_id

    def expire(self, *ids: int) -> None:
        self.table.maintenance.expire_snapshots().by_ids(list(ids)).commit()
        self.table.refresh()

    def set_current(self, snapshot: int) -> None:
        self.table.manage_snapshots().set_current_snapshot(snapshot).commit()
        self.table.refresh()

    def next(self, snapshot: int | None = None) -> tuple[int, int]:
        """Return ledger and entry after the topic's ledgers in a snapshot, the current one by default."""
        at = None if snapshot is None else self.table.snapshot_by_id(snapshot)
        place = state_of(self.table, TOPIC, at).progress[TOPIC].next.place
        return place.ledger, place.entry


def progress_after(ledger: int) -> Progress:
    first = Mark(ReadPosition(0, 0), 0)
    return {TOPIC: PartitionProgress("box", first, Mark(ReadPosition(ledger, 10), 10 * ledger + 10))}


@pytest.fixture
def offloads(tmp_path: Path) -> Iterator[Offloads]:
    with made(options_in(tmp_path), COLUMNS) as (catalog, table):
        yield Offloads(catalog, table)


def test_a_rollback_before_the_last_commit_is_refused_once_earlier_snapshots_have_expired(offloads: Offloads) -> None:
    first, between, last = offloads.add(TOPIC), offloads.add(OTHER), offloads.add(TOPIC)
    assert offloads.next(between) == (0, 10)
    offloads.expire(first)
    with pytest.raises(RowsMissing, match=r"\(1:9 of persistent://public/default/t\) are missing, as after a rollback"):
        offloads.next(between)
    offloads.set_current(between)
    with pytest.raises(RowsMissing, match="--accept-loss"):
        offloads.next()
    assert state_of(offloads.table, OTHER).epoch == 0
    offloads.set_current(last)
    assert offloads.next() == (1, 10), "rolled forward"


def test_a_rollback_of_a_commit_is_refused_once_the_earlier_ones_have_expired(offloads: Offloads) -> None:
    first, last = offloads.add(TOPIC), offloads.add(TOPIC)
    offloads.set_current(first)
    assert offloads.next() == (0, 10)
    offloads.add(OTHER)
    offloads.expire(last)
    assert offloads.next() == (0, 10), "the snapshot knows"
    offloads.expire(first)
    with pytest.raises(RowsMissing):
        offloads.next()


def test_an_expired_commit_whose_rows_are_there_is_valid(offloads: Offloads) -> None:
    expired = [offloads.add(TOPIC), offloads.add(TOPIC), offloads.add(OTHER)]
    rows = offloads.table.scan().to_arrow()
    expired.append(offloads.current())
    offloads.table.overwrite(rows.cast(offloads.table.schema().as_arrow()))  # as a compaction does: other files
    expired += [each.snapshot_id for each in offloads.table.snapshots() if each.snapshot_id != offloads.current()]
    offloads.expire(*set(expired))
    assert offloads.next() == (1, 10) and state_of(offloads.table, TOPIC).epoch == 1


def test_missing_rows_may_be_accepted(offloads: Offloads) -> None:
    expired = [offloads.add(TOPIC), offloads.add(OTHER)]
    offloads.table.delete("__entryId = 9")
    offloads.expire(*expired)
    with pytest.raises(RowsMissing) as error:
        offloads.next()
    assert error.value.lost == (
        f"{TOPIC}: last offloaded rows (0:9 of {TOPIC}), and possibly earlier ones, are missing in the table"
    )
    assert held_since(offloads.table, TOPIC, 1 << 60) == {TOPIC: ReadPosition(0, 10)}
    assert unchecked_state_of(offloads.table, TOPIC).progress == progress_after(0)
    accept(offloads.table, TOPIC)
    assert offloads.next() == (0, 10)
    with offloads.table.transaction() as transaction:
        transaction.remove_properties(f"{ROWS}.{WRITER}{TOPIC}")
    with pytest.raises(RowsMissing, match="of unknown positions"):
        offloads.next()
