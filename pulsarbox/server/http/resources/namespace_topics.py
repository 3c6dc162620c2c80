"""Operations on all topics of a namespace, or of one of its bundles: unload, clear backlogs, unsubscribe."""

from collections.abc import Callable, Iterable, Iterator

from pulsarbox.broker.subscription.subscription import Subscription
from pulsarbox.broker.topic.topic import PersistentTopic, Topic
from pulsarbox.clock import Now
from pulsarbox.errors import Conflict, NotFound, PreconditionFailed
from pulsarbox.names import parse_topic
from pulsarbox.server.http.framework.cooperative_work import counted, in_turns, in_waves
from pulsarbox.server.http.framework.request import DONE, DeferredAnswer, HttpRequest, HttpResponse, answer
from pulsarbox.server.http.framework.routes import HttpRoute, Permission
from pulsarbox.server.http.resources.bundles import Bundles, check_bundle

AT_ONCE = 50
"""Topics processed per turn."""

WAVE = 20
"""Topics unloaded or cleared together; the work after their commit is one turn."""


def bundles(call: HttpRequest) -> HttpResponse:
    """Return the hash ranges of a namespace."""
    return answer(call.tenants.policies(call.namespace())["bundles"])


def in_bundle(call: HttpRequest) -> HttpResponse:
    """Return the non-persistent topics of a bundle; 204 if there are none."""
    bundle = check_bundle(call.tenants, call.namespace(), call.path["bundle"])
    names = call.topics.names(call.namespace(), "NON_PERSISTENT", system=True)
    bundles = Bundles(call.tenants, call.namespace())
    found = [name for name in names if bundles.of(parse_topic(name)) == bundle]
    return answer(found) if found else DONE


def unload(call: HttpRequest) -> DeferredAnswer:
    """Unload every topic: producers and consumers are closed, and reconnect automatically. No data is lost."""
    namespace, bundle = _where(call)
    return _unload(call, _loaded(call, namespace, bundle))


def _loaded(call: HttpRequest, namespace: str, bundle: str | None) -> Iterator[Topic]:
    """Yield the loaded topics, of one bundle if given."""
    bundles = Bundles(call.tenants, namespace)
    for topic in call.topics:
        if topic.name.namespace == namespace and bundle in (None, bundles.of(topic.name)):
            yield topic


def _unload(call: HttpRequest, loaded: Iterable[Topic]) -> DeferredAnswer:
    return in_waves(call, loaded, call.topics.unload, lambda: DONE, WAVE)


def unload_bundles(call: HttpRequest, namespace: str, bundles: frozenset[str]) -> DeferredAnswer:
    """Unload the topics of some bundles."""
    of = Bundles(call.tenants, namespace).of
    loaded = (topic for topic in call.topics if topic.name.namespace == namespace and of(topic.name) in bundles)
    return _unload(call, loaded)


def delete_bundle(call: HttpRequest) -> DeferredAnswer:
    """Release the ownership of a bundle. As in Pulsar, no topic is deleted.

    With ``force``, loaded topics are unloaded; otherwise a bundle with topics is refused.
    """
    namespace, tenants = call.namespace(), call.tenants
    if not tenants.has_namespace(namespace):
        raise NotFound("Namespace does not exist")
    bundle = check_bundle(tenants, namespace, call.path["bundle"])
    loaded = list(_loaded(call, namespace, bundle))
    if call.flag("force") and loaded:
        return _unload(call, loaded)

    def look(name: str, now: Now) -> None:
        if not call.flag("force"):
            raise Conflict("Cannot delete non empty bundle")

    def free(now: Now, later: DeferredAnswer) -> None:
        if not loaded:
            raise PreconditionFailed(f"Failed to find ownership for ServiceUnit:{namespace}/{bundle}")
        later.complete(DONE)

    return in_turns(call, _names(call), look, free, AT_ONCE)


def clear_backlog(call: HttpRequest) -> DeferredAnswer:
    """Acknowledge everything for every subscription, or for the named one on each topic that has it.

    Raises NotFound if topics exist and none has it. Without topics there is nothing to do, as in Pulsar.
    """
    wanted = call.path.get("subscription")
    topics = found = 0

    def clear(name: str, ended: Callable[[Now], None], now: Now) -> None:
        nonlocal topics, found
        meant = [each for each in _subscriptions(call, name, now) if each.durable and wanted in (None, each.name)]
        topics, found = topics + 1, found + len(meant)
        one = counted(len(meant) + 1, ended)
        for each in meant:
            each.clearing.clear(one, now)
        one(now)

    def finish() -> HttpResponse:
        if topics and wanted is not None and not found:
            raise NotFound(f"Subscription {wanted} not found in this namespace")
        return DONE

    return in_waves(call, _names(call), clear, finish, WAVE)


def unsubscribe(call: HttpRequest) -> DeferredAnswer:
    """Delete the named subscription from every topic that has it; none is deleted while any has consumers."""
    wanted = call.path["subscription"]
    found: list[Subscription] = []

    def look(name: str, now: Now) -> None:
        found.extend(each for each in _subscriptions(call, name, now) if each.name == wanted)

    def delete(now: Now, later: DeferredAnswer) -> None:
        if any(each.consumers for each in found):
            raise PreconditionFailed(f"Subscription {wanted} has active connected consumers")
        for each in found:
            each.close(now)
            each.remove(now)
        later.complete(DONE)

    return in_turns(call, _names(call), look, delete, AT_ONCE)


def _where(call: HttpRequest) -> tuple[str, str | None]:
    """Return the namespace, and the bundle if given. Raises NotFound, PreconditionFailed."""
    namespace, bundle = call.namespace(), call.path.get("bundle")
    if not call.tenants.has_namespace(namespace):
        raise NotFound("Namespace not found")
    return namespace, None if bundle is None else check_bundle(call.tenants, namespace, bundle)


def _names(call: HttpRequest) -> Iterator[str]:
    """Return the persistent topics in scope; the namespace is validated immediately."""
    namespace, bundle = _where(call)
    pages = call.topics.pages(namespace, "PERSISTENT", system=True)
    bundles = Bundles(call.tenants, namespace)
    return (name for page in pages for name in page if bundle in (None, bundles.of(parse_topic(name))))


def _subscriptions(call: HttpRequest, name: str, now: Now) -> list[Subscription]:
    topic = call.topics.find(parse_topic(name), now)
    return list(topic.subscriptions.values()) if isinstance(topic, PersistentTopic) else []


_NAMESPACE = "/admin/v2/namespaces/{tenant}/{namespace}"
_BUNDLE = f"{_NAMESPACE}/{{bundle}}"

ROUTES = (
    HttpRoute("GET", f"{_NAMESPACE}/bundles", Permission.NAMESPACE_USER, bundles),
    HttpRoute("GET", "/admin/v2/non-persistent/{tenant}/{namespace}/{bundle}", Permission.NAMESPACE_USER, in_bundle),
    HttpRoute("PUT", f"{_NAMESPACE}/unload", Permission.SUPERUSER, unload),
    HttpRoute("DELETE", _BUNDLE, Permission.TENANT_ADMIN, delete_bundle),
    HttpRoute("PUT", f"{_BUNDLE}/unload", Permission.SUPERUSER, unload),
    HttpRoute("POST", f"{_NAMESPACE}/clearBacklog", Permission.NAMESPACE_CONSUMER, clear_backlog),
    HttpRoute("POST", f"{_NAMESPACE}/clearBacklog/{{subscription}}", Permission.NAMESPACE_CONSUMER, clear_backlog),
    HttpRoute("POST", f"{_BUNDLE}/clearBacklog", Permission.NAMESPACE_CONSUMER, clear_backlog),
    HttpRoute("POST", f"{_BUNDLE}/clearBacklog/{{subscription}}", Permission.NAMESPACE_CONSUMER, clear_backlog),
    HttpRoute("POST", f"{_NAMESPACE}/unsubscribe/{{subscription}}", Permission.NAMESPACE_CONSUMER, unsubscribe),
    HttpRoute("POST", f"{_BUNDLE}/unsubscribe/{{subscription}}", Permission.NAMESPACE_CONSUMER, unsubscribe),
)
