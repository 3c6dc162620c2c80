"""The settings table: every setting once, with its type, default, limits and meaning.

Names are those of Pulsar's broker.conf where it has the setting; the others are ours and say so. The order is that of
pulsarbox.toml and docs/configuration.md, which ``make generate`` writes. To add a setting, add a field, nothing else
(what is about the HTTP port in ``web_settings``).
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
from pulsarbox.config.sections.logging_settings import LoggingSettings
from pulsarbox.config.sections.managed_ledger_settings import ManagedLedgerSettings
from pulsarbox.config.sections.plugin_settings import PluginSettings
from pulsarbox.config.sections.policy_settings import PolicySettings
from pulsarbox.config.sections.recording_settings import RecordingSettings
from pulsarbox.config.sections.retention_settings import KeepSettings
from pulsarbox.config.sections.throttle_settings import ThrottleSettings
from pulsarbox.config.sections.tls_settings import TlsSettings
from pulsarbox.config.sections.topic_list_settings import TopicListSettings
from pulsarbox.config.sections.transaction_settings import TransactionSettings
from pulsarbox.config.sections.web_settings import WebSettings
from pulsarbox.config.setting import METADATA_KEY, ConfigError, Facts, Setting, Value, port_setting, setting
from pulsarbox.config.tables import TABLES

MIB: Final = 1024 * 1024


# Methods that are made for two hundred fields take 10 ms of each start.
@dataclass(frozen=True, slots=True, init=False, repr=False, eq=False)
class Settings(
    WebSettings,
    PolicySettings,
    KeepSettings,
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
):
    """The settings of one broker. Every instance is valid: a value outside its limits raises ``ConfigError``."""

    # ---------------------------------------------------------------------------------------------------- network
    brokerServicePort: int = port_setting(
        6650,
        "TCP port of the Pulsar protocol. 0 takes any free port; the start log names it. Empty: none, where there is "
        "brokerServicePortTls.",
        table="network",
    )
    webServicePort: int = port_setting(
        8080,
        "TCP port of the Admin REST API, metrics and WebSocket. 0 takes any free port; the start log names it. Empty: "
        "none, where there is webServicePortTls.",
        table="network",
    )
    # Loopback on purpose: as long as no authentication is configured, whoever reaches the ports owns the data.
    bindAddress: str = setting(
        "localhost",
        "Host name or address both ports listen on. Pulsar listens on all addresses; here that has to be asked for "
        "(0.0.0.0 or ::), because without authentication whoever reaches the ports may do everything.",
        table="network",
        minimum=1,
    )
    bindAddresses: str = setting(
        "",
        "More addresses to listen on for the Pulsar protocol, each for one of advertisedListeners: "
        "name:pulsar://host:port or name:pulsar+ssl://host:port, with commas between. A client that comes there is "
        "told the addresses of that listener, without naming it.",
        table="network",
    )
    advertisedAddress: str = setting(
        "",
        "Host name or address that lookups give to clients. Empty: clients stay with the address by which they have "
        "reached the broker, which works behind mapped ports too.",
        table="network",
    )
    advertisedListeners: str = setting(
        "",
        "Addresses for clients in several networks: name:pulsar://host:port, with commas between; a name may have one "
        "of each of pulsar, pulsar+ssl, http and https. A client names its listener (listenerName), and lookups "
        "give it the addresses of that one.",
        table="network",
    )
    internalListenerName: str = setting(
        "",
        "The one of advertisedListeners for clients that name none. Empty: the first. For a scheme that it lacks, they "
        "get the address of the first listener that has one.",
        table="network",
    )
    brokerMaxConnections: int = setting(
        0,
        "Connections to the Pulsar port that may be open at once; one more is refused. 0: no limit.",
        table="network",
        minimum=0,
    )
    brokerMaxConnectionsPerIp: int = setting(
        0,
        "The same limit for the connections from one client address. 0: no limit.",
        table="network",
        minimum=0,
    )
    maxHalfOpenConnectionsPerIp: int = setting(
        1000,
        "Own setting. Connections from one client address, on all ports together, of which nothing is known yet: the "
        "TLS handshake, CONNECT or the first HTTP request has not come. One more is refused. 0: no limit.",
        table="network",
        minimum=0,
    )
    keepAliveIntervalSeconds: int = setting(
        30,
        "A connection that was silent for this long is sent a ping; if it is silent for as long again, it is closed. A "
        "new one has this long for its CONNECT.",
        table="network",
        unit="seconds",
        minimum=1,
    )
    connectionLivenessCheckTimeoutMillis: int = setting(
        5000,
        "When a new producer or consumer collides with one on another connection, that connection is pinged and has "
        "this long to answer; if it does not, it is closed and the new one gets the place. 0: no such check.",
        table="network",
        unit="milliseconds",
        minimum=0,
    )
    maxMessageSize: int = setting(
        5 * MIB,
        "The largest message, metadata and payload together. Clients are told it when they connect; they cut larger "
        "messages into chunks or refuse them.",
        table="network",
        unit="bytes",
        minimum=1024,
        maximum=2147473407,
    )
    maxPendingPublishRequestsPerConnection: int = setting(
        1000,
        "Messages of one connection that may wait for their receipt; at this number the connection is not read until "
        "half of them are answered.",
        table="network",
        minimum=1,
    )
    maxConnectionOutboundBufferBytes: int = setting(
        4 * MIB,
        "Own setting. Bytes that may wait to be sent on one connection; above it no more messages are dispatched to "
        "its consumers until the client has read some.",
        table="network",
        unit="bytes",
        minimum=64 * 1024,
    )

    # ----------------------------------------------------------------------------------------------------- broker
    clusterName: str = setting(
        "standalone",
        "Name of the one cluster that this broker is, as the Admin API and the topic names of old form show it.",
        table="broker",
        minimum=1,
    )
    dataDirectory: str = setting(
        "data",
        "Own setting. Directory of everything that is kept; made if it is missing. A relative path starts where the "
        "broker was started.",
        table="broker",
        minimum=1,
    )
    defaultNumberOfNamespaceBundles: int = setting(
        4,
        "Bundles of a namespace that is created without naming a number. One broker owns them all; the number only "
        "shows in the Admin API.",
        table="broker",
        minimum=1,
        dynamic=True,
    )
    forceDeleteTenantAllowed: bool = setting(
        False,
        "Whether a tenant may be deleted by force, with all its namespaces.",
        table="broker",
        dynamic=True,
    )
    forceDeleteNamespaceAllowed: bool = setting(
        False,
        "Whether a namespace may be deleted by force, with all its topics.",
        table="broker",
        dynamic=True,
    )
    acknowledgmentAtBatchIndexLevelEnabled: bool = setting(
        True,
        "Whether acknowledgements of single messages in a batch are kept. If not, a batch counts as acknowledged when "
        "all of its messages are.",
        table="broker",
    )
    exposingBrokerEntryMetadataToClientEnabled: bool = setting(
        False,
        "Whether consumers that understand it are sent the broker's own metadata (append time and index) with every "
        "entry.",
        table="broker",
    )
    brokerShutdownTimeoutMs: int = setting(
        10_000,
        "After a request to stop, the time for connections to drain and the log to be synced; then the process ends "
        "all the same. Nothing that was acknowledged is lost either way.",
        table="broker",
        unit="milliseconds",
        minimum=0,
        dynamic=True,
    )
    brokerClock: str = setting(
        "real",
        "Own setting. The clock of retention, delays and ages: the real time, or a virtual clock that starts with the "
        "real time and can be moved forward (`pulsarbox clock advance 10d`), for tests.",
        table="broker",
        choices=("real", "virtual"),
    )
    faultInjectionEnabled: bool = setting(
        False,
        "Own setting. Whether faults may be injected by rule (`pulsarbox fault --help`), to test how applications take "
        "them. Not for data that matters.",
        table="broker",
    )
    eventLoop: str = setting(
        "auto",
        "Own setting. The event loop under the sockets; auto takes uvloop if it is installed.",
        table="broker",
        choices=("auto", "asyncio", "uvloop"),
    )

    # ----------------------------------------------------------------------------------------------------- topics
    allowAutoTopicCreation: bool = setting(
        True,
        "Whether a topic that does not exist comes into being when a producer or consumer asks for it.",
        table="topics",
        dynamic=True,
    )
    allowAutoTopicCreationType: str = setting(
        "non-partitioned",
        "What kind of topic then comes into being.",
        table="topics",
        choices=("non-partitioned", "partitioned"),
        dynamic=True,
    )
    defaultNumPartitions: int = setting(
        1,
        "How many partitions it gets, if it is partitioned.",
        table="topics",
        minimum=1,
        dynamic=True,
    )
    allowAutoSubscriptionCreation: bool = setting(
        True,
        "Whether a subscription that does not exist comes into being when a consumer asks for it.",
        table="topics",
        dynamic=True,
    )
    enablePersistentTopics: bool = setting(
        True,
        "Whether persistent:// topics are served.",
        table="topics",
    )
    enableNonPersistentTopics: bool = setting(
        True,
        "Whether non-persistent:// topics are served.",
        table="topics",
    )
    subscriptionTypesEnabled: str = setting(
        "Exclusive,Shared,Failover,Key_Shared",
        "Types of subscriptions that consumers may have on persistent topics, with commas between them.",
        table="topics",
        minimum=1,
        dynamic=True,
    )
    subscriptionKeySharedEnable: bool = setting(
        True,
        "Whether Key_Shared may be among them. Pulsar keeps it beside subscriptionTypesEnabled for old configurations.",
        table="topics",
    )

    brokerUnloadIdleTopicsAfterSeconds: int = setting(
        60,
        "Own setting. A topic that nobody has used for this long leaves memory; it stands on the disk, and comes back "
        "with its first use. 0: never.",
        table="topics",
        unit="seconds",
        minimum=0,
    )
    brokerDeduplicationEnabled: bool = setting(
        False,
        "Whether a message that a producer sends again is recognised by its sequence id, and not stored twice.",
        table="topics",
    )
    brokerDeduplicationProducerInactivityTimeoutMinutes: int = setting(
        360,
        "How long the highest sequence id of a producer is kept when the producer is not connected any more.",
        table="topics",
        unit="minutes",
        minimum=1,
    )
    brokerDeduplicationMaxNumberOfProducers: int = setting(
        10_000,
        "Producer names of a topic whose highest sequence ids are kept, at most; those active longest ago are "
        "forgotten, but not while they are connected.",
        table="topics",
        minimum=1,
    )

    # ------------------------------------------------------------------------------------------------- dispatcher
    dispatcherMaxReadBatchSize: int = setting(
        100,
        "Entries that a dispatcher reads at once, at most.",
        table="dispatcher",
        minimum=1,
        dynamic=True,
    )
    dispatcherMaxReadSizeBytes: int = setting(
        5 * MIB,
        "Bytes that a dispatcher reads at once, at most; one entry is always read, however large it is.",
        table="dispatcher",
        unit="bytes",
        minimum=1,
        dynamic=True,
    )
    dispatcherMaxRoundRobinBatchSize: int = setting(
        20,
        "Entries that one consumer of a shared subscription gets before it is the next one's turn.",
        table="dispatcher",
        minimum=1,
        dynamic=True,
    )
    maxUnackedMessagesPerConsumer: int = setting(
        50_000,
        "Messages that a consumer of a shared or key-shared subscription may hold without acknowledging them; at this "
        "number it gets no more until it has acknowledged half of them. 0: no limit.",
        table="dispatcher",
        minimum=0,
    )
    maxUnackedMessagesPerSubscription: int = setting(
        200_000,
        "The same limit for all consumers of a shared or key-shared subscription together. 0: no limit.",
        table="dispatcher",
        minimum=0,
    )
    maxUnackedMessagesPerBroker: int = setting(
        0,
        "The same limit for all shared and key-shared subscriptions of the broker together; at this number those that "
        "hold more than their share of it get no more until half of them are acknowledged. 0: no limit.",
        table="dispatcher",
        minimum=0,
    )
    maxUnackedMessagesPerSubscriptionOnBrokerBlocked: float = setting(
        0.16,
        "That share, of maxUnackedMessagesPerBroker.",
        table="dispatcher",
        minimum=0,
        maximum=1,
    )
    redeliveryCountOnConnectionLoss: bool = setting(
        True,
        "Own setting. Whether the redelivery counts of what a consumer of a shared or key-shared subscription holds "
        "rise when its connection breaks, so that a message that kills its consumers reaches its dead letter topic. "
        "Closing the consumer never raises them.",
        table="dispatcher",
    )
    sharedConsumerSelection: str = setting(
        "roundRobin",
        "Own setting. Which consumer of a shared subscription gets the next entries: roundRobin (whose turn was "
        "longest ago), leastUnacked (who has the fewest messages unacknowledged), mostPermits (who has asked for "
        "most), or the name of a routing plugin; where there is none of that name they take turns, and the log says "
        "so. A subscription's property of this name goes before it.",
        table="dispatcher",
        minimum=1,
    )
    keySharedLookAheadMsgInReplayThresholdPerConsumer: int = setting(
        2000,
        "Entries that may wait for their keys' consumers while a key-shared subscription looks for others, for each "
        "consumer that it has.",
        table="dispatcher",
        minimum=1,
    )
    keySharedLookAheadMsgInReplayThresholdPerSubscription: int = setting(
        20_000,
        "The same limit for the subscription as a whole.",
        table="dispatcher",
        minimum=1,
    )
    activeConsumerFailoverDelayTimeMillis: int = setting(
        1000,
        "When another consumer of a failover subscription becomes the active one, it is told so, and sent messages, "
        "after this time: acknowledgements of the last one that are on their way are still counted. 0: at once.",
        table="dispatcher",
        unit="milliseconds",
        minimum=0,
    )
    activeConsumerFailoverConsistentHashing: bool = setting(
        False,
        "Whether the active consumer of a failover subscription is chosen by consistent hashing on partitions too. If "
        "not, the partitions of a topic are shared out among the consumers in order of their names.",
        table="dispatcher",
    )
    subscriptionKeySharedUseConsistentHashing: bool = setting(
        True,
        "Whether key-shared subscriptions divide the keys by consistent hashing. If not, each new consumer gets half "
        "of the largest range.",
        table="dispatcher",
    )
    subscriptionKeySharedConsistentHashingReplicaPoints: int = setting(
        100,
        "Points that each consumer has on the ring of consistent hashing: more of them divide the keys more evenly.",
        table="dispatcher",
        minimum=1,
    )

    # ---------------------------------------------------------------------------------------------------- journal
    journalVolumeSizeMbytes: int = setting(
        256,
        "Own setting. A volume, the file that the log is written to, is followed by the next one at this size. A "
        "volume is removed as a whole when nothing in it is needed.",
        table="journal",
        unit="MiB",
        minimum=1,
    )
    journalMaxBatchMbytes: int = setting(
        8,
        "Own setting. What may gather for the next write while the last one is synced; above it no publishing "
        "connection is read.",
        table="journal",
        unit="MiB",
        minimum=1,
    )
    journalCheckpointMbytes: int = setting(
        64,
        "Own setting. Log that is written between two checkpoints, at most; so much of it is read at a start after a "
        "crash.",
        table="journal",
        unit="MiB",
        minimum=1,
    )
    journalReserveMbytes: int = setting(
        32,
        "Own setting. Room on the disk that messages never take. When the disk is full, publishing is refused, and "
        "acknowledgements and deletions use it until there is room again.",
        table="journal",
        unit="MiB",
        minimum=0,
    )
    journalPackLivePercent: int = setting(
        50,
        "Own setting. A volume of which no more than this is alive is packed: what is alive moves into another one, "
        "and the volume is removed. 0: never.",
        table="journal",
        unit="percent",
        minimum=0,
        maximum=95,
    )
    journalPackMbytesPerSecond: int = setting(
        64,
        "Own setting. How quickly packing copies; 0 for as quickly as it can.",
        table="journal",
        unit="MiB a second",
        minimum=0,
    )
    compressionAtRest: str = setting(
        "none",
        "Own setting. With which codec entries are compressed on the disk: none, zstd, lz4, zlib, snappy, or the name "
        "of a compression plugin. That happens in the background, when volumes are sealed or packed; what is "
        "compressed stays so. A policy of the namespace or topic wins over it.",
        table="journal",
        minimum=1,
        dynamic=True,
    )
    compressionAtRestCpuPercent: int = setting(
        25,
        "Own setting. How much of one core compressing on the disk takes, on average; 100 for as much as there is.",
        table="journal",
        unit="percent",
        minimum=1,
        maximum=100,
        dynamic=True,
    )
    journalPageCacheMbytes: int = setting(
        256,
        "Own setting. Newest part of the journal that is kept in the system's page cache, 0 for all of it. An older "
        "backlog is read from the disk; the memory is the system's for other things, and writing stays fast.",
        table="journal",
        unit="MiB",
        minimum=0,
    )
    journalIndexFlushEntries: int = setting(
        20_000,
        "Own setting. Entries whose place in the log is held in memory before it is written to the index, in one "
        "sorted run.",
        table="journal",
        minimum=1,
    )
    journalSwitchIntervalMicros: int = setting(
        500,
        "Own setting. After this time a thread that waits for Python's interpreter lock gets it (CPython's own value "
        "is 5000). The thread that syncs the log waits this long beside a busy broker.",
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
        """Values by the names of their settings, the others are the defaults. Raises TypeError, ConfigError."""
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
    """Every setting as a row, table by table, in the order of their declarations."""
    order = list(TABLES)
    return tuple(sorted(map(_row, dataclasses.fields(Settings)), key=lambda row: order.index(row.table)))


@cache
def settings_by_name() -> dict[str, Setting]:
    """The rows of ``settings_table`` by their names."""
    return {row.name: row for row in settings_table()}


def _row(field: "dataclasses.Field[object]") -> Setting:
    facts = field.metadata[METADATA_KEY]
    assert isinstance(facts, Facts), f"{field.name} is not declared with setting()"
    assert facts.table in TABLES, f"{field.name} is declared in an unknown table"
    # The annotations are classes, not strings: this module does without `from __future__ import annotations`.
    return Setting(field.name, cast("type[int]", field.type), cast("int", field.default), facts)
