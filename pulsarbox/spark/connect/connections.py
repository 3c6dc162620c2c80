"""Connections to a broker, with errors that name the option to correct. Does not import pyspark."""

import sys
import time
from ssl import SSLCertVerificationError
from typing import Any, Final

from pulsarbox.client.admin import Admin, AdminRefused
from pulsarbox.client.client import Client
from pulsarbox.client.errors import NotConnected
from pulsarbox.client.transport.connection import ClientConnection
from pulsarbox.errors import AuthenticationError, PulsarBoxError
from pulsarbox.spark.topic_segments import Reach, hosts_of

_QUIET_SECONDS: Final = 2.0
"""Outages shorter than this are not reported."""

UNAUTHORIZED: Final = 401
_WHO: Final = "Authenticate with option token or tokenFile"


class WaitNotice:
    """Reports to the driver's user, once, that a broker is unavailable."""

    def __init__(self, seconds: float) -> None:
        """Start the clock; ``seconds`` is the total wait that the message names."""
        self._seconds = seconds
        self._begun = time.monotonic()
        self._is_told = False

    def report(self, error: Exception) -> None:
        """Report an error that is being retried."""
        if not self._is_told and time.monotonic() - self._begun >= min(_QUIET_SECONDS, self._seconds):
            self._is_told = True
            sys.stderr.write(f"pulsarbox: {error}: retrying for {self._seconds:g} s (pollTimeoutMs)\n")


def client_of(reach: Reach) -> Client:
    """Return a client of the Pulsar protocol, not yet connected. Raises NotConnected for unusable certificates."""
    hosts, secure = hosts_of(reach.service_url, 6650)
    client = _Client(hosts, reach.seconds, secure=secure, credentials=reach.credentials)
    client.url = reach.service_url
    return client


def admin_of(reach: Reach, seconds: float | None = None) -> Admin:
    """Return a client of the Admin API, not yet connected. ``seconds`` overrides the timeout of ``reach``."""
    hosts, secure = hosts_of(reach.admin_url, 8080)
    found = reach.credentials if reach.admin_credentials is None else reach.admin_credentials
    admin = _Admin(hosts, reach.seconds if seconds is None else seconds, secure=secure, credentials=found)
    admin.url = reach.admin_url
    return admin


class _Client(Client):
    url = ""

    def service(self) -> ClientConnection:
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
        except AdminRefused as error:
            if error.status != UNAUTHORIZED:
                raise
            raise AdminRefused(error.status, f"{error}. {_WHO}", error.method) from error


def _named(url: str, error: NotConnected) -> PulsarBoxError:
    """Add the URL to an error. An untrusted certificate becomes an error that is not retried."""
    if isinstance(error.__cause__, SSLCertVerificationError) or "CERTIFICATE_VERIFY_FAILED" in str(error):
        return PulsarBoxError(
            f"{url} has an untrusted certificate: {error}. Set option pulsar.client.tlsTrustCertsFilePath to the "
            "trusted certificates"
        )
    return NotConnected(f"{url} cannot be reached: {error}")
