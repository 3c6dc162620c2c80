"""The interface of the daemon for the packages of the server that use the core."""

from typing import Protocol

from pulsarbox.broker.broker import Broker
from pulsarbox.broker.connection.cnx import ServerCnx
from pulsarbox.broker.connection.outbox import Outbox
from pulsarbox.clock import Now
from pulsarbox.server.network.connection_limits import ConnectionLimits
from pulsarbox.server.network.protocol_mismatch import ProtocolUrls


class ShellConnection(Protocol):
    """A client connection that a shell serves: over a socket of the Pulsar port, or for a WebSocket."""

    @property
    def cnx(self) -> ServerCnx:
        """The broker's side."""

    def flush(self) -> None:
        """Send the core's output for this client at once."""

    def pause_reading(self) -> None:
        """Pause reading."""

    def resume_reading(self) -> None:
        """Resume reading."""

    def forget(self) -> None:
        """Close the inherited socket in a forked child."""

    def close(self) -> None:
        """Close after flushing."""

    def abort(self) -> None:
        """Close immediately."""


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

    @property
    def connections(self) -> dict[Outbox, ShellConnection]:
        """The client connections by their outbox."""

    @property
    def max_frame_size(self) -> int:
        """The largest frame of the Pulsar protocol, in bytes."""

    def hold(self, connection: ShellConnection) -> None:
        """Pause reading from a connection: the open batch is full, or the client has used its share of it."""

    def after_read(self) -> None:
        """After a client's bytes are processed: end the turn now if there is enough for a commit, otherwise later."""

    def now(self) -> Now:
        """Return the current time, as an argument for the core."""

    def kick(self) -> None:
        """Schedule the end of the turn after changes to the core: flush outboxes, take the batch, set the timer."""
