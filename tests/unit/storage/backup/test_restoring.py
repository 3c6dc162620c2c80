"""Restoring into new directories and over a box, and the result of an interruption."""

import os
import shutil
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from pulsarbox.errors import PersistenceError
from pulsarbox.storage.backup import restoring
from pulsarbox.storage.backup.manifest import BackupConflict, BackupDamaged, BackupError, BackupNotFound
from pulsarbox.storage.backup.repository import Repository
from pulsarbox.storage.format import RESTORING
from pulsarbox.storage.inspection.box import Box
from pulsarbox.storage.inspection.check import check
from pulsarbox.storage.lmdb.directory import DataDirectory, DirectoryHeld
from tests.tools.campaigns import short
from tests.unit.storage.backup.conftest import assert_restored, backed_up, restored
from tests.unit.storage.directories import INSTANCE, make_sample
from tests.unit.storage.disk_store import DiskStore


def contents(folder: Path) -> dict[str, bytes]:
    return {
        str(path.relative_to(folder)): path.read_bytes()
        for path in folder.rglob("*")
        if path.is_file() and path.name not in ("LOCK", "RESTORING.new")
    }


def test_nothing_is_left_beside_the_restored_box(sample: Path, target: Path, tmp_path: Path) -> None:
    backed_up(sample, target)
    restored(target, tmp_path / "new")
    names = {path.name for path in (tmp_path / "new").iterdir()}
    assert names == {"INSTANCE", "LOCK", "meta", "packed", "volumes"}
    assert check(tmp_path / "new").findings == []


def test_a_box_is_replaced_by_force_only(filled: DiskStore, target: Path, tmp_path: Path) -> None:
    backed_up(filled.path, target)
    old = make_sample(tmp_path / "old")
    before = contents(old)
    with pytest.raises(BackupConflict, match="is the data directory of a box: --force replaces it"):
        restored(target, old)
    assert contents(old) == before
    restored(target, old, force=True)
    assert_restored(filled, old)


def test_a_damaged_box_is_replaced_by_force(filled: DiskStore, target: Path) -> None:
    backed_up(filled.path, target)
    (filled.path / "INSTANCE").unlink()
    with pytest.raises(PersistenceError, match="restore a backup with `pulsarbox restore BACKUPS DIR`"):
        Box(filled.path)
    with pytest.raises(PersistenceError, match="restore a backup with `pulsarbox restore BACKUPS DIR`"):
        DataDirectory(filled.path)
    restored(target, filled.path, force=True)
    assert_restored(filled, filled.path)


def test_what_an_earlier_restore_has_left_is_not_the_box(sample: Path, target: Path, tmp_path: Path) -> None:
    backed_up(sample, target)
    old = make_sample(tmp_path / "old")
    before = contents(old)
    (old / restoring.REPLACED).mkdir()
    (old / restoring.REPLACED / "INSTANCE").write_text("{}")
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(restoring, "_ROOM_LEFT", 1 << 60)
        with pytest.raises(BackupError, match="free up space"):
            restored(target, old, force=True)
    assert contents(old) == before


def test_the_id_is_kept_where_that_is_wanted(sample: Path, target: Path, tmp_path: Path) -> None:
    backed_up(sample, target)
    assert restored(target, tmp_path / "new", keep_id=True).instance == INSTANCE
    assert Box(tmp_path / "new").identity.instance == INSTANCE
    assert restored(target, tmp_path / "other").instance != INSTANCE


def test_other_directories_are_refused(sample: Path, target: Path, tmp_path: Path) -> None:
    backed_up(sample, target)
    home = tmp_path / "home"
    home.mkdir()
    (home / "letter").write_text("dear")
    with pytest.raises(BackupConflict, match="is not empty and is not a data directory"):
        restored(target, home, force=True)
    with pytest.raises(BackupConflict, match="is not a directory"):
        restored(target, home / "letter", force=True)
    for inside in (target / "new", tmp_path):
        with pytest.raises(BackupConflict, match="contain one another"):
            restored(target, inside)
    with pytest.raises(BackupNotFound, match="has no backup '2026-12-01T11-28-14Z'"):
        restored(target, tmp_path / "new", "2026-12-01T11-28-14Z")
    assert contents(home) == {"letter": b"dear"}
    assert not (tmp_path / "new").exists()


def test_disks_of_their_own_will_do(sample: Path, target: Path, tmp_path: Path) -> None:
    disks = [target, tmp_path / "new"]
    for disk in disks:
        (disk / "lost+found").mkdir(parents=True)
        (disk / "lost+found").chmod(0o755)
    backed_up(sample, target)
    for force in (False, True):
        restored(target, tmp_path / "new", force=force)
        assert not check(tmp_path / "new").damaged
    assert [oct((disk / "lost+found").stat().st_mode & 0o777) for disk in disks] == ["0o755"] * 2


def test_a_box_that_runs_is_refused(filled: DiskStore, target: Path) -> None:
    backed_up(filled.path, target)
    filled.open()
    with pytest.raises(DirectoryHeld, match=f"is in use by process {os.getpid()}"):
        restored(target, filled.path, force=True)
    filled.check()


def test_a_full_disk_is_refused_and_nothing_is_changed(
    sample: Path, target: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    backed_up(sample, target)
    old = make_sample(tmp_path / "old")
    before = contents(old)
    monkeypatch.setattr(restoring, "_ROOM_LEFT", 1 << 60)
    with pytest.raises(BackupError, match=r"the restored box needs .*: free up space"):
        restored(target, old, force=True)
    assert contents(old) == before


@pytest.mark.parametrize("number", [1, 2, 3])
def test_a_box_that_cannot_be_put_aside_stays(
    sample: Path, target: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, number: int
) -> None:
    backed_up(sample, target)
    old = make_sample(tmp_path / "old")
    before = contents(old)
    count, rename = 0, Path.rename

    def fails(self: Path, to: Path) -> Path:
        nonlocal count
        count += 1
        if count == number:
            raise PermissionError(1, "Operation not permitted", str(self))
        return rename(self, to)

    with monkeypatch.context() as patch:
        patch.setattr(Path, "rename", fails)
        with pytest.raises(BackupError, match="cannot be written: Operation not permitted"):
            restored(target, old, force=True)
    assert contents(old) == before
    assert not (old / RESTORING).exists()


def test_damage_found_on_the_way_puts_the_old_box_back(sample: Path, target: Path, tmp_path: Path) -> None:
    manifest = backed_up(sample, target).manifest
    old = make_sample(tmp_path / "old")
    (old / "INSTANCE").write_text((old / "INSTANCE").read_text().replace(INSTANCE, "older"))
    before = contents(old)
    last = Repository(target).files.path(manifest.files[-1].sha256)
    last.write_bytes(bytes(last.stat().st_size))
    with pytest.raises(BackupDamaged, match="do not match their checksum"):
        restored(target, old, force=True)
    assert contents(old) == before
    assert Box(old).identity.instance == "older"


# Killed during a restore

STEPS = ("os.rename", "os.unlink", "os.mkdir", "os.rmdir", "shutil.rmtree", "open")
_KILLED = """
import os, sys
from pathlib import Path
from pulsarbox.storage.backup.pace import CopyPace
from pulsarbox.storage.backup.repository import Repository
from pulsarbox.storage.backup.restoring import restore

target, data, number = Path(sys.argv[1]), Path(sys.argv[2]), int(sys.argv[3])
repository = Repository(target)
left = number

def audit(event, arguments):
    global left
    if event in {steps!r} and any(str(data) in str(each) for each in arguments):
        left -= 1
        if left == 0:
            os.kill(os.getpid(), 9)

sys.addaudithook(audit)
restore(repository, None, data, CopyPace(0, lambda *_: None), force=True)
print(number - left)
"""


def restore_killed_at(target: Path, data: Path, number: int) -> subprocess.CompletedProcess[str]:
    """Restore in a process that kills itself before the given change of the target, counted from 1; 0 means never."""
    code = _KILLED.replace("{steps!r}", repr(STEPS))
    return subprocess.run(
        [sys.executable, "-c", code, str(target), str(data), str(number)], capture_output=True, check=False, text=True
    )


def is_old(data: Path) -> bool:
    return contents(data).get("INSTANCE", b"").find(b'"older"') >= 0 and not (data / RESTORING).exists()


@pytest.mark.timeout(600)
@pytest.mark.parametrize("kills", short([6, 16], 1))
def test_a_restore_that_is_killed_anywhere_is_no_box_and_can_be_repeated(
    sample: Path, target: Path, tmp_path: Path, kills: int
) -> None:
    backed_up(sample, target)
    old = make_sample(tmp_path / "old")
    (old / "INSTANCE").write_text((old / "INSTANCE").read_text().replace(INSTANCE, "older"))
    before = contents(old)
    count = restore_killed_at(target, shutil.copytree(old, tmp_path / "counted"), 0)
    steps = int(count.stdout)
    assert steps > 20, count.stderr
    states = set()
    for number in range(1, steps + 1, 1 + steps // kills):
        data = shutil.copytree(old, tmp_path / f"data-{number}")
        assert restore_killed_at(target, data, number).returncode == -9
        if (data / RESTORING).exists():
            states.add("restoring")
            _refused(data)
            # A failing restore reinstates the previous data, whatever the killed restore has done.
            with pytest.MonkeyPatch.context() as patch:
                patch.setattr(restoring, "_ROOM_LEFT", 1 << 60)
                with pytest.raises(BackupError, match="free up space"):
                    restored(target, data, force=True)
            assert contents(data) == before
            assert is_old(data)
        elif is_old(data):
            states.add("old")
            assert contents(data) == before
        else:
            states.add("new")
            assert not check(data).damaged
        restored(target, data, force=True)
        assert check(data).findings == []
        assert not is_old(data)
    assert states >= {"old", "restoring"}


def _refused(data: Path) -> None:
    openers: tuple[Callable[[Path], Any], ...] = (DataDirectory, Box)
    for opener in openers:
        with pytest.raises(PersistenceError, match="run the `pulsarbox restore` command again"):
            opener(data)
