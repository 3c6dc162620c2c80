"""The permissions granted to roles, stored with the policies of a namespace and used by ``security.authorization``.

Roles have actions in a namespace and on its topics, and subscriptions can be reserved for some roles. Topics are
notified of a change and disconnect clients that are no longer authorized. Source:
https://pulsar.apache.org/docs/4.2.x/security-authorization/.
"""

from collections.abc import Callable, Iterable
from typing import Any, Final

from pulsarbox.broker.tenants import Tenants
from pulsarbox.clock import Now
from pulsarbox.errors import BadRequest
from pulsarbox.names import PERMISSION_ACTIONS as ACTIONS
from pulsarbox.names import TopicName

Roles = dict[str, list[str]]
"""Actions by role; or roles by subscription."""


class Permissions:
    """The permissions in all namespaces of one broker. Methods raise NotFound if the namespace does not exist."""

    def __init__(self, tenants: Tenants) -> None:
        self._tenants = tenants

    def of_namespace(self, namespace: str) -> Roles:
        """Return the actions of each role in the whole namespace."""
        return self._part(namespace, "namespace_auth")

    def of_subscriptions(self, namespace: str) -> Roles:
        """Return the roles that each subscription is reserved for."""
        return self._part(namespace, "subscription_auth_roles")

    def of_topic(self, topic: TopicName) -> Roles:
        """Return the actions of each role on a topic, including those granted in the namespace."""
        found = dict(self.of_namespace(topic.namespace))
        for role, actions in self._part(topic.namespace, "destination_auth").get(str(topic), {}).items():
            found[role] = _ordered({*found.get(role, ()), *actions})
        return found

    def grant(self, namespace: str, role: str, actions: Iterable[str], now: Now) -> None:
        """Set the actions of a role in a namespace."""
        self._change(namespace, "namespace_auth", _putting(role, _ordered(actions)), now)

    def revoke(self, namespace: str, role: str, now: Now) -> None:
        """Revoke all actions of a role in a namespace, except those on single topics."""
        self._change(namespace, "namespace_auth", _dropping(role), now)

    def grant_subscription(self, namespace: str, subscription: str, roles: list[str], now: Now) -> None:
        """Reserve a subscription for these roles; without roles, remove the reservation."""
        change = _putting(subscription, roles) if roles else _dropping(subscription)
        self._change(namespace, "subscription_auth_roles", change, now)

    def revoke_subscription(self, namespace: str, subscription: str, role: str, now: Now) -> None:
        """Remove a role from those that a subscription is reserved for."""
        left = [each for each in self.of_subscriptions(namespace).get(subscription, ()) if each != role]
        self.grant_subscription(namespace, subscription, left, now)

    def grant_topic(self, topic: TopicName, role: str, actions: Iterable[str], now: Now) -> None:
        """Set the actions of a role on a topic, in addition to those in the namespace."""
        ordered = _ordered(actions)
        given = {role: ordered}
        self._change(topic.namespace, "destination_auth", lambda topics: _with(topics, str(topic), given), now)

    def revoke_topic(self, topic: TopicName, role: str, now: Now) -> None:
        """Revoke the actions of a role on a topic, except those granted in the namespace."""
        self._change(topic.namespace, "destination_auth", lambda topics: _without(topics, str(topic), role), now)

    def forget_topic(self, topic: TopicName) -> None:
        """Drop the grants on a deleted topic, so that a new one with its name does not inherit them."""
        if str(topic) in self._part(topic.namespace, "destination_auth"):
            self._change(topic.namespace, "destination_auth", _dropping(str(topic)))

    def _part(self, namespace: str, part: str) -> dict[str, Any]:
        found: dict[str, Any] = (self._tenants.policies(namespace).get("auth_policies") or {}).get(part) or {}
        return found

    def _change(
        self, namespace: str, part: str, change: Callable[[dict[str, Any]], dict[str, Any]], now: Now | None = None
    ) -> None:
        policies = self._tenants.policies(namespace)
        auth = dict(policies.get("auth_policies") or EMPTY)
        auth[part] = change(auth.get(part) or {})
        self._tenants.set_policy(namespace, "auth_policies", auth, now)


def checked(value: Any) -> dict[str, Any]:
    """Return the validated ``auth_policies`` of a new namespace. Raises BadRequest."""
    if not isinstance(value, dict) or not set(value) <= set(EMPTY):
        raise BadRequest(f"auth_policies must be an object of {', '.join(EMPTY)}")
    found = {part: {} if value.get(part) is None else value[part] for part in EMPTY}
    for part, each in found.items():
        if not isinstance(each, dict):
            raise BadRequest(f"auth_policies: {part} must be an object")
    topics = found["destination_auth"]
    if not all(isinstance(roles, dict) for roles in topics.values()):
        raise BadRequest("auth_policies: destination_auth must hold an object for each topic")
    return {
        "namespace_auth": {role: check_actions(actions) for role, actions in found["namespace_auth"].items()},
        "destination_auth": {
            topic: {role: check_actions(actions) for role, actions in roles.items()} for topic, roles in topics.items()
        },
        "subscription_auth_roles": {
            name: check_roles(roles) for name, roles in found["subscription_auth_roles"].items()
        },
    }


def check_actions(value: object) -> list[str]:
    """Return the distinct actions in a client's list, in the order of ACTIONS. Raises BadRequest."""
    if not isinstance(value, list) or not all(each in ACTIONS for each in value):
        raise BadRequest(f"Actions must be a list of {', '.join(ACTIONS)}, not {str(value)[:80]}")
    return _ordered(value)


def check_roles(value: object) -> list[str]:
    """Return the distinct roles in a client's list, sorted. Raises BadRequest."""
    if not isinstance(value, list) or not all(isinstance(each, str) for each in value):
        raise BadRequest("Roles must be a list of names")
    return sorted(set(value))


EMPTY: Final[dict[str, Any]] = {"namespace_auth": {}, "destination_auth": {}, "subscription_auth_roles": {}}
"""No grants."""


def _ordered(actions: Iterable[str]) -> list[str]:
    """Return distinct actions in the order of ACTIONS."""
    return sorted(set(actions), key=ACTIONS.index)


def _putting(key: str, value: Any) -> Callable[[dict[str, Any]], dict[str, Any]]:
    return lambda before: {**before, key: value}


def _dropping(key: str) -> Callable[[dict[str, Any]], dict[str, Any]]:
    return lambda before: {each: value for each, value in before.items() if each != key}


def _with(topics: dict[str, Any], topic: str, roles: Roles) -> dict[str, Any]:
    return {**topics, topic: {**topics.get(topic, {}), **roles}}


def _without(topics: dict[str, Any], topic: str, role: str) -> dict[str, Any]:
    left = _dropping(role)(topics.get(topic, {}))
    return _putting(topic, left)(topics) if left else _dropping(topic)(topics)
