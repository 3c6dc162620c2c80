"""With what a broker is talked to: what proves who asks, and who is trusted to answer."""

from dataclasses import dataclass
from typing import TYPE_CHECKING, Final

if TYPE_CHECKING:
    import ssl


@dataclass(frozen=True, slots=True)
class Credentials:
    """With what a broker is talked to."""

    token: str | None = None
    """Sent as ``Authorization: Bearer``."""
    basic: str | None = None
    """``user:password``, sent as ``Authorization: Basic``."""
    certificate: str | None = None
    """A PEM file with our certificate; ``key`` has its key."""
    key: str | None = None
    trusted: str | None = None
    """A PEM file with the certificates to trust; None is those of the system."""
    insecure: bool = False
    """Trust whoever answers."""
    check_host: bool = False
    """The certificate must name the host. Off unless asked for, as in Pulsar's clients."""
    pinned: str | None = None
    """A PEM file with the very certificate that is expected, whoever has signed it; counts without ``trusted``."""

    def headers(self) -> dict[str, str]:
        """The header that proves who asks, if any."""
        if self.token is not None:
            return {"Authorization": f"Bearer {self.token}"}
        if self.basic is not None:
            import base64

            return {"Authorization": "Basic " + base64.b64encode(self.basic.encode()).decode()}
        return {}

    def proof(self) -> tuple[str, bytes]:
        """What CONNECT proves who asks with: the method's name, empty where there is none, and its data."""
        if self.token is not None:
            return "token", self.token.encode()
        if self.basic is not None:
            return "basic", self.basic.encode()
        return ("tls", b"") if self.certificate is not None else ("", b"")

    def tls(self) -> "ssl.SSLContext":
        """What a handshake goes by. Raises OSError for a file that cannot be used."""
        import ssl

        pinned = None if self.trusted else self.pinned
        context = ssl.create_default_context(cafile=self.trusted or pinned)
        context.check_hostname = self.check_host and not self.insecure
        if pinned:
            context.verify_flags |= ssl.VERIFY_X509_PARTIAL_CHAIN
        if self.insecure:
            context.verify_mode = ssl.CERT_NONE
        if self.certificate is not None:
            context.load_cert_chain(self.certificate, self.key)
        return context


NOBODY: Final = Credentials()
"""Proves nothing, and trusts the authorities of the system."""
