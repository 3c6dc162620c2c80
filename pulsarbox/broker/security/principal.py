"""The principal: the result of authentication and the subject of authorization."""

from typing import Final, NamedTuple


class Principal(NamedTuple):
    """An authenticated role, or the anonymous role.

    If authentication is disabled, None takes the place of a principal and may do everything. Source:
    https://pulsar.apache.org/docs/4.2.x/security-overview/.
    """

    role: str
    method: str
    """Authentication method: ``token``, ``basic``, ``tls`` or ``operator``; ``anonymous`` if unauthenticated."""
    expires: int | None = None
    """When the credentials expire, in milliseconds since 1970; None if never."""
    original: str = ""
    """Role that a proxy acts for (X-Original-Principal, CONNECT.original_principal); empty if it acts for itself."""

    def __str__(self) -> str:
        return f"{self.role!r} for {self.original!r}" if self.original else repr(self.role)


BOX: Final = Principal("pulsarbox", "internal")
"""The box itself, which may do everything. Compared by identity: no credentials lead to it."""
