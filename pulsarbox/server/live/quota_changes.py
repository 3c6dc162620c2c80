"""How to change a limit: the request, the equivalent command, and the current value.

A limit of a namespace is changed there, for all its topics. A limit from the broker's settings is overridden for the
topic only, which requires no restart.
"""

import shlex
from typing import Any, Final, NamedTuple
from urllib.parse import quote

from pulsarbox.broker.broker import Broker
from pulsarbox.broker.policies.effective import held_of
from pulsarbox.broker.policies.kinds.dispatch_rate import DISPATCH_RATE, SUBSCRIPTION_DISPATCH_RATE
from pulsarbox.broker.policies.kinds.publish_rate import PUBLISH_RATE
from pulsarbox.broker.policies.kinds.resource_group import group_key
from pulsarbox.broker.policies.kinds.subscribe_rate import SUBSCRIBE_RATE
from pulsarbox.broker.policies.precedence import Level, set_values
from pulsarbox.config.settings import settings_by_name
from pulsarbox.names import TopicName, parse_topic
from pulsarbox.protocol.policies.policy_values import AGE_QUOTA, QUOTA_ACTIONS, SIZE_QUOTA, meaningful, quota_action
from pulsarbox.protocol.policies.table import BACKLOG_QUOTA, row_of, subscription_rate
from pulsarbox.quantities import BYTES, SECONDS

_FIELDS: Final = {
    (PUBLISH_RATE.name, "messages/s"): "publishThrottlingRateInMsg",
    (PUBLISH_RATE.name, "bytes/s"): "publishThrottlingRateInByte",
    (DISPATCH_RATE.name, "messages/s"): "dispatchThrottlingRateInMsg",
    (DISPATCH_RATE.name, "bytes/s"): "dispatchThrottlingRateInByte",
    (SUBSCRIPTION_DISPATCH_RATE.name, "messages/s"): "dispatchThrottlingRateInMsg",
    (SUBSCRIPTION_DISPATCH_RATE.name, "bytes/s"): "dispatchThrottlingRateInByte",
    (SIZE_QUOTA, "bytes"): "limitSize",
    (AGE_QUOTA, "s"): "limitTime",
    (SUBSCRIBE_RATE.name, ""): "subscribeThrottlingRatePerConsumer",
}
"""Member of a policy's value that holds a limit, by its unit."""
THEN: Final = {action: word for word, action in QUOTA_ACTIONS.items()}
"""Actions of backlog quotas as words of commands."""

_GROUP_OPTIONS: Final = {
    "publishRateInMsgs": "--msg-publish-rate",
    "publishRateInBytes": "--byte-publish-rate",
    "dispatchRateInMsgs": "--msg-dispatch-rate",
    "dispatchRateInBytes": "--byte-dispatch-rate",
}


class Change(NamedTuple):
    """How to change a limit."""

    of: str
    """The level of the change: broker, resource group, namespace, topic or subscription."""
    method: str
    path: str
    query: dict[str, str]
    body: Any
    """The request body with the current value; None if the path contains everything."""
    field: str | None
    """The member of the body that is the limit; None if the body is the limit."""
    command: str
    """The equivalent command with the current value."""
    setting: str | None = None
    """The setting of the broker that defines the limit."""


class Of(NamedTuple):
    """Identifies a limit; see ``quotas.Quota``."""

    policy: str
    level: str
    topic: str
    name: str
    unit: str


def change_of(broker: Broker, of: Of) -> Change | None:
    """Return how to change a limit; None for a setting that requires a restart."""
    if of.policy in settings_by_name():
        return _setting(broker, of.policy)
    if of.policy in _GROUP_OPTIONS:
        return _group(broker, of.name, of.policy)
    namespace = "://" not in of.topic
    if namespace or of.level == Level.NAMESPACE:
        return _of_namespace(broker, of, of.topic if namespace else parse_topic(of.topic).namespace)
    return _of_topic(broker, of, parse_topic(of.topic))


def _setting(broker: Broker, name: str) -> Change | None:
    if not settings_by_name()[name].dynamic:
        return None
    value = getattr(broker.settings, name)
    path = f"/admin/v2/brokers/configuration/{name}/{value}"
    command = f"pulsarbox admin brokers update-dynamic-config --config {name} --value {value}"
    return Change("broker", "POST", path, {}, None, None, command, name)


def _group(broker: Broker, name: str, field: str) -> Change:
    row = broker.catalog.get(group_key(name)) or {}
    rates = [word for key, option in _GROUP_OPTIONS.items() if row.get(key) for word in (option, row[key])]
    command = _line("admin", "resourcegroups", "update", name, *rates)
    return Change("resource group", "PUT", f"/admin/v2/resourcegroups/{quote(name, safe='')}", {}, row, field, command)


def _of_namespace(broker: Broker, of: Of, namespace: str) -> Change | None:
    value = held_of(broker.policies, of.policy, namespace).value
    base = f"/admin/v2/namespaces/{quote(namespace)}"
    return _policy(of, "namespace", base, ("ns", namespace), value)


def _of_topic(broker: Broker, of: Of, topic: TopicName) -> Change | None:
    parts = (topic.domain, topic.tenant, topic.namespace_local, topic.base.local)
    base = f"/admin/v2/{'/'.join(quote(part, safe='') for part in parts)}"
    levels = broker.policies.levels(topic.namespace, topic)
    own = next(set_values(subscription_rate(of.name), levels, broker.settings.clusterName), None)
    if of.policy == SUBSCRIPTION_DISPATCH_RATE.name and own is not None:
        value = meaningful(own.value)
        path = f"{base}/{quote(of.name, safe='')}/dispatchRate"
        rate = ["--msg-dispatch-rate", value["dispatchThrottlingRateInMsg"]]
        rate += ["--byte-dispatch-rate", value["dispatchThrottlingRateInByte"]]
        command = _line("admin", "topicPolicies", "set-subscription-dispatch-rate", topic.base, "-s", of.name, *rate)
        return Change("subscription", "POST", path, {}, value, _FIELDS[of.policy, of.unit], command)
    found = held_of(broker.policies, of.policy, topic.namespace, topic)
    settings = row_of(of.policy.partition(":")[0]).settings
    setting = settings[0] if settings and found.level is Level.BROKER else None
    change = _policy(of, "topic", base, ("topic", str(topic.base)), found.value)
    return None if change is None else change._replace(setting=setting)


def _policy(of: Of, what: str, base: str, subject: tuple[str, str], value: Any) -> Change | None:
    name, _, kind = of.policy.partition(":")
    row, value = row_of(name), meaningful(value)
    place = row.topic if what == "topic" else row.namespace
    if place is None:
        return None
    field = _FIELDS.get((of.policy, of.unit)) or _FIELDS.get((of.policy, ""))
    if name == BACKLOG_QUOTA.name:
        option, quantity = ("--size", BYTES) if field == "limitSize" else ("--age", SECONDS)
        amount = quantity.text(value[field])
        command = _line("quota", "set", subject[1], option, amount, "--then", THEN[quota_action(value)])
        query = {"backlogQuotaType": kind}
        return Change(what, place.verb, f"{base}/{place.path}", query, value, field, command)
    command = _line(subject[0], "policy", subject[1], name, row.shape.text(value))
    if place.query:
        return Change(what, place.verb, f"{base}/{place.path}", {place.query: str(value)}, None, None, command)
    return Change(what, place.verb, f"{base}/{place.path}", {}, value, field, command)


def _line(*words: object) -> str:
    return shlex.join(["pulsarbox", *map(str, words)])
