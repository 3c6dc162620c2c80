"""Broker-level values of policies from the settings, as shown by the Admin API."""

from collections.abc import Callable, Mapping
from typing import Any, Final

from pulsarbox.config import Settings
from pulsarbox.config.disk_share import disk_share
from pulsarbox.protocol.policies.policy_values import QUOTA_TYPES, quota_name, quota_value, retains


def broker_value(name: str, settings: Settings) -> Any:
    """Return the broker-level value; None for a policy that only topics or namespaces have."""
    made = _VALUES.get(name)
    return made(settings) if made is not None else None


def _dispatch_rate(level: str) -> Callable[[Settings], dict[str, Any]]:
    def made(settings: Settings) -> dict[str, Any]:
        return {
            "dispatchThrottlingRateInMsg": getattr(settings, f"dispatchThrottlingRate{level}InMsg"),
            "dispatchThrottlingRateInByte": getattr(settings, f"dispatchThrottlingRate{level}InByte"),
            "relativeToPublishRate": settings.dispatchThrottlingRateRelativeToPublishRate,
            "ratePeriodInSecond": 1,
        }

    return made


def _backlog_quota(settings: Settings) -> dict[str, Any]:
    size = settings.backlogQuotaDefaultLimitBytes
    if settings.backlogQuotaDefaultLimitGB > 0:
        size = int(settings.backlogQuotaDefaultLimitGB * (1 << 30))
    seconds = settings.backlogQuotaDefaultLimitSecond
    return quota_value(settings.backlogQuotaDefaultRetentionPolicy, size=size, seconds=seconds)


def _retention(settings: Settings) -> dict[str, int]:
    return {
        "retentionTimeInMinutes": settings.defaultRetentionTimeInMinutes,
        "retentionSizeInMB": settings.defaultRetentionSizeInMB,
    }


def _unsubscribed_retention(settings: Settings) -> dict[str, int]:
    off = retains(_retention(settings)) or disk_share(settings.unsubscribedRetentionSize).is_nothing
    return {"unsubscribedRetentionTimeInMinutes": 0 if off else settings.unsubscribedRetentionTimeInMinutes}


_VALUES: Final[Mapping[str, Callable[[Settings], Any]]] = {
    "retention": _retention,
    "unsubscribed-retention": _unsubscribed_retention,
    "message-ttl": lambda settings: settings.ttlDurationDefaultInSeconds,
    "subscription-expiration-time": lambda settings: settings.subscriptionExpirationTimeMinutes,
    "inactive-topic-policies": lambda settings: {
        "inactiveTopicDeleteMode": settings.brokerDeleteInactiveTopicsMode,
        "maxInactiveDurationSeconds": settings.brokerDeleteInactiveTopicsMaxInactiveDurationSeconds
        or settings.brokerDeleteInactiveTopicsFrequencySeconds,
        "deleteWhileInactive": settings.brokerDeleteInactiveTopicsEnabled,
    },
    **dict.fromkeys(map(quota_name, QUOTA_TYPES), _backlog_quota),
    "compaction-threshold": lambda settings: settings.brokerServiceCompactionThresholdInBytes,
    "compression-at-rest": lambda settings: settings.compressionAtRest,
    "persistence": lambda settings: {
        "bookkeeperEnsemble": settings.managedLedgerDefaultEnsembleSize,
        "bookkeeperWriteQuorum": settings.managedLedgerDefaultWriteQuorum,
        "bookkeeperAckQuorum": settings.managedLedgerDefaultAckQuorum,
        "managedLedgerMaxMarkDeleteRate": 1.0,
    },
    "dispatch-rate": _dispatch_rate("PerTopic"),
    "subscription-dispatch-rate": _dispatch_rate("PerSubscription"),
    "publish-rate": lambda settings: {
        "publishThrottlingRateInMsg": settings.maxPublishRatePerTopicInMessages,
        "publishThrottlingRateInByte": settings.maxPublishRatePerTopicInBytes,
    },
    "subscribe-rate": lambda settings: {
        "subscribeThrottlingRatePerConsumer": settings.subscribeThrottlingRatePerConsumer,
        "ratePeriodInSecond": settings.subscribeRatePeriodPerConsumerInSecond,
    },
    "delayed-delivery": lambda settings: {
        "tickTime": settings.delayedDeliveryTickTimeMillis,
        "active": settings.delayedDeliveryEnabled,
        "maxDeliveryDelayInMillis": settings.delayedDeliveryMaxDelayInMillis,
    },
    "dispatcher-pause-on-ack-state-persistent": lambda settings: False,
    "max-producers": lambda settings: settings.maxProducersPerTopic,
    "max-consumers": lambda settings: settings.maxConsumersPerTopic,
    "max-consumers-per-subscription": lambda settings: settings.maxConsumersPerSubscription,
    "max-subscriptions-per-topic": lambda settings: settings.maxSubscriptionsPerTopic,
    "max-topics-per-namespace": lambda settings: settings.maxTopicsPerNamespace,
    "max-unacked-messages-per-consumer": lambda settings: settings.maxUnackedMessagesPerConsumer,
    "max-unacked-messages-per-subscription": lambda settings: settings.maxUnackedMessagesPerSubscription,
    "max-message-size": lambda settings: settings.maxMessageSize,
    "deduplication": lambda settings: settings.brokerDeduplicationEnabled,
    "subscription-types-enabled": lambda settings: sorted(
        each.strip() for each in settings.subscriptionTypesEnabled.split(",")
    ),
    "auto-topic-creation": lambda settings: {
        "allowAutoTopicCreation": settings.allowAutoTopicCreation,
        "topicType": settings.allowAutoTopicCreationType,
        **(
            {"defaultNumPartitions": settings.defaultNumPartitions}
            if settings.allowAutoTopicCreationType == "partitioned"
            else {}
        ),
    },
    "auto-subscription-creation": lambda settings: {
        "allowAutoSubscriptionCreation": settings.allowAutoSubscriptionCreation
    },
    "encryption-required": lambda settings: settings.encryptionRequireOnProducer,
    "subscription-auth-mode": lambda settings: "None",
    "schema-compatibility-strategy": lambda settings: settings.schemaCompatibilityStrategy,
    "is-allow-auto-update-schema": lambda settings: settings.isAllowAutoUpdateSchemaEnabled,
    "replicator-dispatch-rate": lambda settings: {
        "dispatchThrottlingRateInMsg": 0,  # as in Pulsar by default; a box does not replicate
        "dispatchThrottlingRateInByte": 0,
        "relativeToPublishRate": False,
        "ratePeriodInSecond": 1,
    },
    "entry-filters": lambda settings: {"entryFilterNames": ""},
    "replication-clusters": lambda settings: [settings.clusterName],
    "schema-validation-enforced": lambda settings: settings.isSchemaValidationEnforced,
}
