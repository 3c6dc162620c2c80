"""Writes what is recorded to a folder in each place, in a thread for each: a disk may block."""

import logging
from collections.abc import Callable, Sequence
from functools import partial
from pathlib import Path
from typing import Generic, TypeVar

from pulsarbox.server.worker import Worker
from pulsarbox.storage.format import INSTANCE

log = logging.getLogger(__name__)

Task = TypeVar("Task")
Write = Callable[[Task], None]


class _Copy(Generic[Task]):
    """The folder of one place, and its thread."""

    def __init__(self, name: str, place: Path, create: Callable[[], "Write[Task]"]) -> None:
        self._place = place
        self._create = create
        self._write: Write[Task] | None = None
        self._written: tuple[int, int, int] | None = None
        """The identity of the directory that ``_write`` writes to."""
        self._begun = self._ended = 0
        self._worker: Worker[Task, None] = Worker(name, self._run, self._done)
        self._name = name
        self._worker.start()

    @property
    def is_idle(self) -> bool:
        return self._begun == self._ended

    def submit(self, task: Task) -> None:
        self._begun += 1
        self._worker.submit(task)

    def stop(self) -> None:
        self._worker.stop()

    def leave(self) -> None:
        self._worker.leave()

    def _run(self, task: Task) -> None:
        found = self._identity()
        if found is None:  # a disk that is not mounted must stay empty
            return
        if self._write is None or found != self._written:  # it may have been replaced
            self._write, self._written = self._create(), found
        self._write(task)

    def _identity(self) -> tuple[int, int, int] | None:
        """Return what identifies the data directory at the place; None if there is none."""
        try:
            found = (self._place / INSTANCE).stat()
        except OSError:
            return None
        return found.st_dev, found.st_ino, found.st_mtime_ns

    def _done(self, task: Task, result: None, error: Exception | None) -> None:
        self._ended += 1
        if error is not None:
            log.error("cannot write the %s", self._name, exc_info=error)


class CopiedRecording(Generic[Task]):
    """The copies of one kind of recording. All methods are called in the loop."""

    def __init__(self, name: str, folder: str, suffix: str, create: Callable[[Path], "Write[Task]"]) -> None:
        """``folder`` is the name of the folder in each place, whose files end with ``suffix``.

        ``create`` returns the function that writes to a folder; it is called in the folder's thread, as is that.
        Nothing is written while a place is no data directory.
        """
        self._name = name
        self._folder = folder
        self._suffix = suffix
        self._create = create
        self._copies: dict[Path, _Copy[Task]] = {}
        self._folders: list[Path] = []
        """The folders at present; replaced as a whole, because the threads read it."""

    @property
    def is_busy(self) -> bool:
        """Whether no copy is ready for another task."""
        return not any(copy.is_idle for copy in self._copies.values())

    def follow(self, places: Sequence[Path]) -> None:
        """Write to these places from now on. One that is new first gets what the others have."""
        self._folders = folders = [place / self._folder for place in places]
        for folder in [each for each in self._copies if each not in folders]:
            self._copies.pop(folder).leave()
        for folder in folders:
            if folder not in self._copies:
                self._copies[folder] = _Copy(self._name, folder.parent, partial(self._begin, folder))

    def submit(self, task: Task, *, to_idle: bool = False) -> None:
        """Write to all copies, or to those that have written all before."""
        for copy in self._copies.values():
            if copy.is_idle or not to_idle:
                copy.submit(task)

    def stop(self) -> None:
        """Finish the writes, and stop the threads."""
        for copy in self._copies.values():
            copy.stop()
        self._copies.clear()

    def _begin(self, folder: Path) -> "Write[Task]":
        others = [each for each in self._folders if each != folder]
        if others:
            from pulsarbox.storage.recording.catch_up import catch_up

            try:
                catch_up(folder, others, self._suffix)
            except OSError as error:
                log.warning("cannot copy the %s to %s: %s", self._name, folder, error)
        return self._create(folder)
