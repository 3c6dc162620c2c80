"""Connection limits: in total, per host, and of half-open connections, which are not authenticated yet.

The file limit of the process bounds them all: files that the store needs for its volumes are reserved.
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
"""Minimum number of connections, reserved so that a box with few files can report the problem."""


class ConnectionLimits:
    """Counts the connections of all ports. The callers report which limits a connection counts for."""

    def __init__(self, settings: Settings, files: int | None = None, told: Callable[[str], None] | None = None) -> None:
        """``files`` is the file limit of the process; None to query it. ``told`` is called for each refusal."""
        self._most = settings.brokerMaxConnections
        self._most_of_one = settings.brokerMaxConnectionsPerIp
        self._half_of_one = settings.maxHalfOpenConnectionsPerIp
        self._files = max((file_limit() if files is None else files) - FILES_OF_ITS_OWN, CONNECTIONS_MIN)
        self._of: Counter[str] = Counter()
        """Connections of the Pulsar protocol by client host."""
        self._half: Counter[str] = Counter()
        """Half-open connections of all ports by client host."""
        self.open = 0
        """Connections of all ports."""
        self._rate_limited: dict[str, Sparing] = {}
        self._told = told

    # Counting

    def enters(self, host: str) -> None:
        """Count a new, half-open connection of any port."""
        self.open += 1
        self._half[host] += 1

    def known(self, host: str) -> None:
        """Count a connection as no longer half-open."""
        _less(self._half, host)

    def leaves(self, host: str, *, half_open: bool) -> None:
        """Discount a closed connection."""
        self.open -= 1
        if half_open:
            self.known(host)

    def broker_enters(self, host: str) -> None:
        """Count a new connection of the Pulsar protocol."""
        self.enters(host)
        self._of[host] += 1

    def socket_enters(self, host: str) -> None:
        """Count a WebSocket: its HTTP connection is counted already, but not for the limits of the Pulsar protocol."""
        self._of[host] += 1

    def socket_leaves(self, host: str) -> None:
        """Discount a closed WebSocket."""
        _less(self._of, host)

    def broker_leaves(self, host: str, *, half_open: bool) -> None:
        """Discount a closed connection of the Pulsar protocol."""
        self.leaves(host, half_open=half_open)
        _less(self._of, host)

    # Limits

    def refusal(self, host: str) -> str | None:
        """Return why a connection from ``host`` is refused on any port, or None."""
        if self.open >= self._files:
            return f"{self.open} connections are open, and the process may open no more files: {WAY_OUT}"
        half = self._half.get(host, 0)
        if self._half_of_one and half >= self._half_of_one:
            return f"{half} connections from {host} are half-open, and maxHalfOpenConnectionsPerIp allows no more"
        return None

    def broker_refusal(self, host: str, there: int) -> str | None:
        """Return why a Pulsar connection is refused beside ``there`` existing ones, or None."""
        if self._most and there >= self._most:
            return f"{there} connections are open, and brokerMaxConnections allows no more"
        same = self._of.get(host, 0)
        if self._most_of_one and same >= self._most_of_one:
            return f"{same} connections from {host} are open, and brokerMaxConnectionsPerIp allows no more"
        return None

    # Logging

    def warn(self, what: str, text: str, *parts: object) -> None:
        """Log a warning about clients, rate-limited because it may occur many times per second."""
        if what != "closed":  # the core reports those itself
            if self._told is not None:
                self._told(text % parts)
        left_out = self._rate_limited.setdefault(what, Sparing()).due()
        if left_out is not None:
            log.warning("%s%s", text % parts, and_more(left_out))


def _less(counted: Counter[str], host: str) -> None:
    if counted[host] > 1:
        counted[host] -= 1
    else:
        del counted[host]
