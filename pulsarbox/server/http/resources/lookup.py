"""HTTP lookup: the broker of a topic, for clients whose service URL starts with http://."""

from urllib.parse import urlsplit

from pulsarbox.broker.endpoints import BrokerAddress
from pulsarbox.config.listeners import host_in_url
from pulsarbox.errors import NotFound
from pulsarbox.names import TopicName
from pulsarbox.server.http.framework.request import HttpRequest, HttpResponse, answer, plain
from pulsarbox.server.http.framework.routes import HttpRoute, Permission
from pulsarbox.server.http.resources.bundles import bundle_of


def lookup(call: HttpRequest) -> HttpResponse:
    """Return the URLs of the broker. The topic need not exist, but its namespace must."""
    listener = call.query.get("listenerName", "").strip() or call.listener
    _require_namespace(call, call.topic())
    endpoints = call.broker.endpoints
    place = endpoints.of(listener)
    if not endpoints.fixed and (reached := _reached(call.host)):
        # The Host header is the only name known to reach the box. How other ports are mapped is unknown.
        host, port = reached
        own = f"{'https' if call.secure else 'http'}://{host}{port}"
        place = BrokerAddress(*(_at(host, url) for url in place))
        place = place._replace(web_url_tls=own) if call.secure else place._replace(web_url=own)
    urls = {"brokerUrl": place.url, "brokerUrlTls": place.url_tls, "httpUrl": place.web_url}
    urls |= {"httpUrlTls": place.web_url_tls, "nativeUrl": place.url}
    # The C++ client dereferences brokerUrlSsl, which must not be missing.
    return answer({name: url for name, url in urls.items() if url} | {"brokerUrlSsl": ""})


def bundle(call: HttpRequest) -> HttpResponse:
    """Return the bundle of a topic."""
    topic = call.topic()
    _require_namespace(call, topic)
    return plain(bundle_of(call.tenants, topic))


def _require_namespace(call: HttpRequest, topic: TopicName) -> None:
    if not call.tenants.has_namespace(topic.namespace):
        raise NotFound("Namespace not found")


def _at(host: str, url: str) -> str:
    """Return a URL with another host; empty if it was empty."""
    found = urlsplit(url)
    return url and f"{found.scheme}://{host}:{found.port}"


def _reached(given: str) -> tuple[str, str] | None:
    """Parse a Host header into host and ``:port`` if present; None if it is invalid."""
    try:
        url = urlsplit(f"//{given}")
        host, port = url.hostname, url.port
    except ValueError:
        return None
    return (host_in_url(host), "" if port is None else f":{port}") if host else None


_TOPIC = "/lookup/v2/topic/{domain}/{tenant}/{namespace}/{topic}"

ROUTES = (
    HttpRoute("GET", _TOPIC, Permission.TOPIC_USER, lookup),
    HttpRoute("GET", f"{_TOPIC}/bundle", Permission.NAMESPACE_USER, bundle),
)
