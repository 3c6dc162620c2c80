"""Verification detects and names damage: a changed byte, a missing or truncated file, a changed manifest."""

import json
from collections.abc import Callable
from pathlib import Path

import pytest

from pulsarbox.storage.backup.listing import listed
from pulsarbox.storage.backup.manifest import (
    BackupConflict,
    BackupDamaged,
    BackupError,
    BackupFile,
    BackupNotFound,
    Manifest,
    pack_file,
    pack_manifest,
    unpack_manifest,
)
from pulsarbox.storage.backup.pace import CopyPace
from pulsarbox.storage.backup.repository import Repository
from pulsarbox.storage.backup.verification import BackupReport, verify
from pulsarbox.storage.lmdb.directory import BoxIdentity
from tests.unit.storage.backup.conftest import backed_up, quiet, restored


def verified(target: Path, *names: str) -> BackupReport:
    return verify(Repository(target), names, CopyPace(0, quiet))


def flip(path: Path) -> None:
    data = bytearray(path.read_bytes())
    data[len(data) // 2] ^= 1
    path.write_bytes(data)


def cut_off(path: Path) -> None:
    path.write_bytes(path.read_bytes()[:-1])


def test_whole_backups_have_no_findings(sample: Path, target: Path) -> None:
    names = tuple(backed_up(sample, target).manifest.name for _ in range(2))
    report = verified(target)
    assert report.backups == names
    assert (report.findings, report.interrupted, report.unreferenced) == ((), (), 0)
    assert report.files == len(Repository(target).files.digests())
    assert report.bytes == sum(path.stat().st_size for path in (target / "files").rglob("*") if path.is_file())


@pytest.mark.parametrize(
    ("harm", "reason"),
    [(flip, "do not match their checksum"), (cut_off, "is truncated or extended"), (Path.unlink, "is missing")],
)
def test_each_damaged_file_is_named(sample: Path, target: Path, harm: Callable[[Path], None], reason: str) -> None:
    from pulsarbox.storage.backup.creation import Plan

    manifest = backed_up(sample, target, Plan(link=False)).manifest
    assert len(manifest.files) == 4
    for file in manifest.files:
        path = Repository(target).files.path(file.sha256)
        data = path.read_bytes()
        harm(path)
        (finding,) = verified(target).findings
        assert finding.file == str(path)
        assert reason in finding.reason
        assert (finding.paths, finding.backups) == ((file.path,), (manifest.name,))
        with pytest.raises(BackupDamaged, match=path.name):
            restored(target, target.parent / "new")
        assert not (target.parent / "new").exists()
        path.write_bytes(data)
    assert verified(target).findings == ()


def test_a_damaged_manifest_is_named(sample: Path, target: Path) -> None:
    first, second = (backed_up(sample, target).manifest.name for _ in range(2))
    path = target / "backups" / f"{second}.json"
    whole = path.read_bytes()
    for at in range(0, len(whole), 97):
        path.write_bytes(whole[:at] + bytes((whole[at] ^ 1,)) + whole[at + 1 :])
        (finding,) = verified(target).findings
        assert (finding.file, finding.backups) == (str(path), (second,))
    path.write_bytes(whole[:-100])
    assert [finding.file for finding in verified(target).findings] == [str(path)]
    assert verified(target, first).findings == ()
    assert [(row.name, row.state) for row in listed(Repository(target))] == [(first, "complete"), (second, "damaged")]
    with pytest.raises(BackupDamaged, match="is damaged"):
        restored(target, target.parent / "new")
    restored(target, target.parent / "new", first)
    path.write_bytes((target / "backups" / f"{first}.json").read_bytes())
    with pytest.raises(BackupDamaged, match=f"it is the manifest of backup {first}"):
        Repository(target).manifest(second)


def test_files_of_a_damaged_manifest_are_not_removed(sample: Path, target: Path) -> None:
    name = backed_up(sample, target).manifest.name
    flip(target / "backups" / f"{name}.json")
    before = Repository(target).files.digests()
    backed_up(sample, target)
    assert set(Repository(target).files.digests()) >= set(before)


def test_a_full_backup_heals_what_is_damaged(sample: Path, target: Path, tmp_path: Path) -> None:
    from pulsarbox.storage.backup.creation import Plan

    manifest = backed_up(sample, target, Plan(link=False)).manifest
    sealed = next(file for file in manifest.files if file.modified)
    flip(Repository(target).files.path(sealed.sha256))
    backed_up(sample, target, Plan(link=False))
    assert len(verified(target).findings) == 1, "its contents are not read again"
    backed_up(sample, target, Plan(link=False, full=True))
    assert verified(target).findings == ()
    restored(target, tmp_path / "new", manifest.name)


def test_backups_are_removed_with_what_only_they_need(sample: Path, target: Path, tmp_path: Path) -> None:
    first, second = (backed_up(sample, target).manifest for _ in range(2))
    repository = Repository(target)
    with repository.locked():
        with pytest.raises(BackupNotFound, match=r"has no backup 'nightly'; `pulsarbox backup list"):
            repository.remove([first.name, "nightly"])
        assert repository.names() == [first.name, second.name]
        repository.remove([first.name])
    assert repository.names() == [second.name]
    assert set(repository.files.digests()) == {file.sha256 for file in second.files}
    restored(target, tmp_path / "new")
    with repository.locked():
        assert repository.remove([second.name]) == second.size
    assert repository.files.digests() == []


def test_nothing_is_removed_under_a_restore(sample: Path, target: Path) -> None:
    name = backed_up(sample, target).manifest.name
    repository = Repository(target)
    with repository.reading(), repository.locked(), pytest.raises(BackupConflict, match="being verified or restored"):
        repository.remove([name])
    assert repository.names() == [name]


def test_running_and_interrupted_backups_are_told_apart(sample: Path, target: Path) -> None:
    backed_up(sample, target)
    repository = Repository(target)
    with repository.locked():
        journal = repository.begin()
        assert journal.name not in repository.names()
        assert [row.state for row in listed(repository)] == ["complete", "running"]
    assert [row.state for row in listed(repository)] == ["complete", "incomplete"]
    assert verified(target).interrupted == (journal.name,)
    with repository.locked():
        repository.remove([journal.name])
    assert [row.state for row in listed(repository)] == ["complete"]


def test_names_of_one_second_differ_and_keep_their_order(sample: Path, target: Path) -> None:
    names = [backed_up(sample, target).manifest.name for _ in range(3)]
    repository = Repository(target)
    assert repository.names() == names
    with repository.locked():
        names.append(repository.begin().name)
        assert [(row.name, row.state) for row in listed(repository)][-1] == (names[-1], "running")
    assert [row.name for row in listed(repository)] == names
    assert len(set(names)) == 4


def test_a_directory_of_a_later_format_is_refused(sample: Path, target: Path) -> None:
    backed_up(sample, target)
    (target / "BACKUPS").write_text(json.dumps({"format": 2}))
    with pytest.raises(BackupError, match="has format 2; this version of pulsarbox reads format 1"):
        Repository(target)
    (target / "BACKUPS").write_text("[]")
    with pytest.raises(BackupDamaged, match="BACKUPS is damaged"):
        Repository(target)


META = BackupFile("meta/data.mdb", 10, "0" * 64)
LOG = BackupFile("log/00000003/00000000000000000005", 10, "1" * 64, first=5, last=8)


def manifest_of(*files: BackupFile) -> Manifest:
    box = BoxIdentity("id", 2, 1, ("older",))
    return Manifest("2026-12-01T11-28-14Z", "0.1", box, 8, 5, 1, 2, (3,), ("zstd",), files)


def test_a_manifest_is_read_as_it_was_written() -> None:
    manifest = manifest_of(META, LOG)
    assert unpack_manifest(pack_manifest(manifest), "m") == manifest
    assert pack_file(BackupFile("meta/data.mdb", 0, "0" * 64)) == {
        "path": "meta/data.mdb",
        "size": 0,
        "sha256": "0" * 64,
    }


@pytest.mark.parametrize(
    "path",
    [
        "../etc/passwd",
        "/etc/passwd",
        "volumes/../../x/data.mdb",
        "volumes/00000001/lock.mdb",
        "INSTANCE",
        "meta/data.mdb/",
    ],
)
def test_a_path_that_no_backup_has_is_refused(path: str) -> None:
    with pytest.raises(BackupDamaged, match="is not a file of a backup"):
        unpack_manifest(pack_manifest(manifest_of(META, LOG, META._replace(path=path))), "m")


@pytest.mark.parametrize(
    "files",
    [(META,), (LOG,), (META, LOG._replace(last=7)), (META, LOG._replace(last=6), LOG._replace(first=8))],
    ids=["no log", "no meta", "too short", "a gap"],
)
def test_a_manifest_of_half_a_box_is_refused(files: tuple[BackupFile, ...]) -> None:
    document = pack_manifest(manifest_of(*files)._replace(position=8))
    if files == (META,):  # nothing after the sealed volumes
        assert unpack_manifest(document, "m").files == files
        return
    with pytest.raises(BackupDamaged, match="do not form a complete data directory"):
        unpack_manifest(document, "m")
