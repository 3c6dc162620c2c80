"""The runtime file of a box with several data directories, in each that is in use: any of them finds the box."""

import logging
from collections.abc import Callable, Iterable
from pathlib import Path
from typing import Any

from pulsarbox.server.process.runtime_file import RuntimeFile, remove, write
from pulsarbox.server.recording.recording_places import local_in_use
from pulsarbox.storage.ensemble.status import MemberStatus

log = logging.getLogger(__name__)

RunInThread = Callable[[str, Callable[[], Any], Callable[[Any, Exception | None], None]], None]


class RuntimeFiles:
    """Writes the file wherever a directory comes into use. All methods are called in the loop."""

    def __init__(self, running: RuntimeFile, home: Path, run_in_thread: RunInThread) -> None:
        """``home`` is a directory that has the file. The others get it in threads: a disk may block."""
        self._running = running
        self._places = {home}
        self._run_in_thread = run_in_thread

    def follow(self, members: Iterable[MemberStatus]) -> None:
        """Write the file in directories that are in use since the last call, such as one that has returned."""
        used = set(local_in_use(members))
        for place in sorted(used - self._places):
            self._write(place)
        self._places = used

    def remove(self) -> None:
        """Remove it where it is. A file in a lost directory is harmless: no process holds that directory afterwards."""
        for place in self._places:
            remove(place)

    def _write(self, place: Path) -> None:
        def told(_: object, error: Exception | None) -> None:
            if error is not None:
                log.info("cannot record the ports for `pulsarbox status` in %s: %s", place, error)

        self._run_in_thread("addresses", lambda: write(place, self._running), told)
