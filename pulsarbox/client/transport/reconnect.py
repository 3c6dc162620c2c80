"""Reconnection of producers and consumers, with backoff and a time limit."""

from __future__ import annotations

import time
from collections.abc import Callable
from typing import Final

from pulsarbox.client.errors import NoAnswer, NotConnected, passes
from pulsarbox.errors import ConsumerBusy, ProducerBusy, ProducerHeld, PulsarBoxError

_FIRST_PAUSE: Final = 0.05
_LONGEST_PAUSE: Final = 2.0
_HELD_PAUSE: Final = 0.5
"""Pause between retries while the broker holds a producer; some brokers do not notify it and must be polled."""


class Reconnect:
    """Reconnection attempts of one producer or consumer."""

    def __init__(self, open_again: Callable[[], None], reason: PulsarBoxError, seconds: float) -> None:
        """``open_again`` raises on failure. ``reason``: cause of the disconnection. ``seconds``: time limit."""
        self.due = time.monotonic()
        self._open_again = open_again
        self.reason = reason
        """The latest error."""
        self._pause = _FIRST_PAUSE
        self._deadline = self.due + seconds
        self._seconds = seconds

    def try_again(self) -> bool:
        """Make one attempt and return whether it succeeded. Raises if retrying is pointless.

        A name or subscription may be in use by this client's previous connection, which the broker has not noticed is
        gone.
        """
        try:
            self._open_again()
        except PulsarBoxError as error:
            self.refused(error)
            return False
        return True

    def refused(self, error: PulsarBoxError) -> None:
        """Schedule the next attempt after a failed one. Raises if retrying is pointless."""
        if not passes(error) and not isinstance(error, ProducerBusy | ProducerHeld | ConsumerBusy):
            raise error
        import random  # deferred: most connections are never lost

        now = time.monotonic()
        if now >= self._deadline:
            raise self._last(error) from error
        pause = min(self._pause, _HELD_PAUSE) if isinstance(error, ProducerHeld) else self._pause
        self.due = now + pause * random.uniform(0.8, 1.2)
        self._pause = min(2 * self._pause, _LONGEST_PAUSE)
        self.reason = error

    def _last(self, error: PulsarBoxError) -> PulsarBoxError:
        if isinstance(error, NotConnected | NoAnswer):
            return type(error)(f"{error} (tried for {self._seconds:g} s)")
        if isinstance(error, ProducerHeld):
            return ProducerHeld(f"{error} (waited for {self._seconds:g} s)")
        return error
