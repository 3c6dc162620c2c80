"""The rows of the settings table that say what clients may do where neither topic nor namespace says otherwise."""

from dataclasses import dataclass
from typing import Final

from pulsarbox.config.setting import setting

SCHEMA_STRATEGIES: Final = (
    *("ALWAYS_INCOMPATIBLE", "ALWAYS_COMPATIBLE", "BACKWARD", "FORWARD", "FULL"),
    *("BACKWARD_TRANSITIVE", "FORWARD_TRANSITIVE", "FULL_TRANSITIVE"),
)


@dataclass(frozen=True, init=False, repr=False, eq=False)  # methods are made for Settings, once
class ClientPolicySettings:
    """See ``settings.Settings``, of which these are a part."""

    topicLevelPoliciesEnabled: bool = setting(
        True,
        "Whether topics may have policies of their own. Without, those that they have are kept, and do not count.",
        table="policies",
    )
    maxProducersPerTopic: int = setting(
        0,
        "How many producers may be connected to a topic, or to each partition. 0: any number.",
        table="policies",
        minimum=0,
        dynamic=True,
    )
    maxConsumersPerTopic: int = setting(
        0,
        "How many consumers may be connected to a topic, or to each partition. 0: any number.",
        table="policies",
        minimum=0,
        dynamic=True,
    )
    maxConsumersPerSubscription: int = setting(
        0,
        "How many consumers a subscription of a topic, or of each partition, may have. 0: any number.",
        table="policies",
        minimum=0,
        dynamic=True,
    )
    maxSubscriptionsPerTopic: int = setting(
        0,
        "How many subscriptions a persistent topic may have; those that are there stay. 0: any number.",
        table="policies",
        minimum=0,
        dynamic=True,
    )
    maxTopicsPerNamespace: int = setting(
        0,
        "How many persistent topics a namespace may have; partitions count one by one. 0: any number.",
        table="policies",
        minimum=0,
        dynamic=True,
    )
    encryptionRequireOnProducer: bool = setting(
        False,
        "Whether producers must encrypt what they send. Consumers decrypt it; the broker never has the keys.",
        table="policies",
        dynamic=True,
    )
    schemaCompatibilityStrategy: str = setting(
        "FULL",
        "Which schemas may follow one another on a topic. BACKWARD: the new one reads what the old one wrote; FORWARD:"
        " the old one reads what the new one writes; FULL: both; TRANSITIVE: with all versions, not only the newest.",
        table="policies",
        choices=SCHEMA_STRATEGIES,
        dynamic=True,
    )
    isAllowAutoUpdateSchemaEnabled: bool = setting(
        True,
        "Whether producers and consumers bring new versions of schemas to topics that have one.",
        table="policies",
        dynamic=True,
    )
    isSchemaValidationEnforced: bool = setting(
        False,
        "Whether producers without a schema are refused by topics that have one.",
        table="policies",
        dynamic=True,
    )
