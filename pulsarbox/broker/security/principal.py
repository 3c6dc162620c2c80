"""Somebody whose name is known: what authentication found out, and all that authorization asks of."""

from typing import NamedTuple


class Principal(NamedTuple):
    """One who has proved a name, or is taken for the anonymous role.

    Where authentication is off nobody is anybody: then there is None in place of a principal, who may do everything.
    Source: https://pulsar.apache.org/docs/4.2.x/security-overview/.
    """

    role: str
    method: str
    """The authentication method that proved it: ``token``, ``basic``, ``tls``; ``anonymous`` where nothing did."""
    expires: int | None = None
    """When the proof ends, in milliseconds since 1970; None where it does not."""
    original: str = ""
    """For whom a proxy asks (X-Original-Principal, CONNECT.original_principal); empty where it asks for itself."""

    def __str__(self) -> str:
        return f"{self.role!r} for {self.original!r}" if self.original else repr(self.role)
