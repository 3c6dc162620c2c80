"""State of a stream's step between micro-batches, in files beside its checkpoint. Does not import Spark.

A micro-batch that Spark repeats (because the driver was killed before Spark recorded its end, or a task is retried)
must produce the same output. So output and state are stored first, once, and repetitions read them.
"""

import json
import os
from collections.abc import Callable
from pathlib import Path
from typing import Any, Final, NamedTuple

from pulsarbox.errors import PulsarBoxError
from pulsarbox.spark.durable_files import sync
from pulsarbox.storage.lmdb.private_files import make_directory, opener

RETAINED: Final = 10
"""Number of files kept; Spark repeats only the newest micro-batch."""


class KeptError(PulsarBoxError):
    """Stored state is of another query, or unreadable."""


class BatchState(NamedTuple):
    """Result of one micro-batch."""

    rows: list[Any]
    """Output rows."""
    state: Any
    """State for the next micro-batch."""


class Keeping:
    """State files of one query, in a directory that all workers can access."""

    def __init__(self, directory: Path, query: str) -> None:
        self._directory = directory
        self._query = query

    def once(self, number: int, work: Callable[[Any], BatchState]) -> list[Any]:
        """Return the output of micro-batch ``number``: stored by an earlier run, or computed by ``work`` from the
        previous state, None for the first. Raises KeptError."""
        make_directory(self._directory)
        path = self._path(number)
        if not path.exists():
            before = max((each for each in self._numbers() if each < number), default=None)
            made = work(None if before is None else self._read(self._path(before)).state)
            self._write(path, made)
        self._prune(number)
        return self._read(path).rows

    def _path(self, number: int) -> Path:
        return self._directory / f"{number}.json"

    def _numbers(self) -> list[int]:
        return [int(each.stem) for each in self._directory.glob("*.json") if each.stem.isdigit()]

    def _read(self, path: Path) -> BatchState:
        try:
            query, rows, state = json.loads(path.read_bytes())
        except (OSError, ValueError) as error:
            raise KeptError(f"{path} cannot be read ({error}): reset the pipeline to start anew") from error
        if query != self._query:
            raise KeptError(
                f"{path} belongs to another query: only its checkpoint was deleted. Reset the pipeline to start anew"
            )
        return BatchState(rows, state)

    def _write(self, path: Path, made: BatchState) -> None:
        """Write durably unless the file exists, as two attempts of a task may run concurrently."""
        new = path.with_name(f"{path.name}.{os.getpid()}.new")
        with open(new, "wb", opener=opener) as file:
            file.write(json.dumps([self._query, made.rows, made.state], separators=(",", ":")).encode())
            file.flush()
            os.fsync(file.fileno())
        try:
            os.link(new, path)
        except FileExistsError:
            pass
        finally:
            new.unlink()
        sync(self._directory)

    def _prune(self, number: int) -> None:
        for each in self._numbers():
            if each <= number - RETAINED:
                self._path(each).unlink(missing_ok=True)
        for left in self._directory.glob("*.new"):  # left by a killed worker
            if left.name.partition(".")[0].isdigit() and int(left.name.partition(".")[0]) < number:
                left.unlink(missing_ok=True)
