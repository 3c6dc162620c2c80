"""A box with TLS, tokens and permissions, and the client.conf of its administrator."""

import contextlib
from collections.abc import Iterator
from pathlib import Path
from typing import Final

from pulsarbox import PulsarBox
from tests.tools.certificates import Authority
from tests.unit.broker.security.signing import GUARDED, token

ROLE: Final = "root"
PLUGIN: Final = "org.apache.pulsar.client.impl.auth.AuthenticationToken"


@contextlib.contextmanager
def secure_settings(folder: Path) -> Iterator[dict[str, str]]:
    """Run the box and return the settings for its clients."""
    authority = Authority(folder / "tls")
    own = authority.signs("localhost")
    files = {"tlsCertificateFilePath": str(own.certificate), "tlsKeyFilePath": str(own.key)}
    ports = {"brokerServicePortTls": 0, "webServicePortTls": 0, "bindAddress": "localhost"}
    with PulsarBox(GUARDED | files | ports, authorizationEnabled=True, superUserRoles=ROLE) as box:
        yield {
            "brokerServiceUrl": box.service_url_tls,
            "webServiceUrl": box.admin_url_tls,
            "authPlugin": PLUGIN,
            "authParams": f"token:{token(sub=ROLE).decode()}",
            "tlsTrustCertsFilePath": str(authority.file),
            "tlsEnableHostnameVerification": "true",
        }
