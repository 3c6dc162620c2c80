"""Watches the file system of the data directory: reports once when it is nearly full, and when that is over, and tells
the broker its size, of which settings may be a share."""

import asyncio
import os
from pathlib import Path
from typing import Final

from pulsarbox.server.shell_protocol import Shell

LOOK_SECONDS: Final = 30.0
LOW_SHARE: Final = 0.05
LOW_BYTES: Final = 2 << 30
"""It is low where less than both of these is free; it is over at twice as much."""


class Judgement:
    """Whether the disk is low, by what is free from time to time."""

    def __init__(self) -> None:
        self._low = False

    def look(self, free: int, total: int) -> tuple[str, str] | None:
        """The kind and the words of an event, where there is one to tell."""
        bound = min(total * LOW_SHARE, LOW_BYTES)
        what = f"{free >> 20:,} MiB of the disk's {total >> 20:,} MiB are free"
        if not self._low and free < bound:
            self._low = True
            return "disk-low", f"{what}: messages are refused when nothing is left"
        if self._low and free >= 2 * bound:
            self._low = False
            return "disk-room", f"{what} again"
        return None


class DiskRoom:
    """The timer that looks. The file system is asked in a thread: it may be far away."""

    def __init__(self, shell: Shell, folder: Path) -> None:
        self._shell = shell
        self._folder = folder
        self._judgement = Judgement()
        self._timer: asyncio.TimerHandle | None = None

    def start(self) -> None:
        """Look now and every half a minute."""
        self._look()

    def stop(self) -> None:
        """Look no more."""
        if self._timer is not None:
            self._timer.cancel()
            self._timer = None

    def _look(self) -> None:
        self._timer = asyncio.get_running_loop().call_later(LOOK_SECONDS, self._look)
        self._shell.broker.beside("disk room", lambda: _room(self._folder), self._told)

    def _told(self, room: tuple[int, int] | None, error: Exception | None) -> None:
        if room is not None and self._timer is not None:
            self._shell.broker.core.unsubscribed.set_capacity(room[1], self._shell.now())
        found = self._judgement.look(*room) if room is not None else None
        if found is not None and self._timer is not None:
            self._shell.broker.core.events.tell(found[0], "", found[1], self._shell.now())


def _room(folder: Path) -> tuple[int, int]:
    """Bytes of the disk that are free, and all. As shutil.disk_usage: importing that takes 3 ms of a start."""
    found = os.statvfs(folder)
    return found.f_bavail * found.f_frsize, found.f_blocks * found.f_frsize
