"""Reports changes of the data directories, and of missing copies, as events and in the log. Once a second."""

import asyncio
import logging
import time
from collections.abc import Callable, Sequence
from typing import Final

from pulsarbox.broker.events import ERROR, KINDS, WARNING
from pulsarbox.server.shell_protocol import Shell
from pulsarbox.storage.ensemble.status import MemberEvent, MemberStatus
from pulsarbox.storage.ensemble.watch import WatchedEnsemble

log = logging.getLogger(__name__)

LOOK_SECONDS: Final = 1.0
_LEVELS: Final = {ERROR: logging.ERROR, WARNING: logging.WARNING}


class EnsembleWatcher:
    """The periodic look at an ensemble."""

    def __init__(self, shell: Shell, watched: WatchedEnsemble) -> None:
        self._shell = shell
        self._watched = watched
        self._timer: asyncio.TimerHandle | None = None
        self.followers: list[Callable[[Sequence[MemberStatus]], None]] = []
        """Called with the present directories at each look."""

    def start(self) -> None:
        """Look now, and every second."""
        self.look()
        self._timer = asyncio.get_running_loop().call_later(LOOK_SECONDS, self.start)

    def stop(self) -> None:
        """Report what is pending, and stop."""
        if self._timer is not None:
            self._timer.cancel()
            self._timer = None
            self.look()

    def look(self) -> None:
        """Report what happened since the last look. Changes of the segment are normal operation, not events."""
        for event in self._watched.look(time.time_ns() // 1_000_000):
            if event.kind in KINDS:
                self._report(event)
        members = self._watched.status().members
        for follow in self.followers:
            follow(members)

    def _report(self, event: MemberEvent) -> None:
        log.log(_LEVELS.get(KINDS[event.kind].severity, logging.INFO), "%s", sentence(event))
        self._shell.broker.events.report(event.kind, event.member, event.text, self._shell.now())


def sentence(event: MemberEvent) -> str:
    """Return the text of an event, with the name of the directory unless the text has it."""
    return event.text if event.member in event.text else f"{event.member}: {event.text}"
