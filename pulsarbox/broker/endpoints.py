"""The addresses that lookups return to clients.

A box is a single broker, so the address a client has connected to is right for all topics. Lookups return it unless the
settings configure another. Source: Pulsar documentation, "Connect to Pulsar from outside (advertised listeners)";
PIP-61.
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


class BrokerAddress(NamedTuple):
    """The URLs returned to a client."""

    url: str
    """``pulsar://host:port``; empty if only TLS is available."""
    url_tls: str
    """``pulsar+ssl://host:port``, or empty."""
    web_url: str
    web_url_tls: str

    @property
    def through_service_url(self) -> bool:
        """Whether clients should keep using their current address, because the advertised one is loopback.

        Follows Pulsar standalone.
        """
        return is_loopback(urlsplit(self.url or self.url_tls).hostname or "")


class Ports(NamedTuple):
    """Listening ports; OFF if disabled."""

    broker: int
    web: int
    broker_tls: int = OFF
    web_tls: int = OFF


class Endpoints(NamedTuple):
    """The addresses of one box."""

    broker_url: str
    """``pulsar://host:port`` for clients that name no listener; empty if only TLS is available."""
    web_url: str
    """``http://host:port``; empty if only TLS is available."""
    broker_url_tls: str = ""
    """``pulsar+ssl://host:port``; empty without TLS."""
    web_url_tls: str = ""
    """``https://host:port``; empty without TLS."""
    listeners: Mapping[str, Mapping[str, str]] = _NO_LISTENERS
    """URLs in advertisedListeners, by listener and scheme."""
    unnamed: Mapping[str, str] = _NO_URLS
    """Advertised URL of each scheme, for clients that name no listener."""
    fixed: bool = False
    """Whether the settings configure the address; if not, lookups return the one the client has connected to."""

    @property
    def broker_id(self) -> str:
        """Broker ID: ``host:port`` of the web service."""
        return (self.web_url or self.web_url_tls).partition("://")[2]

    @property
    def host(self) -> str:
        """Host of the web service."""
        return self.broker_id.rpartition(":")[0]

    def of(self, listener: str) -> BrokerAddress:
        """Return the URLs for a client, for its listener if it names one. Raises UnknownListener."""
        urls = self.listeners.get(listener, {}) if listener else self.unnamed
        url, url_tls = urls.get("pulsar", ""), urls.get("pulsar+ssl", "")
        if not url and not url_tls:
            if listener:
                raise UnknownListener(f"the broker do not have {listener} listener")
            url, url_tls = self.broker_url, self.broker_url_tls
        # If only one scheme has an advertised address, leave the other empty: the box's own may be on another
        # network.
        return BrokerAddress(url, url_tls, urls.get("http", self.web_url), urls.get("https", self.web_url_tls))


def endpoints_of(settings: Settings, host: str, ports: Ports) -> Endpoints:
    """Return the configured addresses; ``host`` is the default."""
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
