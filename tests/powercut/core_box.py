"""The whole core over an LMDB store, one turn after another in one thread; and the messages that it is given."""

import re
from collections.abc import Callable
from pathlib import Path
from typing import Any, Final

from pulsarbox.broker.broker import Broker
from pulsarbox.broker.compaction.topic_compaction import TopicCompaction
from pulsarbox.broker.endpoints import Endpoints
from pulsarbox.broker.outbox import Outbox
from pulsarbox.broker.topic.topic import PersistentTopic
from pulsarbox.clock import Now
from pulsarbox.config import Settings
from pulsarbox.names import parse_topic
from pulsarbox.storage.engine import Compressing, Reclaimed
from pulsarbox.storage.lmdb.engine import LmdbEngine
from tests.unit.broker.playbook import Box, Client

TOPICS: Final = ("persistent://public/default/a", "persistent://public/default/b")
SUBSCRIPTIONS: Final = ("s", "t")
SETTINGS: Final[dict[str, Any]] = {"managedLedgerMaxEntriesPerLedger": 12, "compressionAtRest": "zstd"}
KEYS: Final = 7
STEP_ENTRIES: Final = 10
"""Of a compaction: its commits are to be many."""
_NAME: Final = re.compile(rb"\{(\d+):(\d+)\}")


class TellingEngine(LmdbEngine):
    """An engine that tells of each step of giving disk back."""

    told: Callable[[Reclaimed], None] | None = None

    def reclaim(self, compressing: Compressing | None = None) -> Reclaimed | None:
        """See Engine."""
        done = super().reclaim(compressing)
        if done is not None and self.told is not None:
            self.told(done)
        return done


class CoreBox(Box):
    """A broker on a data directory."""

    def __init__(self, path: Path, options: dict[str, Any], told: Callable[[Reclaimed], None] | None = None) -> None:
        self.lmdb = TellingEngine(path, learn_from_bytes=4 << 10, **options)
        self.lmdb.told = told
        self.engine = self.lmdb
        self.auto = True
        self.time = 1000.0
        self.wall = 1_700_000_000_000
        endpoints = Endpoints("pulsar://h:6650", "http://h:8080")
        self.broker = Broker(Settings(**SETTINGS), self.lmdb.recover(), endpoints, Now(self.time, self.wall))
        self.outboxes: dict[Outbox, Client] = {}
        self.turn()

    def compaction(self, name: str) -> TopicCompaction:
        """That of a topic."""
        topic = self.broker.topics.find(parse_topic(name), self.now)
        assert isinstance(topic, PersistentTopic)
        return topic.compaction

    def compact(self, name: str) -> None:
        """Begin to compact a topic, where that is not under way: it goes on with each ``advance``."""
        compaction = self.compaction(name)
        if compaction.run is None:
            compaction.start(self.now)
        run = self.compaction(name).run
        if run is not None:
            run.step_entries = STEP_ENTRIES


def body_of(number: int, size: int) -> bytes:
    """The payload of message ``number``: told from its beginning, checked to its end."""
    return (b"{%d:%d}" % (number, size)).ljust(size, b"%d" % (number % 10))


def key_of(number: int) -> str:
    """The key of message ``number``."""
    return f"key-{number % KEYS}"


def number_of(payload: bytes) -> int:
    """The number of the message in a frame's payload; -1 where it is none of these tests'."""
    found = _NAME.search(payload)
    if found is None:
        return -1
    number, size = int(found[1]), int(found[2])
    return number if payload.endswith(body_of(number, size)) else -1
