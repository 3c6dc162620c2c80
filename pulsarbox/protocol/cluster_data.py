"""Data of clusters in the Admin API: its members, and its addresses.

Source: https://pulsar.apache.org/docs/4.2.x/admin-api-clusters/.
"""

from collections.abc import Mapping
from typing import Any, Final
from urllib.parse import urlsplit

from pulsarbox.errors import BadRequest
from pulsarbox.protocol.policies.policy_values import BOOLEAN
from pulsarbox.protocol.policies.shapes import ObjectShape, Text, Word

_TEXT: Final = (Text(), None)
CLUSTER_DATA: Final = ObjectShape(
    {
        "serviceUrl": _TEXT,
        "serviceUrlTls": _TEXT,
        "brokerServiceUrl": _TEXT,
        "brokerServiceUrlTls": _TEXT,
        "proxyServiceUrl": _TEXT,
        "authenticationPlugin": _TEXT,
        "authenticationParameters": _TEXT,
        "proxyProtocol": (Word(("SNI",)), None),
        "brokerClientTlsEnabled": (BOOLEAN, False),
        "tlsAllowInsecureConnection": (BOOLEAN, False),
        "brokerClientTlsEnabledWithKeyStore": (BOOLEAN, False),
        "brokerClientTlsTrustStoreType": _TEXT,
        "brokerClientTlsTrustStore": _TEXT,
        "brokerClientTlsTrustStorePassword": _TEXT,
        "brokerClientTlsKeyStoreType": _TEXT,
        "brokerClientTlsKeyStore": _TEXT,
        "brokerClientTlsKeyStorePassword": _TEXT,
        "brokerClientTrustCertsFilePath": _TEXT,
        "brokerClientKeyFilePath": _TEXT,
        "brokerClientCertificateFilePath": _TEXT,
        "brokerClientSslFactoryPlugin": _TEXT,
        "brokerClientSslFactoryPluginParams": _TEXT,
        "listenerName": _TEXT,
    }
)
PEERS: Final = "peerClusterNames"
"""A further member: the names of the peer clusters."""
SECRETS: Final = (
    "authenticationParameters",
    "brokerClientTlsTrustStorePassword",
    "brokerClientTlsKeyStorePassword",
    "brokerClientSslFactoryPluginParams",
)
"""Members that hold credentials, or may."""

_URLS: Final = (
    ("serviceUrl", ("http",), "Illegal service url, example: http://pulsar.example.com:8080"),
    ("serviceUrlTls", ("https",), "Illegal service tls url, example: https://pulsar.example.com:8443"),
    ("brokerServiceUrl", ("pulsar",), "Illegal broker service url, example: pulsar://pulsar.example.com:6650"),
    (
        "brokerServiceUrlTls",
        ("pulsar+ssl",),
        "Illegal broker service tls url, example: pulsar+ssl://pulsar.example.com:6651",
    ),
    (
        "proxyServiceUrl",
        ("pulsar", "pulsar+ssl"),
        "Illegal proxy service url, example: pulsar+ssl://ats-proxy.example.com:4443 or"
        " pulsar://ats-proxy.example.com:4080",
    ),
)


def check_addresses(data: Mapping[str, Any]) -> None:
    """Raise BadRequest for an address with the wrong scheme, in Pulsar's words."""
    for name, schemes, reason in _URLS:
        if data.get(name) and _scheme(data[name]) not in schemes:
            raise BadRequest(reason)


def _scheme(url: str) -> str:
    try:
        return urlsplit(url).scheme if " " not in url else ""
    except ValueError:
        return ""
