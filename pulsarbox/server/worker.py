"""A thread that does one kind of work beside the loop, one task after another.

The shell has three: the committer, because the loop can work during a sync (py-lmdb releases the GIL while it writes
and syncs); the reader, so that page faults do not block the loop; and the housekeeper for long operations: checkpoints
and space reclamation.
"""

import threading
from collections.abc import Callable
from queue import SimpleQueue
from typing import Generic, TypeVar

Task = TypeVar("Task")
Result = TypeVar("Result")


class Worker(Generic[Task, Result]):
    """Runs ``work`` for each submitted task, in order, and calls ``done`` in its own thread."""

    def __init__(
        self,
        name: str,
        work: Callable[[Task], Result],
        done: Callable[[Task, Result | None, Exception | None], None],
    ) -> None:
        """``done`` is called with the task, and either the result of ``work`` or its exception."""
        self._work = work
        self._done = done
        self._tasks: SimpleQueue[Task | None] = SimpleQueue()
        self._thread = threading.Thread(target=self._run, name=name, daemon=True)

    def start(self) -> None:
        """Start the thread."""
        self._thread.start()

    def submit(self, task: Task) -> None:
        """Queue a task after those submitted before."""
        self._tasks.put(task)

    def stop(self) -> None:
        """Finish the queued tasks, then stop the thread."""
        self._tasks.put(None)
        self._thread.join()

    def leave(self) -> None:
        """Let the thread end after the queued tasks, without waiting for it: a disk may block it."""
        self._tasks.put(None)

    def _run(self) -> None:
        while (task := self._tasks.get()) is not None:
            result: Result | None = None
            error: Exception | None = None
            try:
                result = self._work(task)
            except Exception as failure:
                error = failure
            self._done(task, result, error)
