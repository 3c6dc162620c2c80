"""Parsing of hosts and origins: httpAllowedHosts, httpAllowedOrigins, and the request headers compared with them.

Both settings are comma-separated lists; ``*`` matches any. Sources: RFC 9110, 7.2 (Host); RFC 6454 (Origin).
"""

import re
from typing import Final, NamedTuple

ANY: Final = "*"
OPAQUE: Final = "null"
"""The origin of pages without one: files, sandboxed frames, redirected requests."""
_PORTS: Final = {"http": 80, "https": 443}
_AUTHORITY: Final = re.compile(
    r"(?:\[(?P<address>[0-9a-f:.]+)\]|(?P<name>[^\s:/?#@\[\]\\,*]+))(?::(?P<port>[0-9]{1,5})?)?"
)
_ORIGIN: Final = re.compile(r"(?P<scheme>[a-z][a-z0-9+.-]*)://(?P<authority>[^/]+)")


class Authority(NamedTuple):
    """Host and port of a URL."""

    host: str
    """In lower case, without the brackets of an IPv6 address and without the trailing dot of a name."""
    port: int | None
    """None for the scheme's default."""


def authority(text: str) -> Authority | None:
    """Parse a Host header; None if it is malformed."""
    found = _AUTHORITY.fullmatch(text.strip().lower())
    if found is None:
        return None
    host = found["address"] or found["name"].removesuffix(".")
    return Authority(host, int(found["port"]) if found["port"] else None) if host else None


def place_of(origin: str) -> Authority | None:
    """Return host and port of an origin, with the default port filled in; None for an origin without a host."""
    found = _ORIGIN.fullmatch(origin.strip().lower())
    place = None if found is None else authority(found["authority"])
    if found is None or place is None:
        return None
    return place if place.port is not None else place._replace(port=_PORTS.get(found["scheme"]))


class AllowedHosts(NamedTuple):
    """The parsed value of httpAllowedHosts."""

    names: frozenset[str] = frozenset()
    suffixes: tuple[str, ...] = ()
    """``.example.com`` for ``*.example.com``; the empty suffix for ``*``."""

    def include(self, host: str) -> bool:
        """Return whether a lower-case name is allowed; the empty name is allowed only by ``*``."""
        return host in self.names or host.endswith(self.suffixes)


def allowed_hosts(text: str) -> AllowedHosts:
    """Parse httpAllowedHosts. Raises ValueError with a readable message."""
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
    """Parse httpAllowedOrigins into lower-case origins. Raises ValueError with a readable message."""
    found = set()
    for entry in _entries(text):
        match = _ORIGIN.fullmatch(entry)
        if entry not in (ANY, OPAQUE) and (match is None or authority(match["authority"]) is None):
            raise ValueError(f'"{entry}" is not an origin: expected scheme://host[:port], null, or *')
        found.add(entry)
    return frozenset(found)


def _entries(text: str) -> list[str]:
    return [entry.strip().lower() for entry in text.split(",") if entry.strip()]
