"""Restore of a backup into a data directory.

The target contains a file RESTORING from the first change until everything is durable, and no box opens a directory
that contains one. A forced restore keeps the replaced files in a folder of the target until then, and puts them back if
it fails. The target's lock is held, so no box starts there meanwhile.
"""

import json
import os
import shutil
import uuid
from collections.abc import Iterator
from contextlib import contextmanager
from itertools import groupby
from pathlib import Path
from typing import Final, NamedTuple

import lmdb

from pulsarbox.storage.backup.log_parts import read_part
from pulsarbox.storage.backup.manifest import BackupConflict, BackupDamaged, BackupError, BackupFile, Manifest
from pulsarbox.storage.backup.pace import CopyPace
from pulsarbox.storage.backup.repository import Repository
from pulsarbox.storage.entry_index import runs_of
from pulsarbox.storage.format import INSTANCE, LOCK, META, NEW_SUFFIX, RESTORING
from pulsarbox.storage.inspection.box import name_of
from pulsarbox.storage.lmdb.directory import locked_directory, sync_directory, write_durably
from pulsarbox.storage.lmdb.environment import create_environment
from pulsarbox.storage.lmdb.private_files import PRIVATE, PRIVATE_DIRECTORY, make_directory
from pulsarbox.storage.lmdb.volume import FlushAt, Volume

REPLACED: Final = "replaced" + NEW_SUFFIX
"""Files replaced by the restored box. The suffix makes the next start remove leftovers of an interruption."""
_ASIDE: Final = "replacing" + NEW_SUFFIX
"""The same folder while files are moved into it or back: the others are in place, and nothing is restored yet."""
_LOST: Final = "lost+found"
"""Belongs to the file system whose root the target is, and to root."""
_OWN: Final = frozenset((LOCK, RESTORING, REPLACED, _ASIDE, _LOST))
_SLICE_BYTES: Final = 16 << 20
"""Bytes of a log written in one transaction."""
_FLUSH: Final = FlushAt(20_000, 64 << 20)
_ROOM_LEFT: Final = 64 << 20


class Restored(NamedTuple):
    """A restored data directory."""

    manifest: Manifest
    instance: str
    """The id of the restored box."""


def restore(  # options of one command
    repository: Repository,
    name: str | None,
    target: Path,
    pace: CopyPace,
    *,
    force: bool = False,
    keep_id: bool = False,
) -> Restored:
    """Restore a backup, by default the newest, into the directory ``target``.

    The target is created if missing. ``force`` replaces a stopped box there. The restored box gets a new id, except
    with ``keep_id``. Raises BackupNotFound, BackupDamaged, BackupConflict, BackupError; the target is unchanged then.
    """
    with repository.reading():
        manifest = repository.newest() if name is None else repository.manifest(name)
        _check_files(repository, manifest)
        try:
            _check_target(repository, target, force)
            with _existing(target), locked_directory(target):
                instance = _restore_of(repository, manifest, target, pace).run(keep_id)
        except OSError as error:
            raise BackupError(f"{error.filename or target} cannot be written: {error.strerror or error}") from error
        except lmdb.Error as error:
            raise BackupError(f"{target} cannot be written: {error}") from error
    return Restored(manifest, instance)


def _restore_of(repository: Repository, manifest: Manifest, target: Path, pace: CopyPace) -> "Restore":
    if not manifest.is_of_several:
        return Restore(repository, manifest, target, pace)
    from pulsarbox.storage.backup.restoring_of_several import RestoreOfSeveral

    return RestoreOfSeveral(repository, manifest, target, pace)


class Restore:
    """Writes one data directory, whose lock is held."""

    def __init__(self, repository: Repository, manifest: Manifest, target: Path, pace: CopyPace) -> None:
        self._files = repository.files
        self._manifest = manifest
        self._target = target
        self._pace = pace
        logs = sum(file.size for file in manifest.files if file.volume)
        # A log is written with its index, which may be as large as a log of small entries.
        self._needed = manifest.size + logs

    def run(self, keep_id: bool) -> str:
        """Write the directory; return the id of the box.

        Raises BackupError, OSError, lmdb.Error; the directory is unchanged then.
        """
        try:
            self._begin()
            free = shutil.disk_usage(self._target).free
            if self._needed + _ROOM_LEFT > free:
                mib = [f"{size / (1 << 20):,.0f} MiB" for size in (free, self._needed)]
                raise BackupError(f"{self._target} has {mib[0]} free, the restored box needs {mib[1]}: free up space")
            self._pace.total = self._manifest.size
            self._fill()
            instance = self._write_instance(keep_id)
        except BaseException:
            self._undo()
            raise
        self._finish()
        return instance

    def _fill(self) -> None:
        """Write everything but the file INSTANCE."""
        for file in self._manifest.files:
            if not file.volume:
                self._write(file)
        for volume in self._manifest.volumes:
            self._write_volume(volume)

    def _begin(self) -> None:
        """Move existing files aside. After an interruption: move the rest aside, or clear what was restored."""
        aside, replaced = self._target / _ASIDE, self._target / REPLACED
        if replaced.exists() and not (self._target / RESTORING).exists():
            shutil.rmtree(replaced)  # left by a restore that completed all other steps
        write_durably(self._target / RESTORING, json.dumps({"backup": self._manifest.name}).encode())
        if replaced.exists():
            self._clear()
            return
        make_directory(aside)
        for path in self._entries():
            path.rename(aside / path.name)
        sync_directory(aside)
        aside.rename(replaced)
        sync_directory(self._target)

    def _entries(self) -> list[Path]:
        """Return the entries of the target that do not belong to this restore."""
        return [path for path in self._target.iterdir() if path.name not in _OWN]

    def _clear(self) -> None:
        for path in self._entries():
            shutil.rmtree(path) if path.is_dir() else path.unlink()

    def _undo(self) -> None:
        aside, replaced = self._target / _ASIDE, self._target / REPLACED
        if replaced.exists():
            self._clear()
            replaced.rename(aside)
        if aside.exists():
            for path in aside.iterdir():
                path.rename(self._target / path.name)
            sync_directory(self._target)
            aside.rmdir()
        (self._target / RESTORING).unlink(missing_ok=True)
        sync_directory(self._target)

    def _finish(self) -> None:
        for folder, folders, names in os.walk(self._target):
            if Path(folder) == self._target:
                folders[:] = sorted(set(folders) - _OWN)
            Path(folder).chmod(PRIVATE_DIRECTORY)
            for name in names:
                (Path(folder) / name).chmod(PRIVATE)
            sync_directory(Path(folder))
        (self._target / RESTORING).unlink()
        sync_directory(self._target)
        shutil.rmtree(self._target / REPLACED)

    def _write(self, file: BackupFile) -> None:
        self._pace.what = file.path
        path = self._target / file.path
        make_directory(path.parent)
        descriptor = os.open(path, os.O_WRONLY | os.O_CREAT | os.O_EXCL, PRIVATE)
        with os.fdopen(descriptor, "wb") as written:
            for chunk in self._files.read(file.sha256, file.size):
                written.write(chunk)
                self._pace(len(chunk))
            written.flush()
            os.fsync(descriptor)
        if file.modified:
            # The next backup identifies a volume by it.
            os.utime(path, ns=(file.modified, file.modified))

    def _write_volume(self, number: int) -> None:
        """Build a volume from the parts of its log, with its index."""
        parts = self._manifest.log_of(number)
        path = self._target / name_of(number)
        make_directory(path.parent)
        create_environment(path, Volume.TABLES)
        map_size = 3 * sum(part.size for part in parts) + (1 << 30)
        volume = Volume(path, map_size, _FLUSH)
        try:
            batches = self._batches(parts)
            for _, group in groupby(batches, key=lambda batch: batch[0]):
                volume.append_packed((position, value, runs_of(value).items()) for _, position, value in group)
            volume.flush_index()
        finally:
            volume.close()

    def _batches(self, parts: list[BackupFile]) -> Iterator[tuple[int, int, bytes]]:
        """Yield the batches of a log, each with the number of the transaction that writes it."""
        size = 0
        for part in parts:
            self._pace.what = part.path
            data = b"".join(self._files.read(part.sha256, part.size))
            for position, value in read_part(part, data, str(self._files.path(part.sha256))):
                yield size // _SLICE_BYTES, position, value
                size += len(value)
            self._pace(part.size)

    def _write_instance(self, keep_id: bool) -> str:
        box = self._manifest.box
        instance = box.instance if keep_id else str(uuid.uuid4())
        lineage = box.lineage if keep_id else (*box.lineage, box.instance)
        fields = {"format": box.format, "instance": instance, "created": box.created, "lineage": lineage}
        restored = {"backup": self._manifest.name, "position": self._manifest.position}
        write_durably(self._target / INSTANCE, json.dumps({**fields, "restored": restored}).encode())
        return instance


@contextmanager
def _existing(target: Path) -> Iterator[None]:
    """Create a directory if missing; remove it again if the block fails. Raises OSError."""
    existed = target.exists()
    make_directory(target)
    try:
        yield
    except BaseException:
        if not existed:
            shutil.rmtree(target, ignore_errors=True)
        raise


def _check_files(repository: Repository, manifest: Manifest) -> None:
    """Raise BackupDamaged, before any change, unless every file is stored in full length."""
    for file in manifest.files:
        if not repository.files.has(file.sha256, file.size):
            raise BackupDamaged(
                f"{repository.files.path(file.sha256)} is missing or truncated: it is {file.path} of backup"
                f" {manifest.name}; `pulsarbox backup verify {repository.path}` shows all damage, and `--backup`"
                " selects another backup"
            )


def _check_target(repository: Repository, target: Path, force: bool) -> None:
    resolved, folder = target.resolve(), repository.path.resolve()
    if resolved.is_relative_to(folder) or folder.is_relative_to(resolved):
        raise BackupConflict(f"{target} and the backup directory {folder} contain one another: choose another target")
    if not target.exists() or (target / RESTORING).exists():
        return
    if not target.is_dir():
        raise BackupConflict(f"{target} is not a directory: choose another target")
    if any((target / name).exists() for name in (INSTANCE, META, "volumes")):
        if not force:
            raise BackupConflict(f"{target} is the data directory of a box: --force replaces it")
    elif {path.name for path in target.iterdir()} - {LOCK, _LOST}:
        raise BackupConflict(f"{target} is not empty and is not a data directory: choose another target")
