"""Writes the events of a broker to its data directories.

Once a second, new events are passed to writer threads; no commit and no request waits for them.
"""

import asyncio
import logging
from collections.abc import Callable, Sequence
from functools import partial
from pathlib import Path
from typing import Any, Final

from pulsarbox.broker.events import Event
from pulsarbox.server.process.disk_space import DiskRoom
from pulsarbox.server.process.log_setup import Sparing, and_more
from pulsarbox.server.recording.copied_recording import CopiedRecording
from pulsarbox.server.shell_protocol import Shell
from pulsarbox.storage.recording.event_files import FOLDER, SUFFIX, EventWriter

log = logging.getLogger(__name__)

SETTLE_SECONDS: Final = 1.0
WAITING_MAX: Final = 20_000
"""Maximum number of events queued for the disk; on a slower disk, further events stay in memory only."""

Row = dict[str, Any]


class EventRecorder:
    """The events of one box, in memory and on disk."""

    def __init__(self, shell: Shell, data: Path | None, size: int) -> None:
        """``data`` stores up to ``size`` bytes of events; with None or 0 they stay in memory only."""
        self._shell = shell
        self._events = shell.broker.events
        self._waiting: list[Row] = []
        self._timer: asyncio.TimerHandle | None = None
        self._writer: CopiedRecording[list[Row]] | None = None
        self._size = size
        self._room = None if data is None else DiskRoom(shell, data)
        if data is not None and size:
            self._writer = CopiedRecording("events", FOLDER, SUFFIX, self._writer_of)
            self._writer.follow([data])

    def follow(self, places: Sequence[Path]) -> None:
        """Write to these data directories from now on, and measure the disk of the first one."""
        if self._writer is not None:
            self._writer.follow(places)
        if self._room is not None:
            self._room.folder = places[0]

    def start(self) -> None:
        """Record all events from now on, and those since startup."""
        if self._writer is not None:
            for event in self._events.after(0, WAITING_MAX):
                self._record(event)
            self._events.listeners[self._record] = None
        if self._room is not None:
            self._room.start()
        self._timer = asyncio.get_running_loop().call_later(SETTLE_SECONDS, self._ring)

    def stop(self) -> None:
        """Write the remaining events and stop the thread."""
        if self._room is not None:
            self._room.stop()
        if self._timer is not None:
            self._timer.cancel()
            self._timer = None
        self._events.settle(self._shell.now())
        self._pass_on()
        if self._writer is not None:
            self._events.listeners.pop(self._record, None)
            self._writer.stop()
            self._writer = None

    def _record(self, event: Event) -> None:
        if len(self._waiting) < WAITING_MAX:
            self._waiting.append(event.as_json())

    def _ring(self) -> None:
        self._events.settle(self._shell.now())
        self._pass_on()
        self._timer = asyncio.get_running_loop().call_later(SETTLE_SECONDS, self._ring)

    def _pass_on(self) -> None:
        if self._waiting and self._writer is not None:
            waiting, self._waiting = self._waiting, []
            self._writer.submit(waiting)

    def _writer_of(self, folder: Path) -> Callable[[list[Row]], None]:
        return EventWriter(folder, self._size, partial(_failed, folder, Sparing())).write


def _failed(folder: Path, rate_limited: Sparing, error: OSError) -> None:
    left_out = rate_limited.due()
    if left_out is not None:
        log.warning("cannot write events to %s: %s%s", folder, error, and_more(left_out))
