"""Dead letters: the policies by which the box moves them for subscriptions, and the topics that contain them.

Not part of Pulsar's API: there clients handle dead letters, and the broker is not involved.
"""

from collections.abc import Iterator
from typing import Any, Final

from pulsarbox.broker.dead_letter.retention_warning import drops_dead_letters
from pulsarbox.broker.policies.kinds.dead_letter import DeadLetterPolicy
from pulsarbox.broker.security.authorization import CONSUME, PRODUCE
from pulsarbox.broker.subscription.subscription import Subscription
from pulsarbox.broker.topic.topic import PersistentTopic
from pulsarbox.clock import Now
from pulsarbox.errors import NotAllowed, NotFound
from pulsarbox.names import PERSISTENT, parse_topic
from pulsarbox.server.http.framework.cooperative_work import in_turns
from pulsarbox.server.http.framework.request import DONE, DeferredAnswer, HttpRequest, HttpResponse, answer
from pulsarbox.server.http.framework.resource_lookup import find_topic, parts_of, persistent
from pulsarbox.server.http.framework.routes import HttpRoute, Permission
from pulsarbox.server.http.resources.subscriptions import check_name
from pulsarbox.storage.catalog import topic_key
from pulsarbox.storage.dead_letter_topics import for_dead_letters

AT_ONCE: Final = 50
"""Partitions or topics processed per turn."""
_WHAT: Final = "A dead letter policy"


def _subscriptions(call: HttpRequest) -> list[Subscription]:
    """Return the subscription on each partition that has it. Raises NotFound; NotAllowed if it is not durable."""
    name, topic = call.path["subscription"], call.topic()
    found = []
    for part in parts_of(call):
        each = persistent(find_topic(call, part, call.now), _WHAT).subscriptions.get(name)
        if each is not None:
            found.append(each)
    if not found:
        raise NotFound(f"Subscription {name} not found for topic {topic}")
    if not all(each.durable for each in found):
        raise NotAllowed(f"{_WHAT} requires a durable subscription, and {name} is not durable")
    return found


def get(call: HttpRequest) -> HttpResponse:
    """Return the dead letter policy of a subscription, or null."""
    policies = [each.dead_letters.policy for each in _subscriptions(call)]
    policy = next((each for each in policies if each is not None), None)
    return answer(None if policy is None else policy.as_json())


def put(call: HttpRequest) -> DeferredAnswer:
    """Set the dead letter policy of a subscription on all partitions; create its topic with a subscription."""
    found = _subscriptions(call)
    policy = DeadLetterPolicy.read(call.json(), call.topic(), call.path["subscription"])
    if policy.initial_subscription:
        check_name(policy.initial_subscription)
    may_fill(call, policy)
    call.broker.dead_letters.prepare(policy, call.now)
    return _set(call, found, policy)


def may_fill(call: HttpRequest, policy: DeadLetterPolicy) -> None:
    """Raise AuthorizationError unless the client may produce to the topic that the box will fill.

    The topic may be in another tenant, which the route's permission does not cover.
    """
    authorization = call.broker.authorization
    authorization.require_on_topic(call.principal, policy.topic, (PRODUCE,))
    if policy.initial_subscription:
        authorization.require_on_topic(call.principal, policy.topic, (CONSUME,), policy.initial_subscription)


def delete(call: HttpRequest) -> DeferredAnswer:
    """Remove the dead letter policy of a subscription: the box moves no more messages."""
    return _set(call, _subscriptions(call), None)


def _set(call: HttpRequest, found: list[Subscription], policy: DeadLetterPolicy | None) -> DeferredAnswer:
    def work(subscription: Subscription, now: Now) -> None:
        subscription.dead_letters.set_policy(policy, now)

    return in_turns(call, found, work, lambda now, later: later.complete(DONE), AT_ONCE)


def listing(call: HttpRequest) -> DeferredAnswer:
    """Return the dead-letter and retry topics of a namespace, each with its contents."""
    rows: list[dict[str, Any]] = []

    def work(names: list[str], now: Now) -> None:
        for name in names:
            topic = call.topics.find(parse_topic(name), now)
            if isinstance(topic, PersistentTopic):
                rows.append(_row(topic))

    return in_turns(call, _names(call), work, lambda now, later: later.complete(answer(rows)), 1)


def _names(call: HttpRequest) -> Iterator[list[str]]:
    catalog = call.broker.catalog
    for page in call.topics.pages(call.namespace(), PERSISTENT.upper()):
        found = [name for name in page if for_dead_letters(parse_topic(name), catalog.get(topic_key(name)) or {})]
        yield from (found[at : at + AT_ONCE] for at in range(0, max(len(found), 1), AT_ONCE))


def _row(topic: PersistentTopic) -> dict[str, Any]:
    ledger = topic.ledger
    durable = {each.name: each.cursor.backlog_messages for each in topic.subscriptions.values() if each.durable}
    return {
        "topic": str(topic.name),
        "messages": topic.stored.visible_messages(),
        "size": ledger.size,
        "backlogs": durable,
        "lost": drops_dead_letters(topic),
        "lastPublishTime": ledger.last_publish_time,
    }


_POLICY: Final = "/pulsarbox/v1/dead-letter-policy/{domain}/{tenant}/{namespace}/{topic}/{subscription}"

ROUTES = (
    HttpRoute("GET", _POLICY, Permission.TOPIC_CONSUMER, get),
    HttpRoute("POST", _POLICY, Permission.TENANT_ADMIN, put),
    HttpRoute("DELETE", _POLICY, Permission.TENANT_ADMIN, delete),
    HttpRoute("GET", "/pulsarbox/v1/dead-letters/{tenant}/{namespace}", Permission.NAMESPACE_USER, listing),
)
