"""Data directories that other users may read, as earlier versions made them: how they become their owner's alone."""

import logging
import os
import stat
import threading
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Final

from pulsarbox.storage.format import INSTANCE, is_part

log = logging.getLogger(__name__)

NARROW_SECONDS: Final = 0.1
"""How long a start narrows the permissions of files; a thread does the rest. Looking at a file takes 10 us, changing it
20 more."""
_OTHERS: Final = 0o077
_SHOWN: Final = 3
_OF_NOBODY: Final = (".", "lost+found")
"""Hidden files, and what file systems put into their root."""


def narrow(directory: Path) -> None:
    """Take away from a data directory, and from what a box keeps in it, the permissions of all but the owner.

    Each change is logged. Two things stay as they are, and are logged too: what belongs to other users, and the mode
    of a directory that holds anything that no box has written, because other programs may need that. Symbolic links
    inside are not followed; the directory itself may be one. Raises OSError where the directory cannot be read.
    """
    if not _narrow_directory(directory):
        return
    work = _Narrowing(directory)
    if not work.run(time.monotonic() + NARROW_SECONDS):
        threading.Thread(target=work.run, name="narrowing", daemon=True).start()


def _narrow_directory(directory: Path) -> bool:
    """False where the file system keeps no permissions."""
    mode = _mode(directory)
    if not mode & _OTHERS:
        return True
    names = [each.name for each in directory.iterdir()]
    foreign = sorted(name for name in names if not is_part(name) and not name.startswith(_OF_NOBODY))
    if foreign:
        shown = ", ".join(foreign[:_SHOWN]) + (", ..." if len(foreign) > _SHOWN else "")
        _stays_open(directory, mode, f"it holds files that no box has written ({shown})")
        return True
    try:
        directory.chmod(mode & ~_OTHERS)
    except OSError as error:
        _stays_open(directory, mode, f"{error.strerror}; its owner can run `chmod 700` on it")
        return True
    if _mode(directory) & _OTHERS:
        log.warning("the data directory %s is on a file system that keeps no permissions: restrict who may mount or"
                    " enter it", directory)  # fmt: skip
        return False
    log.log(
        logging.WARNING if INSTANCE in names else logging.INFO,
        "the data directory %s was open to other users (mode %04o): now it is open to its owner only (%04o)",
        directory, mode, mode & ~_OTHERS,
    )  # fmt: skip
    return True


def _mode(directory: Path) -> int:
    return stat.S_IMODE(directory.stat().st_mode)


def _stays_open(directory: Path, mode: int, why: str) -> None:
    log.warning("the data directory %s stays open to other users (mode %04o): %s. What a box keeps in it is readable by"
                " its own user only", directory, mode, why)  # fmt: skip


class _Narrowing:
    """The files of one data directory, narrowed in any number of steps."""

    def __init__(self, directory: Path) -> None:
        self._directory = directory
        self._found = _written(directory)
        self._done = 0
        self._failed: list[str] = []

    def run(self, until: float = float("inf")) -> bool:
        """Go on up to that time of the monotonic clock; whether all is done, which the log says then."""
        for path, mode in self._found:
            if mode & _OTHERS:
                self._narrow(path, mode)
            if time.monotonic() >= until:
                return False
        if self._done:
            log.warning("%d files and directories in %s were open to other users: now they are open to their owner"
                        " only", self._done, self._directory)  # fmt: skip
        if self._failed:
            log.warning("%d files and directories in %s stay open to other users, such as %s: their owner can run"
                        " `chmod go=` on them", len(self._failed), self._directory, self._failed[0])  # fmt: skip
        return True

    def _narrow(self, path: str, mode: int) -> None:
        try:
            # By name: a descriptor of LMDB's lock file, when closed, would give up the locks of this process.
            Path(path).chmod(mode & ~_OTHERS)
            self._done += 1
        except FileNotFoundError:
            pass
        except OSError:
            self._failed.append(path)


def _written(directory: Path) -> Iterator[tuple[str, int]]:
    """The files and directories that boxes have written there, with their modes; links are left out."""
    folders = [str(directory)]
    while folders:
        folder = folders.pop()
        try:
            entries = list(os.scandir(folder))
        except OSError:  # removed meanwhile, or another user's
            continue
        for entry in entries:
            if folder == str(directory) and not is_part(entry.name):
                continue
            try:
                mode = entry.stat(follow_symlinks=False).st_mode
            except OSError:
                continue
            if stat.S_ISDIR(mode):
                folders.append(entry.path)
            if stat.S_ISDIR(mode) or stat.S_ISREG(mode):
                yield entry.path, stat.S_IMODE(mode)
