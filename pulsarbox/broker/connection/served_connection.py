"""A client connection as its producers and consumers use it, and as others see it through them."""

from collections.abc import Callable
from typing import NamedTuple, Protocol

from pulsarbox.broker.connection.outbox import Outbox
from pulsarbox.broker.security.principal import Principal
from pulsarbox.clock import Now

Answered = Callable[[bool, Now], None]
"""Receives whether a connection is alive."""


class UnreadReason(NamedTuple):
    """The reason why a connection is not read."""

    since: int
    """Milliseconds since 1970."""
    text: str
    """Human-readable."""


class ServedConnection(Protocol):
    """The connection of a client."""

    outbox: Outbox
    address: str
    principal: Principal | None
    """Authenticated principal; None before authentication, or if it is disabled."""
    client_version: str
    protocol_version: int
    unread: UnreadReason | None
    """Set while the connection is not read."""

    def check_alive(self, now: Now, answered: Answered | None = None) -> None:
        """Close the connection unless it answers a PING; ``answered`` receives whether it is alive."""
