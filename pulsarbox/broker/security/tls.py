"""A name in a certificate: the TLS layer has checked the certificate, here its common name becomes the role."""

from typing import ClassVar

from pulsarbox.broker.security.principal import Principal
from pulsarbox.broker.security.provider import Refused


class TlsProvider:
    """Mutual TLS. Source: https://pulsar.apache.org/docs/4.2.x/security-tls-authentication/."""

    method: ClassVar[str] = "tls"
    name: ClassVar[str] = "AuthenticationProviderTls"
    challenge: ClassVar[str] = ""

    def authenticate(self, data: bytes, certificate: str, now: int) -> Principal:
        """Raises Refused where the client has shown no certificate, or one without a name."""
        if not certificate:
            raise Refused("Client unable to authenticate with TLS certificate", "INVALID_CN")
        return Principal(certificate, self.method)

    def data_of(self, authorization: str) -> bytes:
        """A certificate needs no header."""
        return b""

    def look(self) -> None:
        """It has no files: those of TLS are the TLS layer's."""
