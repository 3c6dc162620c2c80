"""Parsing of advertisedListeners and bindAddresses.

Both are comma-separated lists of ``name:scheme://host:port``. Source: Pulsar documentation, "Connect to Pulsar from
outside (advertised listeners)"; PIP-61, PIP-95.
"""

import re
from typing import Final, NamedTuple

ADVERTISED_SCHEMES: Final = ("pulsar", "pulsar+ssl", "http", "https")
BOUND_SCHEMES: Final = ("pulsar", "pulsar+ssl")

_ENTRY: Final = re.compile(
    r"(?P<name>[^:/]*[^:/\s])\s*:\s*(?P<scheme>[a-z+]+)://(?P<host>\[[0-9a-fA-F:.]+\]|[^\s:/@\[\]]+):(?P<port>\d{1,5})/?"
)
_LOOPBACK: Final = re.compile(r"127(\.\d{1,3}){3}")


class Address(NamedTuple):
    """One address of a listener."""

    listener: str
    scheme: str
    host: str
    port: int

    @property
    def url(self) -> str:
        """The address as ``scheme://host:port``."""
        return f"{self.scheme}://{host_in_url(self.host)}:{self.port}"


Advertised = dict[str, dict[str, str]]
"""URLs by scheme for each listener, in configured order."""


def host_in_url(host: str) -> str:
    """Return a host in URL syntax: an IPv6 address in brackets."""
    return f"[{host}]" if ":" in host and not host.startswith("[") else host


def is_loopback(host: str) -> bool:
    """Return whether a host is a loopback name or address. Names are not resolved."""
    return host in ("localhost", "::1") or host.endswith(".localhost") or bool(_LOOPBACK.fullmatch(host))


def advertised(text: str) -> Advertised:
    """Parse advertisedListeners. Raises ValueError with a readable message."""
    found: Advertised = {}
    whose: dict[tuple[str, int], str] = {}
    for address in _addresses(text, ADVERTISED_SCHEMES):
        urls = found.setdefault(address.listener, {})
        if address.scheme in urls:
            raise ValueError(f"listener {address.listener} has two addresses for {address.scheme}")
        urls[address.scheme] = address.url
        place = (address.host.lower(), address.port)
        if whose.setdefault(place, address.listener) != address.listener:
            raise ValueError(f"{address.host}:{address.port} is assigned to {whose[place]} and to {address.listener}")
    return found


def bound(text: str) -> tuple[Address, ...]:
    """Parse bindAddresses. Raises ValueError with a readable message."""
    found = tuple(_addresses(text, BOUND_SCHEMES))
    places = [(address.host, address.port) for address in found if address.port]
    if len(set(places)) < len(places):
        raise ValueError("duplicate address")
    return found


def unnamed(listeners: Advertised, internal: str) -> dict[str, str]:
    """Return the URL by scheme for clients that name no listener.

    The internal listener's URLs take precedence. For a scheme that it lacks, the first listener that has it is used.
    """
    found: dict[str, str] = {}
    for urls in (listeners.get(internal, {}), *listeners.values()):
        found = urls | found
    return found


def _addresses(text: str, schemes: tuple[str, ...]) -> list[Address]:
    return [_address(entry.strip(), schemes) for entry in text.split(",") if entry.strip()]


def _address(entry: str, schemes: tuple[str, ...]) -> Address:
    found = _ENTRY.fullmatch(entry)
    if found is None or int(found["port"]) > 65535:
        raise ValueError(f'invalid address "{entry}": expected name:scheme://host:port')
    if found["scheme"] not in schemes:
        raise ValueError(f'invalid address "{entry}": expected scheme {", ".join(schemes)}, not {found["scheme"]}')
    return Address(found["name"].strip(), found["scheme"], found["host"].strip("[]").lower(), int(found["port"]))
