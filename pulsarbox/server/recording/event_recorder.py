"""Writes the events of a broker to its data directory.

Once a second, new events are passed to a writer thread; no commit and no request waits for it.
"""

import asyncio
import logging
from pathlib import Path
from typing import Any, Final

from pulsarbox.broker.events import Event
from pulsarbox.server.process.disk_space import DiskRoom
from pulsarbox.server.process.log_setup import Sparing, and_more
from pulsarbox.server.shell_protocol import Shell
from pulsarbox.server.worker import Worker
from pulsarbox.storage.recording.event_files import EventWriter

log = logging.getLogger(__name__)

SETTLE_SECONDS: Final = 1.0
WAITING_MAX: Final = 20_000
"""Maximum number of events queued for the disk; on a slower disk, further events stay in memory only."""

Row = dict[str, Any]


class EventRecorder:
    """The events of one box, in memory and on disk."""

    def __init__(self, shell: Shell, folder: Path | None, size: int) -> None:
        """``folder`` stores up to ``size`` bytes of events; with None or 0 they stay in memory only."""
        self.folder = folder if size else None
        self._shell = shell
        self._events = shell.broker.events
        self._waiting: list[Row] = []
        self._timer: asyncio.TimerHandle | None = None
        self._writer: Worker[list[Row], None] | None = None
        self._rate_limited = Sparing()
        self._room = None if folder is None else DiskRoom(shell, folder.parent)
        if self.folder is not None:
            writer = EventWriter(self.folder, size, self._failed)
            self._writer = Worker("events", writer.write, lambda rows, done, error: None)

    def start(self) -> None:
        """Record all events from now on, and those since startup."""
        if self._writer is not None:
            for event in self._events.after(0, WAITING_MAX):
                self._record(event)
            self._events.listeners[self._record] = None
            self._writer.start()
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

    def _failed(self, error: OSError) -> None:
        left_out = self._rate_limited.due()
        if left_out is not None:
            log.warning("cannot write events to %s: %s%s", self.folder, error, and_more(left_out))
