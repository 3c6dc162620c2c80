"""Epochs of an Iceberg table: each is added once, by whatever is killed, repeated or concurrent."""

import random
import signal
import subprocess
import sys
from collections import Counter
from pathlib import Path
from typing import Any

import pytest
from pyiceberg.table import Table

from pulsarbox.spark.lakehouse import epoch_commit
from pulsarbox.spark.lakehouse.data_files import WriterEpoch, for_tasks, write
from pulsarbox.spark.lakehouse.epoch_commit import EPOCH, WRITER, EpochOrderError, commit, last_epoch
from pulsarbox.spark.lakehouse.sink_options import parse_options
from pulsarbox.spark.lakehouse.table_place import TableError
from tests.tools.campaigns import short
from tests.unit.spark.lakehouse.tables import NAME, add, batch, counted, made, options_in, stored
from tests.unit.spark.offload import s3_server


def test_an_epoch_is_added_once(tmp_path: Path) -> None:
    options = options_in(tmp_path)
    assert add(options, "q", 0, 1, 2, 3)
    assert not add(options, "q", 0, 1, 2, 3), "a restart repeats the epoch"
    assert len(stored(tmp_path)) == 2, "the repetition's files are deleted"
    assert add(options, "q", 1, 4) and add(options, "other", 0, 5)
    assert not add(options, "q", 1, 4), "another writer came in between"
    with made(options) as (_, table):
        assert counted(table) == Counter([1, 2, 3, 4, 5])
        told = [(each.summary[WRITER], each.summary[EPOCH]) for each in table.snapshots() if each.summary]
        assert told == [("q", "0"), ("q", "1"), ("other", "0")]
        first = table.snapshots()[0].snapshot_id
        assert sorted(table.scan(snapshot_id=first).to_arrow()["n"].to_pylist()) == [1, 2, 3]
    with pytest.raises(EpochOrderError, match="is the checkpoint older than the table"):
        add(options, "q", 0, 1, 2, 3)


def test_files_of_killed_tasks_are_deleted_with_the_commit_of_their_epoch(tmp_path: Path) -> None:
    options = options_in(tmp_path)
    with made(options) as (_, table):
        write(for_tasks(table, 1 << 20), WriterEpoch("q", 0), [batch(9)])  # never committed
    assert len(stored(tmp_path)) == 1
    assert add(options, "q", 0, 1, 2)
    assert len(stored(tmp_path)) == 2
    with made(options) as (_, table):
        assert counted(table) == Counter([1, 2])


def test_an_epoch_without_rows_makes_no_snapshot(tmp_path: Path) -> None:
    options = options_in(tmp_path)
    assert add(options, "q", 0)
    with made(options) as (_, table):
        assert table.snapshots() == [] and last_epoch(table, "q") is None
    assert add(options, "q", 1, 1)


def test_the_last_epoch_outlives_its_snapshot_but_not_a_rollback(tmp_path: Path) -> None:
    options = options_in(tmp_path)
    for epoch in range(3):
        add(options, "q", epoch, epoch)
    add(options, "other", 0, 9)
    with made(options) as (_, table):
        for each in table.snapshots()[:3]:
            table.maintenance.expire_snapshots().by_id(each.snapshot_id).commit()
        left = table.refresh()
        assert len(left.snapshots()) == 1
        last = last_epoch(left, "q")
        assert last is not None and last.epoch == 2
        assert last_epoch(left, "none") is None
    assert not add(options, "q", 2, 2)
    with made(options) as (_, table):
        assert counted(table) == Counter([0, 1, 2, 9])
    add(options, "other", 1, 10)
    with made(options) as (_, table):
        table.manage_snapshots().set_current_snapshot(table.snapshots()[0].snapshot_id).commit()
        last = last_epoch(table.refresh(), "other")
        assert last is not None and last.epoch == 0
    assert add(options, "other", 1, 10)


def test_two_drivers_with_one_epoch_add_it_once(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    options = options_in(tmp_path)
    with made(options) as (catalog, table):
        of = WriterEpoch("q", 0)
        given = for_tasks(table, 1 << 20)
        ours, theirs = write(given, of, [batch(1)]), write(given, of, [batch(1)])
        real: Any = epoch_commit._added

        def overtaken(found: Table, *more: Any) -> bool:
            monkeypatch.setattr(epoch_commit, "_added", real)
            assert commit(catalog, NAME, of, theirs), "after the first driver looked, before it commits"
            return bool(real(found, *more))

        monkeypatch.setattr(epoch_commit, "_added", overtaken)
        assert not commit(catalog, NAME, of, ours)
        assert counted(catalog.load_table(NAME)) == Counter([1])


def test_a_commit_that_arrived_although_it_failed_keeps_its_files(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    options = options_in(tmp_path)
    with made(options) as (catalog, table):
        files = write(for_tasks(table, 1 << 20), WriterEpoch("q", 0), [batch(1, 2)])
        real: Any = epoch_commit._added
        monkeypatch.setattr(epoch_commit, "_added", lambda *given: real(*given) and False)
        assert commit(catalog, NAME, WriterEpoch("q", 0), files)
        assert counted(catalog.load_table(NAME)) == Counter([1, 2])


def test_other_writers_are_retried_for_a_limited_time(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(epoch_commit, "COMMIT_SECONDS", -1.0)
    monkeypatch.setattr(epoch_commit, "_added", lambda *_: False)
    with pytest.raises(TableError, match="other writers commit so often"):
        add(options_in(tmp_path), "q", 0, 1)


def test_a_table_may_be_in_object_storage(tmp_path: Path) -> None:
    with s3_server.moto() as to:
        given = {"s3.endpoint": to.endpoint, "s3.access-key-id": to.key, "s3.secret-access-key": to.secret}
        given |= {"s3.region": to.region, "uri": f"sqlite:///{tmp_path}/c.db", "warehouse": f"s3://{s3_server.BUCKET}"}
        options = parse_options({"table": NAME, **{f"catalog.{name}": value for name, value in given.items()}})
        with made(options) as (_, table):
            stray = write(for_tasks(table, 1 << 20), WriterEpoch("q", 0), [batch(9)])  # never committed
            assert table.io.new_input(stray[0].file_path).exists()
        assert add(options, "q", 0, 1, 2) and not add(options, "q", 0, 1, 2)
        with made(options) as (_, table):
            assert sorted(table.scan().to_arrow()["n"].to_pylist()) == [1, 2]
            assert not table.io.new_input(stray[0].file_path).exists()


CHILD = """
import sys
from pathlib import Path
from tests.unit.spark.lakehouse.tables import add, options_in

folder, epochs = Path(sys.argv[1]), int(sys.argv[2])
done = folder / "checkpoint"
while (epoch := int(done.read_text()) if done.exists() else 0) < epochs:
    print(epoch, flush=True)
    add(options_in(folder), "q", epoch, *range(10 * epoch, 10 * epoch + 10))
    new = done.with_suffix(".new")
    new.write_text(str(epoch + 1))
    new.replace(done)
"""
"""A driver: like Spark, it repeats the epoch that its checkpoint does not have."""


@pytest.mark.parametrize("kills", short([1, 25], 1))
def test_kill_9_at_any_time_neither_loses_nor_repeats_a_row(tmp_path: Path, kills: int) -> None:
    dice = random.Random(kills)
    epochs = 4 * kills
    for life in range(kills + 1):
        command = [sys.executable, "-c", CHILD, str(tmp_path), str(epochs)]
        with subprocess.Popen(command, stdout=subprocess.PIPE, stdin=subprocess.DEVNULL) as child:
            assert child.stdout is not None
            if life < kills:
                for _ in range(dice.randrange(1, 4)):
                    child.stdout.readline()
                with_delay = dice.random() * 0.12
                try:
                    child.wait(with_delay)
                except subprocess.TimeoutExpired:
                    child.send_signal(signal.SIGKILL)
            assert child.wait() in (0, -signal.SIGKILL)
    with made(options_in(tmp_path)) as (_, table):
        assert counted(table) == Counter(range(10 * epochs))
        committed = set(table.inspect.files()["file_path"].to_pylist())
        assert len(stored(tmp_path)) == len(committed)
