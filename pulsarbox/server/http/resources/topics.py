"""Topics of both domains: creation, deletion, listing, unloading, and properties."""

from pulsarbox.clock import Now
from pulsarbox.errors import NotAcceptable, NotFound, PreconditionFailed
from pulsarbox.names import parse_topic
from pulsarbox.server.http.framework.cooperative_work import in_turns, when_all
from pulsarbox.server.http.framework.request import DONE, DeferredAnswer, HttpRequest, HttpResponse, answer, texts
from pulsarbox.server.http.framework.resource_lookup import check_is_users, find_topic, parts_of, require_namespace
from pulsarbox.server.http.framework.routes import HttpRoute, Permission
from pulsarbox.server.http.resources.bundles import Bundles
from pulsarbox.storage.catalog import Row, partitions_key, topic_key

_MODES = {"persistent": "PERSISTENT", "non-persistent": "NON_PERSISTENT"}


def topics(call: HttpRequest) -> DeferredAnswer:
    """Return the topics of a namespace, or of one of its bundles, partitions individually."""
    return listed(call, _MODES[call.path["domain"]], call.query.get("bundle", ""))


def listed(call: HttpRequest, mode: str, bundle: str = "") -> DeferredAnswer:
    """Return the names of topics, from ``Topics.pages``. Raises NotFound."""
    found: list[str] = []
    bundles = Bundles(call.tenants, call.namespace()) if bundle else None

    def add(page: list[str], now: Now) -> None:
        found.extend(page if bundles is None else [name for name in page if bundles.of(parse_topic(name)) == bundle])

    pages = call.topics.pages(call.namespace(), mode, system=call.flag("includeSystemTopic"))
    return in_turns(call, pages, add, lambda now, later: later.complete(answer(found)), 1)


def create(call: HttpRequest) -> HttpResponse:
    """Create a non-partitioned topic. The body has its properties, or is empty."""
    topic = call.topic()
    check_is_users(topic)
    call.topics.create(topic, call.now, texts(call.json(), "Properties of a topic"))
    return DONE


def delete(call: HttpRequest) -> HttpResponse:
    """Delete a topic; while clients are connected, only with force."""
    topic = call.topic()
    missing = not call.topics.exists(topic) and not call.topics.partitions(topic)
    if missing and not topic.persistent:
        return DONE  # non-persistent topics are transient: as in Pulsar, this is not an error
    call.topics.delete(topic, call.now, force=call.flag("force"))
    return DONE


def subscriptions(call: HttpRequest) -> HttpResponse:
    """Return the names of the subscriptions, including those of readers; for a partitioned topic, of all partitions."""
    topic = call.topic()
    partitions = call.topics.partitions(topic)
    found = [call.topics.find(name, call.now) for name in (topic, *(topic.partition(i) for i in range(partitions)))]
    if not partitions and found == [None]:
        raise NotFound(f"Topic {topic} not found")
    return answer(sorted({each.name for one in found if one is not None for each in one.all_subscriptions()}))


def unload(call: HttpRequest) -> DeferredAnswer:
    """Unload a topic, or all partitions of one: its clients reconnect, and no data is lost."""
    topics = call.topics
    names = parts_of(call)
    found = [topic for name in names if (topic := topics.find(name, call.now)) is not None]
    if not found and names == [call.topic()]:
        find_topic(call, names[0], call.now)
    later = DeferredAnswer()
    done, _ = when_all(later, len(found) + 1, lambda: DONE)
    for topic in found:
        topics.unload(topic, done, call.now)
    done(call.now)
    return later


def get_properties(call: HttpRequest) -> HttpResponse:
    """Return the properties of a topic."""
    return answer(_properties(call)[2])


def put_properties(call: HttpRequest) -> HttpResponse:
    """Add or change properties of a topic."""
    key, row, properties = _properties(call)
    added = texts(call.json(), "Properties of a topic")
    call.broker.commits.put_row(key, row | {"properties": properties | added})
    return DONE


def delete_property(call: HttpRequest) -> HttpResponse:
    """Remove one property of a topic. Idempotent."""
    key, row, properties = _properties(call)
    name = call.query.get("key")
    if not name:
        raise PreconditionFailed("The query must name a property: ?key=...")
    left = {each: value for each, value in properties.items() if each != name}
    call.broker.commits.put_row(key, row | {"properties": left})
    return DONE


def _properties(call: HttpRequest) -> tuple[str, Row, dict[str, str]]:
    """Return the row with the properties of a topic: its key, the row, and the properties. Raises NotFound."""
    name, catalog = call.topic(), call.broker.catalog
    if not name.persistent:
        raise NotAcceptable("Need to provide a persistent topic name")
    require_namespace(call, name)
    for key in (partitions_key(str(name)), topic_key(str(name))):
        row = catalog.get(key)
        if row is not None:
            return key, row, row.get("properties", {})
    raise NotFound(f"Topic {name} not found")


_NAMESPACE = "/admin/v2/{domain}/{tenant}/{namespace}"

ROUTES = (
    HttpRoute("GET", _NAMESPACE, Permission.NAMESPACE_USER, topics),
    HttpRoute("PUT", f"{_NAMESPACE}/{{topic}}", Permission.TENANT_ADMIN, create),
    HttpRoute("DELETE", f"{_NAMESPACE}/{{topic}}", Permission.TENANT_ADMIN, delete),
    HttpRoute("GET", f"{_NAMESPACE}/{{topic}}/subscriptions", Permission.TOPIC_CONSUMER, subscriptions),
    HttpRoute("PUT", f"{_NAMESPACE}/{{topic}}/unload", Permission.TENANT_ADMIN, unload),
    HttpRoute("GET", f"{_NAMESPACE}/{{topic}}/properties", Permission.TOPIC_USER, get_properties),
    HttpRoute("PUT", f"{_NAMESPACE}/{{topic}}/properties", Permission.TENANT_ADMIN, put_properties),
    HttpRoute("DELETE", f"{_NAMESPACE}/{{topic}}/properties", Permission.TENANT_ADMIN, delete_property),
)
