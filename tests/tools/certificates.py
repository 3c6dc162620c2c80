"""Certificates for tests: a certificate authority, and the server and client certificates that it signs."""

from __future__ import annotations

import functools
import ipaddress
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import NamedTuple

from cryptography import x509
from cryptography.hazmat.primitives import hashes, serialization
from cryptography.hazmat.primitives.asymmetric import ec

PEM = serialization.Encoding.PEM


class Pair(NamedTuple):
    """Certificate and key files."""

    certificate: Path
    key: Path


@functools.cache
def _key(name: str) -> ec.EllipticCurvePrivateKey:
    """Return the key of a name. Keys are cached, because tests create many certificates."""
    return ec.generate_private_key(ec.SECP256R1())


def _named(name: str) -> x509.Name:
    return x509.Name([x509.NameAttribute(x509.NameOID.COMMON_NAME, name)])


class Authority:
    """Certificate authority that writes certificates into a folder."""

    def __init__(self, folder: Path, name: str = "authority") -> None:
        self._folder = folder
        self._name = name
        folder.mkdir(parents=True, exist_ok=True)
        begins = datetime.now(UTC) - timedelta(days=1000)
        made = self._begun(name, begins, timedelta(days=3000), name)
        made = made.add_extension(x509.BasicConstraints(ca=True, path_length=None), critical=True)
        self.file = folder / f"{name}.pem"
        self.file.write_bytes(made.sign(_key(name), hashes.SHA256()).public_bytes(PEM))

    def _begun(self, name: str, begins: datetime, days: timedelta, key: str) -> x509.CertificateBuilder:
        return (
            x509.CertificateBuilder()
            .subject_name(_named(name))
            .issuer_name(_named(self._name))
            .public_key(_key(key).public_key())
            .serial_number(x509.random_serial_number())
            .not_valid_before(begins)
            .not_valid_after(begins + days)
        )

    def signs(self, name: str, *, file: str = "", begins: float = -1, days: float = 365, key: str = "") -> Pair:
        """Create a certificate for ``name``, valid for ``days`` starting ``begins`` days from now."""
        key = key or f"{self._name} {name}"
        made = self._begun(name, datetime.now(UTC) + timedelta(days=begins), timedelta(days=days), key)
        names = [x509.DNSName("localhost"), x509.IPAddress(ipaddress.ip_address("127.0.0.1"))]
        made = made.add_extension(x509.SubjectAlternativeName(names), critical=False)
        pair = Pair(self._folder / f"{file or name}.pem", self._folder / f"{file or name}.key")
        # Replaced atomically: a box may be reading.
        _put(pair.key, _key_pem(key))
        _put(pair.certificate, made.sign(_key(self._name), hashes.SHA256()).public_bytes(PEM))
        return pair


def _put(path: Path, content: bytes) -> None:
    new = path.with_name(f"{path.name}.new")
    new.write_bytes(content)
    new.replace(path)


def _key_pem(name: str, password: bytes = b"") -> bytes:
    encryption = serialization.BestAvailableEncryption(password) if password else serialization.NoEncryption()
    return _key(name).private_bytes(PEM, serialization.PrivateFormat.PKCS8, encryption)


def locked_key(path: Path) -> None:
    """Write a key encrypted with a password."""
    path.write_bytes(_key_pem("locked", b"secret"))
