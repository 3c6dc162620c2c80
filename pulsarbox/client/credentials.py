"""With what a client proves who it is, and whom it trusts; on the binary port and over HTTP."""

from errno import ENOENT
from pathlib import Path
from typing import TYPE_CHECKING, Final, NamedTuple

from pulsarbox.errors import AuthenticationError

if TYPE_CHECKING:
    import ssl

OPERATOR: Final = "operator"
"""The method of who can read the data directory of the box that it talks to."""


class Credentials(NamedTuple):
    """With what a broker is talked to. What is secret does not stand in its text."""

    token: str | None = None
    token_file: str | None = None
    """A file with the token, read whenever it is needed: somebody may renew it."""
    basic: str | None = None
    """``user:password``."""
    operator: str | None = None
    """What a box has written into its data directory, for commands on it."""
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

    def __repr__(self) -> str:
        return f"<Credentials: {self.method or 'none'}>"

    @property
    def method(self) -> str:
        """The name of the way in which they prove it; empty where they prove nothing."""
        if self.token is not None or self.token_file is not None:
            return "token"
        if self.basic is not None:
            return "basic"
        if self.operator:
            return OPERATOR
        return "tls" if self.certificate is not None else ""

    @property
    def secret(self) -> bool:
        """Whether a server receives a secret that it could use elsewhere. The key of a certificate stays here."""
        return self.method not in ("", "tls")

    def proof(self) -> tuple[str, bytes]:
        """What CONNECT proves who asks with: the method's name, empty where there is none, and its data.

        Raises AuthenticationError for a file that cannot be read.
        """
        method = self.method
        if method == "token":
            return method, self._token().encode()
        shown = {"basic": self.basic, OPERATOR: self.operator}.get(method)
        return method, (shown or "").encode()

    def headers(self) -> dict[str, str]:
        """The headers that prove who asks, if any. Raises AuthenticationError for a file that cannot be read."""
        method, shown = self.proof()
        if not method:
            return {}
        named = {"X-Pulsar-Auth-Method-Name": method}
        if method == "tls":
            return named
        if method == "basic":
            import base64

            return named | {"Authorization": f"Basic {base64.b64encode(shown).decode()}"}
        return named | {"Authorization": f"{'Bearer' if method == 'token' else 'Pulsarbox'} {shown.decode()}"}

    def _token(self) -> str:
        if self.token_file is None:
            return self.token or ""
        try:
            text = Path(self.token_file).expanduser().read_text("utf-8")
        except (OSError, UnicodeDecodeError) as error:
            raise AuthenticationError(f"the token of {self.token_file} cannot be read: {error}") from None
        return text.strip().removeprefix("token:")

    def tls(self) -> "ssl.SSLContext":
        """What a handshake goes by. Raises OSError for a file that cannot be used."""
        import ssl

        for file in (self.trusted, self.certificate, self.key):
            if file is not None and not Path(file).is_file():  # OpenSSL does not say which
                raise FileNotFoundError(ENOENT, "No such file", file)
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
