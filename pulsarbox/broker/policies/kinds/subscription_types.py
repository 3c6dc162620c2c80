"""Subscription types allowed on a persistent topic. As in Pulsar 4.2, non-persistent topics allow all.

Source: https://pulsar.apache.org/docs/4.2.x/admin-api-namespaces/, subscriptionTypesEnabled.
"""

from typing import Final

from pulsarbox.broker.policies.policies import TopicPolicies
from pulsarbox.broker.policies.policy import Policy
from pulsarbox.broker.policies.precedence import Level
from pulsarbox.config import Settings
from pulsarbox.errors import NotAllowed
from pulsarbox.protocol.PulsarApi_pb2 import CommandSubscribe


def _read(value: list[str]) -> frozenset[str]:
    return frozenset(value)


SUBSCRIPTION_TYPES: Final = Policy("subscription-types-enabled", _read)


def check_type_enabled(policies: TopicPolicies, settings: Settings, sub_type: CommandSubscribe.SubType) -> None:
    """Raise NotAllowed, with the text of Pulsar's PersistentTopic, for a type that is not enabled."""
    name = CommandSubscribe.SubType.Name(sub_type)
    enabled, level = policies.found(SUBSCRIPTION_TYPES)
    if sub_type == CommandSubscribe.Key_Shared:
        by_broker = level is Level.BROKER and name not in enabled
        if by_broker or not settings.subscriptionKeySharedEnable:
            raise NotAllowed("Key_Shared subscription is disabled by broker.")
    if name not in enabled:
        raise NotAllowed(f"Topic[{{{policies.name}}}] doesn't support {name} sub type!")
