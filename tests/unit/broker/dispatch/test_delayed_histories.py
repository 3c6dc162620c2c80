"""Delayed delivery in random histories: each message is delivered once, on time."""

from random import Random

import pytest

from pulsarbox.protocol.PulsarApi_pb2 import CommandAck, MessageIdData
from tests.tools.campaigns import short
from tests.unit.broker.delays_playbook import (
    KEY_SHARED,
    SHARED,
    Sender,
    box_of,
    consumer,
    crowded_out,
    killed,
    numbers_of,
    small_chunks,
)


@pytest.fixture(autouse=True)
def _small_chunks(monkeypatch: pytest.MonkeyPatch) -> None:
    small_chunks(monkeypatch)


class History:
    """A box, its clients, and the messages expected by now."""

    def __init__(self, seed: int) -> None:
        random = self.random = Random(seed)
        self.strict = random.random() < 0.5
        self.tick = random.choice((1, 100, 1000, 7000))
        self.kind = random.choice((SHARED, KEY_SHARED))
        self.box = box_of(
            delayedDeliveryTickTimeMillis=self.tick,
            isDelayedDeliveryDeliverAtTimeStrict=self.strict,
            managedLedgerMaxEntriesPerLedger=random.choice((3, 10, 1000)),
            dispatcherMaxReadBatchSize=random.choice((1, 3, 100)),
            dispatcherMaxRoundRobinBatchSize=random.choice((1, 20)),
        )
        self.sender, self.client = Sender(self.box), consumer(self.box, self.kind)
        self.due: dict[int, int] = {}
        self.done: set[int] = set()
        self.held: dict[int, MessageIdData] = {}

    def look(self) -> None:
        """Check that received messages are new and due, and that no due message is missing."""
        wall = self.box.wall
        while self.client.inbox:
            (number,) = numbers_of(self.client.inbox[:1])
            message = self.client.take("message")
            assert number not in self.done and number not in self.held, "twice"
            assert self.due[number] <= wall + (0 if self.strict else self.tick), "early"
            self.held[number] = message.message_id
        late = min(self.tick, 10)
        assert not {n for n, at in self.due.items() if at + late <= wall} - self.done - set(self.held), "late"

    def send(self) -> None:
        for _ in range(self.random.choice((1, 1, 12))):
            after = self.random.choice((None, 0, 50, self.random.randrange(20_000), 5000, 30_000))
            self.due[self.sender.send(after)] = self.box.wall + (after or 0)

    def acknowledge(self) -> None:
        for number in [n for n in self.held if self.random.random() < 0.7]:
            self.client.ack(self.held.pop(number), ack_type=CommandAck.Individual)
            self.done.add(number)

    def kill(self) -> None:
        self.box = killed(self.box)
        self.sender, self.client = Sender(self.box, self.sender.sent), consumer(self.box, self.kind)
        self.held.clear()

    def lose_consumer(self) -> None:
        self.client.cnx.closed(self.box.now)
        self.held.clear()
        self.client = consumer(self.box, self.kind)

    def step(self) -> None:
        what = self.random.random()
        if what < 0.5:
            self.send()
        elif what < 0.7:
            self.box.advance(self.random.choice((0.05, 1, 4, 10)))
        elif what < 0.85:
            self.acknowledge()
        elif what < 0.9:
            crowded_out(self.box)
        elif what < 0.925:
            self.box.broker.commits.ask_checkpoint()
        elif what < 0.95:
            self.kill()
        else:
            self.lose_consumer()


@pytest.mark.parametrize("seed", short(range(60), 15))
def test_in_any_history_each_comes_once_and_in_its_time(seed: int) -> None:
    history = History(seed)
    for _ in range(80):
        history.step()
        history.box.advance(0)
        history.look()
    history.box.advance(100)
    history.look()
    assert set(history.due) == history.done | set(history.held)
