"""Recovery restores all committed data, across checkpoints, failed commits and restarts."""

from __future__ import annotations

from collections.abc import Callable
from typing import cast

from hypothesis import given
from hypothesis import strategies as st

from pulsarbox.broker.composition import compose
from pulsarbox.broker.endpoints import Endpoints
from pulsarbox.broker.topic.topic import PersistentTopic
from pulsarbox.clock import Now
from pulsarbox.config import Settings
from pulsarbox.errors import PersistenceError
from pulsarbox.names import parse_topic
from pulsarbox.protocol.commands import encode_payload
from pulsarbox.protocol.PulsarApi_pb2 import CommandSend, MessageMetadata
from pulsarbox.storage.catalog import cursor_key
from pulsarbox.storage.engine import Checkpoint
from pulsarbox.storage.memory_engine import MemoryDisk, MemoryEngine
from pulsarbox.storage.recovery import Store, StoredTopic

NOW = Now(0.0, 1_700_000_000_000)
NAME = parse_topic("one")
ENDPOINTS = Endpoints("pulsar://box:6650", "http://box:8080")
SETTINGS = Settings(managedLedgerMaxEntriesPerLedger=3)


class NoProducer:
    """A producer that ignores all callbacks."""

    pending = messages_in = bytes_in = 0

    def __getattr__(self, name: str) -> Callable[..., None]:
        return lambda *arguments, **options: None


class RecoveredTopic:
    """One topic with one subscription, on a disk that survives crashes."""

    def __init__(self) -> None:
        self.disk = MemoryDisk()
        self.now = NOW
        self.start()
        topic = self.broker.topics.create(NAME, NOW)
        assert isinstance(topic, PersistentTopic)
        self.topic = topic
        topic_id = topic.stored.topic_id
        subscription = self.topic.subscribe("sub", earliest=True, properties={}, now=NOW)
        self.cursor = subscription.cursor
        assert cursor_key(topic_id, self.cursor.cursor_id) in self.broker.catalog
        self.commit()

    def start(self) -> None:
        self.engine = MemoryEngine(self.disk)
        self.broker = compose(SETTINGS, self.engine.recover(), ENDPOINTS, NOW)

    def publish(self, count: int) -> None:
        data = MessageMetadata(producer_name="p", sequence_id=1, publish_time=5).SerializeToString()
        for i in range(count):
            payload = encode_payload(data, b"x" * i)
            self.topic.publish(cast(object, NoProducer()), CommandSend(), payload, self.now)  # type: ignore[arg-type]

    def acknowledge(self, index: int) -> None:
        entry_of = [e for tail in self.topic.ledger.tail.values() for e in tail.values()]
        if entry_of:
            e = entry_of[index % len(entry_of)]
            self.cursor.acknowledge(*e.position, e.num_messages, len(e.body), e.total_messages, e.total_bytes)
            self.broker.commits.cursor_changed(self.cursor, self.now)

    def checkpoint(self) -> None:
        self.broker.commits.ask_checkpoint()
        self.commit()

    def commit(self, error: Exception | None = None) -> None:
        self.now = Now(self.now.monotonic + 1, self.now.wall + 1)
        commits = self.broker.commits
        batch = commits.take(self.now)
        if batch is None:
            return
        if error is not None:
            commits.failed(batch, self.now, error)
        else:
            self.engine.commit(batch)
            commits.committed(batch, self.now)
        chore = commits.housekeeping.take(self.now)
        if isinstance(chore, Checkpoint):
            self.engine.checkpoint(chore)
        if chore is not None:
            commits.housekeeping.done(chore, self.now, None, None)

    def fail(self) -> None:
        self.commit(PersistenceError("full"))

    def restart(self) -> None:
        self.commit()
        self.start()
        topic = self.broker.topics.find(NAME, NOW)
        assert isinstance(topic, PersistentTopic)
        self.topic = topic
        (self.cursor,) = topic.stored.cursors.values()

    def check(self) -> None:
        while not self.broker.commits.idle:  # a commit may allow trimming, which requires another commit
            self.commit()
        recovered = Store(self.engine.recover())
        assert state(recovered) == state(self.broker.store)


def stored_topic(box: RecoveredTopic) -> StoredTopic:
    """The topic as recovered from disk."""
    stored = Store(box.engine.recover()).topic(str(NAME))
    assert stored is not None
    return stored


def state(store: Store) -> list[object]:
    parts: list[object] = []
    stored = store.topic(str(NAME))
    if stored is None:
        return []
    for ledger in (stored.ledger,):
        infos = ledger.ledgers.values()
        parts.append([(i.ledger_id, i.closed, i.messages_before, i.entries, i.confirmed, i.size) for i in infos])
        parts.append((ledger.total_messages, ledger.confirmed_bytes, ledger.last_confirmed, ledger.last_batch))
    for cursor in stored.cursors.values():
        parts.append((cursor.mark_delete, list(cursor.ranges), dict(cursor.batch_acks), dict(cursor.redeliveries)))
        parts.append((cursor.backlog_messages, cursor.backlog_entries, cursor.backlog_bytes))
    return parts


steps = st.lists(
    st.tuples(st.just("publish"), st.integers(1, 5))
    | st.tuples(st.just("acknowledge"), st.integers(0, 20))
    | st.tuples(st.sampled_from(["commit", "fail", "checkpoint", "restart"])),
    max_size=25,
)


@given(steps)
def test_what_a_recovery_gives_is_what_was_committed(history: list[tuple[str, int] | tuple[str]]) -> None:
    box = RecoveredTopic()
    for name, *arguments in history:
        getattr(box, name)(*arguments)
    box.check()
    box.restart()
    box.checkpoint()
    box.check()


def test_entries_behind_a_checkpoint_survive_two_restarts() -> None:
    box = RecoveredTopic()
    box.checkpoint()
    box.publish(2)
    box.acknowledge(0)
    box.restart()
    box.checkpoint()
    box.restart()
    assert box.topic.ledger.confirmed_entries == 2
    box.check()


def test_a_rollover_in_a_failed_commit_leaves_right_totals() -> None:
    box = RecoveredTopic()
    box.publish(2)
    box.commit()
    box.publish(3)
    box.fail()
    box.check()
    assert stored_topic(box).ledger.total_messages == 2


def test_a_start_is_durable_before_a_name_made_with_it_is_told() -> None:
    box = RecoveredTopic()
    box.restart()
    pending = [box.broker.commits.metadata_pending]
    box.commit()
    pending.append(box.broker.commits.metadata_pending)
    assert pending == [True, False]
    names = {box.broker.producer_name()}
    box.restart()
    assert box.broker.producer_name() not in names


def test_a_topic_that_is_deleted_beside_a_commit_that_fails_does_not_come_back() -> None:
    box = RecoveredTopic()
    box.publish(2)
    batch = box.broker.commits.take(Now(9.0, NOW.wall))
    assert batch is not None
    box.publish(1)
    box.topic.delete(box.now)
    box.broker.commits.failed(batch, box.now, PersistenceError("full"))
    box.checkpoint()
    assert not list(box.broker.catalog.keys("ledger/"))
    assert Store(box.engine.recover()).topic(str(NAME)) is None


def test_a_topic_that_is_deleted_in_the_batch_of_its_last_entry_leaves_no_row() -> None:
    box = RecoveredTopic()
    box.publish(2)
    box.topic.delete(box.now)
    box.checkpoint()
    assert not list(box.engine.recover().rows.items(b"ledger/"))
