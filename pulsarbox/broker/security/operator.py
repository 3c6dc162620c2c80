"""Authentication of local operators: commands with access to the data directory need no token.

The box creates a secret at each start and writes it to a file that only its own user can read. That user can also read
the keys and messages, and end the process.
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
        """Return the operator's principal. Raises Refused for a wrong secret."""
        if not compare_digest(data, self._secret):
            raise Refused("this is not what the box has written into its data directory", "INVALID_TOKEN")
        return self._principal

    def data_of(self, authorization: str) -> bytes:
        """Return the secret in the header. Raises Refused for another scheme."""
        scheme, _, value = authorization.partition(" ")
        if scheme != "Pulsarbox":
            raise Refused("Invalid HTTP Authorization header")
        return value.encode()
