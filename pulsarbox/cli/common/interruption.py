"""Deferred Ctrl-C and SIGTERM, handled between two messages."""

import contextlib
import os
import signal
from types import FrameType, TracebackType
from typing import Any, Final, Self

import click

from pulsarbox.cli.common.exits import EXIT_TERMINATED, Interrupted
from pulsarbox.client.transport.loop import READ, Loop

_SIGNALS: Final = (signal.SIGINT, signal.SIGTERM)


class Interruption:
    """Context in which the first signal only sets ``asked`` and wakes the loop; a second one interrupts at once."""

    def __init__(self, loop: Loop) -> None:
        self.asked = 0
        """Number of the received signal, 0 for none."""
        self._loop = loop
        self._before: dict[int, Any] = {}
        self._wake = os.pipe()

    def __enter__(self) -> Self:
        reading, writing = self._wake
        for end in self._wake:
            os.set_blocking(end, False)
        self._loop.watch(reading, READ, lambda mask: self._woken())
        with contextlib.suppress(ValueError):  # not the main thread, which alone receives signals
            self._before = {number: signal.signal(number, self._requested) for number in _SIGNALS}
            signal.set_wakeup_fd(writing, warn_on_full_buffer=False)
        return self

    def __exit__(self, kind: type[BaseException] | None, error: BaseException | None, at: TracebackType | None) -> None:
        with contextlib.suppress(ValueError):
            signal.set_wakeup_fd(-1)
            for number, before in self._before.items():
                signal.signal(number, before)
        self._loop.forget(self._wake[0])
        for end in self._wake:
            os.close(end)

    def is_asked(self) -> bool:
        """Return whether the command should end."""
        return self.asked != 0

    def _requested(self, number: int, frame: FrameType | None) -> None:
        if self.asked:
            raise KeyboardInterrupt
        self.asked = number

    def _woken(self) -> None:
        with contextlib.suppress(BlockingIOError):
            os.read(self._wake[0], 64)

    def ending(self, said: str) -> click.ClickException:
        """Return the exit of a command that was interrupted, with the exit code of the signal."""
        ending = Interrupted(said)
        if self.asked == signal.SIGTERM:
            ending.exit_code = EXIT_TERMINATED  # type: ignore[misc] # of this one only
        return ending
