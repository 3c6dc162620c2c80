"""HTTP lookup: where a topic is, for clients whose service URL starts with http://."""

from urllib.parse import urlsplit

from pulsarbox.config.listeners import host_in_url
from pulsarbox.errors import NotFound
from pulsarbox.names import TopicName
from pulsarbox.server.http.bundles import bundle_of
from pulsarbox.server.http.call import Answer, Call, answer, plain
from pulsarbox.server.http.routes import Permission, Route


def lookup(call: Call) -> Answer:
    """The URLs of the broker. Always this one: the topic need not exist, its namespace must."""
    listener = call.query.get("listenerName", "").strip() or call.listener
    _require_namespace(call, call.topic())
    endpoints = call.broker.endpoints
    place = endpoints.of(listener)
    broker_url, web_url = place.url, place.web_url
    if not endpoints.fixed and (reached := _reached(call.host)):
        # The client knows no other name that is sure to work. To which port the other one is mapped, nobody here knows.
        host, port = reached
        broker_url, web_url = f"pulsar://{host}:{urlsplit(broker_url).port}", f"http://{host}{port}"
    tls = {"brokerUrlTls": place.url_tls} if place.url_tls else {}
    tls |= {"httpUrlTls": place.web_url_tls} if place.web_url_tls else {}
    # C++ takes a missing brokerUrlSsl for a null pointer.
    urls = {"brokerUrl": broker_url, "httpUrl": web_url, "nativeUrl": broker_url, "brokerUrlSsl": ""}
    return answer(urls | tls)


def bundle(call: Call) -> Answer:
    """The bundle of a topic."""
    topic = call.topic()
    _require_namespace(call, topic)
    return plain(bundle_of(call.broker.tenants, topic))


def _require_namespace(call: Call, topic: TopicName) -> None:
    if not call.broker.tenants.has_namespace(topic.namespace):
        raise NotFound("Namespace not found")


def _reached(given: str) -> tuple[str, str] | None:
    """The host of a Host header, and ``:port`` where it names one; None where it cannot be one."""
    try:
        url = urlsplit(f"//{given}")
        host, port = url.hostname, url.port
    except ValueError:
        return None
    return (host_in_url(host), "" if port is None else f":{port}") if host else None


_TOPIC = "/lookup/v2/topic/{domain}/{tenant}/{namespace}/{topic}"

ROUTES = (
    Route("GET", _TOPIC, Permission.TOPIC_USER, lookup),
    Route("GET", f"{_TOPIC}/bundle", Permission.NAMESPACE_USER, bundle),
)
