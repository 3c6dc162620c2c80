"""Restriction to the owner of data directories that are readable by other users, for example after a copy."""

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
"""How long startup restricts permissions of files before a thread takes over. A stat takes 10 us, a chmod 20 us."""
_OTHERS: Final = 0o077
_SHOWN: Final = 3
_OF_NOBODY: Final = (".", "lost+found")
"""Hidden files, and file system metadata at its root."""


def narrow(directory: Path) -> None:
    """Remove all permissions of other users from a data directory and from the files of a box in it.

    Each change is logged. Two things are only logged, not changed: files of other users, and the mode of a directory
    that contains files of other programs, which may need it. Symbolic links inside are not followed; the directory may
    be one. Raises OSError if the directory cannot be read.
    """
    if not _narrow_directory(directory):
        return
    work = _Narrowing(directory)
    if not work.run(time.monotonic() + NARROW_SECONDS):
        threading.Thread(target=work.run, name="narrowing", daemon=True).start()


def _narrow_directory(directory: Path) -> bool:
    """Restrict the directory's own mode; False if the file system has no permissions."""
    mode = _mode(directory)
    if not mode & _OTHERS:
        return True
    names = [each.name for each in directory.iterdir()]
    foreign = sorted(name for name in names if not is_part(name) and not name.startswith(_OF_NOBODY))
    if foreign:
        shown = ", ".join(foreign[:_SHOWN]) + (", ..." if len(foreign) > _SHOWN else "")
        _stays_open(directory, mode, f"it holds files not written by a box ({shown})")
        return True
    try:
        directory.chmod(mode & ~_OTHERS)
    except OSError as error:
        _stays_open(directory, mode, f"{error.strerror}; its owner can run `chmod 700` on it")
        return True
    if _mode(directory) & _OTHERS:
        log.warning("the data directory %s is on a file system without permissions: restrict who can mount or enter"
                    " it", directory)  # fmt: skip
        return False
    log.log(
        logging.WARNING if INSTANCE in names else logging.INFO,
        "the data directory %s was open to other users (mode %04o); it is now restricted to its owner (%04o)",
        directory, mode, mode & ~_OTHERS,
    )  # fmt: skip
    return True


def _mode(directory: Path) -> int:
    return stat.S_IMODE(directory.stat().st_mode)


def _stays_open(directory: Path, mode: int, why: str) -> None:
    log.warning("the data directory %s stays open to other users (mode %04o): %s. The files of a box in it are readable"
                " only by their owner", directory, mode, why)  # fmt: skip


class _Narrowing:
    """The files of one data directory, restricted in any number of steps."""

    def __init__(self, directory: Path) -> None:
        self._directory = directory
        self._found = _written(directory)
        self._done = 0
        self._failed: list[str] = []

    def run(self, until: float = float("inf")) -> bool:
        """Continue until that time of the monotonic clock; return whether all is done, after logging the result."""
        for path, mode in self._found:
            if mode & _OTHERS:
                self._narrow(path, mode)
            if time.monotonic() >= until:
                return False
        if self._done:
            log.warning("%d files and directories in %s were open to other users; they are now restricted to their"
                        " owner", self._done, self._directory)  # fmt: skip
        if self._failed:
            log.warning("%d files and directories in %s stay open to other users, such as %s; their owner can run"
                        " `chmod go=` on them", len(self._failed), self._directory, self._failed[0])  # fmt: skip
        return True

    def _narrow(self, path: str, mode: int) -> None:
        try:
            # By name: closing a descriptor of LMDB's lock file would release the locks of this process.
            Path(path).chmod(mode & ~_OTHERS)
            self._done += 1
        except FileNotFoundError:
            pass
        except OSError:
            self._failed.append(path)


def _written(directory: Path) -> Iterator[tuple[str, int]]:
    """Yield the files and directories written by a box, with their modes; symbolic links are skipped."""
    folders = [str(directory)]
    while folders:
        folder = folders.pop()
        try:
            with os.scandir(folder) as found:
                entries = list(found)
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
