"""Protection against requests that a foreign web page makes a browser send.

A browser sends a page's requests from its user's machine, past firewalls and to loopback addresses. Two rules reject
them. The origin rule rejects a request if Origin or Sec-Fetch-Site identifies a page of another origin (cross-site
request forgery). The host rule rejects a request if its Host header is a name that a public DNS server may have pointed
at this box (DNS rebinding), because then the page has that name as its origin.

Other clients send neither Origin nor Sec-Fetch-Site, and usually reach a box by an address or by a name that the rule
allows. docs/security.md documents these names and the reasons. Sources: https://www.w3.org/TR/fetch-metadata/,
https://fetch.spec.whatwg.org/ (Origin, CORS), RFC 6761, 6762 and 8375 (reserved names).
"""

import socket
from collections.abc import Mapping
from ipaddress import ip_address
from types import MappingProxyType
from typing import Final, NamedTuple
from urllib.parse import urlsplit

from multidict import CIMultiDict, CIMultiDictProxy

from pulsarbox.broker.broker import Broker
from pulsarbox.broker.endpoints import Endpoints
from pulsarbox.broker.security.authentication import ANONYMOUS
from pulsarbox.broker.security.principal import Principal
from pulsarbox.config import Settings
from pulsarbox.config.listeners import is_loopback
from pulsarbox.config.origins import (
    ANY,
    AllowedHosts,
    Authority,
    allowed_hosts,
    allowed_origins,
    authority,
    place_of,
)

Headers = CIMultiDict[str] | CIMultiDictProxy[str]

_SENT_BY_BROWSERS: Final = ("basic", "tls")
"""Authentication methods whose credentials a browser adds to requests of any page, once its user has entered them."""
_PRIVATE: Final = (".local", ".internal", ".home.arpa", ".svc")
"""Suffixes that public DNS does not have: reserved for private use, and Kubernetes' cluster suffix."""
_PREFLIGHT_SECONDS: Final = "600"
_SHOWN: Final = 100
_NONE: Final[Mapping[str, str]] = MappingProxyType({})


class AllowedSources(NamedTuple):
    """Hosts and origins that the settings of a box allow."""

    own: frozenset[str]
    """Names of the box: its configured names, and the name of the machine."""
    hosts: AllowedHosts
    origins: frozenset[str]
    private: bool
    """Whether Host may be a name outside of public DNS; not if the box serves only its own machine."""

    @classmethod
    def of(cls, settings: Settings, endpoints: Endpoints, machine: str) -> "AllowedSources":
        """Return the rules of a box with these settings, on a machine with that host name."""
        urls = [url for each in endpoints.listeners.values() for url in each.values()]
        urls += [endpoints.broker_url, endpoints.web_url, endpoints.broker_url_tls, endpoints.web_url_tls]
        names = {urlsplit(url).hostname or "" for url in urls} | {settings.bindAddress, machine}
        return cls(
            frozenset(name.lower() for name in names if name),
            allowed_hosts(settings.httpAllowedHosts),
            allowed_origins(settings.httpAllowedOrigins),
            not is_loopback(settings.bindAddress),
        )

    def allows_host(self, place: Authority | None) -> bool:
        """Return whether the Host header may be this name or address; None if the header is missing or invalid."""
        if self.hosts.include(""):
            return True
        if place is None:
            return False
        host = place.host
        if host in self.own or is_loopback(host) or self.hosts.include(host) or _is_address(host):
            return True
        return self.private and ("." not in host or host.endswith(_PRIVATE))

    def allows_origin(self, origin: str) -> bool:
        """Return whether the settings allow pages of an origin."""
        return ANY in self.origins or origin.strip().lower() in self.origins


def refusal_of(headers: Headers, rules: AllowedSources, *, host: bool, origin: bool) -> str:
    """Return why the host rule or the origin rule rejects a request with these headers; empty if neither does."""
    # Browsers send exactly one host. With several, each is checked, whichever a parser would use.
    places = {text: authority(text) for text in headers.getall("Host", []) if text}
    for text, place in places.items() if host else ():
        if not rules.allows_host(place):
            return _HOST.format(shown=_shown(text), name=place.host if place else "the name")
    return _foreign(headers, rules, list(places.values())) if origin else ""


def _foreign(headers: Headers, rules: AllowedSources, places: list[Authority | None]) -> str:
    origins = headers.getall("Origin", [])
    others = [text for text in origins if not rules.allows_origin(text)]
    for text in others:
        if not _is_same(text, places):
            return _ORIGIN.format(shown=_shown(text))
    let_in = ANY in rules.origins or (origins and not others)
    sites = [text.strip().lower() for text in headers.getall("Sec-Fetch-Site", [])]
    return _CROSS_SITE if "cross-site" in sites and not let_in else ""


_ALLOW: Final = "To allow it, add {it} to the setting {setting}, which can be changed while the box runs"
_HOST: Final = (
    "Host {shown} is neither an IP address nor localhost nor a known name of this box, so the request may come from a"
    " web page (DNS rebinding). " + _ALLOW.format(it="{name}", setting="httpAllowedHosts")
    + ", or name it in advertisedAddress or advertisedListeners. See docs/security.md"
)  # fmt: skip
_ORIGIN: Final = (
    "The request was sent by a web page of the origin {shown}, and cross-origin requests are refused. "
    + _ALLOW.format(it="the origin", setting="httpAllowedOrigins") + ". See docs/security.md"
)  # fmt: skip
_CROSS_SITE: Final = (
    "The request was sent by a web page of another site (Sec-Fetch-Site: cross-site), and cross-site requests are"
    " refused. " + _ALLOW.format(it="its origin", setting="httpAllowedOrigins") + ". See docs/security.md"
)


class CrossSite:
    """The two rules for one box, by the current settings."""

    def __init__(self, broker: Broker) -> None:
        self._broker = broker
        self._machine = socket.gethostname().lower()
        self._of: Settings | None = None
        self._rules: AllowedSources

    def refusal(self, headers: Headers, principal: Principal | None) -> str:
        """Return why a request is rejected, or an empty string. ``principal`` is its sender, None if anonymous.

        The origin rule protects requests that a browser can send on its own: without authentication, or with passwords
        and certificates. The host rule protects only requests without authentication: a browser scopes passwords to
        their host, and the box's certificate does not match another host. Tokens are added by programs, never by
        browsers.
        """
        if self._broker.authentication is None or (principal is not None and principal.method == ANONYMOUS):
            return refusal_of(headers, self._current(), host=True, origin=True)
        if principal is not None and principal.method in _SENT_BY_BROWSERS:
            return refusal_of(headers, self._current(), host=False, origin=True)
        return ""

    def shared_with(self, headers: Headers) -> Mapping[str, str]:
        """Return the CORS headers that let a page of an allowed origin read an answer."""
        origin = headers.get("Origin")
        if origin is None or not self._current().allows_origin(origin):
            return _NONE
        return {"Access-Control-Allow-Origin": origin, "Vary": "Origin", "Access-Control-Expose-Headers": "*"}

    def preflight(self, headers: Headers) -> Mapping[str, str]:
        """Return the answer to a CORS preflight request; empty if it is not one, or is not allowed."""
        method = headers.get("Access-Control-Request-Method")
        shared = self.shared_with(headers) if method is not None else _NONE
        if not shared or self.refusal(headers, None):
            return _NONE
        return {
            **shared,
            "Access-Control-Allow-Methods": "GET, HEAD, PUT, POST, DELETE",
            "Access-Control-Allow-Headers": headers.get("Access-Control-Request-Headers", ""),
            "Access-Control-Max-Age": _PREFLIGHT_SECONDS,
        }

    def _current(self) -> AllowedSources:
        settings = self._broker.settings
        if self._of is not settings:
            self._rules = AllowedSources.of(settings, self._broker.endpoints, self._machine)
            self._of = settings
        return self._rules


def _is_same(origin: str, reached: list[Authority | None]) -> bool:
    """Return whether an origin is the host of the request: a page served by the box itself."""
    place = place_of(origin)
    if place is None or not reached:
        return False
    return all(each is not None and each._replace(port=each.port or _default(origin)) == place for each in reached)


def _default(origin: str) -> int:
    return 443 if origin.strip().lower().startswith("https:") else 80


def _is_address(host: str) -> bool:
    try:
        ip_address(host)
    except ValueError:
        return False
    return True


def _shown(text: str) -> str:
    return ascii(text[:_SHOWN])
