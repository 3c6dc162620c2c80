"""Hosts and origins as requests name them: the texts of httpAllowedHosts and httpAllowedOrigins, taken apart.

Each is a list with commas between; ``*`` stands for any. Source: RFC 9110, 7.2 (Host); RFC 6454 (Origin).
"""

import re
from typing import Final, NamedTuple

ANY: Final = "*"
OPAQUE: Final = "null"
"""The origin of pages that have none: files, sandboxed frames, redirected requests."""
_PORTS: Final = {"http": 80, "https": 443}
_AUTHORITY: Final = re.compile(
    r"(?:\[(?P<address>[0-9a-f:.]+)\]|(?P<name>[^\s:/?#@\[\]\\,*]+))(?::(?P<port>[0-9]{1,5})?)?"
)
_ORIGIN: Final = re.compile(r"(?P<scheme>[a-z][a-z0-9+.-]*)://(?P<authority>[^/]+)")


class Authority(NamedTuple):
    """The host and the port of a URL."""

    host: str
    """In lower case, without the brackets of an IPv6 address and without the dot that may end a name."""
    port: int | None
    """None where the scheme's own is meant."""


def authority(text: str) -> Authority | None:
    """The value of a Host header, taken apart; None where it is not one."""
    found = _AUTHORITY.fullmatch(text.strip().lower())
    if found is None:
        return None
    host = found["address"] or found["name"].removesuffix(".")
    return Authority(host, int(found["port"]) if found["port"] else None) if host else None


def place_of(origin: str) -> Authority | None:
    """Where an origin is, always with its port; None for one that is no host's."""
    found = _ORIGIN.fullmatch(origin.strip().lower())
    place = None if found is None else authority(found["authority"])
    if found is None or place is None:
        return None
    return place if place.port is not None else place._replace(port=_PORTS.get(found["scheme"]))


class AllowedHosts(NamedTuple):
    """The names of httpAllowedHosts."""

    names: frozenset[str] = frozenset()
    suffixes: tuple[str, ...] = ()
    """``.example.com`` for ``*.example.com``; the empty suffix for ``*``."""

    def include(self, host: str) -> bool:
        """Whether a name, in lower case, is among them; the empty name only where any is."""
        return host in self.names or host.endswith(self.suffixes)


def allowed_hosts(text: str) -> AllowedHosts:
    """The value of httpAllowedHosts. Raises ValueError, in words."""
    names, suffixes = set(), []
    for entry in _entries(text):
        below = "" if entry == ANY else entry.removeprefix("*")
        name = authority(below.removeprefix(".")) if below else None
        if entry == ANY or (entry.startswith("*.") and name is not None and name.port is None):
            suffixes.append(below)
        elif name is not None and name.port is None and entry == below and not below.startswith("."):
            names.add(name.host)
        else:
            raise ValueError(f'"{entry}" is not a host: expected a name without port, such as box.example.com, or *')
    return AllowedHosts(frozenset(names), tuple(suffixes))


def allowed_origins(text: str) -> frozenset[str]:
    """The value of httpAllowedOrigins: origins in lower case, as browsers write them. Raises ValueError, in words."""
    found = set()
    for entry in _entries(text):
        match = _ORIGIN.fullmatch(entry)
        if entry not in (ANY, OPAQUE) and (match is None or authority(match["authority"]) is None):
            raise ValueError(f'"{entry}" is not an origin: expected scheme://host[:port], null, or *')
        found.add(entry)
    return frozenset(found)


def _entries(text: str) -> list[str]:
    return [entry.strip().lower() for entry in text.split(",") if entry.strip()]
