"""Histories of messages not covered by any subscription: several topics, one box, limits of time and size.

Producers publish and disconnect; subscriptions, readers and retention policies change. Limits change, topics are
unloaded, and the power fails. Publish times, coverage and settings determine what may be trimmed, independently of the
code under test.
"""

from __future__ import annotations

from dataclasses import dataclass
from random import Random
from typing import Any

from pulsarbox.broker.topic.topic import PersistentTopic
from pulsarbox.names import parse_topic
from pulsarbox.storage.catalog import UNSUBSCRIBED
from tests.simulation.model.history import Violation
from tests.unit.broker.playbook import Box

TOPICS = tuple(f"persistent://public/default/t{number}" for number in range(5))
MINUTES = 60_000
SLACK_MS = 3000
"""Maximum delay after a deadline, in ms: the size limit is checked again after a second."""
GRACE_MS = 12 * MINUTES
"""Period in ms that the open ledger is retained under Pulsar's rules; an inactive topic stays a minute longer."""
METADATA = 40
"""Maximum size of an entry without its body, in bytes."""
STEP_BYTES = 8 << 10
"""Maximum lag of the box's size accounting per topic, in bytes."""
RETENTIONS = (
    {"retentionTimeInMinutes": 0, "retentionSizeInMB": 0},
    {"retentionTimeInMinutes": 5, "retentionSizeInMB": -1},
)


@dataclass
class Message:
    """A message with a receipt."""

    place: tuple[int, int]
    size: int
    at: int
    """Publish time (ms)."""
    kept_ms: int
    """Shortest retention time in effect since publishing (ms); 0: at some time the topic was exempt."""


class TopicModel:
    """The known state of one topic, derived without access to the box."""

    def __init__(self) -> None:
        self.messages: list[Message] = []
        """Messages not known to be trimmed."""
        self.subscriptions: set[str] = set()
        self.retention: Any = None
        self.free_since = 0
        """Time of the last publish, read, crash, or change of coverage or limits (ms)."""

    @property
    def bytes(self) -> int:
        """Upper bound of the topic's size in the box."""
        return sum(message.size for message in self.messages)


class UnsubscribedRun:
    """The history of unsubscribed retention of one seed."""

    def __init__(self, seed: int) -> None:
        self.random = random = Random(seed)
        self.minutes, self.limit = random.choice((20, 300)), random.choice((100, 400, 1 << 30)) << 10
        self.settings: dict[str, Any] = {
            "managedLedgerMaxEntriesPerLedger": random.choice((1, 4, 50)),
            "brokerUnloadIdleTopicsAfterSeconds": random.choice((0, 2)),
            "brokerDeleteInactiveTopicsEnabled": True,
            "keepAliveIntervalSeconds": 1_000_000,
            "unsubscribedRetentionTimeInMinutes": self.minutes,
            "unsubscribedRetentionSize": str(self.limit),
        }
        self.box = Box(auto=False, **self.settings)
        self.topics = {name: TopicModel() for name in TOPICS}
        self.namespace_retention: Any = None
        self.least_limit = self.limit
        """Lowest size limit since the last check, in bytes."""
        self.done = dict.fromkeys(("old", "large", "kept", "inactive", "covered", "crash", "unload", "policy"), 0)

    def run(self, steps: int) -> None:
        """Run ``steps`` random steps. Raises Violation."""
        moves = (
            (self._publish, 30), (self._flood, 4), (self._subscribe, 5), (self._unsubscribe, 5), (self._read, 3),
            (self._pass_time, 22), (self._set_retention, 4), (self._set_limits, 3), (self._crash, 2), (self._unload, 3),
        )  # fmt: skip
        for _ in range(steps):
            (move,) = self.random.choices([move for move, _ in moves], [weight for _, weight in moves])
            move()
            if self.random.random() < 0.6:
                self.settle()
        self.settle()

    def settle(self) -> None:
        """Complete all due work, and check the state against the limits."""
        box = self.box
        for _ in range(2):  # twice, a second apart: some work is retried
            while True:
                box.flush()
                busy = box.commit() or box.read() or box.chore()
                monotonic, wall = box.broker.next_timer()
                if (monotonic is not None and monotonic <= box.time) or (wall is not None and wall <= box.now.wall):
                    box.broker.on_timer(box.now)
                    busy = True
                if not busy:
                    break
            box.time, box.wall = box.time + 1.1, box.wall + 1100
        self._judge()

    # Steps

    def _name(self) -> str:
        return self.random.choice(TOPICS)

    def _send(self, name: str, count: int, size: int) -> None:
        topic, box = self.topics[name], self.box
        client = box.client()
        client.producer(1, name)
        box.auto = True
        box.turn()
        box.auto = False
        client.inbox.clear()
        at = box.wall
        for number in range(count):
            client.send(number, b"x" * size)
        box.commit()
        kept = 0 if self._is_released(topic) else self.minutes * MINUTES
        for _ in range(count):
            place = client.take("send_receipt").message_id
            topic.messages.append(Message((place.ledgerId, place.entryId), size + METADATA, at, kept))
        topic.free_since = box.wall
        if self.random.random() < 0.1:
            self._crash()  # consequences of the publishes are not durable
        else:
            client.cnx.closed(box.now)

    def _publish(self) -> None:
        self._send(self._name(), self.random.choice((1, 1, 3)), self.random.choice((10, 2_000, 12_000)))

    def _flood(self) -> None:
        self._send(TOPICS[0], 20, 10_000)

    def _subscribe(self) -> None:
        name, subscription = self._name(), self.random.choice(("a", "b"))
        topic = self._loaded(name)
        if topic is not None and subscription not in topic.subscriptions:
            earliest = self.random.random() < 0.7
            topic.subscribe(subscription, earliest=earliest, properties={}, now=self.box.now)
            self.topics[name].subscriptions.add(subscription)
            self._release(self.topics[name])
            self._durable()

    def _unsubscribe(self) -> None:
        names = [name for name in TOPICS if self.topics[name].subscriptions]
        if not names:
            return
        name = self.random.choice(names)
        model, topic = self.topics[name], self._loaded(name)
        assert topic is not None, "a subscription keeps it"
        gone = self.random.choice(sorted(model.subscriptions))
        topic.remove_subscription(topic.subscriptions[gone], self.box.now)
        model.subscriptions.remove(gone)
        model.free_since = self.box.wall
        self.done["covered"] += not model.subscriptions
        self._durable()

    def _read(self) -> None:
        """Open a reader, and close it again."""
        name = self._name()
        if self.box.broker.topics.exists(parse_topic(name)):
            client = self.box.client()
            client.subscribe("r", 1, name, durable=False)
            self.settle()
            client.cnx.closed(self.box.now)
            self.topics[name].free_since = self.box.wall

    def _loaded(self, name: str) -> PersistentTopic | None:
        found = self.box.broker.topics.find(parse_topic(name), self.box.now)
        assert found is None or isinstance(found, PersistentTopic)
        return found

    def _durable(self) -> None:
        """Commit all changes: a crash cannot undo them."""
        while self.box.commit():
            pass

    def _pass_time(self) -> None:
        box = self.box
        seconds = self.random.choice((1, 30, 70, 700, 700, 5000, 20_000))
        if self.random.random() < 0.7:
            box.auto = True
            box.advance(seconds)
            box.auto = False
        else:
            box.time, box.wall = box.time + seconds, box.wall + seconds * 1000
            box.broker.on_timer(box.now)

    def _set_retention(self) -> None:
        value = self.random.choice((None, None, *RETENTIONS))
        broker, now = self.box.broker, self.box.now
        self.done["policy"] += 1
        if self.random.random() < 0.3:
            self.namespace_retention = value
            broker.tenants.set_policy("public/default", "retention_policies", value, now)
        else:
            name = self._name()
            self.topics[name].retention = value
            broker.policies.set_topic(parse_topic(name), "retentionPolicies", value, now)
        for topic in self.topics.values():
            topic.free_since = self.box.wall
            if self._is_released(topic):
                self._release(topic)
        self._durable()

    def _set_limits(self) -> None:
        box, configuration = self.box, self.box.broker.configuration
        if self.random.random() < 0.5:
            self.minutes = self.random.choice((0, 20, 60, 300))
            configuration.update("unsubscribedRetentionTimeInMinutes", str(self.minutes), box.now)
        else:
            self.limit = self.random.choice((100, 400, 1 << 30)) << 10
            configuration.update("unsubscribedRetentionSize", str(self.limit), box.now)
        self.least_limit = min(self.least_limit, self.limit)
        for topic in self.topics.values():
            topic.free_since = box.wall
            for message in topic.messages:
                message.kept_ms = min(message.kept_ms, self.minutes * MINUTES)
        self._durable()

    def _unload(self) -> None:
        for topic in self.box.broker.topics:
            self.box.broker.topics.unload(topic, lambda now: None, self.box.now)
        self.settle()
        self.done["unload"] += 1

    def _crash(self) -> None:
        self.box = Box(self.box.disk, auto=False, wall=self.box.wall, **self.settings)
        for topic in self.topics.values():
            topic.free_since = self.box.wall
        self.done["crash"] += 1

    def _is_released(self, topic: TopicModel) -> bool:
        """Return whether Pulsar's rules apply to a topic."""
        policy = topic.retention is not None or self.namespace_retention is not None
        return policy or not self.minutes or bool(topic.subscriptions)

    def _release(self, topic: TopicModel) -> None:
        for message in topic.messages:
            message.kept_ms = 0

    # Checks

    def _check(self, rule: str, holds: bool, *what: object) -> None:
        if not holds:
            raise Violation(rule, " ".join(map(str, what)))

    def _judge(self) -> None:
        """Check the state after all due work is complete."""
        most = sum(topic.bytes for topic in self.topics.values())
        share = self.least_limit // len(TOPICS)
        held: dict[str, int] = {}
        for name, topic in self.topics.items():
            store = self.box.broker.store
            stored = store.topic(name)
            ledgers = set(stored.ledger.ledgers) if stored is not None else set()
            if stored is not None:
                held[name] = stored.ledger.size
                if not stored.in_use:
                    self.box.broker.commits.unload(stored)
            before, now = topic.bytes, self.box.wall
            gone = [message for message in topic.messages if message.place[0] not in ledgers]
            topic.messages = [message for message in topic.messages if message.place[0] in ledgers]
            for message in gone:
                if now >= message.at + message.kept_ms:
                    self.done["old"] += message.kept_ms > 0
                    continue
                self._check("kept", most > self.least_limit, name, message, "is gone at", now, most, self.least_limit)
                self._check("share", before >= share // 2, name, message, "goes for others:", before, share)
                self.done["large"] += 1
            self.done["kept"] += any(message.kept_ms for message in topic.messages)
            self._judge_what_stays(name, topic, now)
        self._judge_size(held)
        self.least_limit = self.limit

    def _judge_what_stays(self, name: str, topic: TopicModel, now: int) -> None:
        steady = now - topic.free_since
        if self._is_released(topic):
            unused = not topic.subscriptions and topic.retention is None and self.namespace_retention is None
            late = unused and steady > GRACE_MS and self.box.broker.topics.exists(parse_topic(name))
            self._check("inactive", not late, name, "is not in use, and Pulsar's rules hold: it stays", steady)
            self.done["inactive"] += unused
            return
        old = [each for each in topic.messages if now > each.at + self._longest_ms]
        self._check("old", not old or steady < self._longest_ms, name, "is too old, and stays:", old[:2], now)

    @property
    def _longest_ms(self) -> int:
        """Maximum age of a message in ms: its ledger is closed within an eighth of the time, at least a minute."""
        time = self.minutes * MINUTES
        return time + max(time // 8, MINUTES) + GRACE_MS

    def _judge_size(self, held: dict[str, int]) -> None:
        catalog, index = self.box.broker.catalog, self.box.broker.unsubscribed
        rows = [catalog.get(key) or {} for key in catalog.keys(UNSUBSCRIBED)]
        counted = {row["topic"]: row["bytes"] for row in rows}
        self._check("count", len(counted) == len(rows), "two rows of one topic:", rows)
        self._check("count", index.bytes == sum(counted.values()), "not what the rows say:", index.bytes, counted)
        self._check("count", index.topics == len(counted), "not so many topics:", index.topics, counted)
        kept = {name: sum(each.size for each in topic.messages if each.kept_ms) for name, topic in self.topics.items()}
        for name, size in kept.items():
            near = size - counted.get(name, 0) <= max(STEP_BYTES, held.get(name, 0) // 8)
            self._check("count", near, name, "has more than is counted:", size, counted)
        most = self.limit + len(TOPICS) * STEP_BYTES + sum(kept.values()) // 8
        self._check("limit", sum(kept.values()) <= most or not self.minutes, "too much is kept:", kept, self.limit)
