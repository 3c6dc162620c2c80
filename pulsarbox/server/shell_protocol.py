"""What the rooms of the server that only borrow the core ask of the daemon."""

from typing import Protocol

from pulsarbox.broker.broker import Broker
from pulsarbox.clock import Now
from pulsarbox.server.network.connection_limits import Gate
from pulsarbox.server.network.protocol_mismatch import Doors


class Shell(Protocol):
    """The daemon, as the HTTP server sees it."""

    @property
    def broker(self) -> Broker:
        """The core."""

    @property
    def gate(self) -> Gate:
        """Who may connect."""

    @property
    def doors(self) -> Doors:
        """Where what is spoken."""

    def now(self) -> Now:
        """This instant, as an argument for the core."""

    def kick(self) -> None:
        """The core was touched: flush outboxes, take the batch, set the timer at the end of this turn of the loop."""
