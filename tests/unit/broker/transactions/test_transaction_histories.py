"""Random transactions with crashes between any two steps: atomic, and consistent with all responses.

The model is a list of entries per topic and the outcome of each transaction. The tests compare the messages visible to
a new reader, and the backlog of each subscription. They also compare the messages delivered to the consumer of each
subscription at the end.
"""

import random
from dataclasses import dataclass, field
from typing import Any

import pytest

from pulsarbox.errors import PersistenceError
from pulsarbox.protocol.PulsarApi_pb2 import CommandSubscribe, TxnAction
from tests.tools.campaigns import short
from tests.unit.broker.playbook import TOPIC, Box, Client
from tests.unit.broker.transactions_playbook import CONFLICT, MINUTE, OTHER, Txn, backlog, reader, topic_of

At = tuple[int, int]
TOPICS = (TOPIC, OTHER)
TYPES = {"e": CommandSubscribe.Exclusive, "s": CommandSubscribe.Shared, "k": CommandSubscribe.Key_Shared}
OPEN, COMMITTED, ABORTED = "open", "committed", "aborted"
SETTINGS: dict[str, Any] = {"managedLedgerMaxEntriesPerLedger": 7, "activeConsumerFailoverDelayTimeMillis": 0}


@dataclass
class Began:
    """A transaction of the model."""

    txn: Txn
    state: str = OPEN
    acks: set[tuple[str, str, At]] = field(default_factory=set)


class History:
    """One random history, determined by its seed."""

    def __init__(self, seed: int) -> None:
        self.dice = random.Random(seed)
        self.box = Box(**SETTINGS)
        self.logs: dict[str, list[tuple[At, Began | None]]] = {name: [] for name in TOPICS}
        self.acked: dict[tuple[str, str], set[At]] = {(topic, name): set() for topic in TOPICS for name in TYPES}
        self.held: dict[tuple[str, str], set[At]] = {}
        """Unacknowledged messages of each consumer, which are not dispatched to it again."""
        self.begun: list[Began] = []
        self.sequence_id = 0
        self._connect(first=True)

    def _connect(self, *, first: bool = False) -> None:
        self.client = self.box.client()
        for i, topic in enumerate(TOPICS, 1):
            self.client.producer(i, topic)
        self.consumers: dict[tuple[str, str], Client] = {}
        self.given: dict[tuple[str, str], list[At]] = {}
        for topic in TOPICS:
            if first:
                reader(self.box, "keeper", topic=topic, permits=0).cnx.closed(self.box.now)
            for name, sub_type in TYPES.items():
                self._come((topic, name), sub_type)

    def _come(self, key: tuple[str, str], sub_type: int) -> None:
        self.consumers[key] = reader(self.box, key[1], topic=key[0], subType=sub_type, permits=10_000)
        self.given[key] = []
        self.held[key] = set()

    def run(self, steps: int) -> None:
        """Run a number of steps, then finish."""
        doings = [
            *(self.send,) * 4, *(self.begin,) * 3, *(self.post,) * 8, *(self.end,) * 4, *(self.ack,) * 3,
            *(self.ack_in,) * 9, self.crash, self.crash_in, self.fail, self.checkpoint, self.rewind,
            self.leave, self.read,
        ]  # fmt: skip
        for _ in range(steps):
            self.dice.choice(doings)()
            self.take()
            self.check()
        self.finish()

    # Steps

    def send(self) -> None:
        i = int(self.dice.random() < 0.3)
        self.sequence_id += 1
        self.client.send(self.sequence_id, b"x", i + 1, partition_key=str(self.sequence_id % 3))
        at = self.client.take("send_receipt").message_id
        self.logs[TOPICS[i]].append(((at.ledgerId, at.entryId), None))

    def begin(self) -> None:
        self.begun.append(Began(Txn(self.client, 1000 * MINUTE)))

    def _open(self) -> Began | None:
        found = [each for each in self.begun if each.state == OPEN]
        return self.dice.choice(found) if found else None

    def post(self) -> None:
        began, i = self._open(), int(self.dice.random() < 0.9)  # an open transaction blocks all later messages
        if began is not None:
            self.sequence_id += 1
            at = began.txn.of(self.client).send(self.sequence_id, i + 1, partition_key=str(self.sequence_id % 3))
            self.logs[TOPICS[i]].append((at, began))

    def end(self) -> None:
        began = self._open()
        if began is not None:
            action = self.dice.choice((TxnAction.COMMIT, TxnAction.ABORT))
            answer = began.txn.of(self.client).end(action)
            assert not answer.HasField("error"), answer
            self._ended(began, action)

    def _ended(self, began: Began, action: int) -> None:
        began.state = COMMITTED if action == TxnAction.COMMIT else ABORTED
        for topic, name, at in began.acks:
            if began.state == COMMITTED:
                self.acked[topic, name].add(at)
            elif name == "e":
                self.held[topic, name].clear()  # all unacknowledged messages are redelivered, in order
            self.held[topic, name].discard(at)

    def _one(self) -> tuple[tuple[str, str], At] | None:
        key = self.dice.choice(list(self.acked))
        found = [at for at in self.given[key] if at not in self.acked[key]]
        if self.dice.random() < 0.4:  # messages acknowledged in a transaction, possibly before the consumer joined
            seen = [at for at in self.visible(key[0]) if at not in self.acked[key]]
            found = [at for at in seen if self._claimed(key, at) is not None] or found
        return (key, self.dice.choice(found)) if found else None

    def _claimed(self, key: tuple[str, str], at: At) -> Began | None:
        return next((each for each in self.begun if each.state == OPEN and (*key, at) in each.acks), None)

    def ack(self) -> None:
        found = self._one()
        if found is not None:
            key, at = found
            assert not self.consumers[key].ack(at).HasField("error")
            self.acked[key].add(at)

    def ack_in(self) -> None:
        found, began = self._one(), self._open()
        if found is not None and began is not None:
            key, at = found
            answer = began.txn.of(self.consumers[key]).ack(at)
            other = self._claimed(key, at)
            if other is not None and other is not began:
                assert answer.error == CONFLICT
            else:
                assert not answer.HasField("error"), answer
                began.acks.add((*key, at))

    def crash(self) -> None:
        wall = self.box.wall
        self.box = Box(self.box.disk, wall=wall, **SETTINGS)
        self._connect()

    def crash_in(self) -> None:
        """Crash during the end of a transaction, which takes effect entirely or not at all."""
        began = self._open()
        if began is None:
            return
        self.box.auto = False
        if self.dice.random() < 0.5:
            self.box.broker.commits.ask_checkpoint()
        action = self._ask_end(began)
        self.take()  # messages that are not durable are invisible
        if self.dice.random() < 0.5 and self.box.commit():
            self._ended(began, action)
            while self.box.chore():
                pass
        self.crash()

    def _ask_end(self, began: Began) -> int:
        """Request the end of a transaction without committing the batch."""
        action = self.dice.choice((TxnAction.COMMIT, TxnAction.ABORT))
        self.client.ask("endTxn", request_id=1, txn_action=action, **began.txn.bits)
        return int(action)

    def fail(self) -> None:
        """End a transaction whose first commit fails. Messages published in the failed batch are rejected."""
        began = self._open()
        if began is None:
            return
        self.box.auto = False
        if self.dice.random() < 0.5:
            began.txn.of(self.client).post(10_000 + self.sequence_id, 1 + self.dice.randrange(2))
        action = self._ask_end(began)
        self.box.commit(PersistenceError("no room"))
        self.box.auto = True
        self.box.advance(0.2)
        assert "endTxnResponse" in self.client.names()
        self._ended(began, action)
        for i, topic in enumerate(TOPICS, 1):
            self.client.producer(i, topic)
        self.client.inbox.clear()

    def checkpoint(self) -> None:
        self.box.broker.commits.ask_checkpoint()
        self.box.turn()

    def rewind(self) -> None:
        """Reset a subscription to the beginning."""
        key = self.dice.choice(list(self.acked))
        first = self.logs[key[0]][0][0] if self.logs[key[0]] else (0, 0)
        place = {"ledgerId": first[0], "entryId": first[1]}
        self.consumers[key].request("seek", consumer_id=1, message_id=place)
        self.consumers[key].cnx.closed(self.box.now)
        self.acked[key].clear()
        self._come(key, TYPES[key[1]])

    def leave(self) -> None:
        """Disconnect and reconnect a consumer."""
        key = self.dice.choice(list(self.acked))
        self.consumers[key].cnx.closed(self.box.now)
        self.box.turn()
        self._come(key, TYPES[key[1]])

    def read(self) -> None:
        """Read the topic from the beginning."""
        for topic in TOPICS:
            other = reader(self.box, "r", topic=topic, durable=False)
            assert other.received() == self.visible(topic)
            other.cnx.closed(self.box.now)

    # Checks

    def visible(self, topic: str) -> list[At]:
        """Return the messages visible to a reader from the beginning."""
        seen = []
        for at, began in self.logs[topic]:
            if began is not None and began.state == OPEN:
                break
            if began is None or began.state == COMMITTED:
                seen.append(at)
        return seen

    def take(self) -> None:
        """Record the messages delivered to consumers."""
        for key, consumer in self.consumers.items():
            seen = set(self.visible(key[0]))
            for at in consumer.received():
                assert at in seen, f"{at} is not visible"
                assert at not in self.acked[key], f"{at} is acknowledged"
                claimed = self._claimed(key, at)
                assert claimed is None, f"{at} is acknowledged in a transaction"
                assert at not in self.held[key], f"{at} is given twice"
                self.held[key].add(at)
                self.given[key].append(at)

    def check(self) -> None:
        """Check backlogs: messages of open transactions count, and aborted ones do not."""
        for (topic, name), acked in self.acked.items():
            left = [at for at, began in self.logs[topic] if began is None or began.state != ABORTED]
            count = sum(1 for at in left if at not in acked)
            assert backlog(self.box, topic, name) == (count, count), (topic, name)

    def finish(self) -> None:
        """End all transactions, then check that exactly the remaining messages are delivered."""
        for began in [each for each in self.begun if each.state == OPEN]:
            action = self.dice.choice((TxnAction.COMMIT, TxnAction.ABORT))
            assert not began.txn.of(self.client).end(action).HasField("error")
            self._ended(began, action)
            self.take()
        self.check()
        self.read()
        for key, given in self.given.items():
            left = {at for at in self.visible(key[0]) if at not in self.acked[key]}
            assert left <= set(given), (key, sorted(left - set(given)))
        for topic in TOPICS:
            stored = topic_of(self.box, topic).stored
            assert not stored.open
            assert all(cursor.claims is None for cursor in stored.cursors.values())
        assert not list(self.box.broker.catalog.items("pending/"))
        self.crash()
        self.read()
        self.check()


@pytest.mark.parametrize("seed", short(range(12), 6))
def test_a_history(seed: int) -> None:
    History(seed).run(60)
