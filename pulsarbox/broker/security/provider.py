"""What a way to prove a name has to do, and how it refuses."""

from typing import ClassVar, Protocol

from pulsarbox.broker.security.principal import Principal
from pulsarbox.errors import AuthenticationError


class Refused(AuthenticationError):
    """What was shown proves nothing. Its text is for the log and says so much that no credential can be told from it.

    ``code`` is a word of Pulsar's for the metrics; ``role`` whose proof it would have been, where that is known;
    ``is_expired`` whether it had been good before.
    """

    def __init__(self, text: str, code: str = "INVALID_AUTH_DATA", role: str = "", *, is_expired: bool = False) -> None:
        super().__init__(text)
        self.code = code
        self.role = role
        self.is_expired = is_expired


class Provider(Protocol):
    """One way to prove a name. Pure: the time is told to it."""

    method: ClassVar[str]
    """By which clients name it."""
    name: ClassVar[str]
    """Pulsar's class of it, for metrics."""
    challenge: ClassVar[str]
    """Its scheme in WWW-Authenticate; empty where HTTP has none for it."""

    def authenticate(self, data: bytes, certificate: str, now: int) -> Principal:
        """Who that is. ``certificate``: the name in the one that the client has shown. Raises Refused."""

    def data_of(self, authorization: str) -> bytes:
        """The data in an Authorization header of HTTP, which may be empty. Raises Refused where it is for others."""

    def look(self) -> None:
        """Read files again that have changed."""
