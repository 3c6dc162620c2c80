"""The live views of a stopped box, computed from its files without writing.

The in-memory state of a running box is rebuilt by the same code: the rows of the checkpoint and the log after it are
replayed, so backlogs and holes are exact. This runs in a child process, because a damaged page can kill it.
"""

import contextlib
import time
from collections.abc import Iterator
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Final

from pulsarbox.errors import PersistenceError
from pulsarbox.names import COMPACTION_SUBSCRIPTION, TopicName, is_retry_topic, origin_of, parse_topic
from pulsarbox.storage.catalog import CLOCK, partitions_key, topic_key
from pulsarbox.storage.dead_letter_topics import for_dead_letters
from pulsarbox.storage.engine import Recovery
from pulsarbox.storage.format import META, PACKED
from pulsarbox.storage.inspection.box import Box, number_of
from pulsarbox.storage.inspection.child import ChildEnded, Line, run
from pulsarbox.storage.inspection.scan import batches
from pulsarbox.storage.inspection.statistics import statistics
from pulsarbox.storage.lmdb.meta_environment import MetaEnvironment, MetaRows
from pulsarbox.storage.recovery import Store, StoredTopic

TOPICS_MAX: Final = 100_000
"""Maximum number of topics listed individually."""
_PAGE: Final = 500
_LINE: Final = 200
"""Rows per line of the child."""

_IN_MESSAGES: Final = "publish times are stored in the messages: only a running box looks them up"
UNKNOWN: Final = {
    "topics": {"oldest": _IN_MESSAGES, "quota": "only a running box determines which quota applies"},
    "subscriptions": {
        "oldest": _IN_MESSAGES,
        "type": "consumers set it when they subscribe, and none has since",
        "drain": "a stopped box delivers nothing",
    },
    "deadletters": {},
    "storage": {},
}
"""By view, the columns whose values the files do not contain, and why."""

Row = dict[str, Any]


@dataclass(slots=True)
class DeadBox:
    """The contents of a data directory whose box is stopped."""

    path: Path
    views: dict[str, list[Row]] = field(default_factory=dict)
    """Rows by view: topics, subscriptions, deadletters, storage."""
    totals: Row = field(default_factory=dict)
    """Totals of the overview."""
    storage: Row = field(default_factory=dict)
    """Totals of the store."""
    now: int = 0
    """Time of inspection, by the box's clock (ms since 1970)."""
    topics: int = 0
    """Number of topics; above TOPICS_MAX the rows are incomplete."""


def dead_box(path: Path) -> DeadBox:
    """Inspect a data directory. Raises PersistenceError if a box runs on it, or it cannot be read."""
    box = Box(path)
    if box.live:
        who = f" (process {box.pid})" if box.pid else ""
        raise PersistenceError(
            f"a box is running on {path}{who}: query it instead, without --data-dir or with its --admin-url"
        )
    found = DeadBox(path, {name: [] for name in ("topics", "subscriptions", "deadletters")})
    try:
        for line in run("dead", path, {"topics": TOPICS_MAX}):
            if line[0] == "rows":
                found.views[line[1]] += line[2]
            elif line[0] == "box":
                found.now, found.topics = line[1], line[2]
    except ChildEnded as error:
        raise PersistenceError(
            f"{path / (error.where or META)}: {error.reason}: `pulsarbox storage check {path}` shows the damage"
        ) from error
    document = statistics(path, 0)
    found.views["storage"] = [_volume(row) for row in document["volumes"][::-1]]
    found.storage = _storage_totals(document)
    found.totals = _totals(found, document)
    return found


def _volume(row: Row) -> Row:
    sealed = row["state"] in ("sealed", "packed")
    return {
        "name": row["name"],
        "state": row["state"],
        "fileSize": row["file_size"],
        "diskUsed": row["disk_used"],
        "firstPosition": row["first_position"],
        "lastPosition": row["last_position"],
        "liveEntries": row["live_entries"],
        "liveBytes": row["live_bytes"],
        "liveShare": row["live_percent"] / 100 if sealed else None,
        "mapSize": None,
        "freePages": None,
        "readers": None,
        "oldestReader": None,
        "unreadable": row["unreadable"],
    }


def _storage_totals(document: Row) -> Row:
    disk = document["disk"]
    return {
        "volumes": len(document["volumes"]),
        "volumeBytes": disk["volumes"],
        "liveBytes": sum(row["live_bytes"] for row in document["volumes"]),
        "checkpointLag": document["lag"]["bytes"],
        "diskFree": disk["free"],
        "reserveHeld": bool(disk["reserved"]),
    }


def _totals(found: DeadBox, document: Row) -> Row:
    topics, subscriptions = found.views["topics"], found.views["subscriptions"]
    still = ("publishRate", "deliverRate", "publishBytes", "deliverBytes", "unacked", "producers", "consumers")
    return {
        **dict.fromkeys(still, 0),
        "backlog": sum(row["backlog"] for row in subscriptions),
        "size": sum(row["size"] for row in topics),
        "topics": found.topics,
        "subscriptions": len(subscriptions),
        "connections": 0,
        "deadLetters": sum(row["left"] for row in found.views["deadletters"]),
        "diskUsed": document["disk"]["used"],
        "diskFree": document["disk"]["free"],
        "uptime": None,
        "version": None,
        "clusterName": None,
    }


# In the child process


class _One:
    """The one environment of rows, opened read-only."""

    def __init__(self, meta: MetaEnvironment) -> None:
        self._meta = meta

    @contextlib.contextmanager
    def using(self, number: int) -> Iterator[MetaEnvironment]:
        """See Pool."""
        yield self._meta


def gather(path: Path, options: Row) -> Iterator[Line]:
    """Yield the rows of the box, in chunks."""
    box = Box(path)
    yield ["at", META, 0]
    meta = MetaEnvironment(path / META, readonly=True)
    rows = MetaRows(_One(meta), lambda error: PersistenceError(str(error)))
    mark = meta.marks()[0]
    log: list[bytes] = []
    for name in box.volumes():
        if number_of(name) < PACKED:
            yield ["at", name, 0]
            log += _behind(box, name, mark)
    store = Store(Recovery(rows, iter(log), mark + len(log) + 1))
    offset = (store.catalog.get(CLOCK) or {"offset": 0})["offset"]
    now = time.time_ns() // 1_000_000 + offset
    count = 0
    gathered: dict[str, list[Row]] = {"topics": [], "subscriptions": [], "deadletters": []}
    for name in _names(store):
        count += 1
        if count > options["topics"]:
            continue
        _add(store, name, gathered, now)
        for view, some in gathered.items():
            if len(some) >= _LINE:
                yield ["rows", view, some]
                gathered[view] = []
    for view, some in gathered.items():
        yield ["rows", view, some]
    yield ["box", now, count]


def _behind(box: Box, name: str, mark: int) -> list[bytes]:
    """Return the batches of a volume after the checkpoint; the box bounds how many there are."""
    with box.open(name, growing=False) as env:
        _, last = env.extent()
        if last <= mark:
            return []
        return [value for chunk in batches(env, mark + 1, last) for _, value in chunk]


def _names(store: Store) -> Iterator[str]:
    after: str | None = ""
    while after is not None:
        keys, after = store.catalog.page(topic_key(""), after, _PAGE)
        yield from (key.partition("/")[2] for key in keys)


def _add(store: Store, name: str, gathered: dict[str, list[Row]], now: int) -> None:
    row = store.catalog.get(topic_key(name))
    stored = store.topic(name)
    if row is None or stored is None:
        return
    subscriptions = [_subscription(stored, name, cursor_id, now) for cursor_id in stored.cursors]
    ledger = stored.ledger
    gathered["subscriptions"] += subscriptions
    gathered["topics"].append(
        {
            "topic": name,
            "publishRate": 0.0,
            "deliverRate": 0.0,
            "publishBytes": 0.0,
            "backlog": sum(each["backlog"] for each in subscriptions),
            "size": ledger.size,
            "producers": 0,
            "consumers": 0,
            "subscriptions": len(subscriptions),
            "oldest": None,
            "trend": [],
            "quota": None,
            "loaded": False,
            "entries": ledger.confirmed_entries,
            "ledgers": len(ledger.ledgers),
            "lastPublishTime": ledger.last_publish_time or None,
        }
    )
    if for_dead_letters(parse_topic(name), row):
        gathered["deadletters"].append(_letters(store, stored, name))
    store.forget(stored)


def _subscription(stored: StoredTopic, name: str, cursor_id: int, now: int) -> Row:
    cursor = stored.cursors[cursor_id]
    backlog = cursor.backlog_messages
    return {
        "topic": name,
        "subscription": cursor.name,
        "type": None,
        "backlog": backlog,
        "change": 0.0,
        "inRate": 0.0,
        "outRate": 0.0,
        "unacked": 0,
        "consumers": 0,
        "trend": [],
        "cause": "no-consumer" if backlog else None,
        "causeText": "the box is not running" if backlog else None,
        "causeSince": 0,
        "drain": None,
        "delayed": stored.delays.not_due(cursor.mark_delete, now).entries,
        "oldest": None,
        "loaded": False,
        "markDelete": f"{cursor.mark_delete.ledger_id}:{cursor.mark_delete.entry_id}",
        "holes": len(cursor.ranges),
        "backlogBytes": cursor.backlog_bytes,
    }


def _letters(store: Store, stored: StoredTopic, name: str) -> Row:
    ledger, topic, messages = stored.ledger, parse_topic(name), stored.visible_messages()
    cursors = [cursor for cursor in stored.cursors.values() if cursor.name != COMPACTION_SUBSCRIPTION]
    first = next(iter(ledger.ledgers.values()), None)

    def there(each: TopicName) -> bool:
        return topic_key(str(each)) in store.catalog or partitions_key(str(each)) in store.catalog

    origin = origin_of(topic, there)
    return {
        "topic": name,
        "kind": "retry" if is_retry_topic(topic) else "dead-letter",
        "origin": None if origin is None else str(origin[0]),
        "originSubscription": None if origin is None else origin[1],
        "left": max((cursor.backlog_messages for cursor in cursors), default=messages),
        "messages": messages,
        "size": ledger.size,
        "backlog": sum(cursor.backlog_messages for cursor in stored.cursors.values()),
        "subscriptions": len(stored.cursors),
        "keptBy": cursors[0].name if len(cursors) == 1 else None,
        "lost": not cursors,
        "first": first.created or None if messages and first is not None else None,
        "last": ledger.last_publish_time or None,
        "rate": 0.0,
        "loaded": False,
    }
