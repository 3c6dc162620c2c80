"""The housekeeper: the thread that writes checkpoints and gives disk back, beside the commits."""

import threading
from collections.abc import Callable
from queue import SimpleQueue

from pulsarbox.broker.housekeeping import Chore, Reclaim
from pulsarbox.storage.engine import Checkpoint, Engine, Reclaimed

ChoreDone = Callable[[Chore, Exception | None, Reclaimed | None], None]


class Housekeeper:
    """Carries out the chore that ``submit`` is given, and says so through ``done`` in its own thread."""

    def __init__(self, engine: Engine, done: ChoreDone) -> None:
        self._engine = engine
        self._done = done
        self._chores: SimpleQueue[Chore | None] = SimpleQueue()
        self._thread = threading.Thread(target=self._run, name="housekeeper", daemon=True)

    def start(self) -> None:
        """Start the thread."""
        self._thread.start()

    def submit(self, chore: Chore) -> None:
        """Write a checkpoint, or do a step of giving disk back."""
        self._chores.put(chore)

    def stop(self) -> None:
        """Finish what is under way, then end the thread."""
        self._chores.put(None)
        self._thread.join()

    def _run(self) -> None:
        while (chore := self._chores.get()) is not None:
            error: Exception | None = None
            reclaimed: Reclaimed | None = None
            try:
                if isinstance(chore, Checkpoint):
                    self._engine.checkpoint(chore)
                elif isinstance(chore, Reclaim):
                    reclaimed = self._engine.reclaim()
                else:
                    self._engine.check_room()
            except Exception as failure:
                error = failure
            self._done(chore, error, reclaimed)
