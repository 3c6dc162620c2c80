"""Policies of topics: the endpoints generated from the policy table.

``?applied=true`` returns the value in effect, of topic, namespace or broker. ``?isGlobal=true`` addresses the values
for all clusters; a box stores them separately as Pulsar does, and they apply if the topic sets no value of its own.
Source: https://pulsar.apache.org/docs/4.2.x/admin-api-topics/, https://pulsar.apache.org/docs/4.2.x/topic-policies/.
"""

from collections.abc import Iterator
from dataclasses import replace
from typing import Any

from pulsarbox.broker.policies.precedence import GLOBAL, Levels, in_effect, set_values, subscription_rate_in_effect
from pulsarbox.config import Settings
from pulsarbox.errors import NotAllowed, NotFound, PreconditionFailed
from pulsarbox.names import TopicName
from pulsarbox.protocol.policies.checks import fits
from pulsarbox.protocol.policies.row import PolicyEndpoint, PolicyRow, always
from pulsarbox.protocol.policies.table import BACKLOG_QUOTA, ROWS, SUBSCRIPTION_POLICIES, SUBSCRIPTION_RATE, row_of
from pulsarbox.server.http.framework.request import DONE, HttpRequest, HttpResponse
from pulsarbox.server.http.framework.resource_lookup import require_namespace
from pulsarbox.server.http.framework.routes import Handler, HttpRoute, Permission
from pulsarbox.server.http.policies.values import UNCHANGED, changed, given, shown
from pulsarbox.storage.catalog import Row, policies_key

TOPIC = "/admin/v2/{domain}/{tenant}/{namespace}/{topic}"
OWN = "/pulsarbox/v1/policies/{domain}/{tenant}/{namespace}/{topic}"
SHARED_RATE = row_of("subscription-dispatch-rate")
"""The rate of subscriptions without a rate of their own."""
SUBSCRIBE_RATE = row_of("subscribe-rate")


def topic_of(call: HttpRequest) -> TopicName:
    """Return the topic of the request. Raises NotFound; PreconditionFailed for a partition; NotAllowed."""
    name, broker = call.topic(), call.broker
    if not broker.settings.topicLevelPoliciesEnabled:
        raise NotAllowed("Topic level policies is disabled, to enable the topic level policy and retry.")
    require_namespace(call, name)
    if name.base != name:
        raise PreconditionFailed("Not allowed to set/get topic policy for a partition")
    if not broker.topics.exists(name) and not broker.topics.partitions(name):
        raise NotFound(f"Topic {name} not found")
    return name


def own(call: HttpRequest, name: TopicName) -> Row:
    """Return the policies set on the topic; with ``isGlobal``, those for all clusters."""
    row = call.broker.policies.row(policies_key(str(name)))
    found: Row = row.get(GLOBAL, {}) if call.flag("isGlobal") else row
    return found


def set_topic_policy(call: HttpRequest, name: TopicName, key: str, value: Any) -> HttpResponse:
    """Set a policy of the topic, or remove it with None."""
    call.broker.policies.set_topic(name, key, value, call.now, everywhere=call.flag("isGlobal"))
    return DONE


def levels(call: HttpRequest, name: TopicName) -> Levels:
    """Return the rows that set the topic's policies; with ``isGlobal`` without those that only this cluster has."""
    return call.broker.policies.levels(name.namespace, name, everywhere=call.flag("isGlobal"))


def _get(row: PolicyRow, place: PolicyEndpoint) -> Handler:
    def handler(call: HttpRequest) -> HttpResponse:
        name = topic_of(call)
        if place.applied and call.flag("applied"):
            return shown(_applied(row, levels(call, name), call.settings), place)
        return shown(own(call, name).get(place.key), place)

    return handler


def _applied(row: PolicyRow, levels: Levels, settings: Settings) -> Any:
    """Return the value in effect; for a subscribe rate without effect, the nearest that is set, as Pulsar does."""
    found = in_effect(row, levels, settings).value
    if row is SUBSCRIBE_RATE and not row.sets(found):
        nearest = next(set_values(replace(row, sets=always), levels, settings.clusterName), None)
        return found if nearest is None else nearest.value
    return found


def _set(row: PolicyRow, place: PolicyEndpoint) -> Handler:
    def handler(call: HttpRequest) -> HttpResponse:
        name = topic_of(call)
        value = given(call, row, place)
        if value is UNCHANGED:
            return DONE
        if row.name == "retention" and value is not None:
            _check_quotas(own(call, name), value)
        if row.name == "max-message-size" and value > call.settings.maxMessageSize:
            raise PreconditionFailed(place.too_small)
        set_topic_policy(call, name, place.key, value)
        return changed(call, row, value)

    return handler


def _check_quotas(policies: Row, retention: Any) -> None:
    assert BACKLOG_QUOTA.topic is not None
    if not all(fits(quota, retention) for quota in policies.get(BACKLOG_QUOTA.topic.key, {}).values()):
        raise PreconditionFailed(
            "Retention Quota must exceed configured backlog quota for topic. Please increase retention quota and retry"
        )


def _remove(place: PolicyEndpoint) -> Handler:
    def handler(call: HttpRequest) -> HttpResponse:
        return set_topic_policy(call, topic_of(call), place.key, None)

    return handler


# All policies


def remove_all(call: HttpRequest) -> HttpResponse:
    """Remove all policies of a topic, including those for all clusters."""
    call.broker.policies.put_topic(call.topic(), None, call.now)
    return DONE


# One subscription


def get_subscription_rate(call: HttpRequest) -> HttpResponse:
    """Return the dispatch rate of one subscription, which need not exist."""
    name = topic_of(call)
    subscription = call.path["subscription"]
    if call.flag("applied"):
        value = subscription_rate_in_effect(subscription, levels(call, name), call.settings).value
    else:
        value = own(call, name).get(SUBSCRIPTION_POLICIES, {}).get(subscription, {}).get(SUBSCRIPTION_RATE)
    assert SHARED_RATE.topic is not None
    return shown(value, SHARED_RATE.topic)


def set_subscription_rate(call: HttpRequest) -> HttpResponse:
    """Set the dispatch rate of one subscription. As in Pulsar, an unlimited rate changes nothing."""
    name = topic_of(call)
    assert SHARED_RATE.topic is not None
    value = given(call, SHARED_RATE, SHARED_RATE.topic)
    if value is UNCHANGED or not SHARED_RATE.sets(value):
        return DONE
    return _keep_rate(call, name, value)


def remove_subscription_rate(call: HttpRequest) -> HttpResponse:
    """Remove the dispatch rate of one subscription."""
    return _keep_rate(call, topic_of(call), None)


def _keep_rate(call: HttpRequest, name: TopicName, rate: Any) -> HttpResponse:
    subscription = call.path["subscription"]
    rows = dict(own(call, name).get(SUBSCRIPTION_POLICIES, {}))
    row = {key: value for key, value in rows.pop(subscription, {}).items() if key != SUBSCRIPTION_RATE}
    if rate is not None:
        row[SUBSCRIPTION_RATE] = rate
    if row:
        rows[subscription] = row
    return set_topic_policy(call, name, SUBSCRIPTION_POLICIES, rows or None)


def _routes() -> Iterator[HttpRoute]:
    who = Permission.TENANT_ADMIN
    for row in ROWS:
        place = row.topic
        if place is None:
            continue
        path = f"{OWN if row.own else TOPIC}/{place.path}"
        yield HttpRoute("GET", path, who, _get(row, place))
        yield HttpRoute(place.verb, path, who, _set(row, place))
        if place.removed:
            yield HttpRoute("DELETE", path, who, _remove(place))
    yield HttpRoute("DELETE", f"{TOPIC}/policies", who, remove_all)
    path = f"{TOPIC}/{{subscription}}/{SUBSCRIPTION_RATE}"
    yield HttpRoute("GET", path, who, get_subscription_rate)
    yield HttpRoute("POST", path, who, set_subscription_rate)
    yield HttpRoute("DELETE", path, who, remove_subscription_rate)


ROUTES = tuple(_routes())
