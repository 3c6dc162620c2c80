"""Client credentials and trust settings, for the binary protocol and HTTP."""

from errno import ENOENT
from pathlib import Path
from typing import TYPE_CHECKING, Final, NamedTuple

from pulsarbox.errors import AuthenticationError

if TYPE_CHECKING:
    import ssl

OPERATOR: Final = "operator"
"""Authentication method of clients that can read the box's data directory."""


class Credentials(NamedTuple):
    """Credentials and trust settings. ``repr`` omits secrets."""

    token: str | None = None
    token_file: str | None = None
    """Path of a file with the token, read on each use because it may be renewed."""
    basic: str | None = None
    """``user:password``."""
    operator: str | None = None
    """Operator secret that a box writes to its data directory for local commands."""
    certificate: str | None = None
    """Path of a PEM file with the client certificate; ``key`` is the path of its key."""
    key: str | None = None
    trusted: str | None = None
    """Path of a PEM file with trusted certificates; None for the system's."""
    insecure: bool = False
    """Whether to trust any server."""
    check_host: bool = False
    """Whether the server's certificate must match the host name. Off by default, as in Pulsar's clients."""
    pinned: str | None = None
    """Path of a PEM file with the exact server certificate, regardless of its issuer; ignored if ``trusted`` is set."""

    def __repr__(self) -> str:
        return f"<Credentials: {self.method or 'none'}>"

    @property
    def method(self) -> str:
        """Name of the authentication method; empty without credentials."""
        if self.token is not None or self.token_file is not None:
            return "token"
        if self.basic is not None:
            return "basic"
        if self.operator:
            return OPERATOR
        return "tls" if self.certificate is not None else ""

    @property
    def secret(self) -> bool:
        """Whether the server receives a secret that it could reuse. A certificate's key is never sent."""
        return self.method not in ("", "tls")

    def proof(self) -> tuple[str, bytes]:
        """Return the method name, empty if there is none, and the data for CONNECT.

        Raises AuthenticationError for an unreadable file.
        """
        method = self.method
        if method == "token":
            return method, self._token().encode()
        shown = {"basic": self.basic, OPERATOR: self.operator}.get(method)
        return method, (shown or "").encode()

    def headers(self) -> dict[str, str]:
        """Return the authentication headers, if any. Raises AuthenticationError for an unreadable file."""
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
            raise AuthenticationError(f"cannot read the token file {self.token_file}: {error}") from None
        return text.strip().removeprefix("token:")

    def tls(self) -> "ssl.SSLContext":
        """Return the TLS context. Raises OSError for an unusable file."""
        import ssl

        for file in (self.trusted, self.certificate, self.key):
            if file is not None and not Path(file).is_file():  # OpenSSL's error does not name the file
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
"""No credentials; trusts the system's certificate authorities."""
