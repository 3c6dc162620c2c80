"""The authorization rules of binary protocol commands, by kind of permission."""

from collections.abc import Callable, Mapping
from enum import Enum
from types import MappingProxyType
from typing import Any, Final

from pulsarbox.broker.security.authorization import CONSUME, PRODUCE, Authorization
from pulsarbox.broker.security.principal import Principal
from pulsarbox.names import parse_topic

Rule = Callable[[Authorization, Principal | None, Any], None]
"""Returns if the principal may send the command; raises as Authorization does, and InvalidTopicName."""


class Needs(Enum):
    """The permission that a command requires."""

    NOTHING = "nothing"
    OPENED = "what this connection has opened itself, and was asked for then"
    NAME = "a name"
    LOOKUP = "produce or consume on the topic"
    PRODUCE = "produce on the topic, and consume where it brings a subscription into being"
    CONSUME = "consume on the topic, with the subscription"
    NAMESPACE = "produce or consume in the namespace"
    SUPERUSER = "to be a superuser, as brokers are"


def _look_up(authorization: Authorization, principal: Principal | None, command: Any) -> None:
    authorization.require_on_topic(principal, parse_topic(command.topic), (PRODUCE, CONSUME))


def _produce(authorization: Authorization, principal: Principal | None, command: Any) -> None:
    topic = parse_topic(command.topic)
    authorization.require_on_topic(principal, topic, (PRODUCE,))
    subscription = getattr(command, "initial_subscription_name", "")
    if subscription:
        authorization.require_on_topic(principal, topic, (CONSUME,), subscription)


def _consume(authorization: Authorization, principal: Principal | None, command: Any) -> None:
    authorization.require_on_topic(principal, parse_topic(command.topic), (CONSUME,), command.subscription)


def _namespace(authorization: Authorization, principal: Principal | None, command: Any) -> None:
    authorization.require_in_namespace(principal, command.namespace, (PRODUCE, CONSUME))


def _name(authorization: Authorization, principal: Principal | None, command: Any) -> None:
    authorization.require_name(principal)


def _superuser(authorization: Authorization, principal: Principal | None, command: Any) -> None:
    authorization.require_superuser(principal)


RULES: Final[Mapping[Needs, Rule | None]] = MappingProxyType(
    {
        Needs.NOTHING: None,
        Needs.OPENED: None,
        Needs.NAME: _name,
        Needs.LOOKUP: _look_up,
        Needs.PRODUCE: _produce,
        Needs.CONSUME: _consume,
        Needs.NAMESPACE: _namespace,
        Needs.SUPERUSER: _superuser,
    }
)
"""Rules by permission. The command table does not load if one is missing here."""
