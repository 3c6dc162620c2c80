"""The whole core over an LMDB store, run turn by turn in one thread, and its messages."""

import re
from collections.abc import Callable
from pathlib import Path
from typing import Any, Final

from pulsarbox.broker.compaction.topic_compaction import TopicCompaction
from pulsarbox.broker.topic.topic import PersistentTopic
from pulsarbox.names import parse_topic
from pulsarbox.storage.engine import Compressing, Reclaimed
from pulsarbox.storage.lmdb.engine import LmdbEngine
from tests.unit.broker.playbook import Box

TOPICS: Final = ("persistent://public/default/a", "persistent://public/default/b")
SUBSCRIPTIONS: Final = ("s", "t")
SETTINGS: Final[dict[str, Any]] = {
    "managedLedgerMaxEntriesPerLedger": 12,
    "compressionAtRest": "zstd",
    "brokerDeleteInactiveTopicsEnabled": True,
}
KEYS: Final = 7
STEP_ENTRIES: Final = 10
"""Entries of a compaction step: few, for many commits."""
_NAME: Final = re.compile(rb"\{(\d+):(\d+)\}")


class TellingEngine(LmdbEngine):
    """An engine that reports each reclaim step."""

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
        super().__init__(**SETTINGS)

    def open_engine(self) -> LmdbEngine:
        """See Box."""
        return self.lmdb

    def compaction(self, name: str) -> TopicCompaction:
        """Return the compaction of a topic."""
        topic = self.broker.topics.find(parse_topic(name), self.now)
        assert isinstance(topic, PersistentTopic)
        return topic.compaction

    def compact(self, name: str) -> None:
        """Start to compact a topic unless a compaction is running; each ``advance`` continues it."""
        compaction = self.compaction(name)
        if compaction.run is None:
            compaction.start(self.now)
        run = self.compaction(name).run
        if run is not None:
            run.step_entries = STEP_ENTRIES


def body_of(number: int, size: int) -> bytes:
    """Return the payload of message ``number``: identified by its prefix, verified to its last byte."""
    return (b"{%d:%d}" % (number, size)).ljust(size, b"%d" % (number % 10))


def key_of(number: int) -> str:
    """Return the key of message ``number``."""
    return f"key-{number % KEYS}"


def number_of(payload: bytes) -> int:
    """Return the number of the message in a frame's payload, or -1 for a foreign or damaged payload."""
    found = _NAME.search(payload)
    if found is None:
        return -1
    number, size = int(found[1]), int(found[2])
    return number if payload.endswith(body_of(number, size)) else -1
