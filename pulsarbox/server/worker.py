"""A thread that does one kind of work beside the loop, one task after another.

The shell has three: the committer, because a sync takes a fraction of a millisecond in which the loop has better things
to do (py-lmdb gives up the GIL while it writes and syncs); the reader, so that no page fault meets the loop; and the
housekeeper for what takes long, checkpoints and giving disk back.
"""

import threading
from collections.abc import Callable
from queue import SimpleQueue
from typing import Generic, TypeVar

Task = TypeVar("Task")
Result = TypeVar("Result")


class Worker(Generic[Task, Result]):
    """Does ``work`` for each task that ``submit`` is given, in order; says so through ``done`` in its own thread."""

    def __init__(
        self,
        name: str,
        work: Callable[[Task], Result],
        done: Callable[[Task, Result | None, Exception | None], None],
    ) -> None:
        """``done`` is called with the task, then either what ``work`` has given or the exception that it has raised."""
        self._work = work
        self._done = done
        self._tasks: SimpleQueue[Task | None] = SimpleQueue()
        self._thread = threading.Thread(target=self._run, name=name, daemon=True)

    def start(self) -> None:
        """Start the thread."""
        self._thread.start()

    def submit(self, task: Task) -> None:
        """Have it done behind what was submitted before."""
        self._tasks.put(task)

    def stop(self) -> None:
        """Finish what was submitted, then end the thread."""
        self._tasks.put(None)
        self._thread.join()

    def _run(self) -> None:
        while (task := self._tasks.get()) is not None:
            result: Result | None = None
            error: Exception | None = None
            try:
                result = self._work(task)
            except Exception as failure:
                error = failure
            self._done(task, result, error)
