"""Who can read the data directory of the box: its commands there work without a token of their own.

The box makes a secret at each start and writes it where only its own user can read it. Who is that user can read the
keys and the messages as well, and end the process.
"""

from hmac import compare_digest
from typing import ClassVar

from pulsarbox.broker.security.principal import Principal
from pulsarbox.broker.security.provider import Refused


class OperatorProvider:
    """The local operator, as a superuser."""

    method: ClassVar[str] = "operator"
    name: ClassVar[str] = "OperatorProvider"
    challenge: ClassVar[str] = ""

    def __init__(self, secret: str, role: str) -> None:
        self._secret = secret.encode()
        self._principal = Principal(role, self.method)

    def authenticate(self, data: bytes, certificate: str, now: int) -> Principal:
        """Raises Refused for any other secret."""
        if not compare_digest(data, self._secret):
            raise Refused("this is not what the box has written into its data directory", "INVALID_TOKEN")
        return self._principal

    def data_of(self, authorization: str) -> bytes:
        """Raises Refused for the header of another scheme."""
        scheme, _, value = authorization.partition(" ")
        if scheme != "Pulsarbox":
            raise Refused("Invalid HTTP Authorization header")
        return value.encode()

    def look(self) -> None:
        """It has no file to read."""
