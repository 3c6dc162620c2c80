"""The settings table: every setting with its type, default, limits and description.

Names are those of Pulsar's broker.conf if it has the setting; the others are pulsarbox's own and say so. The order is
that of pulsarbox.toml and docs/configuration.md, which ``make generate`` writes. Adding a field adds a setting (those
of the HTTP port go in ``web_settings``).
"""

import dataclasses
from dataclasses import dataclass
from functools import cache
from operator import attrgetter
from typing import Final, cast

from pulsarbox.config.cross_checks import check_together
from pulsarbox.config.sections.authentication_settings import AuthenticationSettings
from pulsarbox.config.sections.authorization_settings import AuthorizationSettings
from pulsarbox.config.sections.client_policy_settings import ClientPolicySettings
from pulsarbox.config.sections.ensemble_settings import EnsembleSettings
from pulsarbox.config.sections.logging_settings import LoggingSettings
from pulsarbox.config.sections.managed_ledger_settings import ManagedLedgerSettings
from pulsarbox.config.sections.package_settings import PackageSettings
from pulsarbox.config.sections.plugin_settings import PluginSettings
from pulsarbox.config.sections.policy_settings import PolicySettings
from pulsarbox.config.sections.recording_settings import RecordingSettings
from pulsarbox.config.sections.retention_settings import RetentionSettings
from pulsarbox.config.sections.throttle_settings import ThrottleSettings
from pulsarbox.config.sections.tls_settings import TlsSettings
from pulsarbox.config.sections.topic_list_settings import TopicListSettings
from pulsarbox.config.sections.transaction_settings import TransactionSettings
from pulsarbox.config.sections.web_settings import WebSettings
from pulsarbox.config.setting import METADATA_KEY, ConfigError, Facts, Setting, Value, port_setting, setting
from pulsarbox.config.tables import TABLES

MIB: Final = 1024 * 1024


# Generating methods for two hundred fields would take 10 ms of each start.
@dataclass(frozen=True, slots=True, init=False, repr=False, eq=False)
class Settings(
    WebSettings,
    PackageSettings,
    PolicySettings,
    RetentionSettings,
    ThrottleSettings,
    ClientPolicySettings,
    AuthenticationSettings,
    AuthorizationSettings,
    TlsSettings,
    TopicListSettings,
    TransactionSettings,
    PluginSettings,
    LoggingSettings,
    ManagedLedgerSettings,
    RecordingSettings,
    EnsembleSettings,
):
    """The settings of one broker. Instances are always valid: an invalid value raises ``ConfigError``."""

    # ---------------------------------------------------------------------------------------------------- network
    brokerServicePort: int = port_setting(
        6650,
        "TCP port of the Pulsar protocol. 0 takes any free port, which the start log shows. Empty: disabled, which "
        "requires brokerServicePortTls.",
        table="network",
    )
    webServicePort: int = port_setting(
        8080,
        "TCP port of the Admin REST API, metrics and WebSocket. 0 takes any free port, which the start log shows. "
        "Empty: disabled, which requires webServicePortTls.",
        table="network",
    )
    # Loopback by default: without authentication, any client that reaches the ports has full access.
    bindAddress: str = setting(
        "localhost",
        "Host name or address on which all ports listen. Pulsar listens on all addresses; here that must be "
        "configured (0.0.0.0 or ::), because without authentication any client that reaches the ports has full "
        "access.",
        table="network",
        minimum=1,
    )
    bindAddresses: str = setting(
        "",
        "Additional addresses for the Pulsar protocol, each for one of advertisedListeners, comma-separated: "
        "name:pulsar://host:port or name:pulsar+ssl://host:port. Lookups of a client that connects there return the "
        "addresses of that listener.",
        table="network",
    )
    advertisedAddress: str = setting(
        "",
        "Host name or address that lookups return to clients. Empty: clients keep using the address by which they "
        "reached the broker, which also works with mapped ports.",
        table="network",
    )
    advertisedListeners: str = setting(
        "",
        "Addresses for clients in several networks, comma-separated: name:pulsar://host:port. A name may have one "
        "address each for pulsar, pulsar+ssl, http and https. A client selects its listener by name (listenerName), "
        "and lookups return the addresses of that listener.",
        table="network",
    )
    internalListenerName: str = setting(
        "",
        "Listener from advertisedListeners for clients that name none. Empty: the first. For a scheme that it lacks, "
        "the first listener that has an address is used.",
        table="network",
    )
    brokerMaxConnections: int = setting(
        0,
        "Maximum number of open connections to the Pulsar port; further ones are rejected. 0: no limit.",
        table="network",
        minimum=0,
    )
    brokerMaxConnectionsPerIp: int = setting(
        0,
        "Maximum number of open connections to the Pulsar port from one client address; further ones are rejected. 0: "
        "no limit.",
        table="network",
        minimum=0,
    )
    maxHalfOpenConnectionsPerIp: int = setting(
        1000,
        "Own setting. Maximum number of connections from one client address, on all ports together, that have not "
        "completed the TLS handshake, CONNECT or the first HTTP request; further ones are rejected. 0: no limit.",
        table="network",
        minimum=0,
    )
    keepAliveIntervalSeconds: int = setting(
        30,
        "Idle time after which a connection is sent a ping; after the same time without a response it is closed. Also "
        "the time that a new connection has for CONNECT.",
        table="network",
        unit="seconds",
        minimum=1,
    )
    connectionLivenessCheckTimeoutMillis: int = setting(
        5000,
        "When a new producer or consumer conflicts with one on another connection, that connection is pinged and has "
        "this long to respond. Otherwise it is closed, and the new one takes its place. 0: disabled.",
        table="network",
        unit="milliseconds",
        minimum=0,
    )
    maxMessageSize: int = setting(
        5 * MIB,
        "Maximum size of a message, metadata and payload together. Clients learn it when they connect; they split "
        "larger messages into chunks or reject them.",
        table="network",
        unit="bytes",
        minimum=1024,
        maximum=2147473407,
    )
    maxPendingPublishRequestsPerConnection: int = setting(
        1000,
        "Maximum number of messages of one connection that wait for their receipts; the connection is then not read "
        "until half of them are answered.",
        table="network",
        minimum=1,
    )
    maxConnectionOutboundBufferBytes: int = setting(
        4 * MIB,
        "Own setting. Maximum number of bytes waiting to be sent on one connection; above it, no more messages are "
        "dispatched to its consumers until the client has read some.",
        table="network",
        unit="bytes",
        minimum=64 * 1024,
    )

    # ----------------------------------------------------------------------------------------------------- broker
    clusterName: str = setting(
        "standalone",
        "Name of the cluster that consists of this broker, as shown in the Admin API and in legacy topic names.",
        table="broker",
        minimum=1,
    )
    dataDirectory: str = setting(
        "data",
        "Own setting. Directory of all stored data; created if missing. A relative path is relative to the working "
        "directory of the broker.",
        table="broker",
        minimum=1,
    )
    initFile: str = setting(
        "",
        "Own setting. YAML file that declares tenants, namespaces, topics and what belongs to them, or a directory of "
        "such files (*.yaml). Each start creates what is missing before it serves clients. Empty: none.",
        table="broker",
    )
    defaultNumberOfNamespaceBundles: int = setting(
        4,
        "Number of bundles of a new namespace that does not specify it. The broker owns all bundles; the number is "
        "only visible in the Admin API.",
        table="broker",
        minimum=1,
        dynamic=True,
    )
    forceDeleteTenantAllowed: bool = setting(
        False,
        "Allows tenants to be deleted by force, with all their namespaces.",
        table="broker",
        dynamic=True,
    )
    forceDeleteNamespaceAllowed: bool = setting(
        False,
        "Allows namespaces to be deleted by force, with all their topics.",
        table="broker",
        dynamic=True,
    )
    acknowledgmentAtBatchIndexLevelEnabled: bool = setting(
        True,
        "Stores acknowledgements of single messages in a batch. If false, a batch is acknowledged when all its "
        "messages are.",
        table="broker",
    )
    exposingBrokerEntryMetadataToClientEnabled: bool = setting(
        False,
        "Sends the broker's own metadata (append time and index) with every entry to consumers that support it.",
        table="broker",
    )
    brokerShutdownTimeoutMs: int = setting(
        10_000,
        "Time for draining connections and syncing the log when the broker stops; afterwards the process ends in any "
        "case. Acknowledged messages are never lost.",
        table="broker",
        unit="milliseconds",
        minimum=0,
        dynamic=True,
    )
    brokerClock: str = setting(
        "real",
        "Own setting. Clock for retention, delays and ages: real time, or a virtual clock for tests that starts at "
        "real time and can be moved forward (`pulsarbox clock advance 10d`).",
        table="broker",
        choices=("real", "virtual"),
    )
    faultInjectionEnabled: bool = setting(
        False,
        "Own setting. Allows faults to be injected by rules (`pulsarbox fault --help`), to test how applications "
        "handle them. Not for production data.",
        table="broker",
    )
    eventLoop: str = setting(
        "auto",
        "Own setting. Event loop implementation; auto uses uvloop if it is installed.",
        table="broker",
        choices=("auto", "asyncio", "uvloop"),
    )

    # ----------------------------------------------------------------------------------------------------- topics
    allowAutoTopicCreation: bool = setting(
        True,
        "Creates a missing topic when a producer or consumer connects to it.",
        table="topics",
        dynamic=True,
    )
    allowAutoTopicCreationType: str = setting(
        "non-partitioned",
        "Type of automatically created topics.",
        table="topics",
        choices=("non-partitioned", "partitioned"),
        dynamic=True,
    )
    defaultNumPartitions: int = setting(
        1,
        "Number of partitions of automatically created partitioned topics.",
        table="topics",
        minimum=1,
        dynamic=True,
    )
    allowAutoSubscriptionCreation: bool = setting(
        True,
        "Creates a missing subscription when a consumer connects to it.",
        table="topics",
        dynamic=True,
    )
    enablePersistentTopics: bool = setting(
        True,
        "Enables persistent:// topics.",
        table="topics",
    )
    enableNonPersistentTopics: bool = setting(
        True,
        "Enables non-persistent:// topics.",
        table="topics",
    )
    subscriptionTypesEnabled: str = setting(
        "Exclusive,Shared,Failover,Key_Shared",
        "Subscription types allowed on persistent topics, comma-separated.",
        table="topics",
        minimum=1,
        dynamic=True,
    )
    subscriptionKeySharedEnable: bool = setting(
        True,
        "Allows Key_Shared subscriptions. Pulsar keeps this setting beside subscriptionTypesEnabled for old "
        "configurations.",
        table="topics",
    )

    brokerUnloadIdleTopicsAfterSeconds: int = setting(
        60,
        "Own setting. Time without use after which a topic is unloaded from memory; it remains on disk and is loaded "
        "on next use. 0: never.",
        table="topics",
        unit="seconds",
        minimum=0,
    )
    brokerDeduplicationEnabled: bool = setting(
        False,
        "Enables deduplication: a message that a producer sends again is recognised by its sequence ID and stored "
        "once.",
        table="topics",
    )
    brokerDeduplicationProducerInactivityTimeoutMinutes: int = setting(
        360,
        "Time for which the highest sequence ID of a disconnected producer is kept.",
        table="topics",
        unit="minutes",
        minimum=1,
    )
    brokerDeduplicationMaxNumberOfProducers: int = setting(
        10_000,
        "Maximum number of producer names of a topic whose highest sequence IDs are kept; the least recently active "
        "ones are removed first, but never while they are connected.",
        table="topics",
        minimum=1,
    )

    # ------------------------------------------------------------------------------------------------- dispatcher
    dispatcherMaxReadBatchSize: int = setting(
        100,
        "Maximum number of entries that a dispatcher reads at a time.",
        table="dispatcher",
        minimum=1,
        dynamic=True,
    )
    dispatcherMaxReadSizeBytes: int = setting(
        5 * MIB,
        "Maximum number of bytes that a dispatcher reads at a time; a single larger entry is still read.",
        table="dispatcher",
        unit="bytes",
        minimum=1,
        dynamic=True,
    )
    dispatcherMaxRoundRobinBatchSize: int = setting(
        20,
        "Number of entries sent to one consumer of a shared subscription before the next one's turn.",
        table="dispatcher",
        minimum=1,
        dynamic=True,
    )
    maxUnackedMessagesPerConsumer: int = setting(
        50_000,
        "Maximum number of unacknowledged messages of a consumer on a shared or key-shared subscription; dispatch to "
        "it then stops until it has acknowledged half of them. 0: no limit.",
        table="dispatcher",
        minimum=0,
    )
    maxUnackedMessagesPerSubscription: int = setting(
        200_000,
        "Maximum number of unacknowledged messages of a shared or key-shared subscription; dispatch to it then stops "
        "until half of them are acknowledged. 0: no limit.",
        table="dispatcher",
        minimum=0,
    )
    maxUnackedMessagesPerBroker: int = setting(
        0,
        "Maximum number of unacknowledged messages of all shared and key-shared subscriptions together; dispatch to "
        "the subscriptions that hold more than their share then stops until half of them are acknowledged. 0: no "
        "limit.",
        table="dispatcher",
        minimum=0,
    )
    maxUnackedMessagesPerSubscriptionOnBrokerBlocked: float = setting(
        0.16,
        "Share of maxUnackedMessagesPerBroker above which a subscription is blocked when that limit is reached.",
        table="dispatcher",
        minimum=0,
        maximum=1,
    )
    redeliveryCountOnConnectionLoss: bool = setting(
        True,
        "Own setting. Increments the redelivery counts of the messages that a consumer of a shared or key-shared "
        "subscription holds when its connection breaks, so that a message that crashes its consumers reaches its dead "
        "letter topic. Closing the consumer never increments them.",
        table="dispatcher",
    )
    sharedConsumerSelection: str = setting(
        "roundRobin",
        "Own setting. Consumer of a shared subscription that receives the next entries: roundRobin (least recently "
        "served), leastUnacked (fewest unacknowledged messages), mostPermits (most permits), or the name of a routing "
        "plugin. If the plugin does not exist, roundRobin is used and a warning is logged. A subscription property "
        "with this name takes precedence.",
        table="dispatcher",
        minimum=1,
    )
    keySharedLookAheadMsgInReplayThresholdPerConsumer: int = setting(
        2000,
        "Maximum number of entries that wait for their keys' consumers while a key-shared subscription looks ahead "
        "for others, for each of its consumers.",
        table="dispatcher",
        minimum=1,
    )
    keySharedLookAheadMsgInReplayThresholdPerSubscription: int = setting(
        20_000,
        "Maximum number of entries that wait for their keys' consumers while a key-shared subscription looks ahead "
        "for others.",
        table="dispatcher",
        minimum=1,
    )
    activeConsumerFailoverDelayTimeMillis: int = setting(
        1000,
        "Delay before a new active consumer of a failover subscription is notified and receives messages, so that "
        "acknowledgements of the previous one that are in flight still count. 0: no delay.",
        table="dispatcher",
        unit="milliseconds",
        minimum=0,
    )
    activeConsumerFailoverConsistentHashing: bool = setting(
        False,
        "Selects the active consumer of a failover subscription by consistent hashing on partitions too. If false, "
        "the partitions of a topic are distributed over the consumers in the order of their names.",
        table="dispatcher",
    )
    subscriptionKeySharedUseConsistentHashing: bool = setting(
        True,
        "Assigns keys to the consumers of key-shared subscriptions by consistent hashing. If false, each new consumer "
        "takes half of the largest range.",
        table="dispatcher",
    )
    subscriptionKeySharedConsistentHashingReplicaPoints: int = setting(
        100,
        "Number of points of each consumer on the consistent hashing ring: more points distribute keys more evenly.",
        table="dispatcher",
        minimum=1,
    )

    # ---------------------------------------------------------------------------------------------------- journal
    journalVolumeSizeMbytes: int = setting(
        256,
        "Own setting. Size at which a volume, a file of the log, is followed by the next one. A volume is deleted as "
        "a whole when nothing in it is needed.",
        table="journal",
        unit="MiB",
        minimum=1,
    )
    journalMaxBatchMbytes: int = setting(
        8,
        "Own setting. Maximum amount of data collected for the next write while the previous one is synced; above it, "
        "publishing connections are not read.",
        table="journal",
        unit="MiB",
        minimum=1,
    )
    journalCheckpointMbytes: int = setting(
        64,
        "Own setting. Maximum amount of log between two checkpoints, which is also the amount replayed at a start "
        "after a crash.",
        table="journal",
        unit="MiB",
        minimum=1,
    )
    journalReserveMbytes: int = setting(
        32,
        "Own setting. Disk space reserved from messages. When the disk is full, publishing is rejected, and "
        "acknowledgements and deletions use this space until there is room again.",
        table="journal",
        unit="MiB",
        minimum=0,
    )
    journalPackLivePercent: int = setting(
        50,
        "Own setting. Share of live data at or below which a volume is packed: its live data is moved to another "
        "volume, and the volume is deleted. 0: never.",
        table="journal",
        unit="percent",
        minimum=0,
        maximum=95,
    )
    journalPackMbytesPerSecond: int = setting(
        64,
        "Own setting. Maximum copy rate of packing; 0: no limit.",
        table="journal",
        unit="MiB a second",
        minimum=0,
    )
    compressionAtRest: str = setting(
        "none",
        "Own setting. Codec for compressing entries on disk: none, zstd, lz4, zlib, snappy, or the name of a "
        "compression plugin. Compression runs in the background when volumes are sealed or packed; compressed entries "
        "stay compressed. A policy of the namespace or topic takes precedence.",
        table="journal",
        minimum=1,
        dynamic=True,
    )
    compressionAtRestCpuPercent: int = setting(
        25,
        "Own setting. Average share of one core that compression at rest may use; 100: no limit.",
        table="journal",
        unit="percent",
        minimum=1,
        maximum=100,
        dynamic=True,
    )
    journalPageCacheMbytes: int = setting(
        256,
        "Own setting. Size of the newest part of the journal that is kept in the operating system's page cache; 0: "
        "all of it. Older backlogs are read from disk, which leaves memory to other programs and keeps writing fast.",
        table="journal",
        unit="MiB",
        minimum=0,
    )
    journalIndexFlushEntries: int = setting(
        20_000,
        "Own setting. Number of entries whose log positions are held in memory before they are written to the index, "
        "in one sorted run.",
        table="journal",
        minimum=1,
    )
    journalSwitchIntervalMicros: int = setting(
        500,
        "Own setting. Time after which a thread that waits for Python's interpreter lock receives it (CPython's "
        "default is 5000). Beside a busy broker, the thread that syncs the log waits this long.",
        table="journal",
        unit="microseconds",
        minimum=1,
        maximum=1_000_000,
    )

    def __repr__(self) -> str:
        names = (field.name for field in dataclasses.fields(self))
        return f"Settings({', '.join(f'{name}={value!r}' for name, value in zip(names, self._values, strict=True))})"

    def __eq__(self, other: object) -> bool:
        return self._values == other._values if isinstance(other, Settings) else NotImplemented

    def __hash__(self) -> int:
        return hash(self._values)

    @property
    def _values(self) -> tuple[object, ...]:
        values: tuple[object, ...] = _reader()(self)
        return values

    def __init__(self, **values: Value) -> None:
        """Set values by name; other settings keep their defaults. Raises TypeError for unknown names, ConfigError."""
        unknown = values.keys() - settings_by_name().keys()
        if unknown:
            raise TypeError(f"Settings has no {', '.join(sorted(unknown))}")
        for row in settings_table():
            value = values.get(row.name, row.default)
            object.__setattr__(self, row.name, value)
            try:
                row.check(value)
            except ValueError as error:
                raise ConfigError("", row.name, str(error)) from None
        check_together(self)


@cache
def _reader() -> "attrgetter[tuple[object, ...]]":
    return attrgetter(*(field.name for field in dataclasses.fields(Settings)))


@cache
def settings_table() -> tuple[Setting, ...]:
    """Return all settings, table by table, in declaration order."""
    order = list(TABLES)
    return tuple(sorted(map(_row, dataclasses.fields(Settings)), key=lambda row: order.index(row.table)))


@cache
def settings_by_name() -> dict[str, Setting]:
    """Return the rows of ``settings_table`` by name."""
    return {row.name: row for row in settings_table()}


def _row(field: "dataclasses.Field[object]") -> Setting:
    facts = field.metadata[METADATA_KEY]
    assert isinstance(facts, Facts), f"{field.name} is not declared with setting()"
    assert facts.table in TABLES, f"{field.name} is declared in an unknown table"
    # The annotations are classes, not strings, because this module has no `from __future__ import annotations`.
    return Setting(field.name, cast("type[int]", field.type), cast("int", field.default), facts)
