"""The settings of what the HTTP port serves: the Admin API with what its requests may take, and the metrics."""

from dataclasses import dataclass

from pulsarbox.config.setting import setting


@dataclass(frozen=True, init=False, repr=False, eq=False)  # methods are made for Settings, once
class WebSettings:
    """Those of ``Settings`` that stand in the tables [admin] and [metrics]."""

    maxHttpServerConnections: int = setting(
        20_000,
        "HTTP connections at the same time; more are closed at once. Pulsar has 2048. 0: no limit.",
        table="admin",
        minimum=0,
    )
    maxHttpStreams: int = setting(
        500,
        "Own setting. HTTP answers without an end, such as events that are followed, that may be open at once; one "
        "more is refused with 503 and Retry-After. 0: no limit.",
        table="admin",
        minimum=0,
        dynamic=True,
    )
    maxHttpStreamsPerRole: int = setting(
        50,
        "Own setting. The same limit for one role, or for one address where nothing has been proved; one more is "
        "refused with 429 and Retry-After. 0: no limit.",
        table="admin",
        minimum=0,
        dynamic=True,
    )
    httpServerIdleTimeout: int = setting(
        30_000,
        "How long an HTTP connection may stand without a request, the line and the headers of the next one included; "
        "then it is closed. A body may take as long again, then the answer is 408.",
        table="admin",
        unit="milliseconds",
        minimum=1,
    )
    httpMaxRequestSize: int = setting(
        1024 * 1024,
        "The largest body of a request that is taken; beyond that the answer is 413. Pulsar has no limit.",
        table="admin",
        unit="bytes",
        minimum=1024,
        maximum=64 * 1024 * 1024,
    )
    httpMaxRequestHeaderSize: int = setting(
        8 * 1024,
        "The longest line of the request and the longest header; beyond that the answer is 400.",
        table="admin",
        unit="bytes",
        minimum=512,
        maximum=1024 * 1024,
    )
    httpAllowedHosts: str = setting(
        "",
        "Own setting. Names by which clients may reach the HTTP ports while nothing has to be proved, with commas "
        "between: box.example.com, *.example.com for the names below it, * for any. Addresses, localhost, the host "
        "name of the machine and the names of advertisedAddress and advertisedListeners are always allowed; if "
        "bindAddress is not loopback, so are names that public DNS does not have (pulsar, box.internal). "
        "docs/security.md.",
        table="admin",
        dynamic=True,
    )
    httpAllowedOrigins: str = setting(
        "",
        "Own setting. Origins of web pages that may send requests and read the answers, with commas between: "
        "scheme://host[:port], null for pages without one, * for any. Pages that the box itself has served are "
        "always allowed. docs/security.md.",
        table="admin",
        dynamic=True,
    )
    subscriptionBacklogScanMaxEntries: int = setting(
        10_000,
        "Entries that one request to analyze a backlog looks at, at most; then it answers with what it has counted.",
        table="admin",
        minimum=1,
    )
    subscriptionBacklogScanMaxTimeMs: int = setting(
        120_000,
        "How long it looks at them, at most. It answers after 50 s in any case, because clients wait no longer than a "
        "minute.",
        table="admin",
        unit="milliseconds",
        minimum=1,
    )
    exposeTopicLevelMetricsInPrometheus: bool = setting(
        True,
        "Whether /metrics tells of each topic and subscription. If not, what they sum up to in each namespace.",
        table="metrics",
    )
    exposeProducerLevelMetricsInPrometheus: bool = setting(
        False,
        "Whether /metrics tells of each producer too, where it tells of topics.",
        table="metrics",
    )
    exposeConsumerLevelMetricsInPrometheus: bool = setting(
        False,
        "Whether /metrics tells of each consumer too, where it tells of topics.",
        table="metrics",
    )
    splitTopicAndPartitionLabelInPrometheus: bool = setting(
        False,
        "Whether a partition's label `topic` is the partitioned topic, with its number in a label `partition` (-1 for "
        "a topic that is none), instead of the partition's own name.",
        table="metrics",
    )
    authenticateMetricsEndpoint: bool = setting(
        False,
        "Whether /metrics asks who wants to see them. Nobody can be asked while authenticationEnabled is false: then "
        "true closes /metrics.",
        table="metrics",
    )
    statusFilePath: str = setting(
        "",
        "File that decides about /status.html: 200 while it exists, else 404, so that a load balancer can be told to "
        "stop sending clients. Empty: always 404.",
        table="metrics",
    )
