"""What is done to all topics of a namespace, or of one bundle of it: unload, clear backlogs, unsubscribe."""

from collections.abc import Callable, Iterator

from pulsarbox.broker.subscription import Subscription
from pulsarbox.broker.topic import PersistentTopic
from pulsarbox.clock import Now
from pulsarbox.errors import Conflict, NotFound, PreconditionFailed
from pulsarbox.names import parse_topic
from pulsarbox.server.http.bundles import bundle_of, check_bundle
from pulsarbox.server.http.call import DONE, Answer, Call, Later, answer
from pulsarbox.server.http.routes import Permission, Route
from pulsarbox.server.http.turns import in_turns

AT_ONCE = 50
"""Topics that one turn sees to."""


def bundles(call: Call) -> Answer:
    """The hash ranges of a namespace."""
    return answer(call.broker.tenants.policies(call.namespace())["bundles"])


def in_bundle(call: Call) -> Answer:
    """The topics of a namespace that are not persistent and fall into a bundle; 204 where none does."""
    bundle = check_bundle(call.broker.tenants, call.namespace(), call.path["bundle"])
    names = call.broker.topics.names(call.namespace(), "NON_PERSISTENT", system=True)
    found = [name for name in names if bundle_of(call.broker.tenants, parse_topic(name)) == bundle]
    return answer(found) if found else DONE


def unload(call: Call) -> Later:
    """Unload every topic: producers and consumers are closed, and come back by themselves. Nothing is lost."""
    namespace, bundle = _where(call)
    tenants = call.broker.tenants
    loaded = [topic for topic in call.broker.topics if topic.name.namespace == namespace]
    wanted = [topic for topic in loaded if bundle is None or bundle_of(tenants, topic.name) == bundle]
    count = _Count()
    return in_turns(
        call, wanted, lambda topic, now: call.broker.topics.unload(topic, count.begin(), now), count.finish, AT_ONCE
    )


def delete_bundle(call: Call) -> Later:
    """Let go of a bundle whose topics nobody needs. As with Pulsar nothing is deleted, whatever the word says: with
    ``force`` the topics are unloaded, and without it a bundle that has topics is refused."""
    namespace, tenants, topics = call.namespace(), call.broker.tenants, call.broker.topics
    if not tenants.has_namespace(namespace):
        raise NotFound("Namespace does not exist")
    bundle = check_bundle(tenants, namespace, call.path["bundle"])
    loaded = [
        topic for topic in topics if topic.name.namespace == namespace and bundle_of(tenants, topic.name) == bundle
    ]
    count = _Count()
    if call.flag("force") and loaded:
        return in_turns(
            call, loaded, lambda topic, now: topics.unload(topic, count.begin(), now), count.finish, AT_ONCE
        )

    def look(name: str, now: Now) -> None:
        if not call.flag("force"):
            raise Conflict("Cannot delete non empty bundle")

    def free(now: Now, later: Later) -> None:
        if not loaded:
            raise PreconditionFailed(f"Failed to find ownership for ServiceUnit:{namespace}/{bundle}")
        later.give(DONE)

    return in_turns(call, _names(call), look, free, AT_ONCE)


def clear_backlog(call: Call) -> Later:
    """Acknowledge everything for every subscription, or for the one that is named wherever it is."""
    wanted = call.path.get("subscription")
    count = _Count("" if wanted is None else f"Subscription {wanted} not found in this namespace")

    def clear(name: str, now: Now) -> None:
        for each in _subscriptions(call, name, now):
            if each.durable and wanted in (None, each.name):
                each.clearing.clear(count.begin(), now)

    return in_turns(call, _names(call), clear, count.finish, AT_ONCE)


def unsubscribe(call: Call) -> Later:
    """Delete the subscription that is named from every topic that has it. Nothing is deleted while it has consumers."""
    wanted = call.path["subscription"]
    found: list[Subscription] = []

    def look(name: str, now: Now) -> None:
        found.extend(each for each in _subscriptions(call, name, now) if each.name == wanted)

    def delete(now: Now, later: Later) -> None:
        if any(each.consumers for each in found):
            raise PreconditionFailed(f"Subscription {wanted} has active connected consumers")
        for each in found:
            each.close(now)
            each.topic.remove_subscription(each, now)
        later.give(DONE)

    return in_turns(call, _names(call), look, delete, AT_ONCE)


class _Count:
    """What is begun in several turns, and ends whenever it does; the answer when all of it has ended."""

    def __init__(self, nothing: str = "") -> None:
        """``nothing`` is what is wrong where nothing is begun."""
        self._nothing = nothing
        self._begun = self._ended = 0
        self._later: Later | None = None

    def begin(self) -> Callable[[Now], None]:
        """One more; to be called at its end."""
        self._begun += 1
        return self._end

    def _end(self, now: Now) -> None:
        self._ended += 1
        if self._later is not None and self._ended == self._begun:
            self._later.give(DONE)

    def finish(self, now: Now, later: Later) -> None:
        """All are begun. Raises NotFound where there was nothing."""
        if self._nothing and not self._begun:
            raise NotFound(self._nothing)
        if self._ended == self._begun:
            later.give(DONE)
        else:
            self._later = later


def _where(call: Call) -> tuple[str, str | None]:
    """The namespace, and the bundle where one is named. Raises NotFound, PreconditionFailed."""
    namespace, bundle = call.namespace(), call.path.get("bundle")
    if not call.broker.tenants.has_namespace(namespace):
        raise NotFound("Namespace not found")
    return namespace, None if bundle is None else check_bundle(call.broker.tenants, namespace, bundle)


def _names(call: Call) -> Iterator[str]:
    """The persistent topics that are meant; their namespace is looked at at once."""
    namespace, bundle = _where(call)
    pages = call.broker.topics.pages(namespace, "PERSISTENT", system=True)
    tenants = call.broker.tenants
    return (
        name for page in pages for name in page if bundle is None or bundle_of(tenants, parse_topic(name)) == bundle
    )


def _subscriptions(call: Call, name: str, now: Now) -> list[Subscription]:
    topic = call.broker.topics.find(parse_topic(name), now)
    return list(topic.subscriptions.values()) if isinstance(topic, PersistentTopic) else []


_NAMESPACE = "/admin/v2/namespaces/{tenant}/{namespace}"
_BUNDLE = f"{_NAMESPACE}/{{bundle}}"

ROUTES = (
    Route("GET", f"{_NAMESPACE}/bundles", Permission.NAMESPACE_USER, bundles),
    Route("GET", "/admin/v2/non-persistent/{tenant}/{namespace}/{bundle}", Permission.NAMESPACE_USER, in_bundle),
    Route("PUT", f"{_NAMESPACE}/unload", Permission.SUPERUSER, unload),
    Route("DELETE", _BUNDLE, Permission.TENANT_ADMIN, delete_bundle),
    Route("PUT", f"{_BUNDLE}/unload", Permission.SUPERUSER, unload),
    Route("POST", f"{_NAMESPACE}/clearBacklog", Permission.NAMESPACE_CONSUMER, clear_backlog),
    Route("POST", f"{_NAMESPACE}/clearBacklog/{{subscription}}", Permission.NAMESPACE_CONSUMER, clear_backlog),
    Route("POST", f"{_BUNDLE}/clearBacklog", Permission.NAMESPACE_CONSUMER, clear_backlog),
    Route("POST", f"{_BUNDLE}/clearBacklog/{{subscription}}", Permission.NAMESPACE_CONSUMER, clear_backlog),
    Route("POST", f"{_NAMESPACE}/unsubscribe/{{subscription}}", Permission.NAMESPACE_CONSUMER, unsubscribe),
    Route("POST", f"{_BUNDLE}/unsubscribe/{{subscription}}", Permission.NAMESPACE_CONSUMER, unsubscribe),
)
