"""The events of a box on disk: lines of JSON in a few files beside the store, rotated oldest first.

They are outside of the journal and written asynchronously; no commit waits for them. A crash may lose the last second;
damaged lines are skipped; no error here prevents startup. A file is named after the number of its first event.
"""

import json
import os
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any, Final

from pulsarbox.storage.format import EVENTS
from pulsarbox.storage.lmdb.private_files import PRIVATE, make_directory

FOLDER: Final = EVENTS
FILES: Final = 8
"""Maximum number of files; when one is full, the oldest is removed."""
SUFFIX: Final = ".ndjson"

Row = dict[str, Any]


def event_files(folder: Path) -> list[tuple[int, Path]]:
    """Return the files and the numbers of their first events, oldest first; empty if nothing was written."""
    try:
        found = [(int(path.stem), path) for path in folder.iterdir() if path.suffix == SUFFIX and path.stem.isdigit()]
    except OSError:
        return []
    return sorted(found)


def read(path: Path) -> list[Row]:
    """Return the events of a file, without damaged lines, such as the last one after a crash."""
    try:
        lines = path.read_bytes().splitlines()
    except OSError:
        return []
    return [row for line in lines if (row := _row(line)) is not None]


def _row(line: bytes) -> Row | None:
    try:
        row = json.loads(line)
    except ValueError:
        return None
    good = isinstance(row, dict) and isinstance(row.get("sequence"), int) and isinstance(row.get("time"), int)
    return row if good else None


def newest_first(folder: Path, before: int) -> Iterator[Row]:
    """Yield the events with smaller numbers, each once: a copied folder may have some twice."""
    later: dict[int, Row] = {}
    for first, path in reversed(event_files(folder)):
        if first < before:
            rows = {row["sequence"]: row for row in read(path) if row["sequence"] < before}
            if later and max(rows, default=0) < min(later):
                yield from (later[number] for number in sorted(later, reverse=True))
                later = {}
            later |= rows
    yield from (later[number] for number in sorted(later, reverse=True))


def oldest_first(folder: Path, after: int, before: int) -> Iterator[Row]:
    """Yield the events with numbers between the two, both exclusive, each once."""
    earlier: dict[int, Row] = {}
    files = event_files(folder)
    for at, (first, path) in enumerate(files):
        behind = files[at + 1][0] if at + 1 < len(files) else before
        if first < before and behind > after + 1:
            rows = {row["sequence"]: row for row in read(path) if after < row["sequence"] < before}
            if earlier and max(earlier) < min(rows, default=before):
                yield from (earlier[number] for number in sorted(earlier))
                earlier = {}
            earlier |= rows
    yield from (earlier[number] for number in sorted(earlier))


class EventWriter:
    """Appends events to the files of a folder. Used by one thread."""

    def __init__(self, folder: Path, size: int, failed: Callable[[OSError], None]) -> None:
        """``size`` limits the bytes of all files together. ``failed`` is called with the cause of a failed write."""
        self._folder = folder
        self._size = max(size // FILES, 1)
        self._failed = failed
        self._file: Path | None = None

    def write(self, rows: list[Row]) -> None:
        """Append events durably."""
        try:
            self._write(rows)
        except OSError as error:
            self._file = None
            self._failed(error)

    def _write(self, rows: list[Row]) -> None:
        data = b"".join(json.dumps(row, separators=(",", ":")).encode() + b"\n" for row in rows)
        begun = self._file is not None
        descriptor = os.open(self._place(rows[0]["sequence"]), os.O_WRONLY | os.O_CREAT | os.O_APPEND, PRIVATE)
        try:
            if not begun:  # the previous process may have left a partial last line
                data = b"\n" + data
            while data:
                data = data[os.write(descriptor, data) :]
            os.fdatasync(descriptor)
        finally:
            os.close(descriptor)

    def _place(self, sequence: int) -> Path:
        """Return the file to append to."""
        if self._file is None:
            make_directory(self._folder)
            self._file = next((path for _, path in reversed(event_files(self._folder))), None)
        if self._file is None or self._file.stat().st_size >= self._size:
            self._file = self._folder / f"{sequence:020d}{SUFFIX}"
            self._make_room()
        return self._file

    def _make_room(self) -> None:
        """Remove the oldest files to make room for one more."""
        files = [path for _, path in event_files(self._folder)]
        left = FILES * self._size - self._size
        for path in reversed(files):
            left -= path.stat().st_size
            if left < 0:
                path.unlink(missing_ok=True)
