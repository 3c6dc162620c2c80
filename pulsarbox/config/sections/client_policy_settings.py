"""Settings of the [policies] table about clients: defaults for topics and namespaces without a policy."""

from dataclasses import dataclass
from typing import Final

from pulsarbox.config.setting import setting

SCHEMA_STRATEGIES: Final = (
    *("ALWAYS_INCOMPATIBLE", "ALWAYS_COMPATIBLE", "BACKWARD", "FORWARD", "FULL"),
    *("BACKWARD_TRANSITIVE", "FORWARD_TRANSITIVE", "FULL_TRANSITIVE"),
)


@dataclass(frozen=True, init=False, repr=False, eq=False)  # Settings defines the methods once
class ClientPolicySettings:
    """The part of ``Settings`` on clients, in the table [policies]."""

    topicLevelPoliciesEnabled: bool = setting(
        True,
        "Enables topic-level policies. If false, existing topic-level policies are kept but have no effect.",
        table="policies",
    )
    maxProducersPerTopic: int = setting(
        0,
        "Maximum number of producers connected to a topic, or to each partition. 0: no limit.",
        table="policies",
        minimum=0,
        dynamic=True,
    )
    maxConsumersPerTopic: int = setting(
        0,
        "Maximum number of consumers connected to a topic, or to each partition. 0: no limit.",
        table="policies",
        minimum=0,
        dynamic=True,
    )
    maxConsumersPerSubscription: int = setting(
        0,
        "Maximum number of consumers of a subscription on a topic, or on each partition. 0: no limit.",
        table="policies",
        minimum=0,
        dynamic=True,
    )
    maxSubscriptionsPerTopic: int = setting(
        0,
        "Maximum number of subscriptions of a persistent topic; existing ones are not affected. 0: no limit.",
        table="policies",
        minimum=0,
        dynamic=True,
    )
    maxTopicsPerNamespace: int = setting(
        0,
        "Maximum number of persistent topics in a namespace, counting each partition. 0: no limit.",
        table="policies",
        minimum=0,
        dynamic=True,
    )
    encryptionRequireOnProducer: bool = setting(
        False,
        "Requires producers to encrypt messages. Consumers decrypt them; the broker never has the keys.",
        table="policies",
        dynamic=True,
    )
    schemaCompatibilityStrategy: str = setting(
        "FULL",
        "Compatibility check for new schema versions of a topic. BACKWARD: the new schema reads data written with the "
        "old one; FORWARD: the old schema reads data written with the new one; FULL: both; TRANSITIVE: with all "
        "versions, not only the newest.",
        table="policies",
        choices=SCHEMA_STRATEGIES,
        dynamic=True,
    )
    isAllowAutoUpdateSchemaEnabled: bool = setting(
        True,
        "Allows producers and consumers to register new schema versions on topics that have a schema.",
        table="policies",
        dynamic=True,
    )
    isSchemaValidationEnforced: bool = setting(
        False,
        "Rejects producers without a schema on topics that have one.",
        table="policies",
        dynamic=True,
    )
