"""The interface of authentication providers, and their error."""

from collections.abc import Callable, Hashable
from typing import ClassVar, NamedTuple, Protocol

from pulsarbox.broker.security.principal import Principal
from pulsarbox.errors import AuthenticationError


class Refused(AuthenticationError):
    """Authentication failed. The text is for the log and must not reveal any credential.

    ``code`` is Pulsar's word for the reason, for metrics; ``role`` is the claimed role, if known; ``is_expired`` is
    whether the credentials have expired.
    """

    def __init__(self, text: str, code: str = "INVALID_AUTH_DATA", role: str = "", *, is_expired: bool = False) -> None:
        super().__init__(text)
        self.code = code
        self.role = role
        self.is_expired = is_expired


class Overloaded(Refused):
    """Too many credentials are waiting for verification; the client can try again."""


class LongCheck(NamedTuple):
    """Credentials whose verification takes too long for a turn of the event loop."""

    key: Hashable
    """Equal for equal credentials that are verified against the same hash."""
    work: Callable[[], bool]
    """Returns whether the credentials are valid. Uses immutable data only: it runs in a thread."""
    finish: Callable[[bool], Principal]
    """Returns the principal for the result of ``work``. Raises Refused. Runs in the event loop."""


class Provider(Protocol):
    """An authentication provider. Pure: the time is an argument."""

    method: ClassVar[str]
    """Method name that clients send."""
    name: ClassVar[str]
    """Name of Pulsar's class, for metrics."""
    challenge: ClassVar[str]
    """Scheme for WWW-Authenticate; empty if HTTP has none for the method."""

    def authenticate(self, data: bytes, certificate: str, now: int) -> Principal | LongCheck:
        """Return the principal, or the work that tells. Raises Refused.

        ``certificate``: the common name of the client certificate.
        """

    def data_of(self, authorization: str) -> bytes:
        """Return the data in an Authorization header, possibly empty. Raises Refused if it is for another provider."""
