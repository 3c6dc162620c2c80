"""HTTP lookup: where a topic is, for clients whose service URL starts with http://."""

from urllib.parse import urlsplit

from pulsarbox.errors import NotFound
from pulsarbox.names import TopicName
from pulsarbox.server.http.bundles import bundle_of
from pulsarbox.server.http.call import Answer, Call, answer, plain
from pulsarbox.server.http.routes import Permission, Route


def lookup(call: Call) -> Answer:
    """The URLs of the broker. Always this one: the topic need not exist, its namespace must."""
    listener = call.query.get("listenerName", "")
    _require_namespace(call, call.topic())
    broker_url = call.broker.endpoints.broker_url_of(listener)
    web_url = call.broker.endpoints.web_url
    if not listener and not call.broker.core.settings.advertisedAddress:
        broker_url, web_url = (_as_reached(call, url) for url in (broker_url, web_url))
    # C++ takes a missing brokerUrlSsl for a null pointer.
    return answer({"brokerUrl": broker_url, "httpUrl": web_url, "nativeUrl": broker_url, "brokerUrlSsl": ""})


def bundle(call: Call) -> Answer:
    """The bundle of a topic."""
    topic = call.topic()
    _require_namespace(call, topic)
    return plain(bundle_of(call.broker.tenants, topic))


def _require_namespace(call: Call, topic: TopicName) -> None:
    if not call.broker.tenants.has_namespace(topic.namespace):
        raise NotFound("Namespace not found")


def _as_reached(call: Call, url: str) -> str:
    """The URL under the name by which this client has reached the box: it knows no other that is sure to work."""
    try:
        host = urlsplit(f"//{call.host}").hostname
    except ValueError:
        host = None
    if not host:
        return url
    own = urlsplit(url)
    return f"{own.scheme}://{f'[{host}]' if ':' in host else host}:{own.port}"


_TOPIC = "/lookup/v2/topic/{domain}/{tenant}/{namespace}/{topic}"

ROUTES = (
    Route("GET", _TOPIC, Permission.TOPIC_USER, lookup),
    Route("GET", f"{_TOPIC}/bundle", Permission.TOPIC_USER, bundle),
)
