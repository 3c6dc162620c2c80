"""The TLS certificate and context of the box, validated, and reloaded when the files change.

Source: https://pulsar.apache.org/docs/4.2.x/security-tls-transport/. The settings table documents what Python's ssl
module does not support.
"""

import logging
import ssl
from datetime import UTC, datetime
from pathlib import Path
from typing import Final, NamedTuple

from pulsarbox.broker.timers import Timers
from pulsarbox.clock import Now
from pulsarbox.config import Settings
from pulsarbox.config.tls_words import ciphers, versions
from pulsarbox.server.security.watched_file import Stamp, stamp_of

log = logging.getLogger(__name__)

DAY_MS: Final = 86_400_000
WARNED_DAYS: Final = 30
"""Days before expiry from which a warning is logged daily."""
_FILES: Final = ("tlsCertificateFilePath", "tlsKeyFilePath", "tlsTrustCertsFilePath")
_VERSIONS: Final = {
    "TLSv1": ssl.TLSVersion.TLSv1,
    "TLSv1.1": ssl.TLSVersion.TLSv1_1,
    "TLSv1.2": ssl.TLSVersion.TLSv1_2,
    "TLSv1.3": ssl.TLSVersion.TLSv1_3,
}

Stamps = tuple[Stamp | None, ...]


class CertificateError(OSError):
    """A certificate, a key or a related file is unusable; the message names the setting, the file, and the cause."""


class Certificate(NamedTuple):
    """The reported fields of a certificate."""

    subject: str
    """Its common name, or its whole subject."""
    begins: int
    """Start of its validity, milliseconds since 1970."""
    ends: int

    def problem(self, wall: int) -> str:
        """Return why it is invalid at a time; empty if it is valid."""
        if wall >= self.ends:
            return f"expired on {day(self.ends)}"
        return f"is not valid before {day(self.begins)}" if wall < self.begins else ""

    def warning(self, wall: int) -> str:
        """Return a warning about its expiry; empty if none is due."""
        if problem := self.problem(wall):
            return f"{problem}: clients reject it"
        days = (self.ends - wall) // DAY_MS
        return f"expires on {day(self.ends)}, in {days} days" if days < WARNED_DAYS else ""


def certificate_in(path: Path) -> Certificate:
    """Return the first certificate of a PEM file. Raises CertificateError."""
    from cryptography import x509  # needed only with TLS

    try:
        found = x509.load_pem_x509_certificate(_read("tlsCertificateFilePath", path))
    except ValueError as error:
        raise CertificateError(f"tlsCertificateFilePath: {path} contains no PEM certificate: {error}") from None
    names = found.subject.get_attributes_for_oid(x509.NameOID.COMMON_NAME)
    subject = str(names[0].value) if names else found.subject.rfc4514_string()
    begins, ends = (int(time.timestamp() * 1000) for time in (found.not_valid_before_utc, found.not_valid_after_utc))
    return Certificate(subject, begins, ends)


def context_of(settings: Settings) -> ssl.SSLContext:
    """Return the SSL context for handshakes. Raises CertificateError."""
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    lowest, highest = versions(settings.tlsProtocols)
    context.minimum_version, context.maximum_version = _VERSIONS[lowest], _VERSIONS[highest]
    if settings.tlsCiphers:
        _choose_ciphers(context, settings.tlsCiphers)
    _load_key(context, settings)
    if settings.tlsTrustCertsFilePath:
        path = Path(settings.tlsTrustCertsFilePath)
        _read("tlsTrustCertsFilePath", path)
        try:
            context.load_verify_locations(path)
        except ssl.SSLError as error:
            raise CertificateError(
                f"tlsTrustCertsFilePath: {path} contains no PEM certificates: {_why(error)}"
            ) from None
        required = settings.tlsRequireTrustedClientCertOnConnect
        context.verify_mode = ssl.CERT_REQUIRED if required else ssl.CERT_OPTIONAL
    return context


def _load_key(context: ssl.SSLContext, settings: Settings) -> None:
    certificate, key = Path(settings.tlsCertificateFilePath), Path(settings.tlsKeyFilePath)
    _read("tlsCertificateFilePath", certificate)
    content = _read("tlsKeyFilePath", key)
    if b"PRIVATE KEY-----" not in content:
        raise CertificateError(f"tlsKeyFilePath: {key} contains no PEM private key")
    if b"ENCRYPTED" in content:
        raise CertificateError(
            f"tlsKeyFilePath: {key} is protected by a password: use a key without one, readable only by its owner"
        )
    try:
        context.load_cert_chain(certificate, key, password=lambda: b"")  # never prompt on the terminal
    except ssl.SSLError as error:
        if error.reason == "KEY_VALUES_MISMATCH":
            problem = f"tlsKeyFilePath: {key} does not match the certificate in {certificate}"
            raise CertificateError(problem) from None
        raise CertificateError(
            f"tlsCertificateFilePath, tlsKeyFilePath: {certificate} and {key}: {_why(error)}"
        ) from None


def _choose_ciphers(context: ssl.SSLContext, text: str) -> None:
    older, newest = ciphers(text)
    for name in older:
        try:
            context.set_ciphers(name)
        except ssl.SSLError:
            raise CertificateError(f"tlsCiphers: {name} is not a cipher suite of this OpenSSL") from None
    if older:
        context.set_ciphers(":".join(older))
        if not newest:
            context.maximum_version = min(context.maximum_version, ssl.TLSVersion.TLSv1_2)
    else:
        context.minimum_version = ssl.TLSVersion.TLSv1_3
    if context.minimum_version > context.maximum_version:
        raise CertificateError("tlsCiphers: none of these cipher suites is valid for the versions in tlsProtocols")


def _read(setting: str, path: Path) -> bytes:
    try:
        return path.read_bytes()
    except OSError as error:
        raise CertificateError(f"{setting}: {path} cannot be read: {error.strerror}") from None


def _why(error: ssl.SSLError) -> str:
    return (error.reason or str(error)).replace("_", " ").lower()


def day(wall: int) -> str:
    """Format a time for people."""
    return datetime.fromtimestamp(wall / 1000, UTC).strftime("%Y-%m-%d %H:%M UTC")


class Certificates:
    """The certificate and context for new connections, from the current files."""

    def __init__(self, settings: Settings, wall: int) -> None:
        """Raises CertificateError for files unusable at ``wall``, milliseconds since 1970."""
        self._settings = settings
        self.path = Path(settings.tlsCertificateFilePath).absolute()
        """The path of the certificate."""
        self._stamp = self._stamp_now()
        self.context, self.certificate = self._made(wall)
        self._refused: Stamps | None = None
        self._warn_at = 0
        if settings.tlsAllowInsecureConnection and settings.tlsTrustCertsFilePath:
            log.warning(
                "tlsAllowInsecureConnection: clients with a certificate not issued by tlsTrustCertsFilePath are still "
                "refused; those without one are accepted unless tlsRequireTrustedClientCertOnConnect is set"
            )
        log.info("TLS with the certificate of %s, valid until %s", self.certificate.subject, day(self.certificate.ends))

    def watch(self, timers: Timers, now: Now) -> None:
        """Check the files periodically, by the clock that `pulsarbox clock advance` moves too."""
        seconds = self._settings.tlsCertRefreshCheckDurationSec
        self._warn(now.wall)
        if seconds:
            timers.at_wall(now.wall + 1000 * seconds, lambda when: self._reload_and_watch(timers, when))

    def _reload_and_watch(self, timers: Timers, now: Now) -> None:
        self.reload_changed(now.wall - now.offset)  # the real time, which clients use
        self.watch(timers, now)

    def reload_changed(self, wall: int) -> None:
        """Load changed files if they are usable; otherwise the previous certificate stays in use."""
        stamp = self._stamp_now()
        if stamp in (self._stamp, self._refused):
            return
        try:
            self.context, self.certificate = self._made(wall)
        except CertificateError as error:
            self._refused = stamp
            log.error("the new certificate is unusable, the previous one stays in use: %s", error)
            return
        self._stamp, self._refused, self._warn_at = stamp, None, 0
        log.info("new certificate: %s, valid until %s", self.certificate.subject, day(self.certificate.ends))

    def _made(self, wall: int) -> tuple[ssl.SSLContext, Certificate]:
        found = certificate_in(self.path)
        if problem := found.problem(wall):
            raise CertificateError(
                f"tlsCertificateFilePath: the certificate of {found.subject} in {self.path} {problem}"
            )
        return context_of(self._settings), found

    def _warn(self, wall: int) -> None:
        warning = self.certificate.warning(wall)
        if warning and wall >= self._warn_at:
            self._warn_at = wall + DAY_MS
            log.warning("the certificate of %s %s: renew %s", self.certificate.subject, warning, self.path)

    def _stamp_now(self) -> Stamps:
        return tuple(stamp_of(Path(getattr(self._settings, name))) for name in _FILES if getattr(self._settings, name))
