"""Authentication by client certificate: the TLS layer verifies it, and its common name becomes the role."""

from typing import ClassVar

from pulsarbox.broker.security.principal import Principal
from pulsarbox.broker.security.provider import Refused


class TlsProvider:
    """Mutual TLS. Source: https://pulsar.apache.org/docs/4.2.x/security-tls-authentication/."""

    method: ClassVar[str] = "tls"
    name: ClassVar[str] = "AuthenticationProviderTls"
    challenge: ClassVar[str] = ""

    def authenticate(self, data: bytes, certificate: str, now: int) -> Principal:
        """Return the principal. Raises Refused without a certificate that has a common name."""
        if not certificate:
            raise Refused("Client unable to authenticate with TLS certificate", "INVALID_CN")
        return Principal(certificate, self.method)

    def data_of(self, authorization: str) -> bytes:
        """Return nothing: the certificate is not in a header."""
        return b""
