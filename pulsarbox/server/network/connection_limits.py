"""Who may connect: how many connections there are, of whom, and which of them have not said yet whose they are.

The files of the process are the last bound: what the store needs for its volumes is never given to clients.
"""

import logging
from collections import Counter
from collections.abc import Callable
from typing import Final

from pulsarbox.config import Settings
from pulsarbox.server.process.log_setup import Sparing, and_more
from pulsarbox.server.process.rlimit import FILES_OF_ITS_OWN, WAY_OUT, file_limit

log = logging.getLogger(__name__)

CONNECTIONS_MIN: Final = 64
"""For so many there are files, or the box could not be asked why it has none."""


class Gate:
    """Counts the connections of all ports. What counts where is said by who calls."""

    def __init__(self, settings: Settings, files: int | None = None) -> None:
        """``files``: how many the process may have open; those that it has where it is None."""
        self._most = settings.brokerMaxConnections
        self._most_of_one = settings.brokerMaxConnectionsPerIp
        self._half_of_one = settings.maxHalfOpenConnectionsPerIp
        self._files = max((file_limit() if files is None else files) - FILES_OF_ITS_OWN, CONNECTIONS_MIN)
        self._of: Counter[str] = Counter()
        """Connections of the Pulsar protocol by the client's host."""
        self._half: Counter[str] = Counter()
        """Connections of all ports that are half-open."""
        self.open = 0
        """Connections of all ports."""
        self._sparing: dict[str, Sparing] = {}
        self.told: Callable[[str], None] = _nobody
        """Hears of each refusal."""

    # Counting

    def enters(self, host: str) -> None:
        """A connection has come, of whatever port; nothing is known of it."""
        self.open += 1
        self._half[host] += 1

    def known(self, host: str) -> None:
        """It is not half-open any more."""
        _less(self._half, host)

    def leaves(self, host: str, *, half_open: bool) -> None:
        """It is gone."""
        self.open -= 1
        if half_open:
            self.known(host)

    def broker_enters(self, host: str) -> None:
        """A connection of the Pulsar protocol has come."""
        self.enters(host)
        self._of[host] += 1

    def broker_leaves(self, host: str, *, half_open: bool) -> None:
        """It is gone."""
        self.leaves(host, half_open=half_open)
        _less(self._of, host)

    # Deciding

    def refusal(self, host: str) -> str | None:
        """Why no connection from ``host`` is taken now, of whatever port; None where it is."""
        if self.open >= self._files:
            return f"there are {self.open} connections, and the process may open no more files: {WAY_OUT}"
        half = self._half.get(host, 0)
        if self._half_of_one and half >= self._half_of_one:
            return f"{half} connections from {host} are half-open, maxHalfOpenConnectionsPerIp allows no more"
        return None

    def broker_refusal(self, host: str, there: int) -> str | None:
        """Why one more of the Pulsar protocol is too many, beside the ``there`` that there are."""
        if self._most and there >= self._most:
            return f"there are {there} connections, brokerMaxConnections allows no more"
        same = self._of.get(host, 0)
        if self._most_of_one and same >= self._most_of_one:
            return f"there are {same} connections from {host}, brokerMaxConnectionsPerIp allows no more"
        return None

    # Telling

    def tell(self, what: str, text: str, *parts: object) -> None:
        """A warning of what clients do, which may be many times a second: not each of them is a line."""
        if what != "closed":  # of that, the core knows itself
            self.told(text % parts)
        left_out = self._sparing.setdefault(what, Sparing()).due()
        if left_out is not None:
            log.warning("%s%s", text % parts, and_more(left_out))


def _nobody(text: str) -> None:
    """Nobody wants to hear it."""


def _less(counted: Counter[str], host: str) -> None:
    if counted[host] > 1:
        counted[host] -= 1
    else:
        del counted[host]
