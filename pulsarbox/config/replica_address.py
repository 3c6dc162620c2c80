"""Addresses of replicas in the setting dataDirectories: ``replica://HOST:PORT``, ``replica+ssl://HOST:PORT``. Pure."""

import re
from typing import Final, NamedTuple

PLAIN: Final = "replica"
TLS: Final = "replica+ssl"
EXAMPLE: Final = f"{PLAIN}://10.0.0.2:6680"
_ADDRESS: Final = re.compile(r"(replica|replica\+ssl)://(\[[0-9a-fA-F:.]+\]|[A-Za-z0-9_.-]+):([0-9]{1,5})")
_LOOPBACK: Final = re.compile(r"localhost|127(\.\d{1,3}){3}|::1")


class ReplicaAddress(NamedTuple):
    """Where a replica listens."""

    scheme: str
    host: str
    """Without the brackets of an IPv6 address."""
    port: int

    @property
    def is_tls(self) -> bool:
        """Whether connections use TLS."""
        return self.scheme == TLS


def is_replica(name: str) -> bool:
    """Return whether a data directory is the address of a replica instead of a path."""
    return name.startswith((f"{PLAIN}:", f"{TLS}:"))


def is_loopback(host: str) -> bool:
    """Return whether a host name or address is that of this machine only."""
    return _LOOPBACK.fullmatch(host) is not None


def parse_address(text: str) -> ReplicaAddress:
    """Return the parts of an address. Raises ValueError."""
    match = _ADDRESS.fullmatch(text)
    if match is None:
        raise ValueError(f"{text} is not the address of a replica: expected {EXAMPLE} or {TLS}://HOST:PORT")
    scheme, host, port = match.groups()
    if not 0 < int(port) < 65536:
        raise ValueError(f"{text}: port {port} is not between 1 and 65535")
    return ReplicaAddress(scheme, host.strip("[]"), int(port))
