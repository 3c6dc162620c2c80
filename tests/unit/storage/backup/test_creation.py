"""Creating backups of unused directories, and of one that a process writes and packs."""

import errno
import json
import os
import stat
import subprocess
import sys
from collections import Counter
from collections.abc import Iterable
from pathlib import Path

import lmdb
import pytest

from pulsarbox.errors import PersistenceError
from pulsarbox.storage.backup import creation, cut, log_parts
from pulsarbox.storage.backup.creation import Plan, create
from pulsarbox.storage.backup.last import last_backup
from pulsarbox.storage.backup.manifest import BackupConflict, BackupError, BackupNotFound
from pulsarbox.storage.backup.pace import CopyPace
from pulsarbox.storage.backup.repository import Repository
from pulsarbox.storage.backup.stored_files import Stored, StoredFiles
from pulsarbox.storage.catalog import ledger_key
from pulsarbox.storage.inspection.check import check
from pulsarbox.storage.lmdb.engine import LmdbEngine
from pulsarbox.storage.record import Entry, Meta, unpack_batch
from tests.tools.campaigns import short
from tests.unit.storage.backup.conftest import assert_restored, backed_up, quiet, restored
from tests.unit.storage.directories import INSTANCE
from tests.unit.storage.disk_store import DiskStore
from tests.unit.storage.engine_conformance import read_all
from tests.unit.storage.engine_writer import TOPIC_ID

ROOT = Path(__file__).parents[4]


def paths(target: Path, name: str) -> set[str]:
    return {file.path for file in Repository(target).manifest(name).files}


def test_a_backup_has_all_batches_and_is_restored_whole(filled: DiskStore, target: Path, tmp_path: Path) -> None:
    made = backed_up(filled.path, target)
    assert made.manifest.position == filled.next_position - 1
    assert made.manifest.volumes == (10,)
    assert {path.split("/")[0] for path in paths(target, made.manifest.name)} == {"meta", "packed", "volumes", "log"}
    result = restored(target, tmp_path / "new")
    assert_restored(filled, tmp_path / "new")
    old, new = (json.loads((path / "INSTANCE").read_text()) for path in (filled.path, tmp_path / "new"))
    assert new["instance"] == result.instance != old["instance"]
    assert new["lineage"] == [old["instance"]]
    assert (new["format"], new["created"]) == (old["format"], old["created"])
    assert new["restored"] == {"backup": made.manifest.name, "position": filled.next_position - 1}


def test_volumes_that_are_not_sealed_yet_are_all_in_it(tmp_path: Path, target: Path) -> None:
    store = DiskStore(tmp_path / "data")
    store.open()
    store.commit(60)  # several volumes are full, without a checkpoint
    assert len(store.names()) > 3
    store.close()
    made = backed_up(store.path, target)
    assert len(made.manifest.volumes) > 3
    assert made.manifest.checkpoint == 0
    restored(target, tmp_path / "new")
    assert_restored(store, tmp_path / "new")


def test_only_the_owner_can_read_a_backup_and_what_is_restored(filled: DiskStore, target: Path, tmp_path: Path) -> None:
    before = os.umask(0o022)
    try:
        backed_up(filled.path, target, Plan(link=False))
        restored(target, tmp_path / "new")
    finally:
        os.umask(before)
    for folder in (target, tmp_path / "new"):
        for path in (folder, *folder.rglob("*")):
            assert stat.S_IMODE(path.stat().st_mode) == (0o700 if path.is_dir() else 0o600), path


def test_sealed_volumes_are_linked_and_copied_where_that_is_wanted(filled: DiskStore, target: Path) -> None:
    volume = filled.path / "volumes" / "00000009" / "data.mdb"
    made = backed_up(filled.path, target)
    sealed = {file.path: file for file in made.manifest.files if file.modified}
    assert made.linked == sum(file.size for file in sealed.values())
    stored = Repository(target).files.path(sealed["volumes/00000009/data.mdb"].sha256)
    assert stored.samefile(volume)
    made = backed_up(filled.path, target, Plan(link=False, full=True))
    assert (made.linked, made.reused) == (0, 0)
    assert not stored.samefile(volume)
    assert stored.read_bytes() == volume.read_bytes()


def test_it_is_copied_where_a_link_is_refused(
    filled: DiskStore, target: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def link(*_: object) -> None:
        raise OSError(errno.EPERM, "Operation not permitted")

    monkeypatch.setattr(os, "link", link)
    made = backed_up(filled.path, target)
    assert made.linked == 0
    assert made.copied == made.manifest.size
    restored(target, tmp_path / "new")
    assert_restored(filled, tmp_path / "new")


def test_the_next_backup_stores_what_is_new(filled: DiskStore, target: Path, tmp_path: Path) -> None:
    backed_up(filled.path, target, Plan(link=False))
    again = backed_up(filled.path, target, Plan(link=False))
    meta = next(file.size for file in again.manifest.files if file.path == "meta/data.mdb")
    assert again.copied == meta, "the checkpoint alone"
    assert again.reused == again.manifest.size - meta
    filled.open()
    filled.commit(1)
    filled.close()
    third = backed_up(filled.path, target, Plan(link=False))
    # The log is stored again from the start of its last part, which is small.
    log = sum(file.size for file in third.manifest.files if file.volume)
    assert third.copied == meta + log
    restored(target, tmp_path / "new")
    assert_restored(filled, tmp_path / "new")


def test_a_log_goes_on_behind_the_parts_that_are_stored(
    filled: DiskStore, target: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(log_parts, "SMALL_BYTES", 0)
    monkeypatch.setattr(log_parts, "PART_BYTES", 3_000)
    first = backed_up(filled.path, target).manifest
    filled.open()
    filled.commit(2)
    filled.close()
    second = backed_up(filled.path, target)
    (volume,) = first.volumes
    before, after = first.log_of(volume), second.manifest.log_of(volume)
    assert len(before) > 1
    assert len(after) > len(before)
    assert after[: len(before)] == before
    new = sum(part.size for part in after[len(before) :])
    assert second.copied == new + next(file.size for file in second.manifest.files if file.path == "meta/data.mdb")
    restored(target, tmp_path / "new")
    assert_restored(filled, tmp_path / "new")


def test_a_restored_box_goes_on_in_the_same_backup_directory(filled: DiskStore, target: Path, tmp_path: Path) -> None:
    first = backed_up(filled.path, target).manifest
    filled.open()
    filled.commit(3, (20, 21))  # lost in the crash
    filled.close()
    backed_up(filled.path, target)
    restored(target, tmp_path / "new", first.name)
    copy = DiskStore(tmp_path / "new")
    copy.open()
    copy.ends, copy.dropped = dict(filled.ends), set(filled.dropped)
    copy.ends.update({20: filled.ends[20] - 6, 21: filled.ends[21] - 6})
    copy.commit(3, (22,))  # different batches at the same positions
    copy.close()
    made = backed_up(copy.path, target)
    assert made.manifest.box.lineage == (first.box.instance,)
    assert made.reused >= sum(file.size for file in first.files if file.modified), "sealed volumes are known"
    restored(target, tmp_path / "newer")
    assert_restored(copy, tmp_path / "newer")


def test_another_box_is_refused(target: Path, sample: Path) -> None:
    backed_up(sample, target)
    other = json.loads((sample / "INSTANCE").read_text()) | {"instance": "another"}
    (sample / "INSTANCE").write_text(json.dumps(other))
    with pytest.raises(BackupConflict, match=rf"holds backups of another box \({INSTANCE}; .*choose another directory"):
        backed_up(sample, target)
    with pytest.raises(BackupConflict, match="holds backups of another box"):
        backed_up(sample, target, Plan(full=True))


@pytest.mark.parametrize("inside", ["data/backups", "."])
def test_a_target_around_or_in_the_data_directory_is_refused(sample: Path, inside: str) -> None:
    with pytest.raises(BackupConflict, match="contain one another"):
        backed_up(sample, sample.parent / inside)
    assert not (sample / "backups").exists()


def test_a_target_with_something_else_is_refused(sample: Path, target: Path) -> None:
    target.mkdir()
    (target / "letter").write_text("dear")
    with pytest.raises(BackupConflict, match="is not empty and is not a backup directory"):
        backed_up(sample, target)
    (target / "letter").rename(target / "INSTANCE")
    with pytest.raises(BackupConflict, match="is the data directory of a box"):
        backed_up(sample, target)
    assert [path.name for path in target.iterdir()] == ["INSTANCE"]


def test_what_is_no_data_directory_is_refused(tmp_path: Path, target: Path) -> None:
    with pytest.raises(PersistenceError, match="does not exist"):
        backed_up(tmp_path / "nothing", target)
    (tmp_path / "file").mkdir()
    with pytest.raises(PersistenceError, match="is not a data directory"):
        backed_up(tmp_path / "file", target)
    assert not target.exists()


def test_a_full_disk_is_refused_early(sample: Path, target: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(creation, "ROOM_LEFT", 1 << 60)
    with pytest.raises(BackupError, match=r"free, the backup may need .* free up space, or choose a directory"):
        backed_up(sample, target)
    assert Repository(target).interrupted() == []


def failing(monkeypatch: pytest.MonkeyPatch, number: int, code: int) -> None:
    """Make the addition of the given file, by number, fail after its first chunk."""
    count, add = 0, StoredFiles.add

    def fails(self: StoredFiles, chunks: Iterable[bytes], pace: CopyPace) -> Stored:
        nonlocal count
        count += 1
        if count != number:
            return add(self, chunks, pace)
        add(self, [next(iter(chunks))], pace)
        raise OSError(code, os.strerror(code))

    monkeypatch.setattr(StoredFiles, "add", fails)


def test_a_disk_that_fills_up_is_given_back(filled: DiskStore, target: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    with monkeypatch.context() as patch:
        failing(patch, 3, errno.ENOSPC)
        with pytest.raises(BackupError, match="the disk is full; the files of the backup were removed"):
            backed_up(filled.path, target, Plan(link=False))
    repository = Repository(target)
    assert (repository.names(), repository.interrupted(), repository.files.digests()) == ([], [], [])
    backed_up(filled.path, target)


@pytest.mark.parametrize("number", short([1, 2, 3, 4, 5], 2))
def test_an_interrupted_backup_is_incomplete_and_is_resumed(
    filled: DiskStore, target: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, number: int
) -> None:
    with monkeypatch.context() as patch:
        failing(patch, number, errno.EIO)
        with pytest.raises(BackupError, match="run the command again to resume"):
            backed_up(filled.path, target, Plan(link=False))
    repository = Repository(target)
    assert repository.names() == []
    assert len(repository.interrupted()) == 1
    with pytest.raises(BackupNotFound, match="has no complete backup"):
        repository.newest()
    with pytest.raises(BackupNotFound, match="is incomplete: it was interrupted"):
        repository.manifest(repository.interrupted()[0])
    made = backed_up(filled.path, target, Plan(link=False))
    sealed = sorted(file.size for file in made.manifest.files if file.modified)
    assert (made.reused > 0) == (number > 2), "meta is always copied; then three sealed volumes follow"
    assert made.reused <= sum(sealed)
    assert repository.interrupted() == []
    assert repository.unreferenced() == []
    restored(target, tmp_path / "new")
    assert_restored(filled, tmp_path / "new")


def test_two_backups_at_once_are_refused(sample: Path, target: Path) -> None:
    backed_up(sample, target)
    with Repository(target).locked(), pytest.raises(BackupConflict, match=rf"in use by .* \(process {os.getpid()}\)"):
        backed_up(sample, target)


def test_a_damaged_log_is_refused(sample: Path, target: Path) -> None:
    with lmdb.open(str(sample / "volumes" / "00000003"), max_dbs=16) as env:
        log = env.open_db(b"log")
        with env.begin(write=True, db=log) as txn:
            value = bytearray(txn.get((7).to_bytes(8, "big"), b""))
            value[25] ^= 1  # within the header of a record
            txn.put((7).to_bytes(8, "big"), bytes(value))
    with pytest.raises(BackupError, match=r"batch 7 of volumes/00000003 cannot be copied: .*storage check"):
        backed_up(sample, target)
    assert Repository(target).names() == []


def test_a_missing_volume_is_named(sample: Path, target: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(cut, "_ATTEMPTS", 2)
    (sample / "volumes" / "00000002" / "data.mdb").unlink()
    with pytest.raises(BackupError, match=r"volumes/00000002/data\.mdb is missing, though its tables name it"):
        backed_up(sample, target)


def test_an_old_format_is_refused(sample: Path, target: Path) -> None:
    (sample / "INSTANCE").write_text(json.dumps({"format": 1, "instance": "x"}))
    with pytest.raises(PersistenceError, match="has format 1, but this version of pulsarbox reads format 3"):
        backed_up(sample, target)


def test_the_data_directory_notes_its_last_backup(sample: Path, target: Path) -> None:
    assert last_backup(sample) is None
    made = backed_up(sample, target).manifest
    told = {"name": made.name, "time": made.completed, "position": 8, "directory": str(target.resolve())}
    assert last_backup(sample) == told
    assert check(sample).findings == []
    (sample / "BACKUP").write_text("{")
    assert last_backup(sample) is None


# Backups during writes

LEDGER_BATCHES = 6
"""Batches of engine_writer per ledger: its creation, four batches of five entries, and its end.

An additional first batch creates the topic.
"""


def expected(position: int) -> dict[int, int]:
    """The entries by ledger that engine_writer has committed up to a position."""
    alive: dict[int, int] = {}
    closed: list[int] = []
    for at in range(position - 1):
        ledger, step = 11 + at // LEDGER_BATCHES, at % LEDGER_BATCHES
        alive[ledger] = min(5 * step, 20)
        if step == LEDGER_BATCHES - 1:
            closed.append(ledger)
            if len(closed) > 12:
                for dead in [one for one in closed[:8] if one % 4]:
                    closed.remove(dead)
                    del alive[dead]
    return alive


def held(data: Path) -> dict[int, int]:
    """The entries by ledger in a restored directory, from its checkpoint and its log; each entry is read."""
    engine = LmdbEngine(data)
    try:
        recovery = engine.recover()
        rows = dict(recovery.rows.items(ledger_key(TOPIC_ID).encode()))
        written: Counter[int] = Counter()
        for batch in recovery.batches:
            for _, record in unpack_batch(batch):
                if isinstance(record, Meta) and record.value is None:
                    del rows[record.key]
                elif isinstance(record, Meta):
                    rows[record.key] = record.value or b""
                elif isinstance(record, Entry):
                    written[record.ledger_id] += 1
        ledgers = {int(key[-16:], 16): json.loads(row) for key, row in rows.items() if key.startswith(b"ledger/")}
        found = {ledger: row["entries"] if row["closed"] else written[ledger] for ledger, row in ledgers.items()}
        for ledger, entries in found.items():
            if entries:
                read_all(engine, ledger, 0, entries, 400)
        return found
    finally:
        engine.close()


def test_backups_of_a_store_that_is_written_and_packed(target: Path, tmp_path: Path) -> None:
    data = tmp_path / "data"
    command = [sys.executable, "-m", "tests.unit.storage.engine_writer", str(data)]
    positions: list[int] = []
    with subprocess.Popen(command, cwd=ROOT, stdout=subprocess.PIPE, text=True) as process:
        try:
            assert process.stdout is not None
            assert process.stdout.readline() == "ready\n"
            positions += [create(data, target, Plan(rate=0), quiet).manifest.position for _ in range(4)]
        finally:
            process.kill()
    positions.append(backed_up(data, target).manifest.position)  # the state after the kill
    assert positions == sorted(positions)
    for number, (name, position) in enumerate(zip(Repository(target).names(), positions, strict=True)):
        new = tmp_path / f"new-{number}"
        restored(target, new, name)
        assert check(new).findings == []
        assert held(new) == expected(position)
