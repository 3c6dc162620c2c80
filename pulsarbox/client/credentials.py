"""With what a client proves who it is, and whom it trusts; on the binary port and over HTTP."""

from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

from pulsarbox.errors import AuthenticationError

if TYPE_CHECKING:
    import ssl

OPERATOR = "operator"
"""The method of who can read the data directory of the box that it talks to."""


@dataclass(frozen=True, slots=True)
class Credentials:
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

    def __repr__(self) -> str:
        return f"<Credentials: {self.method or 'none'}>"

    @property
    def method(self) -> str:
        """The name of the way in which they prove it; empty where they prove nothing."""
        if self.token is not None or self.token_file is not None:
            return "token"
        if self.basic is not None:
            return "basic"
        if self.operator is not None:
            return OPERATOR
        return "tls" if self.certificate is not None else ""

    def proof(self) -> bytes:
        """What is shown on the binary port. Raises AuthenticationError for a file that cannot be read."""
        text = self.basic if self.method == "basic" else self.operator if self.method == OPERATOR else ""
        return (self._token() if self.method == "token" else text or "").encode()

    def headers(self) -> dict[str, str]:
        """The headers that prove who asks, if any. Raises AuthenticationError for a file that cannot be read."""
        method = self.method
        if not method:
            return {}
        import base64

        shown = self.proof()
        scheme = {"token": "Bearer", "basic": "Basic", OPERATOR: "Pulsarbox"}.get(method)
        text = base64.b64encode(shown).decode() if method == "basic" else shown.decode()
        named = {"X-Pulsar-Auth-Method-Name": method}
        return named | ({"Authorization": f"{scheme} {text}"} if scheme else {})

    def _token(self) -> str:
        if self.token_file is None:
            return self.token or ""
        try:
            text = Path(self.token_file).expanduser().read_text("utf-8")
        except (OSError, UnicodeDecodeError) as error:
            raise AuthenticationError(f"the token of {self.token_file} cannot be read: {error}") from None
        return text.strip().removeprefix("token:")

    def tls(self) -> "ssl.SSLContext":
        """What HTTPS goes by. Raises OSError for a file that cannot be read."""
        import ssl

        context = ssl.create_default_context(cafile=self.trusted)
        context.check_hostname = self.check_host and not self.insecure
        if self.insecure:
            context.verify_mode = ssl.CERT_NONE
        if self.certificate is not None:
            context.load_cert_chain(self.certificate, self.key)
        return context


NOBODY = Credentials()
"""They prove nothing, and trust what the system does."""
