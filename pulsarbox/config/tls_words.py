"""Parsing of tlsProtocols and tlsCiphers, and conversion of Java's cipher names to OpenSSL's."""

import re
from typing import Final

from pulsarbox.config.setting import did_you_mean

VERSIONS: Final = ("TLSv1", "TLSv1.1", "TLSv1.2", "TLSv1.3")
DEFAULT_VERSIONS: Final = ("TLSv1.2", "TLSv1.3")

_JAVA: Final = re.compile(r"(?:TLS|SSL)_(?P<exchange>[A-Z0-9_]+?)_WITH_(?P<cipher>[A-Z0-9_]+)")


def versions(text: str) -> tuple[str, str]:
    """Return the lowest and the highest version of a list. Raises ValueError with a readable message."""
    names = [name.strip() for name in text.split(",") if name.strip()] or list(DEFAULT_VERSIONS)
    for name in names:
        if name not in VERSIONS:
            known = ", ".join(VERSIONS)
            raise ValueError(f'unknown TLS version "{name}": expected one of {known}{did_you_mean(name, VERSIONS)}')
    names.sort(key=VERSIONS.index)
    return names[0], names[-1]


def ciphers(text: str) -> tuple[list[str], bool]:
    """Return a list's cipher suites up to TLS 1.2 by OpenSSL name, and whether it contains any of TLS 1.3."""
    names = [name for name in re.split(r"[,:\s]+", text) if name]
    newest = [name for name in names if name.startswith("TLS_") and "_WITH_" not in name]
    return [openssl_name(name) for name in names if name not in newest], bool(newest)


def openssl_name(name: str) -> str:
    """Return OpenSSL's name of a suite up to TLS 1.2: ECDHE-RSA-AES128-GCM-SHA256 for
    TLS_ECDHE_RSA_WITH_AES_128_GCM_SHA256.

    A name that is not in Java's form is returned unchanged.
    """
    found = _JAVA.fullmatch(name)
    if found is None:
        return name
    cipher = re.sub(r"_(128|256)(?=_)", r"\1", found["cipher"]).replace("_CBC_", "_")
    cipher = cipher.removesuffix("_SHA256") if cipher.startswith("CHACHA20") else cipher
    exchange = "" if found["exchange"] == "RSA" else found["exchange"] + "_"
    return (exchange + cipher).replace("_", "-")
