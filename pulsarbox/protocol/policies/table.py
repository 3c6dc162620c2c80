"""The table of policies.

Endpoints, `pulsarbox ns policy`, `pulsarbox topic policy` and docs/policies.md are derived from its rows, so they
always agree. Error texts are those of Pulsar 4.2. Sources:
https://pulsar.apache.org/docs/4.2.x/admin-api-namespaces/, https://pulsar.apache.org/docs/4.2.x/admin-api-topics/.
"""

from dataclasses import replace
from typing import Any, Final

from pulsarbox.config.sections.client_policy_settings import SCHEMA_STRATEGIES
from pulsarbox.protocol.policies.policy_values import (
    AUTO_SUBSCRIPTION,
    AUTO_TOPIC,
    BACKLOG_QUOTA_NAME,
    BOOLEAN,
    COUNT,
    DELAYED_DELIVERY,
    DISPATCH_RATE,
    INACTIVE_TOPICS,
    OLD_SCHEMA_STRATEGIES,
    PERSISTENCE,
    PUBLISH_RATE,
    QUOTA,
    QUOTA_TYPES,
    RETENTION,
    SIZE_OR_OFF,
    SUBSCRIBE_RATE,
    SUBSCRIPTION_TYPES,
    TYPED_RATE,
    UNDEFINED,
    is_strategy,
    limits_dispatch,
    limits_publishing,
    limits_subscribing,
    not_negative,
    number_or_off,
    quota_name,
)
from pulsarbox.protocol.policies.row import NO_CONTENT, Blank, Legacy, PolicyEndpoint, PolicyRow
from pulsarbox.protocol.policies.shapes import Several, Text, ValueShape, WholeNumber, Word
from pulsarbox.protocol.policies.stored_rows import CLUSTER_ROWS, STORED_ROWS
from pulsarbox.quantities import BYTES, MINUTES, SECONDS


def _count(
    name: str, namespace: tuple[str, str], topic: PolicyEndpoint | None, meaning: str, shape: ValueShape = COUNT
) -> PolicyRow:
    """Return the row of a limit on a number of objects; 0 is no limit. ``namespace`` is its key and path."""
    key, path = namespace
    at = PolicyEndpoint(key, path, blank=Blank.ZERO, minimum=0, too_small=f"{path} must be 0 or more")
    return PolicyRow(name, meaning, shape, at, topic, sets=not_negative)


def _of_topic(key: str, path: str, too_small: str = "", **more: Any) -> PolicyEndpoint:
    """Return the topic-level place of such a limit."""
    given: dict[str, Any] = {"blank": Blank.ZERO, "minimum": 0} | more
    return PolicyEndpoint(key, path, **given, too_small=too_small or f"{path} must be 0 or more")


_STORAGE: Final = (
    PolicyRow(
        "retention",
        "Time (minutes) and size (MiB) for which messages are kept after all subscriptions have acknowledged them; -1:"
        " no limit, 0 for both: not kept",
        RETENTION,
        PolicyEndpoint("retention_policies", "retention"),
        PolicyEndpoint("retentionPolicies", "retention", blank=Blank.KEEPS, applied=True),
        typed={"retentionTimeInMinutes": None, "retentionSizeInMB": None},
    ),
    PolicyRow(
        "message-ttl",
        "Age in seconds at which an unacknowledged message expires; 0: never",
        number_or_off(SECONDS),
        PolicyEndpoint(
            "message_ttl_in_seconds",
            "messageTTL",
            blank=Blank.ZERO,
            minimum=0,
            too_small="Invalid value for message TTL, message TTL must >= 0",
        ),
        PolicyEndpoint(
            "messageTTLInSeconds",
            "messageTTL",
            applied=True,
            query="messageTTL",
            minimum=0,
            too_small="Invalid value for message TTL",
        ),
        sets=not_negative,
    ),
    PolicyRow(
        "subscription-expiration-time",
        "Minutes without consumers and acknowledgements after which a subscription is deleted; 0: never",
        number_or_off(MINUTES),
        PolicyEndpoint(
            "subscription_expiration_time_minutes",
            "subscriptionExpirationTime",
            blank=Blank.ZERO,
            minimum=0,
            too_small="Invalid value for subscription expiration time",
        ),
        PolicyEndpoint(
            "subscriptionExpirationTimeInMinutes",
            "subscriptionExpirationTime",
            applied=True,
            query="subscriptionExpirationTime",
            minimum=0,
            too_small="Invalid value for subscription expiration time",
        ),
        sets=not_negative,
    ),
    PolicyRow(
        "inactive-topic-policies",
        "Deletion of inactive topics: whether, which, and after how many seconds",
        INACTIVE_TOPICS,
        PolicyEndpoint("inactive_topic_policies", "inactiveTopicPolicies"),
        PolicyEndpoint("inactiveTopicPolicies", "inactiveTopicPolicies", applied=True),
    ),
    PolicyRow(
        "compaction-threshold",
        "Uncompacted size in bytes at which a topic is compacted automatically; 0: only on request",
        SIZE_OR_OFF,
        PolicyEndpoint(
            "compaction_threshold",
            "compactionThreshold",
            verb="PUT",
            blank=Blank.ZERO,
            minimum=0,
            too_small="compactionThreshold must be 0 or more",
        ),
        PolicyEndpoint(
            "compactionThreshold",
            "compactionThreshold",
            blank=Blank.ZERO,
            applied=True,
            minimum=0,
            too_small="Invalid value for compactionThreshold",
        ),
        sets=not_negative,
    ),
    PolicyRow(
        "compression-at-rest",
        "Codec for compressing entries on disk once their volume is sealed: none, zstd, lz4, zlib, snappy, or a"
        " compression plugin",
        Text(),
        PolicyEndpoint("compression_at_rest", "compressionAtRest"),
        PolicyEndpoint("compressionAtRest", "compressionAtRest", applied=True),
        own=True,
    ),
    PolicyRow(
        "persistence",
        "Number of bookies, of copies of each entry, and of acknowledgements to wait for",
        PERSISTENCE,
        PolicyEndpoint(
            "persistence", "persistence", blank=Blank.REFUSED, without="persistence policies should not be null"
        ),
        PolicyEndpoint(
            "persistence",
            "persistence",
            blank=Blank.REFUSED,
            without="persistence policies should not be null",
            applied=True,
        ),
        stored_only="a box stores one copy of each message if it has one data directory",
    ),
)

_DELIVERY: Final = (
    PolicyRow(
        "dispatch-rate",
        "Maximum messages and bytes a period dispatched to all subscriptions of a topic together",
        DISPATCH_RATE,
        PolicyEndpoint("topicDispatchRate", "dispatchRate", by_cluster=True),
        PolicyEndpoint("dispatchRate", "dispatchRate", blank=Blank.KEEPS, applied=True),
        typed=TYPED_RATE,
        sets=limits_dispatch,
    ),
    PolicyRow(
        "subscription-dispatch-rate",
        "Maximum messages and bytes a period dispatched to each subscription of a topic",
        DISPATCH_RATE,
        PolicyEndpoint("subscriptionDispatchRate", "subscriptionDispatchRate", by_cluster=True),
        PolicyEndpoint("subscriptionDispatchRate", "subscriptionDispatchRate", blank=Blank.KEEPS, applied=True),
        typed=TYPED_RATE,
        sets=limits_dispatch,
    ),
    PolicyRow(
        "publish-rate",
        "Maximum messages and bytes a second published on a topic",
        PUBLISH_RATE,
        PolicyEndpoint("publishMaxMessageRate", "publishRate", by_cluster=True),
        PolicyEndpoint("publishRate", "publishRate", blank=Blank.KEEPS, unset=NO_CONTENT),
        sets=limits_publishing,
    ),
    PolicyRow(
        "subscribe-rate",
        "Maximum number of times that a consumer may subscribe in a period of seconds",
        SUBSCRIBE_RATE,
        PolicyEndpoint("clusterSubscribeRate", "subscribeRate", by_cluster=True),
        PolicyEndpoint("subscribeRate", "subscribeRate", blank=Blank.KEEPS, applied=True),
        sets=limits_subscribing,
    ),
    PolicyRow(
        "delayed-delivery",
        "Delayed delivery: whether it is enabled, its precision (tick) and the maximum delay",
        DELAYED_DELIVERY,
        PolicyEndpoint("delayed_delivery_policies", "delayedDelivery", superuser=True),
        PolicyEndpoint("delayedDelivery", "delayedDelivery", applied=True),
    ),
    PolicyRow(
        "dispatcher-pause-on-ack-state-persistent",
        "Whether dispatch pauses while a subscription has more acknowledgement state than can be stored",
        BOOLEAN,
        PolicyEndpoint(
            "dispatcherPauseOnAckStatePersistentEnabled",
            "dispatcherPauseOnAckStatePersistent",
            always=True,
            unset=False,
        ),
        PolicyEndpoint(
            "dispatcherPauseOnAckStatePersistentEnabled",
            "dispatcherPauseOnAckStatePersistent",
            always=True,
            unset=False,
        ),
        stored_only="a box stores all acknowledgements, regardless of their number",
    ),
)

_LIMITS: Final = (
    _count(
        "max-producers",
        ("max_producers_per_topic", "maxProducersPerTopic"),
        _of_topic("maxProducerPerTopic", "maxProducers", applied=True),
        "Maximum number of producers connected to a topic; 0: no limit",
    ),
    _count(
        "max-consumers",
        ("max_consumers_per_topic", "maxConsumersPerTopic"),
        _of_topic("maxConsumerPerTopic", "maxConsumers", applied=True),
        "Maximum number of consumers connected to a topic; 0: no limit",
    ),
    _count(
        "max-consumers-per-subscription",
        ("max_consumers_per_subscription", "maxConsumersPerSubscription"),
        _of_topic(
            "maxConsumersPerSubscription",
            "maxConsumersPerSubscription",
            "Invalid value for maxConsumersPerSubscription",
            unset=NO_CONTENT,
        ),
        "Maximum number of consumers of a subscription; 0: no limit",
    ),
    _count(
        "max-subscriptions-per-topic",
        ("max_subscriptions_per_topic", "maxSubscriptionsPerTopic"),
        _of_topic("maxSubscriptionsPerTopic", "maxSubscriptionsPerTopic", unset=NO_CONTENT),
        "Maximum number of subscriptions of a topic; 0: no limit",
    ),
    PolicyRow(
        "max-topics-per-namespace",
        "Maximum number of topics in a namespace, counting each partition; 0: no limit",
        COUNT,
        PolicyEndpoint(
            "max_topics_per_namespace",
            "maxTopicsPerNamespace",
            blank=Blank.ZERO,
            unset=0,
            minimum=0,
            too_small="maxTopicsPerNamespace must be 0 or more",
        ),
        sets=not_negative,
    ),
    _count(
        "max-unacked-messages-per-consumer",
        ("max_unacked_messages_per_consumer", "maxUnackedMessagesPerConsumer"),
        _of_topic(
            "maxUnackedMessagesOnConsumer",
            "maxUnackedMessagesOnConsumer",
            "maxUnackedNum must be 0 or more",
            blank=Blank.REMOVES,
            applied=True,
        ),
        "Maximum number of unacknowledged messages of a consumer before dispatch to it stops; 0: no limit",
    ),
    _count(
        "max-unacked-messages-per-subscription",
        ("max_unacked_messages_per_subscription", "maxUnackedMessagesPerSubscription"),
        _of_topic(
            "maxUnackedMessagesOnSubscription",
            "maxUnackedMessagesOnSubscription",
            "maxUnackedNum must be 0 or more",
            blank=Blank.REMOVES,
            applied=True,
        ),
        "Maximum number of unacknowledged messages of all consumers of a subscription together; 0: no limit",
    ),
    PolicyRow(
        "max-message-size",
        "Maximum size of a message in bytes, except for chunks; 0: the broker's limit",
        number_or_off(BYTES),
        topic=_of_topic(
            "maxMessageSize",
            "maxMessageSize",
            "topic-level maxMessageSize must be greater than or equal to 0 and must be smaller than that in the"
            " broker-level",
            unset=NO_CONTENT,
        ),
        sets=not_negative,
    ),
)

_CLIENTS: Final = (
    PolicyRow(
        "deduplication",
        "Whether a message that a producer sends again is stored only once",
        BOOLEAN,
        PolicyEndpoint("deduplicationEnabled", "deduplication", blank=Blank.ZERO),
        PolicyEndpoint("deduplicationEnabled", "deduplicationEnabled", applied=True),
    ),
    PolicyRow(
        "deduplication-snapshot-interval",
        "Interval in seconds at which the sequence IDs of producers are stored",
        WholeNumber(quantity=SECONDS),
        PolicyEndpoint(
            "deduplicationSnapshotIntervalSeconds",
            "deduplicationSnapshotInterval",
            removed=False,
            minimum=0,
            too_small="interval must be greater than or equal to 0",
        ),
        PolicyEndpoint(
            "deduplicationSnapshotIntervalSeconds",
            "deduplicationSnapshotInterval",
            minimum=0,
            too_small="interval must be 0 or more",
        ),
        stored_only="a box stores sequence IDs with the messages",
    ),
    PolicyRow(
        "subscription-types-enabled",
        "Allowed subscription types",
        Several(Word(SUBSCRIPTION_TYPES)),
        PolicyEndpoint("subscription_types_enabled", "subscriptionTypesEnabled", blank=Blank.REFUSED, unset=[]),
        PolicyEndpoint("subscriptionTypesEnabled", "subscriptionTypesEnabled", blank=Blank.REFUSED, unset=[]),
        sets=bool,
    ),
    PolicyRow(
        "auto-topic-creation",
        "Whether connecting clients create missing topics, and with how many partitions",
        AUTO_TOPIC,
        PolicyEndpoint("autoTopicCreationOverride", "autoTopicCreation"),
    ),
    PolicyRow(
        "auto-subscription-creation",
        "Whether connecting consumers create missing subscriptions",
        AUTO_SUBSCRIPTION,
        PolicyEndpoint("autoSubscriptionCreationOverride", "autoSubscriptionCreation"),
        PolicyEndpoint("autoSubscriptionCreationOverride", "autoSubscriptionCreation", applied=True),
    ),
    PolicyRow(
        "encryption-required",
        "Whether producers must encrypt messages",
        BOOLEAN,
        PolicyEndpoint("encryption_required", "encryptionRequired", blank=Blank.ZERO, unset=False, removed=False),
        sets=bool,
    ),
    PolicyRow(
        "subscription-auth-mode",
        "Whether a subscription's name must begin with the role of its consumers, if authorization is enabled",
        Word(("None", "Prefix")),
        PolicyEndpoint("subscription_auth_mode", "subscriptionAuthMode", unset="None", removed=False),
    ),
)

_SCHEMAS: Final = (
    PolicyRow(
        "schema-compatibility-strategy",
        "Compatibility check for new schema versions of a topic",
        Word((UNDEFINED, *SCHEMA_STRATEGIES)),
        PolicyEndpoint(
            "schema_compatibility_strategy",
            "schemaCompatibilityStrategy",
            verb="PUT",
            unset=UNDEFINED,
            removed=False,
            legacy=Legacy("schema_auto_update_compatibility_strategy", OLD_SCHEMA_STRATEGIES),
        ),
        PolicyEndpoint(
            "schemaCompatibilityStrategy",
            "schemaCompatibilityStrategy",
            verb="PUT",
            nothing=UNDEFINED,
            applied=True,
        ),
        sets=is_strategy,
    ),
    PolicyRow(
        "schema-auto-update-compatibility-strategy",
        "Legacy form of schema-compatibility-strategy",
        Word(tuple(OLD_SCHEMA_STRATEGIES)),
        PolicyEndpoint(
            "schema_auto_update_compatibility_strategy",
            "schemaAutoUpdateCompatibilityStrategy",
            verb="PUT",
            unset=NO_CONTENT,
            removed=False,
        ),
    ),
    PolicyRow(
        "is-allow-auto-update-schema",
        "Whether producers and consumers may register new schema versions",
        BOOLEAN,
        PolicyEndpoint(
            "is_allow_auto_update_schema", "isAllowAutoUpdateSchema", blank=Blank.ZERO, unset=True, removed=False
        ),
    ),
    PolicyRow(
        "schema-validation-enforced",
        "Whether producers without a schema are rejected on topics that have one",
        BOOLEAN,
        PolicyEndpoint(
            "schema_validation_enforced", "schemaValidationEnforced", blank=Blank.ZERO, unset=False, removed=False
        ),
        PolicyEndpoint(
            "schemaValidationEnforced",
            "schemaValidationEnforced",
            blank=Blank.ZERO,
            unset=False,
            removed=False,
            applied=True,
        ),
    ),
)

_OTHERS: Final = (
    PolicyRow(
        "allowed-topic-property-keys-for-metrics",
        "Topic properties that metrics carry as labels",
        Several(Text()),
        PolicyEndpoint("allowed_topic_property_keys_for_metrics", "allowedTopicPropertyKeysForMetrics"),
        stored_only="the metrics of a box have no custom labels",
    ),
)

_SETTINGS: Final = {
    "delayed-delivery": (
        "delayedDeliveryEnabled",
        "delayedDeliveryTickTimeMillis",
        "delayedDeliveryMaxDelayInMillis",
    ),
    "compression-at-rest": ("compressionAtRest",),
    "retention": ("defaultRetentionTimeInMinutes", "defaultRetentionSizeInMB"),
    "message-ttl": ("ttlDurationDefaultInSeconds",),
    "subscription-expiration-time": ("subscriptionExpirationTimeMinutes",),
    "inactive-topic-policies": (
        "brokerDeleteInactiveTopicsEnabled",
        "brokerDeleteInactiveTopicsMode",
        "brokerDeleteInactiveTopicsMaxInactiveDurationSeconds",
    ),
    "dispatch-rate": ("dispatchThrottlingRatePerTopicInMsg", "dispatchThrottlingRatePerTopicInByte"),
    "subscription-dispatch-rate": (
        "dispatchThrottlingRatePerSubscriptionInMsg",
        "dispatchThrottlingRatePerSubscriptionInByte",
    ),
    "publish-rate": ("maxPublishRatePerTopicInMessages", "maxPublishRatePerTopicInBytes"),
    "subscribe-rate": ("subscribeThrottlingRatePerConsumer", "subscribeRatePeriodPerConsumerInSecond"),
    "max-producers": ("maxProducersPerTopic",),
    "max-consumers": ("maxConsumersPerTopic",),
    "max-consumers-per-subscription": ("maxConsumersPerSubscription",),
    "max-subscriptions-per-topic": ("maxSubscriptionsPerTopic",),
    "max-topics-per-namespace": ("maxTopicsPerNamespace",),
    "max-unacked-messages-per-consumer": ("maxUnackedMessagesPerConsumer",),
    "max-unacked-messages-per-subscription": ("maxUnackedMessagesPerSubscription",),
    "max-message-size": ("maxMessageSize",),
    "deduplication": ("brokerDeduplicationEnabled",),
    "subscription-types-enabled": ("subscriptionTypesEnabled",),
    "auto-topic-creation": ("allowAutoTopicCreation", "allowAutoTopicCreationType", "defaultNumPartitions"),
    "auto-subscription-creation": ("allowAutoSubscriptionCreation",),
    "encryption-required": ("encryptionRequireOnProducer",),
    "is-allow-auto-update-schema": ("isAllowAutoUpdateSchemaEnabled",),
    "schema-compatibility-strategy": ("schemaCompatibilityStrategy",),
    "schema-validation-enforced": ("isSchemaValidationEnforced",),
    BACKLOG_QUOTA_NAME: (
        "backlogQuotaDefaultLimitBytes",
        "backlogQuotaDefaultLimitSecond",
        "backlogQuotaDefaultRetentionPolicy",
    ),
}
"""Broker settings with the default of each policy."""


def _with_settings(row: PolicyRow) -> PolicyRow:
    return replace(row, settings=_SETTINGS.get(row.name, ()))


ROWS: Final = tuple(
    map(_with_settings, (*_STORAGE, *_DELIVERY, *_LIMITS, *_CLIENTS, *_SCHEMAS, *_OTHERS, *STORED_ROWS))
)
"""Policies whose endpoints take one value. Backlog quotas and ``OTHER_ROWS`` have endpoints of their own."""

BACKLOG_QUOTA: Final = _with_settings(
    PolicyRow(
        BACKLOG_QUOTA_NAME,
        "Maximum size and age of a backlog, and the action when it reaches either",
        QUOTA,
        PolicyEndpoint("backlog_quota_map", "backlogQuota", unset={}, without="the attribute policy cannot be null"),
        PolicyEndpoint(
            "backLogQuotaMap", "backlogQuota", unset={}, applied=True, without="the attribute policy cannot be null"
        ),
    )
)
"""One quota for each type; its GET path is ``backlogQuotaMap``."""


def _of_type(kind: str) -> PolicyRow:
    namespace, topic = (
        replace(place, members=(kind,)) if place is not None else None
        for place in (BACKLOG_QUOTA.namespace, BACKLOG_QUOTA.topic)
    )
    return replace(BACKLOG_QUOTA, name=quota_name(kind), namespace=namespace, topic=topic)


QUOTA_ROWS: Final = tuple(map(_of_type, QUOTA_TYPES))
"""One row for each quota type: both are stored in one map, and each is set at a level of its own."""

UNSUBSCRIBED_RETENTION: Final = replace(ROWS[0], name="unsubscribed-retention", settings=())
"""A retention rule of the box for topics without a retention policy of their own or of their namespace."""

SUBSCRIPTION_POLICIES: Final = "subscriptionPolicies"
"""The member of TopicPolicies with the policies of single subscriptions, by subscription name."""
SUBSCRIPTION_RATE: Final = "dispatchRate"
"""The only policy of a single subscription."""


def subscription_rate(subscription: str) -> PolicyRow:
    """Return the row of one subscription's dispatch rate, which is stored in ``subscriptionPolicies``."""
    place = PolicyEndpoint(SUBSCRIPTION_POLICIES, SUBSCRIPTION_RATE, members=(subscription, SUBSCRIPTION_RATE))
    shared = row_of("subscription-dispatch-rate")
    return replace(shared, namespace=None, topic=place, settings=())


RESOURCE_GROUP_NAME: Final = PolicyRow(
    "resource-group",
    "Resource group whose limits the namespace shares with others",
    Text(),
    PolicyEndpoint("resource_group_name", "resourcegroup"),
)
"""Set by ``POST resourcegroup/{resourcegroup}``."""

OTHER_ROWS: Final = (RESOURCE_GROUP_NAME, *CLUSTER_ROWS)
"""Policies whose endpoints look up other objects."""


def row_of(name: str) -> PolicyRow:
    """Return the row of a policy. Raises KeyError."""
    return _BY_NAME[name]


NAMES: Final = tuple(sorted(row.name for row in (*ROWS, BACKLOG_QUOTA, *OTHER_ROWS)))
_BY_NAME: Final = {row.name: row for row in (*ROWS, BACKLOG_QUOTA, *QUOTA_ROWS, *OTHER_ROWS, UNSUBSCRIBED_RETENTION)}
