"""Where clients are told that the box is: what a lookup answers.

A box is one broker, so the address by which a client has come is right for all topics. It is what counts as long as the
settings name no other. Source: Pulsar documentation, "Connect to Pulsar from outside (advertised listeners)"; PIP-61.
"""

from __future__ import annotations

from types import MappingProxyType
from typing import TYPE_CHECKING, NamedTuple
from urllib.parse import urlsplit

from pulsarbox.config.listeners import advertised, host_in_url, internal, is_loopback
from pulsarbox.errors import ServiceNotReady

if TYPE_CHECKING:
    from collections.abc import Mapping

    from pulsarbox.config import Settings

_NONE: Mapping[str, Mapping[str, str]] = MappingProxyType({})


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


class Endpoints(NamedTuple):
    """The addresses of one box."""

    broker_url: str
    """``pulsar://host:port``, for clients that name no listener."""
    web_url: str
    """``http://host:port``"""
    listeners: Mapping[str, Mapping[str, str]] = _NONE
    """Of advertisedListeners: for each the URL by scheme."""
    internal: str = ""
    """The listener of clients that name none; empty where there are no listeners."""
    fixed: bool = False
    """Whether the settings say where the box is. If not, the address by which a client has come does."""

    def of(self, listener: str) -> Place:
        """Where a client goes that names a listener, or none. Raises ServiceNotReady for a name that is not there."""
        name = listener or self.internal
        urls = self.listeners.get(name, {})
        if listener and not ("pulsar" in urls or "pulsar+ssl" in urls):
            # Word for word: C++ clients know by the text that there is no use in trying again.
            raise ServiceNotReady(f"the broker do not have {listener} listener")
        url_tls = urls.get("pulsar+ssl", "")
        url = urls.get("pulsar", "" if url_tls else self.broker_url)
        return Place(url, url_tls, urls.get("http", self.web_url), urls.get("https", ""))


def endpoints_of(settings: Settings, host: str, port: int, web_port: int) -> Endpoints:
    """The addresses that the settings give; ``host`` where they give none. The ports are those that are listened on."""
    listeners = advertised(settings.advertisedListeners)
    name = internal(listeners, settings.internalListenerName)
    urls = listeners.get(name, {})
    host = host_in_url(settings.advertisedAddress or host)
    return Endpoints(
        broker_url=urls.get("pulsar", f"pulsar://{host}:{port}"),
        web_url=urls.get("http", f"http://{host}:{web_port}"),
        listeners=listeners,
        internal=name,
        fixed=bool(settings.advertisedAddress or listeners),
    )
