"""Where clients are told that the box is: what a lookup answers.

A box is one broker, so the address by which a client has come is right for all topics. It is what counts as long as the
settings name no other. Source: Pulsar documentation, "Connect to Pulsar from outside (advertised listeners)"; PIP-61.
"""

from __future__ import annotations

from types import MappingProxyType
from typing import TYPE_CHECKING, NamedTuple
from urllib.parse import urlsplit

from pulsarbox.config.listeners import advertised, host_in_url, is_loopback, unnamed
from pulsarbox.config.setting import OFF
from pulsarbox.errors import UnknownListener

if TYPE_CHECKING:
    from collections.abc import Mapping

    from pulsarbox.config import Settings

_NO_LISTENERS: Mapping[str, Mapping[str, str]] = MappingProxyType({})
_NO_URLS: Mapping[str, str] = MappingProxyType({})


class Place(NamedTuple):
    """Where a client is sent."""

    url: str
    """``pulsar://host:port``; empty where there is one with TLS only."""
    url_tls: str
    """``pulsar+ssl://host:port``, or empty."""
    web_url: str
    web_url_tls: str

    @property
    def through_service_url(self) -> bool:
        """Whether a client does better to stay with the address by which it has come: loopback means others elsewhere.

        The rule of a standalone Pulsar.
        """
        return is_loopback(urlsplit(self.url or self.url_tls).hostname or "")


class Ports(NamedTuple):
    """The ports that are listened on; OFF where there is none."""

    broker: int
    web: int
    broker_tls: int = OFF
    web_tls: int = OFF


class Endpoints(NamedTuple):
    """The addresses of one box."""

    broker_url: str
    """``pulsar://host:port``, for clients that name no listener; empty where there is TLS only, as are those below."""
    web_url: str
    """``http://host:port``"""
    broker_url_tls: str = ""
    """``pulsar+ssl://host:port``; empty where there is no TLS."""
    web_url_tls: str = ""
    """``https://host:port``"""
    listeners: Mapping[str, Mapping[str, str]] = _NO_LISTENERS
    """The URLs of advertisedListeners, by listener and scheme."""
    unnamed: Mapping[str, str] = _NO_URLS
    """The advertised URL of each scheme for clients that name no listener."""
    fixed: bool = False
    """Whether the settings say where the box is. If not, the address by which a client has come does."""

    @property
    def broker_id(self) -> str:
        """The name of the broker: ``host:port`` of its web service."""
        return (self.web_url or self.web_url_tls).partition("://")[2]

    @property
    def host(self) -> str:
        """The host of that."""
        return self.broker_id.rpartition(":")[0]

    def of(self, listener: str) -> Place:
        """Return the URLs for a client that names a listener, or none. Raises UnknownListener."""
        urls = self.listeners.get(listener, {}) if listener else self.unnamed
        url, url_tls = urls.get("pulsar", ""), urls.get("pulsar+ssl", "")
        if not url and not url_tls:
            if listener:
                raise UnknownListener(f"the broker do not have {listener} listener")
            url, url_tls = self.broker_url, self.broker_url_tls
        # With an address for only one of the two schemes, the other has none: the box's own may be of another network.
        return Place(url, url_tls, urls.get("http", self.web_url), urls.get("https", self.web_url_tls))


def endpoints_of(settings: Settings, host: str, ports: Ports) -> Endpoints:
    """The addresses that the settings give; ``host`` where they give none."""
    listeners = advertised(settings.advertisedListeners)
    urls = unnamed(listeners, settings.internalListenerName)
    host = host_in_url(settings.advertisedAddress or host)

    def url(scheme: str, port: int) -> str:
        return urls.get(scheme, "" if port == OFF else f"{scheme}://{host}:{port}")

    return Endpoints(
        broker_url=url("pulsar", ports.broker),
        web_url=url("http", ports.web),
        broker_url_tls=url("pulsar+ssl", ports.broker_tls),
        web_url_tls=url("https", ports.web_tls),
        listeners=listeners,
        unnamed=urls,
        fixed=bool(settings.advertisedAddress or listeners),
    )
