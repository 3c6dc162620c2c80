"""Table definitions of the box's views: columns, row identity, and default order.

The dialog for columns and the help show the meaning of each column.
"""

from collections.abc import Iterable
from typing import Final, NamedTuple

from pulsarbox.tui.widgets.columns import Column, keys_of


class View(NamedTuple):
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

    def asked(self, shown: Iterable[Column]) -> tuple[str, ...]:
        """Return the values to request for these columns, so that the box computes no others; empty for all."""
        if self.needed is None:
            return ()
        return tuple(dict.fromkeys((*self.identity, *self.needed, *keys_of(shown))))


_TOPIC: Final = Column(
    "topic", "TOPIC", 18, "topic", 0, grow=True, meaning="name; of persistent://public/default the last part"
)
_SUBSCRIPTION: Final = Column("subscription", "SUBSCRIPTION", 13, "text", 0, grow=True, meaning="name")

TOPICS: Final = View(
    "topics",
    (
        _TOPIC,
        Column("publishRate", "IN/s", 6, "rate", 1, meaning="messages published a second"),
        Column("deliverRate", "OUT/s", 6, "rate", 1, meaning="messages sent to consumers a second"),
        Column("publishBytes", "BYTES/s", 9, "size", 5, meaning="bytes published a second"),
        Column("trend", "TREND IN/s", 10, "trend", 4, sort=None, meaning="what was published in the last minutes"),
        Column("backlog", "BACKLOG", 9, "count", 0, meaning="messages not acknowledged, of all subscriptions"),
        Column("size", "SIZE", 9, "size", 2, meaning="bytes stored"),
        Column("oldest", "OLDEST", 7, "seconds", 3, meaning="age of the oldest message that is not acknowledged"),
        Column("producers", "PROD", 5, "count", 3, meaning="producers connected"),
        Column("subscriptions", "SUBS", 5, "count", 2, meaning="subscriptions"),
        Column("quota", "QUOTA", 12, "share", 4, meaning="share of its backlog quota that is used"),
    ),
    ("topic",),
    "backlog",
    ("topic",),
    "There is no topic yet. One is made by its first message: pulsarbox produce hello 'Hello, world'",
    needed=(),
)

SUBSCRIPTIONS: Final = View(
    "subscriptions",
    (
        _TOPIC,
        _SUBSCRIPTION,
        Column("type", "TYPE", 10, "text", 6, meaning="Exclusive, Failover, Shared, Key_Shared"),
        Column("backlog", "BACKLOG", 9, "count", 0, meaning="messages not acknowledged"),
        Column("change", "CHANGE/s", 8, "change", 1, meaning="how fast the backlog grows (▲) or shrinks (▼)"),
        Column("trend", "TREND", 10, "trend", 4, sort=None, meaning="the backlog of the last minutes"),
        Column("inRate", "IN/s", 6, "rate", 5, meaning="messages that come in a second"),
        Column("outRate", "OUT/s", 6, "rate", 3, meaning="messages sent a second"),
        Column("unacked", "UNACKED", 8, "count", 3, meaning="sent and not acknowledged"),
        Column("oldest", "OLDEST", 7, "seconds", 4, meaning="age of the oldest message that is not acknowledged"),
        Column("consumers", "CONS", 4, "count", 4, meaning="consumers connected"),
        Column("delayed", "DELAYED", 8, "count", 7, meaning="messages that are not due yet"),
        Column(
            *("cause", "CAUSE", 14, "cause", 0),
            meaning="why nothing is being sent now",
            beside=("backlog", "outRate", "causeText"),
        ),
        Column(
            *("drain", "DRAINED", 8, "drain", 1),
            meaning="when the backlog is gone, at this pace; never: it grows",
            beside=("backlog", "delayed"),
        ),
    ),
    ("topic", "subscription"),
    "backlog",
    ("topic", "subscription"),
    "There is no subscription yet. One is made by its first consumer: pulsarbox consume hello --subscription mine",
    needed=("type",),
)

QUOTAS: Final = View(
    "quotas",
    (
        Column("scope", "OF", 12, "text", 4, meaning="broker, tenant, namespace, topic, subscription, producer"),
        Column("subject", "SUBJECT", 18, "topic", 0, grow=True, meaning="what is limited"),
        Column("policy", "LIMIT OF", 18, "text", 0, grow=True, meaning="the policy"),
        Column("used", "USED", 12, "unit", 1, meaning="what is used of it now", beside=("unit",)),
        Column("limit", "LIMIT", 12, "unit", 0, meaning="what may be used", beside=("unit",)),
        Column("share", "SHARE", 14, "share", 2, meaning="used of the limit"),
        Column("level", "SET BY", 12, "text", 3, meaning="the level that has set the limit"),
        Column(
            *("held", "HELD/min", 8, "held", 1),
            meaning="time that it held something back in the last minute; ●: now",
            beside=("holding",),
        ),
    ),
    ("scope", "subject", "policy"),
    "share",
    ("subject", "policy", "scope"),
    "Nothing is limited. pulsarbox quota set orders --size 2G --then hold limits a backlog.",
    needed=("change",),
)

DEAD_LETTERS: Final = View(
    "deadletters",
    (
        Column("topic", "DEAD LETTER TOPIC", 22, "topic", 0, grow=True, meaning="where they are"),
        Column("origin", "CAME FROM", 14, "topic", 2, grow=True, meaning="the topic that they were published to"),
        Column("left", "LEFT", 9, "count", 0, meaning="not acknowledged yet; without a subscription all of them"),
        Column("messages", "STORED", 8, "count", 4, meaning="messages stored, with what is acknowledged"),
        Column("size", "SIZE", 9, "size", 3, meaning="bytes stored"),
        Column("rate", "IN/s", 6, "rate", 2, meaning="how many come a second"),
        Column("first", "FIRST", 11, "moment", 4, meaning="when the oldest was published"),
        Column("last", "LAST", 11, "moment", 1, meaning="when the newest was published"),
        Column("subscriptions", "SUBS", 4, "count", 3, meaning="subscriptions; without one, nothing is kept"),
        Column("lost", "LOST", 6, "flag", 1, meaning="whether what comes is lost: nobody has subscribed"),
    ),
    ("topic",),
    "last",
    ("topic", "origin"),
    "There are no dead letters. Where messages go that are tried too often: pulsarbox sub dead-letter TOPIC SUB 3",
)

CLIENTS: Final = View(
    "clients",
    (
        Column("kind", "KIND", 10, "text", 1, meaning="producer, consumer, or a connection that is neither"),
        Column("address", "ADDRESS", 21, "text", 1, meaning="where it connects from"),
        Column("role", "ROLE", 10, "text", 5, meaning="who it has proved to be"),
        Column("version", "VERSION", 18, "text", 4, meaning="what it says of itself"),
        Column("topic", "TOPIC", 16, "topic", 0, grow=True, meaning="what it is connected to"),
        Column("subscription", "SUBSCRIPTION", 12, "text", 2, grow=True, meaning="of a consumer"),
        Column("name", "NAME", 12, "text", 3, meaning="of the producer or consumer"),
        Column("rate", "RATE/s", 7, "rate", 0, meaning="messages a second"),
        Column("bytes", "BYTES/s", 9, "size", 4, meaning="bytes a second"),
        Column("unacked", "UNACKED", 7, "count", 3, meaning="sent and not acknowledged"),
        Column("permits", "PERMITS", 7, "count", 5, meaning="how many more messages it takes"),
        Column(
            *("cause", "CAUSE", 9, "cause", 3),
            meaning="why a producer waits, or nothing is read from the client",
            beside=("causeText",),
        ),
        Column("since", "SINCE", 11, "moment", 6, meaning="when it connected"),
    ),
    ("id",),
    "rate",
    ("topic", "subscription", "name", "address", "version"),
    "Nobody is connected.",
)


PLUGINS: Final = View(
    "plugins",
    (
        Column("kind", "KIND", 12, "text", 1, meaning="routing, hashing, compression"),
        Column("name", "NAME", 16, "text", 0, grow=True, meaning="name"),
        Column("state", "STATE", 16, "state", 0, meaning="in use, idle, disabled, missing, not asked any more"),
        Column("calls", "CALLS", 11, "count", 1, meaning="how often it was asked"),
        Column("p50Nanos", "p50", 8, "ns", 2, meaning="half of the calls are quicker"),
        Column("p99Nanos", "p99", 8, "ns", 2, meaning="one call in a hundred takes longer"),
        Column("errors", "ERRORS", 8, "count", 1, meaning="calls that failed"),
        Column("subscriptions", "USED BY", 8, "count", 3, meaning="subscriptions that go by it"),
        Column("lastError", "LAST ERROR", 20, "line", 4, grow=True, meaning="what went wrong last"),
    ),
    ("kind", "name", "source"),
    "calls",
    ("kind", "name", "state", "lastError"),
    "No plugin was asked for. What there is: pulsarbox plugins list",
)

JOBS: Final = View(
    "jobs",
    (
        Column("id", "ID", 5, "text", 0, meaning="number"),
        Column("kind", "KIND", 10, "text", 1, meaning="dlq-replay, dlq-drop"),
        Column("dryRun", "DRY RUN", 7, "yes", 0, meaning="it only looks: nothing is put back, nothing dropped"),
        Column("state", "STATE", 10, "state", 0, meaning="running, paused, done, cancelled, failed, tripped"),
        Column("topic", "TOPIC", 16, "topic", 0, grow=True, meaning="whose messages"),
        Column("share", "SEEN", 12, "progress", 1, meaning="looked at, of all"),
        Column("done", "DONE", 8, "count", 2, meaning="put back, or dropped"),
        Column("skipped", "SKIPPED", 8, "count", 3, meaning="that the filter leaves out"),
        Column("failed", "FAILED", 7, "count", 2, meaning="that could not be put back; they are kept"),
        Column("returned", "RETURNED", 8, "count", 1, meaning="that have come back as dead letters"),
        Column("started", "STARTED", 11, "moment", 3, meaning="when"),
        Column("by", "BY", 8, "text", 5, meaning="who asked for it"),
        Column("error", "ERROR", 16, "line", 2, grow=True, meaning="why it is not running"),
    ),
    ("id",),
    "id",
    ("kind", "state", "topic", "error", "by"),
    "No job was started. Dead letters (4), then x: put them back.",
)

PIPELINES: Final = View(
    "pipelines",
    (
        Column("pipeline", "PIPELINE", 12, "text", 0, grow=True, meaning="name"),
        Column("query", "QUERY", 10, "text", 1, grow=True, meaning="which of its steps"),
        Column("state", "STATE", 8, "state", 0, meaning="starting, running, stopped, failed; gone: nobody tells of it"),
        Column("inputs", "READS", 10, "topics", 2, grow=True, meaning="the topics that it reads"),
        Column("output", "WRITES", 10, "topic", 2, grow=True, meaning="a topic, or files"),
        Column("lag", "LAG", 8, "count", 0, meaning="messages that it has not read yet"),
        Column("rowsPerSecond", "ROWS/s", 7, "rate", 1, meaning="what it reads a second"),
        Column("deadLetters", "DEAD", 5, "count", 1, meaning="messages that it gave up, since its runner began"),
        Column("lastBatchMs", "BATCH", 7, "ms", 3, meaning="how long its last micro-batch took"),
        Column("startedAt", "SINCE", 11, "moment", 3, meaning="when its runner began"),
        Column("reportedAt", "TOLD", 11, "moment", 4, meaning="when its runner told of it last"),
        Column("lastError", "LAST ERROR", 14, "line", 2, grow=True, meaning="what went wrong last"),
        Column("host", "HOST", 10, "text", 5, meaning="where its runner is"),
    ),
    ("by", "pipeline", "query"),
    "lag",
    ("pipeline", "query", "inputs", "output"),
    "No pipeline runs. How one is written and run: docs/spark.md",
)

EVENTS: Final = View(
    "events",
    (
        Column("time", "TIME", 11, "moment", 0, meaning="when"),
        Column("severity", "SEVERITY", 8, "state", 1, meaning="info, warning, error"),
        Column("kind", "KIND", 19, "text", 1, meaning="what kind of thing"),
        Column("subject", "ABOUT", 13, "topic", 1, grow=True, meaning="what it is about"),
        Column("text", "WHAT", 20, "line", 0, grow=True, meaning="in words"),
        Column("count", "TIMES", 6, "count", 3, meaning="how often, where it stands for several"),
    ),
    ("sequence",),
    "sequence",
    ("kind", "subject", "text", "severity"),
    "Nothing has happened that is worth a line.",
)

STORAGE: Final = View(
    "storage",
    (
        Column("name", "VOLUME", 18, "text", 0, grow=True, meaning="the file, below the data directory"),
        Column("state", "STATE", 10, "state", 0, meaning="current, unsealed, sealed, packed"),
        Column("diskUsed", "ON DISK", 10, "size", 0, meaning="bytes that it takes"),
        Column("liveBytes", "ALIVE", 10, "size", 2, meaning="bytes of it that are still needed"),
        Column("liveShare", "SHARE", 14, "progress", 1, meaning="alive, of all; mostly dead ones are packed"),
        Column("liveEntries", "ENTRIES", 10, "count", 2, meaning="entries that are still needed"),
        Column("freePages", "FREE", 7, "count", 3, meaning="free pages of its map"),
        Column("readers", "READERS", 7, "count", 4, meaning="who reads it now"),
        Column("firstPosition", "FROM", 12, "text", 5, meaning="position of its first batch"),
        Column("lastPosition", "TO", 12, "text", 5, meaning="position of its last batch"),
    ),
    ("name",),
    None,
    ("name", "state"),
    "Nothing lies on the disk: the box keeps everything in memory.",
)

GROUPS: Final = View(
    "groups",
    (
        Column("count", "MESSAGES", 9, "count", 0, meaning="how many failed like this"),
        Column("reason", "REASON", 30, "line", 0, grow=True, meaning="what their properties say, without numbers"),
        Column("origin", "CAME FROM", 14, "topic", 3, grow=True, meaning="the topic that they were published to"),
        Column("subscription", "SUBSCRIPTION", 12, "text", 2, meaning="whose consumer gave them up"),
        Column("shape", "LOOKS LIKE", 14, "text", 4, grow=True, meaning="the shape of the payload"),
        Column("first", "FIRST", 11, "moment", 3, meaning="when the oldest was published"),
        Column("last", "LAST", 11, "moment", 1, meaning="when the newest was published"),
        Column("fingerprint", "FINGERPRINT", 12, "text", 5, meaning="stands for all of this"),
    ),
    ("fingerprint",),
    "count",
    ("reason", "origin", "subscription", "shape"),
    "There are no dead letters in this topic.",
)

MESSAGES: Final = View(
    "messages",
    (
        Column("id", "ID", 12, "message", 0, sort=None, meaning="ledger:entry, of batches :partition:index as well"),
        Column("publishTime", "PUBLISHED", 12, "moment", 0, sort=None, meaning="when the producer sent it"),
        Column("key", "KEY", 12, "text", 1, sort=None, meaning="key"),
        Column("size", "SIZE", 9, "size", 2, sort=None, meaning="bytes of the payload"),
        Column(
            "state",
            "STATE",
            12,
            "state",
            3,
            sort=None,
            meaning="of the subscription: acknowledged, inFlight, delayed, waiting",
        ),
        Column("redeliveries", "TRIES", 5, "count", 6, sort=None, meaning="how often it was sent again"),
        Column(
            "shown",
            "CONTENT",
            30,
            "line",
            0,
            grow=True,
            sort=None,
            meaning="the payload, by its schema",
        ),
        Column("told", "PROPERTIES", 20, "line", 4, grow=True, sort=None, meaning="properties"),
    ),
    ("id",),
    None,
    ("id", "key", "shown", "told"),
    "There is no message here.",
)

VIEWS: Final = {
    view.name: view
    for view in (TOPICS, SUBSCRIPTIONS, QUOTAS, DEAD_LETTERS, CLIENTS, PLUGINS, JOBS, PIPELINES, EVENTS, STORAGE)
}
