"""Shared helpers for delayed delivery: a box, a producer of numbered messages, and recording consumers."""

from typing import Any

import pytest

from pulsarbox.broker.backlog import evict_undelayed, oldest_undelayed
from pulsarbox.broker.dispatch import delayed as of_dispatch
from pulsarbox.broker.subscription.subscription import Subscription
from pulsarbox.broker.topic.topic import PersistentTopic
from pulsarbox.names import parse_topic
from pulsarbox.protocol.metadata import parse_entry
from pulsarbox.protocol.PulsarApi_pb2 import CommandSubscribe
from pulsarbox.storage import delayed_index as of_storage
from tests.unit.broker.playbook import TOPIC, Box, Client

SHARED, KEY_SHARED = CommandSubscribe.Shared, CommandSubscribe.Key_Shared


def small_chunks(monkeypatch: pytest.MonkeyPatch) -> None:
    """Reduce chunk and step sizes so that twenty entries span several chunks and several turns."""
    for module in (of_storage, of_dispatch, oldest_undelayed, evict_undelayed):
        monkeypatch.setattr(module, "DELAY_CHUNK", 8)
    for module in (of_dispatch, oldest_undelayed, evict_undelayed):
        monkeypatch.setattr(module, "STEPS", 5)


def box_of(**settings: Any) -> Box:
    """Build a box without keep-alive checks."""
    return Box(keepAliveIntervalSeconds=1_000_000, **settings)


def killed(box: Box) -> Box:
    """Restart the box at the same time."""
    again = box.restart()
    again.time, again.wall = box.time, box.wall
    return again


def topic_of(box: Box) -> PersistentTopic:
    topic = box.broker.topics.find(parse_topic(TOPIC), box.now)
    assert isinstance(topic, PersistentTopic)
    return topic


def sub_of(box: Box, name: str = "s") -> Subscription:
    return topic_of(box).subscriptions[name]


class Sender:
    """A producer whose message bodies are consecutive numbers."""

    def __init__(self, box: Box, sent: int = 0) -> None:
        self.box = box
        self.client = box.client()
        self.client.producer(1)
        self.sent = sent

    def send(self, after: int | None = None, **metadata: Any) -> int:
        """Publish a message, optionally delayed in milliseconds, and return its number."""
        if after is not None:
            metadata["deliver_at_time"] = self.box.wall + after
        self.client.send(self.sent, b"%d" % self.sent, **metadata)
        self.client.inbox.clear()
        self.sent += 1
        return self.sent - 1


def consumer(box: Box, kind: int = SHARED, name: str = "s", permits: int = 1000, **fields: Any) -> Client:
    client = box.client()
    client.subscribe(name, subType=kind, **fields)
    client.flow(permits)
    return client


def numbers(client: Client) -> list[int]:
    """Consume all received frames, which must be messages, and return their numbers."""
    frames = list(client.inbox)
    assert set(client.names()) <= {"message"}
    return numbers_of(frames)


def numbers_of(frames: list[tuple[bytes, bytes]]) -> list[int]:
    """Return the positions of the received messages."""
    return [int(payload[parse_entry(payload).body_offset :]) for _, payload in frames]


def crowded_out(box: Box) -> None:
    """Evict the topic from the tail cache: dispatch must read from storage."""
    topic_of(box).ledger.tail.clear()
