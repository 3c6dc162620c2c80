"""The rows of the settings table about what is kept: expiry, quotas of backlogs, what nobody uses any more."""

from dataclasses import dataclass

from pulsarbox.config.setting import setting


@dataclass(frozen=True, init=False, repr=False, eq=False)  # methods are made for Settings, once
class KeepSettings:
    """See ``settings.Settings``, of which these are a part."""

    ttlDurationDefaultInSeconds: int = setting(
        0,
        "How long a message may stay unacknowledged after it was published: then it is acknowledged by the box, for "
        "every subscription. 0: for ever. A namespace's or topic's message TTL wins over it.",
        table="policies",
        unit="seconds",
        minimum=0,
        dynamic=True,
    )
    backlogQuotaDefaultLimitBytes: int = setting(
        -1,
        "How large a topic's backlog may be, behind its slowest durable subscription; -1: any size. A backlog quota of "
        "the namespace or topic wins over it.",
        table="policies",
        unit="bytes",
        minimum=-1,
        dynamic=True,
    )
    backlogQuotaDefaultLimitGB: float = setting(
        -1.0,
        "The same in GiB, as a standalone Pulsar's configuration has it (10 there). Above 0 it wins over "
        "backlogQuotaDefaultLimitBytes.",
        table="policies",
        unit="GiB",
        minimum=-1,
        dynamic=True,
    )
    backlogQuotaDefaultLimitSecond: int = setting(
        -1,
        "How old the oldest message of a topic's backlog may be; -1: any age. A backlog quota of the namespace or "
        "topic wins over it.",
        table="policies",
        unit="seconds",
        minimum=-1,
        dynamic=True,
    )
    backlogQuotaDefaultRetentionPolicy: str = setting(
        "producer_request_hold",
        "What follows when a backlog has reached one of these limits: producers wait, producers are refused, or the "
        "oldest messages are acknowledged for the slowest subscriptions.",
        table="policies",
        choices=("producer_request_hold", "producer_exception", "consumer_backlog_eviction"),
        dynamic=True,
    )
    backlogQuotaCheckEnabled: bool = setting(
        True,
        "Whether backlog quotas are enforced.",
        table="policies",
        dynamic=True,
    )
    unsubscribedRetentionTimeInMinutes: int = setting(
        10_080,
        "How long messages are kept that no subscription has covered. 0: as in Pulsar, which deletes them with their "
        "inactive topic; -1: no limit of time. A retention policy of the topic or namespace, or a default retention, "
        "takes its place. Not a setting of Pulsar.",
        table="policies",
        unit="minutes",
        minimum=-1,
        dynamic=True,
    )
    unsubscribedRetentionSize: str = setting(
        "10%",
        "How much of such messages all topics together may hold: a share of the file system of the data directory (of "
        "the memory, for a box in memory) such as 10%, or a size such as 20G. Above it the oldest are deleted first, "
        "in topics that hold more than their share. 0: as in Pulsar; -1: no limit of size. Not a setting of Pulsar.",
        table="policies",
        dynamic=True,
    )
    brokerDeleteInactiveTopicsEnabled: bool = setting(
        True,
        "Whether inactive topics are deleted, as in Pulsar. Inactive topic policies of the namespace or topic win over "
        "it. A subscription, retention or unsubscribed retention keeps a topic.",
        table="policies",
        dynamic=True,
    )
    brokerDeleteInactiveTopicsMode: str = setting(
        "delete_when_no_subscriptions",
        "Which topics these are: without producers and subscriptions, or without producers, consumers and backlog.",
        table="policies",
        choices=("delete_when_no_subscriptions", "delete_when_subscriptions_caught_up"),
        dynamic=True,
    )
    brokerDeleteInactiveTopicsFrequencySeconds: int = setting(
        60,
        "For how long nobody must have used them. Pulsar also looks as often as this; the box does so at that moment.",
        table="policies",
        unit="seconds",
        minimum=1,
        dynamic=True,
    )
    brokerDeleteInactiveTopicsMaxInactiveDurationSeconds: int = setting(
        0,
        "The same, above 0 instead of brokerDeleteInactiveTopicsFrequencySeconds.",
        table="policies",
        unit="seconds",
        minimum=0,
        dynamic=True,
    )
    brokerDeleteInactivePartitionedTopicMetadataEnabled: bool = setting(
        False,
        "Whether a partitioned topic goes with its last partition. Otherwise its partitions come into being again when "
        "somebody uses them.",
        table="policies",
        dynamic=True,
    )
    subscriptionExpirationTimeMinutes: int = setting(
        0,
        "After how long without consumers a durable subscription is deleted, with what it holds; 0: never. A "
        "namespace's or topic's subscription expiration time wins over it.",
        table="policies",
        unit="minutes",
        minimum=0,
        dynamic=True,
    )
    brokerServiceCompactionThresholdInBytes: int = setting(
        0,
        "A topic is compacted by itself when more than so many bytes of it are not; 0: only when that is asked for. A "
        "compaction threshold of the namespace or topic wins over it.",
        table="policies",
        unit="bytes",
        minimum=0,
        dynamic=True,
    )
    brokerServiceCompactionMonitorIntervalInSeconds: int = setting(
        60,
        "How often at most a topic is compacted by itself.",
        table="policies",
        unit="seconds",
        minimum=1,
        dynamic=True,
    )
    topicCompactionRetainNullKey: bool = setting(
        False,
        "Whether compaction keeps messages that have no key. Otherwise they are in the log alone.",
        table="policies",
        dynamic=True,
    )
    compactionMaxKeysInMemory: int = setting(
        1_000_000,
        "Keys that a compaction keeps in memory at a time, at some 170 bytes each; where a topic has more it is read "
        "once more for each so many. Ours, not Pulsar's.",
        table="policies",
        unit="keys",
        minimum=1,
        dynamic=True,
    )
    managedLedgerMinLedgerRolloverTimeMinutes: int = setting(
        10,
        "When the ledger that grows holds nothing anybody needs, it is closed and removed so long after its last "
        "entry at the earliest.",
        table="managedLedger",
        unit="minutes",
        minimum=0,
        dynamic=True,
    )
