"""Connections to a broker, as a reach says; what cannot be reached is told with its option. Nothing of pyspark."""

import sys
import time
from ssl import SSLCertVerificationError
from typing import Any, Final

from pulsarbox.client.admin import Admin, Refused
from pulsarbox.client.client import Client
from pulsarbox.client.connection import Connection
from pulsarbox.client.errors import NotConnected
from pulsarbox.errors import AuthenticationError, PulsarBoxError
from pulsarbox.spark.topic_segments import Reach, hosts_of

_QUIET_SECONDS: Final = 2.0
"""A box that is away only so long is not worth a word."""

UNAUTHORIZED: Final = 401
_WHO: Final = "Option token, or tokenFile, says who asks"


class Waiting:
    """Tells who runs a driver, once, that a broker is waited for."""

    def __init__(self, seconds: float) -> None:
        """``seconds``: how long it is waited for."""
        self._seconds = seconds
        self._begun = time.monotonic()
        self._is_told = False

    def tell(self, error: Exception) -> None:
        """Of what is tried again."""
        if not self._is_told and time.monotonic() - self._begun >= min(_QUIET_SECONDS, self._seconds):
            self._is_told = True
            sys.stderr.write(f"pulsarbox: {error}: tried again, for {self._seconds:g} s (pollTimeoutMs)\n")


def client_of(reach: Reach) -> Client:
    """A client of the Pulsar protocol; nothing is connected yet. Raises NotConnected for certificates of no use."""
    hosts, secure = hosts_of(reach.service_url, 6650)
    client = _Client(hosts, reach.seconds, secure=secure, credentials=reach.credentials)
    client.url = reach.service_url
    return client


def admin_of(reach: Reach, seconds: float | None = None) -> Admin:
    """A client of the Admin API; nothing is connected yet. ``seconds``: how long an answer is waited for."""
    hosts, secure = hosts_of(reach.admin_url, 8080)
    found = reach.credentials if reach.admin_credentials is None else reach.admin_credentials
    admin = _Admin(hosts, reach.seconds if seconds is None else seconds, secure=secure, credentials=found)
    admin.url = reach.admin_url
    return admin


class _Client(Client):
    url = ""

    def service(self) -> Connection:
        try:
            return super().service()
        except NotConnected as error:
            raise _named(f"{self.url} (option service.url)", error) from error
        except AuthenticationError as error:
            raise AuthenticationError(f"{self.url} (option service.url): {error}. {_WHO}") from error


class _Admin(Admin):
    url = ""

    def _ask(self, *args: Any, **more: Any) -> Any:
        try:
            return super()._ask(*args, **more)
        except NotConnected as error:
            raise _named(f"{self.url} (option admin.url)", error) from error
        except Refused as error:
            if error.status != UNAUTHORIZED:
                raise
            raise Refused(error.status, f"{error}. {_WHO}", error.method) from error


def _named(url: str, error: NotConnected) -> PulsarBoxError:
    """The same with its URL; where the certificate is not trusted none that waiting could mend."""
    if isinstance(error.__cause__, SSLCertVerificationError) or "CERTIFICATE_VERIFY_FAILED" in str(error):
        return PulsarBoxError(
            f"{url} is not trusted: {error}. Option pulsar.client.tlsTrustCertsFilePath names the certificates to trust"
        )
    return NotConnected(f"{url} cannot be reached: {error}")
