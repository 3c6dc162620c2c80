"""Settings on expiry, backlog quotas, deletion of unused topics and subscriptions, and compaction."""

from dataclasses import dataclass

from pulsarbox.config.setting import setting


@dataclass(frozen=True, init=False, repr=False, eq=False)  # Settings defines the methods once
class RetentionSettings:
    """The part of ``Settings`` on expiry, quotas and compaction, in the tables [policies] and [managedLedger]."""

    ttlDurationDefaultInSeconds: int = setting(
        0,
        "Time after publishing when an unacknowledged message expires: the box acknowledges it for every "
        "subscription. 0: never. A message TTL of the namespace or topic takes precedence.",
        table="policies",
        unit="seconds",
        minimum=0,
        dynamic=True,
    )
    backlogQuotaDefaultLimitBytes: int = setting(
        -1,
        "Maximum size of a topic's backlog, measured from its slowest durable subscription; -1: no limit. A backlog "
        "quota of the namespace or topic takes precedence.",
        table="policies",
        unit="bytes",
        minimum=-1,
        dynamic=True,
    )
    backlogQuotaDefaultLimitGB: float = setting(
        -1.0,
        "Alternative to backlogQuotaDefaultLimitBytes in GiB, as in the configuration of a standalone Pulsar (10 "
        "there). A value above 0 takes precedence over backlogQuotaDefaultLimitBytes.",
        table="policies",
        unit="GiB",
        minimum=-1,
        dynamic=True,
    )
    backlogQuotaDefaultLimitSecond: int = setting(
        -1,
        "Maximum age of the oldest message in a topic's backlog; -1: no limit. A backlog quota of the namespace or "
        "topic takes precedence.",
        table="policies",
        unit="seconds",
        minimum=-1,
        dynamic=True,
    )
    backlogQuotaDefaultRetentionPolicy: str = setting(
        "producer_request_hold",
        "Action when a backlog reaches one of the default limits: hold producers, reject producers, or acknowledge "
        "the oldest messages for the slowest subscriptions.",
        table="policies",
        choices={
            "hold": "producer_request_hold",
            "refuse": "producer_exception",
            "evict": "consumer_backlog_eviction",
        },
        dynamic=True,
    )
    backlogQuotaCheckEnabled: bool = setting(
        True,
        "Enforces backlog quotas.",
        table="policies",
        dynamic=True,
    )
    unsubscribedRetentionTimeInMinutes: int = setting(
        10_080,
        "Own setting. Time for which messages that no subscription has covered are kept. 0: as in Pulsar, which "
        "deletes them with their inactive topic; -1: no time limit. A retention policy of the topic or namespace, or "
        "a default retention, replaces this setting.",
        table="policies",
        unit="minutes",
        minimum=-1,
        dynamic=True,
    )
    unsubscribedRetentionSize: str = setting(
        "10%",
        "Own setting. Maximum size of messages that no subscription has covered, in all topics together: a share of "
        "the file system of the data directory (of the memory, for an in-memory box) such as 10%, or a size such as "
        "20G. Above it the oldest are deleted first, in topics that hold more than their share. 0: as in Pulsar; -1: "
        "no size limit.",
        table="policies",
        dynamic=True,
    )
    brokerDeleteInactiveTopicsEnabled: bool = setting(
        True,
        "Deletes inactive topics, as in Pulsar. Inactive topic policies of the namespace or topic take precedence. A "
        "topic with a subscription, retention or unsubscribed retention is not deleted.",
        table="policies",
        dynamic=True,
    )
    brokerDeleteInactiveTopicsMode: str = setting(
        "delete_when_no_subscriptions",
        "Definition of an inactive topic: without producers and subscriptions, or without producers, consumers and "
        "backlog.",
        table="policies",
        choices=("delete_when_no_subscriptions", "delete_when_subscriptions_caught_up"),
        dynamic=True,
    )
    brokerDeleteInactiveTopicsFrequencySeconds: int = setting(
        60,
        "Time without use after which an inactive topic is deleted. Pulsar checks at this interval as well; the box "
        "deletes the topic at that moment.",
        table="policies",
        unit="seconds",
        minimum=1,
        dynamic=True,
    )
    brokerDeleteInactiveTopicsMaxInactiveDurationSeconds: int = setting(
        0,
        "Time without use after which an inactive topic is deleted; a value above 0 replaces "
        "brokerDeleteInactiveTopicsFrequencySeconds.",
        table="policies",
        unit="seconds",
        minimum=0,
        dynamic=True,
    )
    brokerDeleteInactivePartitionedTopicMetadataEnabled: bool = setting(
        False,
        "Deletes a partitioned topic with its last partition. If false, its partitions are created again on next use.",
        table="policies",
        dynamic=True,
    )
    subscriptionExpirationTimeMinutes: int = setting(
        0,
        "Time without consumers after which a durable subscription and its backlog are deleted; 0: never. A "
        "subscription expiration time of the namespace or topic takes precedence.",
        table="policies",
        unit="minutes",
        minimum=0,
        dynamic=True,
    )
    brokerServiceCompactionThresholdInBytes: int = setting(
        0,
        "Uncompacted size at which a topic is compacted automatically; 0: only on request. A compaction threshold of "
        "the namespace or topic takes precedence.",
        table="policies",
        unit="bytes",
        minimum=0,
        dynamic=True,
    )
    brokerServiceCompactionMonitorIntervalInSeconds: int = setting(
        60,
        "Minimum interval between two automatic compactions of a topic.",
        table="policies",
        unit="seconds",
        minimum=1,
        dynamic=True,
    )
    topicCompactionRetainNullKey: bool = setting(
        False,
        "Keeps messages without a key in the compacted topic. If false, they are only in the log.",
        table="policies",
        dynamic=True,
    )
    compactionMaxKeysInMemory: int = setting(
        1_000_000,
        "Own setting. Keys that a compaction holds in memory at a time, at about 170 bytes each; a topic with more "
        "keys is read again for each such number.",
        table="policies",
        unit="keys",
        minimum=1,
        dynamic=True,
    )
    managedLedgerMinLedgerRolloverTimeMinutes: int = setting(
        10,
        "Minimum time after its last entry when the current ledger of a topic, if all its entries are obsolete, is "
        "closed and removed.",
        table="managedLedger",
        unit="minutes",
        minimum=0,
        dynamic=True,
    )
