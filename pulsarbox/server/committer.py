"""The committer: the thread that makes batches durable, one after another.

It exists because a sync takes a fraction of a millisecond in which the loop has better things to do: py-lmdb gives up
the GIL while it writes and syncs. There is never more than one batch under way; the core sees to that.
"""

import threading
from collections.abc import Callable
from queue import SimpleQueue

from pulsarbox.storage.engine import Engine
from pulsarbox.storage.journal import Batch

Committed = Callable[[Batch, Exception | None], None]


class Committer:
    """Commits what ``submit`` is given, and says so through ``done`` in its own thread."""

    def __init__(self, engine: Engine, done: Committed) -> None:
        self._engine = engine
        self._done = done
        self._batches: SimpleQueue[Batch | None] = SimpleQueue()
        self._thread = threading.Thread(target=self._run, name="committer", daemon=True)

    def start(self) -> None:
        """Start the thread."""
        self._thread.start()

    def submit(self, batch: Batch) -> None:
        """Make a batch durable."""
        self._batches.put(batch)

    def stop(self) -> None:
        """Finish what is under way, then end the thread."""
        self._batches.put(None)
        self._thread.join()

    def _run(self) -> None:
        while (batch := self._batches.get()) is not None:
            error: Exception | None = None
            try:
                self._engine.commit(batch)
            except Exception as failure:
                error = failure
            self._done(batch, error)
