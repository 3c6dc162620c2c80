"""The daemon of a data directory, as its LOCK file tells."""

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
    """0 where the LOCK file does not say."""
    confirmed: bool
    """Whether the kernel says the same. Not so where the process is in another container: pids mean others there."""


class Unreadable(Denied):
    """The data directory is another user's."""


def find(directory: Path) -> Holder | None:
    """The process that holds the data directory; None where none does. Raises Unreadable."""
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
    except OSError:  # gone, or another user's
        pass
    return False


def _has_locked(pid: int, lock: Path) -> bool:
    """By the kernel's list of locks, which shows those of other users too."""
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
    """Memory that the process has in use (RSS), None where that is not told."""
    try:
        pages = int(Path(f"/proc/{pid}/statm").read_text().split()[1])
    except (OSError, ValueError, IndexError):
        return None
    return pages * os.sysconf("SC_PAGE_SIZE")


def bytes_on_disk(directory: Path) -> int:
    """What the files of a directory take on the disk."""
    total = 0
    for folder, _, names in os.walk(directory):
        for name in names:
            try:
                total += os.stat(os.path.join(folder, name)).st_blocks * 512  # noqa: PTH116, PTH118
            except OSError:  # removed meanwhile
                continue
    return total
