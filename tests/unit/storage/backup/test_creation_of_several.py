"""Backups of a box with several data directories: entries from any intact copy, restored into one directory."""

import json
import shutil
from collections.abc import Iterator
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest

from pulsarbox.storage.backup import creation_of_several, entry_files
from pulsarbox.storage.backup.creation import Made, Plan, create
from pulsarbox.storage.backup.manifest import BackupDamaged, BackupError
from pulsarbox.storage.backup.pace import CopyPace
from pulsarbox.storage.backup.repository import Repository
from pulsarbox.storage.backup.verification import verify
from pulsarbox.storage.engine import ReadRequest
from tests.unit.storage.backup.conftest import quiet, restored
from tests.unit.storage.batches import body_of, entry_of
from tests.unit.storage.several import Several


@pytest.fixture(autouse=True)
def _small_files(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(entry_files, "FILE_BYTES", 8000)


@pytest.fixture
def box(tmp_path: Path) -> Iterator[Several]:
    """A box with sealed volumes, a packed one, and a log behind the checkpoint."""
    box = Several(tmp_path / "box")
    box.publish(1, 2, 3, rounds=20)
    box.checkpoint(3)
    box.publish(3, 4)
    box.checkpoint(3, 4, dropped=(2,))
    box.publish(3, 5)
    yield box
    box.close()


def backed_up(box: Several, target: Path, **plan: Any) -> Made:
    """Back up the box while it is closed: LMDB opens no environment twice in a process."""
    box.close()
    try:
        return create(box.paths[0], target, Plan(0, **plan), quiet)
    finally:
        box.open()


def reopened(path: Path, *more: str) -> Several:
    """A restored box, alone or with empty directories."""
    return Several(path.parent, (path.name, *more), (1, 1, 1))


def test_a_box_is_backed_up_and_restored_into_one_directory(box: Several, target: Path, tmp_path: Path) -> None:
    made = backed_up(box, target)
    assert (made.manifest.lost, made.manifest.directories) == (0, 3)
    assert made.manifest.position == box.engine.next_position - 1
    assert verify(Repository(target), (), CopyPace(0, quiet)).findings == ()
    stored = [run for file in made.manifest.files for run in file.runs]
    assert sum(end - first for _, first, end in stored) == box.ends[1] + 104 + 24  # each entry once; of 3 and 4 a part
    box.publish(3)  # behind the backup
    ends = box.ends | {3: box.ends[3] - 24}
    new = restored(target, tmp_path / "new")
    copy = reopened(tmp_path / "new")
    assert new.instance == json.loads((tmp_path / "new/INSTANCE").read_text())["instance"]
    assert copy.replayed == 6
    assert copy.engine.next_position == made.manifest.position + 1
    copy.assert_complete(ends)
    assert copy.engine.coverage([2]) == {str(tmp_path / "new"): {}}
    copy.close()


def test_a_restored_box_gets_more_directories(box: Several, target: Path, tmp_path: Path) -> None:
    backed_up(box, target)
    restored(target, tmp_path / "x/new")
    copy = reopened(tmp_path / "x/new", "more", "again")
    copy.assert_complete(box.ends)
    copy.asked = (3, 3, 3)
    copy.ends = dict(box.ends)
    copy.publish(3)
    copy.assert_complete(copy.ends)
    copy.close()


def test_entries_are_taken_from_intact_copies(box: Several, target: Path, tmp_path: Path) -> None:
    box.close()
    for path in sorted(box.paths[0].rglob("data.mdb")):  # damage each entry of ledger 1 that the first directory has
        data = bytearray(path.read_bytes())
        for entry in range(box.ends[1]):
            at = data.find(body_of(1, entry, 300))
            if at >= 0:
                data[at + 200] ^= 1
        path.write_bytes(data)
    made = backed_up(box, target)
    assert made.manifest.lost == 0
    restored(target, tmp_path / "new")
    copy = reopened(tmp_path / "new")
    copy.assert_complete(box.ends)
    copy.close()


def test_a_missing_directory_is_passed_over(box: Several, target: Path, tmp_path: Path) -> None:
    box.close()
    shutil.rmtree(box.paths[0])
    made = create(box.paths[1], target, Plan(0), quiet)
    assert (made.manifest.lost, made.manifest.directories) == (0, 2)
    restored(target, tmp_path / "new")
    copy = reopened(tmp_path / "new")
    copy.assert_complete(box.ends)
    copy.close()
    box.open()


def test_a_stopped_box_that_may_lack_messages_is_not_backed_up(tmp_path: Path, target: Path) -> None:
    box = Several(tmp_path / "box", ("a", "b"), (2, 1, 1))
    box.publish(1, rounds=30)
    box.close()
    shutil.rmtree(tmp_path / "box/b")
    with pytest.raises(BackupError, match=r"the backup would be incomplete: .*/box/b available again"):
        create(tmp_path / "box/a", target, Plan(0), quiet)


def _make_replica(box: Several) -> None:
    """Move the last directory of a closed box to another machine."""
    *local, last = box.paths
    for path in local:
        membership = path / "ENSEMBLE"
        membership.write_text(membership.read_text().replace(str(last), "replica://other:6680"))
    shutil.rmtree(last)


def test_a_replica_is_not_needed_for_entries_that_have_a_copy_on_this_machine(box: Several, target: Path) -> None:
    box.close()
    _make_replica(box)
    made = create(box.paths[0], target, Plan(0), quiet)
    assert (made.manifest.lost, made.manifest.directories) == (0, 2)


@pytest.mark.parametrize("running", [False, True])
def test_a_box_is_not_backed_up_without_entries_that_only_a_replica_has(
    tmp_path: Path, target: Path, monkeypatch: pytest.MonkeyPatch, running: bool
) -> None:
    box = Several(tmp_path / "box", asked=(3, 1, 1))
    box.publish(1, rounds=30)
    box.checkpoint()
    box.close()
    _make_replica(box)
    monkeypatch.setattr(creation_of_several, "Box", lambda path: SimpleNamespace(live=running))
    with pytest.raises(BackupError, match=r"no (intact )?copy on this machine, .* not read replica://other:6680: set"):
        create(box.paths[0], target, Plan(0), quiet)


def test_the_next_backup_stores_what_is_new(box: Several, target: Path, tmp_path: Path) -> None:
    first = backed_up(box, target)
    box.publish(3, 6)
    box.checkpoint(6)
    second = backed_up(box, target)
    both = {file.sha256 for file in first.manifest.files} & {file.sha256 for file in second.manifest.files}
    assert second.reused == sum(file.size for file in second.manifest.files if file.sha256 in both and file.runs) > 0
    assert backed_up(box, target, full=True).reused == 0
    Repository(target).remove([first.manifest.name])
    restored(target, tmp_path / "new", second.manifest.name)
    copy = reopened(tmp_path / "new")
    copy.assert_complete(box.ends)
    copy.close()


def test_a_restored_box_has_another_history(box: Several, target: Path, tmp_path: Path) -> None:
    old = backed_up(box, target)
    box.publish(3, 4)
    box.checkpoint(3, 4)
    backed_up(box, target)
    restored(target, tmp_path / "new", old.manifest.name, keep_id=True)
    copy = reopened(tmp_path / "new")
    copy.ends = {3: 128, 4: 24}
    copy.publish(3, 4, size=150)  # other entries with the same ids
    copy.checkpoint(3, 4)
    copy.close()
    made = create(tmp_path / "new", target, Plan(0), quiet)
    assert made.reused == 0
    restored(target, tmp_path / "newer")
    again = reopened(tmp_path / "newer")
    last = again.engine.read(ReadRequest(1, 3, 128, 128 + 23, 1 << 30))
    assert last == [entry_of(3, entry, 150) for entry in range(128, 152)]
    again.close()


@pytest.mark.parametrize("after", [1, 3, 9])
def test_an_interrupted_backup_is_resumed(box: Several, target: Path, tmp_path: Path, after: int) -> None:
    class Killed(BaseException):
        pass

    left = after

    def progress(what: str, done: int, total: int) -> None:
        nonlocal left
        left -= 1
        if not left:
            raise Killed

    box.close()
    with pytest.raises(Killed):
        create(box.paths[0], target, Plan(0), progress)
    box.open()
    assert Repository(target).names() == []
    made = backed_up(box, target)
    assert (made.reused > 0) == (after > 4)
    restored(target, tmp_path / "new")
    copy = reopened(tmp_path / "new")
    copy.assert_complete(box.ends)
    copy.close()


def test_a_damaged_backup_changes_nothing(box: Several, target: Path, tmp_path: Path) -> None:
    made = backed_up(box, target)
    file = next(file for file in made.manifest.files if file.runs)
    path = Repository(target).files.path(file.sha256)
    data = bytearray(path.read_bytes())
    data[100] ^= 1
    path.write_bytes(data)
    with pytest.raises(BackupDamaged):
        restored(target, tmp_path / "new")
    assert not (tmp_path / "new").exists()
    assert len(verify(Repository(target), (), CopyPace(0, quiet)).findings) == 1
