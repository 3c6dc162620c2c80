"""Monitor of free space on the data directory's file system.

Reports an event when it is nearly full, and when space is available again. Also tells the broker its size, for settings
that are a share of it.
"""

import asyncio
import os
from functools import partial
from pathlib import Path
from typing import Final

from pulsarbox.server.shell_protocol import Shell

LOOK_SECONDS: Final = 30.0
LOW_SHARE: Final = 0.05
LOW_BYTES: Final = 2 << 30
"""Space is low if less than both bounds is free; the condition ends at twice as much."""


class Judgement:
    """Hysteresis of low disk space, by periodic measurements."""

    def __init__(self) -> None:
        self._low = False

    def assess(self, free: int, total: int) -> tuple[str, str] | None:
        """Return the kind and text of an event, or None if nothing changed."""
        bound = min(total * LOW_SHARE, LOW_BYTES)
        what = f"{free >> 20:,} MiB of the disk's {total >> 20:,} MiB are free"
        if not self._low and free < bound:
            self._low = True
            return "disk-low", f"{what}: messages are refused when the disk is full"
        if self._low and free >= 2 * bound:
            self._low = False
            return "disk-room", f"{what} again"
        return None


class DiskRoom:
    """The periodic check. A thread queries the file system, which may be remote."""

    def __init__(self, shell: Shell, folder: Path) -> None:
        self._shell = shell
        self.folder = folder
        """A path on the file system."""
        self._judgement = Judgement()
        self._timer: asyncio.TimerHandle | None = None

    def start(self) -> None:
        """Check now and every 30 seconds."""
        self._check()

    def stop(self) -> None:
        """Stop checking."""
        if self._timer is not None:
            self._timer.cancel()
            self._timer = None

    def _check(self) -> None:
        self._timer = asyncio.get_running_loop().call_later(LOOK_SECONDS, self._check)
        self._shell.broker.host.run_in_thread("disk room", partial(_room, self.folder), self._reported)

    def _reported(self, room: tuple[int, int] | None, error: Exception | None) -> None:
        if room is not None and self._timer is not None:
            self._shell.broker.unsubscribed.set_capacity(room[1], self._shell.now())
        found = self._judgement.assess(*room) if room is not None else None
        if found is not None and self._timer is not None:
            self._shell.broker.events.report(found[0], "", found[1], self._shell.now())


def _room(folder: Path) -> tuple[int, int]:
    """Return the free and total bytes of the disk. As shutil.disk_usage, whose import takes 3 ms of startup."""
    found = os.statvfs(folder)
    return found.f_bavail * found.f_frsize, found.f_blocks * found.f_frsize
