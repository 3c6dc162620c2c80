"""A backup directory: its complete and interrupted backups, and how they are added and removed."""

import fcntl
import json
import os
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Final

from pulsarbox.storage.backup.manifest import (
    FORMAT,
    BackupConflict,
    BackupDamaged,
    BackupError,
    BackupFile,
    BackupNotFound,
    Manifest,
    is_name,
    pack_file,
    pack_manifest,
    unpack_file,
    unpack_manifest,
)
from pulsarbox.storage.backup.stored_files import StoredFiles
from pulsarbox.storage.format import INSTANCE, NEW_SUFFIX
from pulsarbox.storage.lmdb.directory import sync_directory, write_durably
from pulsarbox.storage.lmdb.private_files import PRIVATE, make_directory

MARKER: Final = "BACKUPS"
_LOCK: Final = "LOCK"
_COMPLETE: Final = ".json"
_PARTIAL: Final = ".partial"
_OWN: Final = frozenset((_LOCK, "backups", "files", "incoming", "lost+found"))
"""Names that a directory may contain before it becomes a backup directory: it may be the root of a file system."""


class Repository:
    """An existing backup directory. Its contents are in ``files``."""

    def __init__(self, path: Path) -> None:
        """Open the directory at ``path``. Raises BackupNotFound, BackupError."""
        self.path = path
        self.files = StoredFiles(path)
        self._backups = path / "backups"
        try:
            document = json.loads((path / MARKER).read_bytes())
            version = document["format"]
        except (FileNotFoundError, NotADirectoryError):
            what = "is not a backup directory: it has no file BACKUPS" if path.exists() else "does not exist"
            raise BackupNotFound(f"{path} {what}; `pulsarbox backup {path}` makes a backup there") from None
        except OSError as error:
            raise BackupError(f"{path} cannot be read: {error.strerror or error}") from error
        except (ValueError, KeyError, TypeError) as error:
            raise BackupDamaged(f"{path / MARKER} is damaged: {error!r}") from error
        if version != FORMAT:
            raise BackupError(f"{path} has format {version!r}; this version of pulsarbox reads format {FORMAT}")

    @classmethod
    def create(cls, path: Path) -> "Repository":
        """Open the directory at ``path``; create it if missing or empty. Raises BackupConflict, BackupError."""
        try:
            make_directory(path)
            present = {entry.name for entry in path.iterdir()} - {MARKER + NEW_SUFFIX}
            if (path / INSTANCE).exists():
                raise BackupConflict(f"{path} is the data directory of a box: choose another directory for its backups")
            if MARKER not in present:
                if present - _OWN:
                    raise BackupConflict(f"{path} is not empty and is not a backup directory: choose another one")
                write_durably(path / MARKER, json.dumps({"format": FORMAT}).encode() + b"\n")
            repository = cls(path)
            make_directory(repository._backups)
            repository.files.create()
        except OSError as error:
            raise BackupError(f"{error.filename or path} cannot be used: {error.strerror or error}") from error
        return repository

    def names(self) -> list[str]:
        """Return the complete backups, oldest first."""
        return self._named(_COMPLETE)

    def interrupted(self) -> list[str]:
        """Return the incomplete backups; one of them may be running."""
        return sorted(set(self._named(_PARTIAL)) - set(self.names()), key=order_of)

    def manifest(self, name: str) -> Manifest:
        """Return the manifest of a complete backup. Raises BackupNotFound, BackupDamaged, BackupError."""
        path = self._backups / (name + _COMPLETE)
        try:
            data = path.read_bytes()
        except FileNotFoundError:
            if name in self.interrupted():
                raise BackupNotFound(f"backup {name} in {self.path} is incomplete: it was interrupted") from None
            raise BackupNotFound(
                f"{self.path} has no backup {name!r}; `pulsarbox backup list {self.path}` shows its backups"
            ) from None
        except OSError as error:
            raise BackupError(f"{path} cannot be read: {error.strerror or error}") from error
        manifest = unpack_manifest(data, str(path))
        if manifest.name != name:
            raise BackupDamaged(f"{path} is damaged: it is the manifest of backup {manifest.name}")
        return manifest

    def newest(self) -> Manifest:
        """Return the manifest of the newest complete backup. Raises as ``manifest`` does."""
        names = self.names()
        if not names:
            raise BackupNotFound(f"{self.path} has no complete backup; `pulsarbox backup {self.path}` makes one")
        return self.manifest(names[-1])

    def is_busy(self) -> bool:
        """Return whether another process is adding or removing backups. Raises BackupError."""
        path = self.path / _LOCK
        if not path.exists():
            return False
        with _flock(path, os.O_RDONLY, fcntl.LOCK_SH) as (held, _):
            return not held

    @contextmanager
    def locked(self) -> Iterator[None]:
        """Exclude other processes from adding or removing backups. Raises BackupConflict, BackupError."""
        with _flock(self.path / _LOCK, os.O_RDWR | os.O_CREAT, fcntl.LOCK_EX) as (held, descriptor):
            if not held:
                pid = os.pread(descriptor, 32, 0).decode(errors="replace").strip()
                raise BackupConflict(f"{self.path} is in use by another backup (process {pid or 'unknown'})")
            os.ftruncate(descriptor, 0)
            os.pwrite(descriptor, str(os.getpid()).encode(), 0)
            yield

    @contextmanager
    def reading(self) -> Iterator[None]:
        """Exclude other processes from removing backups; they may add some. Raises BackupConflict, BackupError."""
        with _flock(self.path / MARKER, os.O_RDONLY, fcntl.LOCK_SH) as (held, _):
            if not held:
                raise BackupConflict(f"backups are being removed from {self.path}: try again")
            yield

    # Modification, inside ``locked``

    def begin(self) -> "Journal":
        """Start a backup, which is incomplete until ``complete``. Raises OSError."""
        moment = time.strftime("%Y-%m-%dT%H-%M-%SZ", time.gmtime())
        taken = {*self.names(), *self.interrupted()}
        names = (moment if not number else f"{moment}-{number + 1}" for number in range(1_000_000))
        name = next(name for name in names if name not in taken)
        self.files.clear_incoming()
        return Journal(name, self._backups / (name + _PARTIAL))

    def complete(self, manifest: Manifest) -> None:
        """Make everything durable, then the manifest, and drop the journals of interrupted backups. Raises OSError."""
        self.files.sync()
        write_durably(self._backups / (manifest.name + _COMPLETE), pack_manifest(manifest))
        self.drop_interrupted()

    def stored_by_interrupted(self) -> list[BackupFile]:
        """Return the files that interrupted backups have stored. Raises OSError."""
        return [file for name in self.interrupted() for file in read_journal(self._backups / (name + _PARTIAL))]

    def drop_interrupted(self) -> int:
        """Drop interrupted backups and unreferenced contents; return the bytes freed. Raises OSError."""
        for name in self._named(_PARTIAL):
            (self._backups / (name + _PARTIAL)).unlink(missing_ok=True)
        return self._collect()

    def remove(self, names: list[str]) -> int:
        """Remove backups, and the contents that no other one references; return the bytes freed.

        Raises BackupNotFound, BackupConflict, OSError.
        """
        known = {*self.names(), *self.interrupted()}
        for name in names:
            if name not in known:
                self.manifest(name)  # raises an error with advice
        with _flock(self.path / MARKER, os.O_RDONLY, fcntl.LOCK_EX) as (held, _):
            if not held:
                raise BackupConflict(f"a backup in {self.path} is being verified or restored: try again after that")
            for name in names:
                for suffix in (_COMPLETE, _PARTIAL):
                    (self._backups / (name + suffix)).unlink(missing_ok=True)
            sync_directory(self._backups)
            return self._collect()

    def unreferenced(self) -> list[str]:
        """Return the checksums of contents that no backup references, complete or not. Raises BackupError, OSError."""
        named = {file.sha256 for name in self.names() for file in self.manifest(name).files}
        named.update(file.sha256 for file in self.stored_by_interrupted())
        return [digest for digest in self.files.digests() if digest not in named]

    def _collect(self) -> int:
        try:
            digests = self.unreferenced()
        except BackupError:
            return 0  # a manifest is unreadable, so its references are unknown
        self.files.clear_incoming()
        return sum(self.files.remove(digest) for digest in digests)

    def _named(self, suffix: str) -> list[str]:
        try:
            found = [path.name.removesuffix(suffix) for path in self._backups.iterdir() if path.name.endswith(suffix)]
        except FileNotFoundError:
            return []
        except OSError as error:
            raise BackupError(f"{self._backups} cannot be read: {error.strerror or error}") from error
        return sorted((name for name in found if is_name(name)), key=order_of)


class Journal:
    """The files that a backup has stored so far, which the next one can reuse."""

    def __init__(self, name: str, path: Path) -> None:
        self.name = name
        self._path = path
        self._path.touch(PRIVATE)

    def note(self, file: BackupFile) -> None:
        """Add a stored file. Raises OSError."""
        with self._path.open("ab") as journal:
            journal.write(json.dumps(pack_file(file)).encode() + b"\n")


def read_journal(path: Path) -> list[BackupFile]:
    """Return the files of a journal, without incomplete lines. Raises OSError."""
    files: list[BackupFile] = []
    for line in path.read_bytes().splitlines():
        try:
            files.append(unpack_file(json.loads(line)))
        except (ValueError, KeyError, TypeError):
            continue
    return files


def order_of(name: str) -> tuple[str, int]:
    """Return the sort key of a backup's name, oldest first: several may share a second."""
    moment, _, number = name.partition("Z")
    return moment, int(number.removeprefix("-") or 1)


@contextmanager
def _flock(path: Path, flags: int, kind: int) -> Iterator[tuple[bool, int]]:
    """Yield whether the lock was acquired, and the descriptor of the file. Raises BackupError."""
    try:
        descriptor = os.open(path, flags, PRIVATE)
    except OSError as error:
        raise BackupError(f"{path} cannot be opened: {error.strerror or error}") from error
    try:
        try:
            fcntl.flock(descriptor, kind | fcntl.LOCK_NB)
            held = True
        except BlockingIOError:
            held = False
        except OSError as error:
            raise BackupError(f"{path} cannot be locked: {error.strerror or error}") from error
        yield held, descriptor
    finally:
        os.close(descriptor)
