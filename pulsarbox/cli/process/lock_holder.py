"""The process that holds a data directory, from its LOCK file."""

import os
from pathlib import Path
from typing import NamedTuple

from pulsarbox.cli.common.exits import Denied
from pulsarbox.errors import PersistenceError
from pulsarbox.storage.format import LOCK
from pulsarbox.storage.lmdb.directory import holder


class Holder(NamedTuple):
    """The process that holds a data directory."""

    pid: int
    """Process ID, 0 if the LOCK file does not contain one."""
    confirmed: bool
    """Whether the kernel confirms it. False for a process in another container, whose process IDs differ."""


class Unreadable(Denied):
    """The data directory belongs to another user."""


def find(directory: Path) -> Holder | None:
    """Return the process that holds the data directory, None without any. Raises Unreadable."""
    try:
        live, pid = holder(directory)
    except PersistenceError as error:
        raise Unreadable(str(error)) from None
    lock = directory / LOCK
    return Holder(pid, pid > 0 and (_has_open(pid, lock) or _has_locked(pid, lock))) if live else None


def _has_open(pid: int, lock: Path) -> bool:
    try:
        wanted = lock.stat()
        for descriptor in Path(f"/proc/{pid}/fd").iterdir():
            try:
                found = descriptor.stat()
            except OSError:  # closed meanwhile
                continue
            if (found.st_dev, found.st_ino) == (wanted.st_dev, wanted.st_ino):
                return True
    except OSError:  # ended, or owned by another user
        pass
    return False


def _has_locked(pid: int, lock: Path) -> bool:
    """Look the lock up in /proc/locks, which includes the locks of other users."""
    try:
        inode = str(lock.stat().st_ino)
        lines = Path("/proc/locks").read_text().splitlines()
    except OSError:
        return False
    for words in map(str.split, lines):
        if len(words) >= 6 and words[1] == "FLOCK" and words[4] == str(pid) and words[5].endswith(f":{inode}"):
            return True
    return False


def resident_bytes(pid: int) -> int | None:
    """Return the resident memory (RSS) of a process in bytes, None if unknown."""
    try:
        pages = int(Path(f"/proc/{pid}/statm").read_text().split()[1])
    except (OSError, ValueError, IndexError):
        return None
    return pages * os.sysconf("SC_PAGE_SIZE")


def bytes_on_disk(directory: Path) -> int:
    """Return the disk usage of a directory in bytes."""
    total = 0
    for folder, _, names in os.walk(directory):
        for name in names:
            try:
                total += os.stat(os.path.join(folder, name)).st_blocks * 512  # noqa: PTH116, PTH118
            except OSError:  # removed meanwhile
                continue
    return total
