"""Per-second samples for graphs of the last minutes, and periodic sampling of topics.

Samples some topics per turn, so that the loop serves clients in between; see ``broker.samples`` for the rate.
"""

import asyncio
from typing import Final

from pulsarbox.broker.stats.time_series import STEP_SECONDS
from pulsarbox.server.shell_protocol import Shell

TOPICS_AT_ONCE: Final = 50


class StatsTicker:
    """The sampling timer of one broker."""

    def __init__(self, shell: Shell) -> None:
        self._shell = shell
        self._timer: asyncio.TimerHandle | None = None
        self._next = 0.0

    def start(self) -> None:
        """Start the timer."""
        loop = asyncio.get_running_loop()
        self._next = loop.time() + STEP_SECONDS
        self._timer = loop.call_at(self._next, self._ring)

    def stop(self) -> None:
        """Stop the timer."""
        if self._timer is not None:
            self._timer.cancel()
            self._timer = None

    def _ring(self) -> None:
        self._shell.broker.samples.tick(self._shell.now())
        self._step()

    def _step(self) -> None:
        loop = asyncio.get_running_loop()
        if not self._shell.broker.samples.step(self._shell.now(), TOPICS_AT_ONCE):
            self._timer = loop.call_later(0, self._step)
            return
        # Seconds missed while the loop was blocked are not made up for.
        self._next = max(self._next + STEP_SECONDS, loop.time())
        self._timer = loop.call_at(self._next, self._ring)
