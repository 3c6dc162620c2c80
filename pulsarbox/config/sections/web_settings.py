"""Settings of the [admin] and [metrics] tables: the HTTP port."""

from dataclasses import dataclass

from pulsarbox.config.setting import setting


@dataclass(frozen=True, init=False, repr=False, eq=False)  # Settings defines the methods once
class WebSettings:
    """The [admin] and [metrics] parts of ``Settings``."""

    maxHttpServerConnections: int = setting(
        20_000,
        "Maximum number of open HTTP connections; further ones are closed at once. Pulsar's default is 2048. 0: no "
        "limit.",
        table="admin",
        minimum=0,
    )
    maxHttpStreams: int = setting(
        500,
        "Own setting. Maximum number of open streaming HTTP responses, such as followed events; further ones are "
        "rejected with 503 and Retry-After. 0: no limit.",
        table="admin",
        minimum=0,
        dynamic=True,
    )
    maxHttpStreamsPerRole: int = setting(
        50,
        "Own setting. Maximum number of open streaming HTTP responses of one role, or of one address without "
        "authentication; further ones are rejected with 429 and Retry-After. 0: no limit.",
        table="admin",
        minimum=0,
        dynamic=True,
    )
    httpServerIdleTimeout: int = setting(
        30_000,
        "Time after which an HTTP connection without a complete request line and headers is closed. A body may take "
        "as long again; after that the response is 408.",
        table="admin",
        unit="milliseconds",
        minimum=1,
    )
    httpMaxRequestSize: int = setting(
        1024 * 1024,
        "Maximum size of a request body; a larger one is rejected with 413. Pulsar has no limit.",
        table="admin",
        unit="bytes",
        minimum=1024,
        maximum=64 * 1024 * 1024,
    )
    httpMaxRequestHeaderSize: int = setting(
        8 * 1024,
        "Maximum length of the request line and of each header; a longer one is rejected with 400.",
        table="admin",
        unit="bytes",
        minimum=512,
        maximum=1024 * 1024,
    )
    httpAllowedHosts: str = setting(
        "",
        "Own setting. Host names by which clients may reach the HTTP ports while authentication is disabled, "
        "comma-separated: box.example.com, *.example.com for the names below it, * for any. Addresses, localhost, the "
        "machine's host name and the names in advertisedAddress and advertisedListeners are always allowed; so are "
        "names outside public DNS (pulsar, box.internal) if bindAddress is not loopback. See docs/security.md.",
        table="admin",
        dynamic=True,
    )
    httpAllowedOrigins: str = setting(
        "",
        "Own setting. Origins of web pages that may send requests and read the responses, comma-separated: "
        "scheme://host[:port], null for pages without one, * for any. Pages served by the box itself are always "
        "allowed. See docs/security.md.",
        table="admin",
        dynamic=True,
    )
    webSocketServiceEnabled: bool = setting(
        True,
        "Serves the WebSocket API below /ws on the HTTP ports. Pulsar's standalone.conf sets true as well.",
        table="admin",
    )
    webSocketMaxTextFrameSize: int = setting(
        1024 * 1024,
        "Maximum size of a message that a WebSocket client sends, in base64 and JSON; a larger one closes the socket "
        "with 1009.",
        table="admin",
        unit="bytes",
        minimum=1024,
        maximum=8 * 1024 * 1024,
    )
    webSocketSessionIdleTimeoutMillis: int = setting(
        300_000,
        "Time after which a WebSocket without messages or pings in either direction is closed. 0: never.",
        table="admin",
        unit="milliseconds",
        minimum=0,
    )
    subscriptionBacklogScanMaxEntries: int = setting(
        10_000,
        "Maximum number of entries that one request to analyze a backlog reads; it then returns the counts so far.",
        table="admin",
        minimum=1,
    )
    subscriptionBacklogScanMaxTimeMs: int = setting(
        120_000,
        "Maximum time for which one request to analyze a backlog reads entries. It returns after 50 s in any case, "
        "because clients wait no longer than a minute.",
        table="admin",
        unit="milliseconds",
        minimum=1,
    )
    exposeTopicLevelMetricsInPrometheus: bool = setting(
        True,
        "Exposes metrics of each topic and subscription at /metrics. If false, they are summed up by namespace.",
        table="metrics",
    )
    exposeProducerLevelMetricsInPrometheus: bool = setting(
        False,
        "Exposes metrics of each producer as well, if topic-level metrics are exposed.",
        table="metrics",
    )
    exposeConsumerLevelMetricsInPrometheus: bool = setting(
        False,
        "Exposes metrics of each consumer as well, if topic-level metrics are exposed.",
        table="metrics",
    )
    splitTopicAndPartitionLabelInPrometheus: bool = setting(
        False,
        "Labels a partition's metrics with the partitioned topic in `topic` and the partition's index in `partition` "
        "(-1 for a topic that is not partitioned), instead of the partition's full name in `topic`.",
        table="metrics",
    )
    authenticateMetricsEndpoint: bool = setting(
        False,
        "Requires authentication for /metrics. While authenticationEnabled is false, no client can authenticate, "
        "and true closes /metrics.",
        table="metrics",
    )
    statusFilePath: str = setting(
        "",
        "File that controls /status.html: 200 while it exists, otherwise 404, which makes a load balancer stop "
        "sending clients. Empty: always 404.",
        table="metrics",
    )
