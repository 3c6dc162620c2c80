"""The log file of a background box: the target of stdout and stderr, rotated by size, reopened when renamed."""

import os
from pathlib import Path

from pulsarbox.storage.lmdb.private_files import PRIVATE, make_directory

_STDOUT, _STDERR = 1, 2


class LogFile:
    """Descriptors 1 and 2 of this process, both of one file, open for appending.

    At its maximum size the file becomes ``<name>.1``, the previous one ``<name>.2``, and so on; a new file replaces it
    under the same descriptors. So every write to them, even the interpreter's last words, is in one of the files, and
    no further descriptor is used.
    """

    def __init__(self, path: Path, max_bytes: int, backups: int) -> None:
        """``max_bytes`` of 0 disables rotation. ``backups`` is the number of rotated files kept."""
        self._path = path.absolute()
        self._max_bytes = max_bytes
        self._backups = backups

    def rotate_if_due(self) -> None:
        """Rotate the file if it has reached its size, or reopen it if it was renamed or removed. Called per line.

        Errors are ignored until the next line: a log that cannot be rotated is better than none.
        """
        try:
            ours = os.fstat(_STDERR)
            if not self._is_at_its_path(ours):
                self.reopen()
            elif self._max_bytes and ours.st_size >= self._max_bytes:
                self._shift()
                self.reopen()
        except OSError:
            pass

    def reopen(self) -> None:
        """Open the file at its path and redirect output to it. Raises OSError."""
        make_directory(self._path.parent)
        new = os.open(self._path, os.O_WRONLY | os.O_CREAT | os.O_APPEND | os.O_CLOEXEC, PRIVATE)
        try:
            os.dup2(new, _STDOUT)
            os.dup2(new, _STDERR)
        finally:
            os.close(new)

    def _is_at_its_path(self, ours: os.stat_result) -> bool:
        try:
            there = self._path.stat()
        except FileNotFoundError:
            return False
        return (ours.st_dev, ours.st_ino) == (there.st_dev, there.st_ino)

    def _shift(self) -> None:
        for number in range(self._backups, 1, -1):
            older = self._numbered(number - 1)
            if older.exists():
                older.replace(self._numbered(number))
        if self._backups:
            self._path.replace(self._numbered(1))
        else:
            self._path.unlink()

    def _numbered(self, number: int) -> Path:
        return self._path.with_name(f"{self._path.name}.{number}")
