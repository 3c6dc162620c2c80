"""Table definitions of the box's views: columns, row identity, and default order.

The dialog for columns and the help show the meaning of each column.
"""

from collections.abc import Iterable
from typing import Final, NamedTuple

from pulsarbox.tui.widgets.columns import Column, keys_of


class TableView(NamedTuple):
    """Definition of one table."""

    name: str
    columns: tuple[Column, ...]
    identity: tuple[str, ...]
    sort: str | None
    texts: tuple[str, ...]
    empty: str
    """Text of an empty table."""
    descending: bool = True
    needed: tuple[str, ...] | None = None
    """Values to request always; others are requested only if shown. None requests all."""
    example: str = ""
    """A filter, for the hint of the filter line."""
    noun: str = "row"
    """Noun for a row."""
    headed: tuple[str, ...] = ()
    """Columns in the heading of a row's details, if not those of the identity."""

    def asked(self, shown: Iterable[Column]) -> tuple[str, ...]:
        """Return the values to request for these columns, so that the box computes no others; empty for all."""
        if self.needed is None:
            return ()
        return tuple(dict.fromkeys((*self.identity, *self.needed, *keys_of(shown))))


_TOPIC: Final = Column(
    "topic", "TOPIC", 18, "topic", 0, grow=True, meaning="topic name, without persistent://public/default/", useful=24
)
_SUBSCRIPTION: Final = Column("subscription", "SUBSCRIPTION", 13, "text", 0, grow=True, meaning="name")

TOPICS: Final = TableView(
    "topics",
    (
        _TOPIC,
        Column("publishRate", "IN/s", 6, "rate", 1, meaning="messages published per second"),
        Column("deliverRate", "OUT/s", 6, "rate", 1, meaning="messages dispatched to consumers per second"),
        Column("publishBytes", "BYTES/s", 9, "size", 5, meaning="bytes published per second"),
        Column("trend", "TREND IN/s", 10, "trend", 4, sort=None, meaning="publish rate of the last minutes"),
        Column("backlog", "BACKLOG", 8, "count", 0, meaning="unacknowledged messages of all subscriptions"),
        Column("size", "SIZE", 9, "size", 2, meaning="bytes stored"),
        Column(
            "oldest", "OLDEST", 7, "age", 3, meaning="age of the oldest unacknowledged message", beside=("backlog",)
        ),
        Column("producers", "PRODUCERS", 9, "count", 3, meaning="connected producers"),
        Column("subscriptions", "SUBSCRIPTIONS", 13, "count", 4, meaning="subscriptions"),
        Column("quota", "QUOTA", 12, "share", 4, meaning="used share of the backlog quota"),
    ),
    ("topic",),
    "backlog",
    ("topic",),
    "No topics. Create one by publishing: pulsarbox produce hello 'Hello, world'",
    needed=(),
    example="backlog > 1000 and producers == 0",
    noun="topic",
)

SUBSCRIPTIONS: Final = TableView(
    "subscriptions",
    (
        _TOPIC._replace(width=17),
        _SUBSCRIPTION,
        Column("type", "TYPE", 10, "text", 6, meaning="Exclusive, Failover, Shared, Key_Shared"),
        Column("backlog", "BACKLOG", 8, "count", 0, meaning="unacknowledged messages"),
        Column("change", "CHANGE/s", 8, "change", 1, meaning="how fast the backlog grows (▲) or shrinks (▼)"),
        Column(
            *("cause", "CAUSE", 14, "cause", 0),
            meaning="why nothing is dispatched now",
            beside=("backlog", "outRate", "causeText"),
        ),
        Column("trend", "TREND", 10, "trend", 4, sort=None, meaning="the backlog of the last minutes"),
        Column("inRate", "IN/s", 6, "rate", 5, meaning="messages added to the backlog per second"),
        Column("outRate", "OUT/s", 6, "rate", 3, meaning="messages dispatched per second"),
        Column("unacked", "UNACKED", 8, "count", 3, meaning="dispatched and not acknowledged"),
        Column(
            "oldest", "OLDEST", 7, "age", 4, meaning="age of the oldest unacknowledged message", beside=("backlog",)
        ),
        Column("consumers", "CONSUMERS", 9, "count", 4, meaning="connected consumers"),
        Column("delayed", "DELAYED", 8, "count", 7, meaning="delayed messages that are not due yet"),
        Column(
            *("drain", "DRAINS IN", 9, "drain", 1),
            meaning="time until the backlog is empty; never: it grows",
            beside=("backlog", "delayed", "change", "outRate"),
        ),
    ),
    ("topic", "subscription"),
    "backlog",
    ("topic", "subscription"),
    "No subscriptions. Create one by consuming: pulsarbox consume hello --subscription mine",
    needed=("type",),
    example='backlog > 1000 and type == "Shared"',
    noun="subscription",
)

QUOTAS: Final = TableView(
    "quotas",
    (
        Column("scope", "SCOPE", 12, "text", 4, meaning="broker, tenant, namespace, topic, subscription, producer"),
        Column("subject", "SUBJECT", 14, "topic", 0, grow=True, meaning="limited object", useful=24),
        Column("policy", "POLICY", 16, "policy", 0, grow=True, meaning="limited value; the last line has the command"),
        Column("used", "USED", 10, "unit", 1, meaning="current usage", beside=("unit",)),
        Column("limit", "LIMIT", 10, "unit", 0, meaning="configured limit", beside=("unit",)),
        Column("share", "SHARE", 10, "share", 1, meaning="used share of the limit"),
        Column("level", "SET BY", 10, "text", 3, meaning="level that sets the limit"),
        Column(
            *("held", "THROTTLED", 9, "held", 1),
            meaning="time throttled in the last minute; ●: now",
            beside=("holding",),
        ),
    ),
    ("scope", "subject", "policy"),
    "share",
    ("subject", "policy", "scope"),
    "No limits. Limit a backlog: pulsarbox quota set orders --size 2G --then hold",
    needed=("change", "topic", "subscription"),
    example='share > 0.8 and scope == "topic"',
    noun="limit",
)

DEAD_LETTERS: Final = TableView(
    "deadletters",
    (
        Column("topic", "DEAD LETTER TOPIC", 22, "topic", 0, grow=True, meaning="topic that stores them", useful=28),
        Column("origin", "ORIGIN", 14, "topic", 2, grow=True, meaning="original topic of the messages"),
        Column("left", "LEFT", 9, "count", 0, meaning="unacknowledged messages; all, without a subscription"),
        Column("messages", "STORED", 8, "count", 4, meaning="stored messages, including acknowledged ones"),
        Column("size", "SIZE", 9, "size", 3, meaning="bytes stored"),
        Column("rate", "IN/s", 6, "rate", 2, meaning="messages added per second"),
        Column("first", "FIRST", 11, "moment", 4, meaning="publish time of the oldest message"),
        Column("last", "LAST", 11, "moment", 1, meaning="publish time of the newest message"),
        Column(
            "subscriptions",
            "SUBSCRIPTIONS",
            13,
            "count",
            5,
            meaning="subscriptions; without any, messages are not retained",
        ),
        Column("lost", "LOST", 6, "flag", 1, meaning="whether new messages are lost, for lack of a subscription"),
    ),
    ("topic",),
    "last",
    ("topic", "origin"),
    "No dead letters. Keep messages that fail: pulsarbox sub dead-letter TOPIC SUB 3",
    example="left > 100 and lost == true",
    noun="dead letter topic",
)

CLIENTS: Final = TableView(
    "clients",
    (
        Column("kind", "KIND", 11, "text", 1, meaning="producer, consumer, or a connection without either"),
        Column("address", "ADDRESS", 21, "text", 1, meaning="address of the client"),
        Column("role", "ROLE", 10, "text", 5, meaning="authenticated role"),
        Column("version", "VERSION", 18, "text", 4, meaning="client version, as sent by the client"),
        Column("topic", "TOPIC", 16, "topic", 0, grow=True, meaning="topic of the producer or consumer", useful=24),
        Column("subscription", "SUBSCRIPTION", 12, "text", 2, grow=True, meaning="subscription of a consumer"),
        Column("name", "NAME", 14, "text", 3, grow=True, meaning="name of the producer or consumer"),
        Column("rate", "RATE/s", 7, "rate", 0, meaning="messages per second"),
        Column("bytes", "BYTES/s", 9, "size", 4, meaning="bytes per second"),
        Column("unacked", "UNACKED", 7, "count", 3, meaning="dispatched and not acknowledged"),
        Column("permits", "PERMITS", 7, "count", 5, meaning="number of messages the consumer can still receive"),
        Column(
            *("cause", "CAUSE", 10, "cause", 3),
            meaning="why a producer waits, or why the broker does not read from the client",
            beside=("causeText",),
        ),
        Column("since", "SINCE", 11, "moment", 6, meaning="time of connection"),
    ),
    ("id",),
    "rate",
    ("topic", "subscription", "name", "address", "version"),
    "No client is connected. Connect one: pulsarbox consume hello --subscription mine",
    example='kind == "producer" and rate > 100',
    noun="client",
)


PLUGINS: Final = TableView(
    "plugins",
    (
        Column("kind", "KIND", 12, "text", 1, meaning="routing, hashing, compression"),
        Column("name", "NAME", 16, "text", 0, grow=True, meaning="name"),
        Column("state", "STATE", 16, "state", 0, meaning="in use, idle, disabled, missing, no longer called"),
        Column("calls", "CALLS", 10, "count", 1, meaning="number of calls"),
        Column("p50Nanos", "p50", 8, "ns", 2, meaning="median duration of a call"),
        Column("p99Nanos", "p99", 8, "ns", 2, meaning="99th percentile of the duration of a call"),
        Column("errors", "ERRORS", 8, "count", 1, meaning="failed calls"),
        Column("subscriptions", "USED BY", 8, "count", 3, meaning="subscriptions that use it"),
        Column("lastError", "LAST ERROR", 20, "line", 4, grow=True, meaning="most recent error"),
    ),
    ("kind", "name", "source"),
    "calls",
    ("kind", "name", "state", "lastError"),
    "No plugin is in use. List installed plugins: pulsarbox plugins list",
    example='errors > 0 and kind == "routing"',
    noun="plugin",
)

JOBS: Final = TableView(
    "jobs",
    (
        Column("id", "ID", 4, "text", 0, meaning="job ID"),
        Column("kind", "KIND", 10, "text", 1, meaning="dlq-replay, dlq-drop"),
        Column("dryRun", "DRY RUN", 7, "yes", 0, meaning="dry run: replays and drops nothing"),
        Column("state", "STATE", 9, "state", 0, meaning="running, paused, done, cancelled, failed, tripped"),
        Column("topic", "TOPIC", 16, "topic", 0, grow=True, meaning="dead letter topic"),
        Column("share", "PROGRESS", 12, "progress", 1, meaning="messages examined, of all"),
        Column("done", "DONE", 8, "count", 2, meaning="messages replayed or dropped"),
        Column("skipped", "SKIPPED", 8, "count", 3, meaning="messages excluded by the filter"),
        Column("failed", "FAILED", 7, "count", 2, meaning="messages rejected and kept"),
        Column("returned", "RETURNED", 8, "count", 1, meaning="replayed messages that became dead letters again"),
        Column("started", "STARTED", 11, "moment", 3, meaning="start time"),
        Column("by", "BY", 8, "text", 5, meaning="role that started the job"),
        Column("error", "ERROR", 16, "line", 2, grow=True, meaning="why the job is not running", useful=32),
    ),
    ("id",),
    "id",
    ("kind", "state", "topic", "error", "by"),
    "No jobs. Replay dead letters: pulsarbox dlq replay TOPIC --dry-run",
    example='state == "running" and failed > 0',
    noun="job",
)

PIPELINES: Final = TableView(
    "pipelines",
    (
        Column("pipeline", "PIPELINE", 12, "text", 0, grow=True, meaning="name"),
        Column("query", "QUERY", 10, "text", 1, grow=True, meaning="query of the pipeline"),
        Column("state", "STATE", 8, "state", 0, meaning="starting, running, stopped, failed; gone: no reports"),
        Column("inputs", "READS", 13, "topics", 2, grow=True, meaning="input topics"),
        Column("output", "WRITES", 10, "topic", 2, grow=True, meaning="output topic or files"),
        Column("lag", "LAG", 8, "count", 0, meaning="messages not read yet"),
        Column("rowsPerSecond", "ROWS/s", 7, "rate", 1, meaning="rows read per second"),
        Column("deadLetters", "DLQ", 5, "count", 1, meaning="dead letters since the start of the runner"),
        Column("lastBatchMs", "BATCH", 7, "ms", 3, meaning="duration of the last micro-batch"),
        Column("startedAt", "SINCE", 11, "moment", 3, meaning="start time of the runner"),
        Column("reportedAt", "REPORTED", 11, "moment", 4, meaning="time of the last report"),
        Column("lastError", "LAST ERROR", 14, "line", 2, grow=True, meaning="most recent error", useful=32),
        Column("host", "HOST", 10, "text", 5, meaning="host of the runner"),
    ),
    ("by", "pipeline", "query"),
    "lag",
    ("pipeline", "query", "inputs", "output"),
    "No pipeline is running. To write and run one, see docs/spark.md",
    example='lag > 1000 or state == "failed"',
    noun="pipeline",
)

EVENTS: Final = TableView(
    "events",
    (
        Column("time", "TIME", 11, "moment", 0, meaning="time"),
        Column("severity", "SEVERITY", 8, "state", 1, meaning="info, warning, error"),
        Column("kind", "KIND", 19, "text", 1, meaning="kind of event"),
        Column("subject", "SUBJECT", 13, "topic", 1, grow=True, meaning="object of the event"),
        Column("text", "DESCRIPTION", 20, "line", 0, grow=True, meaning="what happened"),
        Column("count", "COUNT", 6, "count", 3, meaning="number of occurrences, if several are combined"),
    ),
    ("sequence",),
    "sequence",
    ("kind", "subject", "text", "severity"),
    "No events. Print new ones as they occur: pulsarbox events --follow",
    example='severity == "error" and count > 1',
    noun="event",
)

STORAGE: Final = TableView(
    "storage",
    (
        Column("name", "VOLUME", 18, "text", 0, grow=True, meaning="file, relative to the data directory"),
        Column("state", "STATE", 10, "state", 0, meaning="current, unsealed, sealed, packed"),
        Column("diskUsed", "ON DISK", 10, "size", 0, meaning="size on disk in bytes"),
        Column("liveBytes", "LIVE", 10, "size", 2, meaning="bytes of live data"),
        Column("liveShare", "SHARE", 14, "progress", 1, meaning="live share; volumes with little live data are packed"),
        Column("liveEntries", "ENTRIES", 10, "count", 2, meaning="live entries"),
        Column("freePages", "FREE", 7, "count", 3, meaning="free pages of the memory map"),
        Column("readers", "READERS", 7, "count", 4, meaning="current readers"),
        Column("firstPosition", "FROM", 12, "text", 5, meaning="position of its first batch"),
        Column("lastPosition", "TO", 12, "text", 5, meaning="position of its last batch"),
    ),
    ("name",),
    None,
    ("name", "state"),
    "No volumes: the box keeps all data in memory.",
    example='state == "sealed" and liveShare < 0.5',
    noun="volume",
)

GROUPS: Final = TableView(
    "groups",
    (
        Column("count", "MESSAGES", 9, "count", 0, meaning="messages with this failure"),
        Column(
            "reason", "REASON", 37, "line", 0, grow=True, meaning="failure reason from the properties, without numbers"
        ),
        Column("origin", "ORIGIN", 14, "topic", 3, grow=True, meaning="original topic of the messages"),
        Column("subscription", "SUBSCRIPTION", 12, "text", 2, meaning="subscription that rejected them"),
        Column("shape", "SHAPE", 14, "text", 4, grow=True, meaning="shape of the payload; enter shows several"),
        Column("first", "FIRST", 11, "moment", 3, meaning="publish time of the oldest message"),
        Column("last", "LAST", 11, "moment", 1, meaning="publish time of the newest message"),
        Column("fingerprint", "FINGERPRINT", 12, "text", 5, meaning="identifies messages of one shape"),
    ),
    ("group",),
    "count",
    ("reason", "origin", "subscription", "shape"),
    "No dead letters remain. Show stored ones: pulsarbox dlq groups TOPIC --stored",
    example='count > 100 and reason != ""',
    noun="failure",
    headed=("reason",),
)

MESSAGES: Final = TableView(
    "messages",
    (
        Column(
            "id", "ID", 12, "message", 0, sort=None, meaning="ledger:entry; for batches ledger:entry:partition:index"
        ),
        Column("publishTime", "PUBLISHED", 12, "moment", 0, sort=None, meaning="publish time"),
        Column("key", "KEY", 12, "text", 1, sort=None, meaning="key"),
        Column("size", "SIZE", 9, "size", 2, sort=None, meaning="payload size in bytes"),
        Column(
            "state",
            "STATE",
            12,
            "state",
            3,
            sort=None,
            meaning="state on the subscription: acknowledged, in flight, delayed, waiting",
        ),
        Column("redeliveries", "REDELIVERIES", 12, "count", 6, sort=None, meaning="number of redeliveries"),
        Column(
            "shown",
            "CONTENT",
            30,
            "line",
            0,
            grow=True,
            sort=None,
            meaning="payload, decoded by its schema",
        ),
        Column("told", "PROPERTIES", 20, "line", 4, grow=True, sort=None, meaning="properties"),
    ),
    ("id",),
    None,
    ("id", "key", "shown", "told"),
    "No messages. Publish one: pulsarbox produce TOPIC 'Hello, world'",
    example='key == "a" and json.total > 100',
    noun="message",
)

RECORDED: Final = frozenset({"topics", "subscriptions", "quotas", "deadletters"})
"""Names of the views of recorded history, beside the overview."""

VIEWS: Final = {
    view.name: view
    for view in (TOPICS, SUBSCRIPTIONS, QUOTAS, DEAD_LETTERS, CLIENTS, PLUGINS, JOBS, PIPELINES, EVENTS, STORAGE)
}
