"""Positions from which a box retains a topic that is offloaded into a table."""

from pathlib import Path

from pulsarbox.spark.lakehouse.data_files import WriterEpoch, for_tasks, write
from pulsarbox.spark.lakehouse.epoch_commit import commit
from pulsarbox.spark.offload.table_progress import PartitionProgress, Progress, encode
from pulsarbox.spark.offload.table_state import PROGRESS, WRITER, held_since, state_of
from pulsarbox.spark.source.offsets import Mark
from pulsarbox.spark.topic_segments import ReadPosition
from tests.unit.spark.lakehouse.tables import NAME, batch, made, options_in

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
