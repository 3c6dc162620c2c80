"""Directories on disk."""

import contextlib
import os
import shutil
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Final

from pulsarbox.config.replica_address import is_replica
from pulsarbox.errors import Conflict, PersistenceError, PreconditionFailed
from pulsarbox.storage.ensemble.keeping.directories import NOTES, Space
from pulsarbox.storage.ensemble.member import NOT_THERE, Member
from pulsarbox.storage.ensemble.membership import Membership
from pulsarbox.storage.ensemble.membership_file import read_membership
from pulsarbox.storage.lmdb.directory import holder, read_identity, write_durably

_IGNORED: Final = {"lost+found"}
"""Names in the root of a new file system."""
_NOTE_MAX: Final = 64 << 10


class LmdbDirectories:
    """Directories by their paths."""

    def __init__(self, create: Callable[[str], Member]) -> None:
        """``create`` returns a member for a path, not yet open."""
        self._create = create

    def member(self, name: str) -> Member:
        """See Directories."""
        return self._create(name)

    def membership(self, name: str) -> Membership | None:
        """See Directories."""
        with contextlib.suppress(OSError, PersistenceError):
            return read_membership(Path(name))
        return None

    def absence(self, name: str) -> str:
        """See Directories."""
        return f"{name} is no longer there: {NOT_THERE}"

    def check_new(self, name: str, others: Sequence[str], box: str) -> None:
        """See Directories."""
        if is_replica(name):
            raise PreconditionFailed(f"{name}: set ensembleReplicaSecretFile and restart the box to use replicas")
        path = Path(name)
        if not path.is_absolute():
            raise PreconditionFailed(f"{name} is not an absolute path")
        for other in others:
            _refuse_nested(path, Path(other))
        try:
            if not path.exists():
                return
            if not path.is_dir() or not os.access(path, os.W_OK | os.X_OK):
                raise PreconditionFailed(f"{name} is not a directory that the box can write")
            if not self.is_empty(name):
                _refuse_foreign(path, box)
            if holder(path)[0]:
                raise Conflict(f"{name} is in use by process {holder(path)[1]}")
        except OSError as error:
            raise PreconditionFailed(f"{name} cannot be used: {error.strerror}") from error

    def is_empty(self, name: str) -> bool:
        """See Directories."""
        try:
            return not {path.name for path in Path(name).iterdir()} - _IGNORED
        except OSError:
            return False

    def space(self, name: str) -> Space:
        """See Directories."""
        try:
            return Space(_used(Path(name)), shutil.disk_usage(name).free)
        except OSError as error:
            raise PersistenceError(f"{name} cannot be read: {error.strerror}") from error

    def read_note(self, name: str, note: str) -> bytes:
        """See Directories."""
        try:
            with (Path(name) / note).open("rb") as file:
                return file.read(_NOTE_MAX)
        except OSError:
            return b""

    def write_note(self, name: str, note: str, content: bytes) -> None:
        """See Directories."""
        assert note in NOTES
        path = Path(name) / note
        try:
            if content:
                write_durably(path, content)
            else:
                path.unlink(missing_ok=True)
        except OSError as error:
            raise PersistenceError(f"{path} cannot be written: {error.strerror}") from error


def _refuse_nested(path: Path, other: Path) -> None:
    here, there = path.resolve(), other.resolve()
    if here == there:
        raise PreconditionFailed(f"{path} is the data directory {other}")
    if here in there.parents or there in here.parents:
        raise PreconditionFailed(f"{path} and the data directory {other}: one contains the other")


def _refuse_foreign(path: Path, box: str) -> None:
    """Raise unless the directory was a member of this box."""
    try:
        identity = read_identity(path)
    except FileNotFoundError:
        raise PreconditionFailed(f"{path} is not empty, and not a data directory") from None
    except PersistenceError as error:
        raise Conflict(str(error)) from error
    if identity.instance != box:
        raise Conflict(f"{path} belongs to box {identity.instance}: empty it to use it for this one")


def _used(path: Path) -> int:
    """Return the disk usage of the files of a directory; those removed meanwhile do not count."""
    used = 0
    for folder, _, names in os.walk(path):
        for name in names:
            with contextlib.suppress(OSError):
                used += (Path(folder) / name).lstat().st_blocks * 512
    return used
