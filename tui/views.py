"""The views of the box as tables: the columns of each, what its rows are known by, and what they are sorted by first.

What a column means stands with it: the choice of columns and the help show it.
"""

from dataclasses import dataclass
from typing import Final

from pulsarbox.tui.columns import Column


@dataclass(frozen=True, slots=True)
class View:
    """One table."""

    name: str
    columns: tuple[Column, ...]
    identity: tuple[str, ...]
    sort: str | None
    texts: tuple[str, ...]
    empty: str
    """What is said where there is nothing at all."""
    descending: bool = True


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
        Column("backlog", "BACKLOG", 9, "count", 0, meaning="messages not acknowledged, of all subscriptions"),
        Column("trend", "TREND", 10, "trend", 4, sort=None, meaning="the backlog of the last minutes"),
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
        Column("cause", "CAUSE", 13, "cause", 0, meaning="why nothing is being sent now"),
        Column("drain", "DRAINED", 8, "drain", 1, meaning="when the backlog is gone, at this pace; never: it grows"),
    ),
    ("topic", "subscription"),
    "backlog",
    ("topic", "subscription"),
    "There is no subscription yet. One is made by its first consumer: pulsarbox consume hello --subscription mine",
)

QUOTAS: Final = View(
    "quotas",
    (
        Column("scope", "OF", 12, "text", 4, meaning="broker, tenant, namespace, topic, subscription, producer"),
        Column("subject", "SUBJECT", 18, "topic", 0, grow=True, meaning="what is limited"),
        Column("policy", "LIMIT OF", 18, "text", 0, grow=True, meaning="the policy"),
        Column("used", "USED", 12, "unit", 1, meaning="what is used of it now"),
        Column("limit", "LIMIT", 12, "unit", 0, meaning="what may be used"),
        Column("share", "SHARE", 14, "share", 2, meaning="used of the limit"),
        Column("level", "SET BY", 12, "text", 3, meaning="the level that has set the limit"),
        Column("held", "HELD/min", 8, "held", 1, meaning="time that it held something back in the last minute; ●: now"),
    ),
    ("scope", "subject", "policy"),
    "share",
    ("subject", "policy", "scope"),
    "Nothing is limited. pulsarbox quota set orders --size 2G --then hold  limits a backlog.",
)

DEAD_LETTERS: Final = View(
    "deadletters",
    (
        Column("topic", "DEAD LETTER TOPIC", 22, "topic", 0, grow=True, meaning="where they are"),
        Column("origin", "CAME FROM", 14, "topic", 2, grow=True, meaning="the topic that they were published to"),
        Column("messages", "MESSAGES", 9, "count", 0, meaning="how many"),
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
        Column("version", "CLIENT", 18, "text", 4, meaning="what it says of itself"),
        Column("topic", "TOPIC", 16, "topic", 0, grow=True, meaning="what it is connected to"),
        Column("subscription", "SUBSCRIPTION", 12, "text", 2, grow=True, meaning="of a consumer"),
        Column("name", "NAME", 12, "text", 3, meaning="of the producer or consumer"),
        Column("rate", "MSG/s", 6, "rate", 0, meaning="messages a second"),
        Column("bytes", "BYTES/s", 9, "size", 4, meaning="bytes a second"),
        Column("unacked", "UNACKED", 7, "count", 3, meaning="sent and not acknowledged"),
        Column("permits", "PERMITS", 7, "count", 5, meaning="how many more messages it takes"),
        Column("since", "SINCE", 11, "moment", 6, meaning="when it connected"),
    ),
    ("connection", "kind", "topic", "subscription", "name"),
    "rate",
    ("topic", "subscription", "name", "address", "version"),
    "Nobody is connected.",
)

VIEWS: Final = {view.name: view for view in (TOPICS, SUBSCRIPTIONS, QUOTAS, DEAD_LETTERS, CLIENTS)}
