"""State directory: a checkpoint, a lock, and metadata for each query of each pipeline.

``DIR/PIPELINE/QUERY/{checkpoint,lock,about.json}``. The lock is a file lock, released when its process ends.
"""

import contextlib
import fcntl
import json
import os
import shutil
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any, Final, NamedTuple, TextIO
from uuid import uuid4

from pulsarbox.errors import Conflict
from pulsarbox.spark.durable_files import put
from pulsarbox.spark.pipelines.declaration import PipelineError
from pulsarbox.spark.pipelines.spark_log import LOG, forget
from pulsarbox.storage.lmdb.private_files import make_directory, opener

CHECKPOINT: Final = "checkpoint"
_LOCK: Final = "lock"
_ABOUT: Final = "about.json"
_GONE: Final = ".gone"
_LOOKS: Final = 500
_LOOK_SECONDS: Final = 0.01


class LockedError(PipelineError, Conflict):
    """The query runs already; the message names the process."""


class Known(NamedTuple):
    """Query with recorded state, running or not."""

    pipeline: str
    query: str
    place: Path
    about: dict[str, Any]
    pid: int | None
    """The process that runs it; None if not running."""


class QueryState:
    """State of one query, locked by this process."""

    def __init__(self, directory: Path, pipeline: str, query: str) -> None:
        """Take the lock. Raises LockedError, and PipelineError if the directory cannot be written."""
        self.place = directory / pipeline / query
        self._file = self._opened()
        while True:
            if not _taken(self._file.fileno()):
                pid = _pid(self._file.fileno())
                self._file.close()
                raise LockedError(
                    f"{pipeline}/{query} is already running in {directory}{f' (process {pid})' if pid else ''}: stop "
                    "it first, or set another name with --name"
                )
            if os.fstat(self._file.fileno()).st_nlink:
                break
            self._file.close()  # a reset removed the file; another process would lock a new one
            self._file = self._opened()
        self._file.seek(0)
        self._file.truncate()
        try:
            self._file.write(str(os.getpid()))
            self._file.flush()
        except OSError as error:
            raise self._of_no_use(error) from None

    def _opened(self) -> TextIO:
        try:
            make_directory(self.place)
            return open(self.place / _LOCK, "a+", opener=opener)
        except OSError as error:
            raise self._of_no_use(error) from None

    def _of_no_use(self, error: OSError) -> PipelineError:
        return PipelineError(f"{self.place} cannot be used: {error.strerror}; choose another directory with --state")

    @property
    def checkpoint(self) -> Path:
        """The directory of Spark's checkpoint."""
        return self.place / CHECKPOINT

    @property
    def is_new(self) -> bool:
        """Whether it has never run, or was reset."""
        return not (self.checkpoint / "metadata").exists()

    def about(self) -> dict[str, Any]:
        """Return the query's metadata."""
        return _about(self.place)

    def note(self, **more: Any) -> None:
        """Update the query's metadata, replacing the file atomically. Raises PipelineError if that fails."""
        try:
            put(self.place / _ABOUT, json.dumps(self.about() | more, indent=2) + "\n")
        except OSError as error:
            raise self._of_no_use(error) from None

    def release(self) -> None:
        """Release the lock."""
        self._file.close()


def query_id(checkpoint: str) -> str:
    """Return the ID of the query that a checkpoint belongs to; Spark writes it before the first micro-batch."""
    found: str = json.loads(Path(checkpoint, "metadata").read_text())["id"]
    return found


def _taken(file: int) -> bool:
    """Try to take the lock, waiting for the short shared locks of ``holder``."""
    for _ in range(_LOOKS):
        if _locked(file, fcntl.LOCK_EX):
            return True
        if not _locked(file, fcntl.LOCK_SH):  # held by a runner
            return False
        fcntl.flock(file, fcntl.LOCK_UN)
        time.sleep(_LOOK_SECONDS)
    return False


def _locked(file: int, kind: int) -> bool:
    try:
        fcntl.flock(file, kind | fcntl.LOCK_NB)
    except OSError:
        return False
    return True


def _about(place: Path) -> dict[str, Any]:
    with contextlib.suppress(OSError, ValueError):
        found = json.loads((place / _ABOUT).read_text())
        if isinstance(found, dict):
            return found
    return {}


def _pid(file: int) -> int | None:
    text = os.pread(file, 20, 0).decode(errors="replace").strip()
    return int(text) if text.isdigit() else None


def known(directory: Path, pipeline: str | None = None) -> Iterator[Known]:
    """Yield all queries with recorded state, by name."""
    for place in sorted(directory.glob(f"*/*/{_LOCK}")):
        folder = place.parent
        if pipeline in (None, folder.parent.name):
            yield Known(folder.parent.name, folder.name, folder, _about(folder), holder(folder))


def holder(place: Path) -> int | None:
    """Return the process that holds a query's lock, 0 if unknown; None if the lock is free."""
    try:
        with (place / _LOCK).open("r") as file:
            try:
                fcntl.flock(file, fcntl.LOCK_SH | fcntl.LOCK_NB)
            except OSError:
                return _pid(file.fileno()) or 0
    except OSError:
        return None
    return None


def reset(directory: Path, pipeline: str, query: str) -> None:
    """Delete a query's checkpoint and metadata. Raises LockedError while it runs.

    The directory is renamed first, so that the deletion is atomic. With part of its checkpoint, a query would start
    anew under its old ID, and the box would discard its output as already published.
    """
    held = QueryState(directory, pipeline, query)
    try:
        held.place.rename(directory / f".{pipeline}.{query}.{uuid4().hex}{_GONE}")
        for each in directory.glob(f".*{_GONE}"):  # including leftovers of an interrupted reset
            shutil.rmtree(each, ignore_errors=True)
    finally:
        held.release()
    whole = directory / pipeline
    if any(each.is_dir() for each in whole.iterdir()):  # another query may be running and writing the log
        return
    with contextlib.suppress(OSError):
        forget(whole / LOG)
        whole.rmdir()
