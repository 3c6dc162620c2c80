"""What lives on a connection and comes back after it was lost: with growing pauses, up to a time limit."""

from __future__ import annotations

import time
from collections.abc import Callable
from typing import Final

from pulsarbox.client.errors import NoAnswer, NotConnected, passes
from pulsarbox.errors import ConsumerBusy, ProducerBusy, ProducerHeld, PulsarBoxError

_FIRST_PAUSE: Final = 0.05
_LONGEST_PAUSE: Final = 2.0
_HELD_PAUSE: Final = 0.5
"""Between two looks whether the broker still holds a producer back; some brokers are to be asked each time."""


class Comeback:
    """The attempts of one producer or consumer to get a connection again."""

    def __init__(self, open_again: Callable[[], None], reason: PulsarBoxError, seconds: float) -> None:
        """``open_again`` raises where it cannot. ``reason``: why it is needed. ``seconds``: give up after so long."""
        self.due = time.monotonic()
        self._open_again = open_again
        self.reason = reason
        """Why there is no connection."""
        self._pause = _FIRST_PAUSE
        self._deadline = self.due + seconds
        self._seconds = seconds

    def try_again(self) -> bool:
        """One attempt; whether it went well. Raises where there is no point in another one.

        A name or a subscription that is taken is often our own of before: the broker has not noticed that we are gone.
        """
        try:
            self._open_again()
        except PulsarBoxError as error:
            self.refused(error)
            return False
        return True

    def refused(self, error: PulsarBoxError) -> None:
        """An attempt has failed: set the time of the next one. Raises where there is no point in another one."""
        if not passes(error) and not isinstance(error, ProducerBusy | ProducerHeld | ConsumerBusy):
            raise error
        import random  # most connections are never lost

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
