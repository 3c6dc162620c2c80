"""Expiry of a connection's credentials: the broker sends a challenge and waits for fresh credentials.

Expiry is noticed at once. A client that cannot be challenged is disconnected; others are if they do not answer within
authenticationRefreshCheckSeconds. Source: PIP-30, PIP-55.
"""

from typing import Final, Protocol

from pulsarbox.broker.connection.served_connection import ServedConnection
from pulsarbox.broker.security.principal import Principal
from pulsarbox.broker.services import HasSettings, HasTimers
from pulsarbox.broker.timers import Timer
from pulsarbox.clock import Now
from pulsarbox.protocol import replies

REFRESH: Final = b"PulsarAuthRefresh"
"""Challenge data that requests fresh credentials from a client."""


class ProofServices(HasSettings, HasTimers, Protocol):
    """The services of the broker that watch the expiry of credentials."""


class ProvenConnection(ServedConnection, Protocol):
    """The connection of an authenticated client."""

    def abort(self, reason: str) -> None:
        """Close the connection because of a client error, and log it."""


class CredentialExpiry:
    """The credentials of one connection: its own, or those of a proxy's client."""

    def __init__(
        self,
        cnx: ProvenConnection,
        principal: Principal,
        services: ProofServices,
        now: Now,
        *,
        is_handed_on: bool,
        can_refresh: bool,
    ) -> None:
        """``principal``: the authenticated one. ``can_refresh``: whether the client can be challenged."""
        self.principal = principal
        self.is_handed_on = is_handed_on
        """Whether a proxy has forwarded the credentials of its client."""
        self._method = cnx.principal.method if cnx.principal is not None else principal.method
        self.is_asked = False
        """Whether a challenge is unanswered."""
        self._cnx = cnx
        self._services = services
        self._can_refresh = can_refresh
        self._timer: Timer | None = None
        self._wait(now)

    def renewed(self, principal: Principal, now: Now) -> None:
        """Accept fresh credentials, which are for the same principal."""
        self.principal = principal
        self.is_asked = False
        self._wait(now)

    def end(self) -> None:
        """Stop the timer, because the connection has closed."""
        if self._timer is not None:
            self._timer.cancel()
            self._timer = None

    def _wait(self, now: Now) -> None:
        """Wait for the expiry, at most one period at a time, because a timer occupies memory until it is due."""
        self.end()
        if self.principal.expires is not None:
            period = self._services.settings.authenticationRefreshCheckSeconds * 1000
            at = min(self.principal.expires, now.wall + period)
            self._timer = self._services.timers.at_wall(at, self._check)

    def _check(self, now: Now) -> None:
        if self.principal.expires is None or now.wall < self.principal.expires:
            self._wait(now)
        elif not self._can_refresh:
            self._cnx.abort(f"the proof of {self.principal.role} has expired, and it cannot be asked for another one")
        else:
            self.is_asked = True
            cnx, seconds = self._cnx, self._services.settings.authenticationRefreshCheckSeconds
            cnx.outbox.send(replies.auth_challenge(self._method, REFRESH, cnx.protocol_version))
            self._timer = self._services.timers.at(now.monotonic + seconds, self._too_late)

    def _too_late(self, now: Now) -> None:
        seconds = self._services.settings.authenticationRefreshCheckSeconds
        self._cnx.abort(f"the proof of {self.principal.role} has expired, and no other one came within {seconds} s")
