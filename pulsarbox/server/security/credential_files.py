"""The files with keys and users that settings name: reread in a thread, passed to the providers in the event loop."""

import logging
from collections.abc import Callable
from functools import partial
from typing import TYPE_CHECKING, Any, TypeVar

from pulsarbox.clock import Now
from pulsarbox.server.security.watched_file import WatchedFile

if TYPE_CHECKING:
    from pulsarbox.broker.broker import Broker

log = logging.getLogger(__name__)

T = TypeVar("T")
Use = Callable[[], None]


class CredentialFiles:
    """The watched files of the authentication providers."""

    def __init__(self) -> None:
        self._watched: list[tuple[WatchedFile[Any], Callable[[Any], None]]] = []
        self._checking = False

    def add(self, file: WatchedFile[T], use: Callable[[T], None]) -> None:
        """Watch a file, and pass its current value and every later one to ``use``."""
        use(file.value)
        self._watched.append((file, use))

    def watch(self, broker: "Broker", now: Now) -> None:
        """Check the files every authenticationRefreshCheckSeconds of real time."""
        if self._watched:
            seconds = broker.settings.authenticationRefreshCheckSeconds
            broker.timers.at(now.monotonic + seconds, partial(self._check, broker))

    def _check(self, broker: "Broker", now: Now) -> None:
        self.watch(broker, now)
        if not self._checking:  # a check may hang on a network drive
            self._checking = True
            broker.host.run_in_thread("credential files", self._changed, self._apply)

    def _changed(self) -> list[Use]:
        """Reread changed files and return the calls that pass their values on. Blocks on the disk."""
        return [partial(use, file.value) for file, use in self._watched if file.reload_if_changed()]

    def _apply(self, changed: list[Use] | None, error: Exception | None) -> None:
        self._checking = False
        if error is not None:
            log.error("files with keys and users cannot be checked, the previous ones stay in use: %s", error)
            changed = [partial(use, file.value) for file, use in self._watched]  # some may have been reread before
        for use in changed or ():
            use()
