"""The runtime directory of an in-memory box, which makes it discoverable while it runs.

``<runtime directory>/pulsarbox/memory-<pid>`` contains the files LOCK and RUNNING of a data directory, so that the box
is found and verified like any other. The runtime directory is XDG_RUNTIME_DIR, or else a directory of the user among
the temporary files.
"""

import contextlib
import fcntl
import os
import shutil
import stat
import tempfile
from pathlib import Path

from pulsarbox.storage.format import LOCK
from pulsarbox.storage.lmdb.directory import holder
from pulsarbox.storage.lmdb.private_files import PRIVATE, PRIVATE_DIRECTORY

_PREFIX = "memory-"


def places() -> list[Path]:
    """Return the candidate parent directories, preferred one first."""
    runtime = os.environ.get("XDG_RUNTIME_DIR", "")
    found = [Path(runtime) / "pulsarbox"] if runtime and Path(runtime).is_dir() else []
    return [*found, Path(tempfile.gettempdir()) / f"pulsarbox-{os.getuid()}"]


class MemoryEntry:
    """This process's entry, held until ``close`` or until the process ends in any way."""

    def __init__(self) -> None:
        """Raises OSError if no directory is suitable."""
        self.path, self._lock = _made()

    def close(self) -> None:
        """Remove the entry."""
        shutil.rmtree(self.path, ignore_errors=True)
        os.close(self._lock)


def entries() -> list[Path]:
    """Return the entries of this user's running boxes, oldest first. Entries of killed ones are removed."""
    found = []
    for place in filter(_is_own, places()):
        for path in place.glob(f"{_PREFIX}[0-9]*"):
            if holder(path)[0]:
                found.append(path)
            elif not (path / LOCK).exists():  # being created or removed
                with contextlib.suppress(OSError):
                    path.rmdir()
            else:
                shutil.rmtree(path, ignore_errors=True)
    return sorted(found, key=lambda path: (_age(path), path.name))


def pid_of(path: Path) -> int:
    """Return the process id of an entry."""
    return int(path.name.removeprefix(_PREFIX))


def _made() -> tuple[Path, int]:
    failure = OSError("there is no place for it")
    for place in places():
        try:
            place.mkdir(PRIVATE_DIRECTORY, exist_ok=True)
            if not _is_own(place):
                failure = PermissionError(f"{place} is another user's")
                continue
            path = place / f"{_PREFIX}{os.getpid()}"
            shutil.rmtree(path, ignore_errors=True)  # left by an earlier process with the same id
            path.mkdir(PRIVATE_DIRECTORY)
            return path, _held(path)
        except OSError as error:
            failure = error
    raise failure


def _held(path: Path) -> int:
    lock = os.open(path / LOCK, os.O_RDWR | os.O_CREAT | os.O_CLOEXEC, PRIVATE)
    fcntl.flock(lock, fcntl.LOCK_EX)
    os.write(lock, str(os.getpid()).encode())
    return lock


def _is_own(place: Path) -> bool:
    """Return whether only this user can change a directory: others may create it among temporary files."""
    try:
        found = place.lstat()
    except OSError:
        return False
    return stat.S_ISDIR(found.st_mode) and found.st_uid == os.getuid() and not found.st_mode & 0o022


def _age(path: Path) -> float:
    try:
        return path.stat().st_mtime
    except OSError:
        return 0.0
