"""The interface of the daemon for the packages of the server that use the core."""

from typing import Protocol

from pulsarbox.broker.broker import Broker
from pulsarbox.clock import Now
from pulsarbox.server.network.connection_limits import ConnectionLimits
from pulsarbox.server.network.protocol_mismatch import ProtocolUrls


class Shell(Protocol):
    """The daemon, as seen by the HTTP server."""

    @property
    def broker(self) -> Broker:
        """The core."""

    @property
    def gate(self) -> ConnectionLimits:
        """The connection limits."""

    @property
    def protocol_urls(self) -> ProtocolUrls:
        """The URL of each protocol."""

    def now(self) -> Now:
        """Return the current time, as an argument for the core."""

    def kick(self) -> None:
        """Schedule the end of the turn after changes to the core: flush outboxes, take the batch, set the timer."""
