"""The thread that maintains an ensemble of data directories: one bounded step after the other, paced by the ensemble.

It runs beside the committer and the housekeeper, because a repair can take hours and must delay neither commits nor
checkpoints.
"""

import logging
import threading
import time
from collections.abc import Callable
from typing import Final, Protocol

from pulsarbox.server.process.log_setup import Sparing, and_more
from pulsarbox.storage.ensemble.keeping.upkeep import Maintained

log = logging.getLogger(__name__)

FAILED_SECONDS: Final = 10.0
"""Pause after a step that failed."""


class MaintenanceSteps(Protocol):
    """The maintenance of an ensemble."""

    def step(self, monotonic: float, wall: int) -> Maintained | None:
        """Run one step; None if nothing is due. ``wall`` is in milliseconds since 1970."""

    def wait(self, monotonic: float) -> float:
        """Return the seconds until a step may be due."""


class MaintenanceThread:
    """Runs the steps until it is stopped. ``done`` is called in the thread after each step."""

    def __init__(self, steps: MaintenanceSteps, done: Callable[[Maintained], None]) -> None:
        self._steps = steps
        self._done = done
        self._changed = threading.Condition()
        self._holds = 0
        self._stopping = False
        self._busy = False
        self._sparing = Sparing()
        self._thread = threading.Thread(target=self._run, name="maintenance", daemon=True)

    @property
    def busy(self) -> bool:
        """Whether a step is running."""
        return self._busy

    def start(self) -> None:
        """Start the thread."""
        self._thread.start()

    def stop(self) -> None:
        """Finish the step that is running, then stop the thread."""
        with self._changed:
            self._stopping = True
            self._changed.notify()
        self._thread.join()

    def hold(self) -> None:
        """Begin no further step until ``resume``; one may still be running."""
        with self._changed:
            self._holds += 1

    def resume(self) -> None:
        """Undo one ``hold``."""
        with self._changed:
            self._holds -= 1
            self._changed.notify()

    def _run(self) -> None:
        while self._may_step():
            pause = self._step()
            self._busy = False
            with self._changed:
                self._changed.wait_for(lambda: self._stopping, pause)

    def _may_step(self) -> bool:
        """Wait while steps are held back; return False if the thread is to stop."""
        with self._changed:
            self._changed.wait_for(lambda: self._stopping or not self._holds)
            self._busy = not self._stopping
            return self._busy

    def _step(self) -> float:
        """Run a step and return the seconds to wait after it."""
        try:
            done = self._steps.step(time.monotonic(), time.time_ns() // 1_000_000)
        except Exception as error:
            self._failed(error)
            return FAILED_SECONDS
        if done is None:
            return max(0.0, self._steps.wait(time.monotonic()))
        self._done(done)
        return 0.0

    def _failed(self, error: Exception) -> None:
        suppressed = self._sparing.due()
        if suppressed is not None:
            log.error("maintenance of the data directories failed, retrying: %r%s", error, and_more(suppressed))
