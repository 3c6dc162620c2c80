"""The interface of authentication providers, and their error."""

from typing import ClassVar, Protocol

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


class Provider(Protocol):
    """An authentication provider. Pure: the time is an argument."""

    method: ClassVar[str]
    """Method name that clients send."""
    name: ClassVar[str]
    """Name of Pulsar's class, for metrics."""
    challenge: ClassVar[str]
    """Scheme for WWW-Authenticate; empty if HTTP has none for the method."""

    def authenticate(self, data: bytes, certificate: str, now: int) -> Principal:
        """Return the principal. ``certificate``: the common name of the client certificate. Raises Refused."""

    def data_of(self, authorization: str) -> bytes:
        """Return the data in an Authorization header, possibly empty. Raises Refused if it is for another provider."""
