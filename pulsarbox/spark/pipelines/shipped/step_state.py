"""What a step of a stream keeps from one micro-batch to the next, in files beside its checkpoint. Nothing of Spark.

A micro-batch that Spark runs again (the driver was killed before Spark noted its end, a task is tried again) has to put
out the same as before. So what it puts out, and what it keeps, are written down first, once; whoever runs it again
reads that.
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
"""Files that are left: Spark runs again only the newest micro-batch."""


class KeptError(PulsarBoxError):
    """What was kept is not of this query, or cannot be read."""


class Kept(NamedTuple):
    """After one micro-batch."""

    rows: list[Any]
    """What it puts out."""
    state: Any
    """What the next one goes on with."""


class Keeping:
    """The files of one query, in a directory that all workers can reach."""

    def __init__(self, directory: Path, query: str) -> None:
        self._directory = directory
        self._query = query

    def once(self, number: int, work: Callable[[Any], Kept]) -> list[Any]:
        """What micro-batch ``number`` puts out: what ``work`` makes of what the one before has left (None: nothing),
        or has made when this one was run before. Raises KeptError.
        """
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

    def _read(self, path: Path) -> Kept:
        try:
            query, rows, state = json.loads(path.read_bytes())
        except (OSError, ValueError) as error:
            raise KeptError(f"{path} cannot be read ({error}): reset the pipeline, it then begins anew") from error
        if query != self._query:
            raise KeptError(
                f"{path} is of another query: its checkpoint was deleted alone. Reset the pipeline, it then begins anew"
            )
        return Kept(rows, state)

    def _write(self, path: Path, made: Kept) -> None:
        """Durably, and only if nobody was faster: two attempts of a task may be at work at the same time."""
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
        for left in self._directory.glob("*.new"):  # of a worker that was killed
            if left.name.partition(".")[0].isdigit() and int(left.name.partition(".")[0]) < number:
                left.unlink(missing_ok=True)
