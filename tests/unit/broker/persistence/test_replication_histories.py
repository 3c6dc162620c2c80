"""Histories of publishing to topics with different ack quorums, while copies complete, fall short or fail.

No receipt before its own quorum, receipts in the order of publishing, one answer per message, and every message with a
receipt survives a restart.
"""

from dataclasses import dataclass, field

from hypothesis import given, settings
from hypothesis import strategies as st

from pulsarbox.storage.journal import Batch
from tests.tools.campaigns import examples
from tests.unit.broker.persistence.ensemble_box import EnsembleBox
from tests.unit.broker.playbook import Client

DIRECTORIES = 3
TOPICS = [f"persistent://public/default/q{quorum}" for quorum in range(1, DIRECTORIES + 1)]
At = tuple[int, int]


@dataclass
class Sent:
    """A message: its topic's quorum, the batch that has it, and what its producer got."""

    quorum: int
    position: int = 0
    receipt: At | None = None
    error: bool = False


@dataclass
class History:
    """A box, and what was sent to it."""

    box: EnsembleBox = field(default_factory=lambda: EnsembleBox(DIRECTORIES, brokerDeduplicationEnabled=True))
    sent: dict[tuple[int, int], Sent] = field(default_factory=dict)
    copies: dict[int, int] = field(default_factory=dict)
    """Durable copies by the position of the batch; DIRECTORIES once it has landed."""
    producers: dict[int, int] = field(default_factory=dict)
    """The present producer ID by topic."""
    last: dict[int, int] = field(default_factory=dict)
    """The highest sequence ID with a receipt, by producer ID."""
    closed: set[int] = field(default_factory=set)

    def __post_init__(self) -> None:
        for quorum, topic in enumerate(TOPICS, 1):
            self.box.persist(topic, DIRECTORIES, quorum, quorum)
        self.client: Client = self.box.client()
        for number, topic in enumerate(TOPICS):
            self.open(number, topic)
        self.box.pause()

    def open(self, number: int, topic: str) -> None:
        """Open a producer under a new name, as its sequence IDs begin anew."""
        self.producers[number] = identifier = 1 + number + len(TOPICS) * (1 + len(self.closed))
        assert identifier not in self.last and identifier not in self.closed
        self.client.producer(identifier, topic, producer_name=f"p{identifier}")

    def send(self, number: int) -> None:
        """Publish a message; a producer that was closed is opened again first, unless a batch is in flight."""
        if self.producers[number] in self.closed:
            if self.box.broker.committing:
                return
            self.settle()
            self.box.auto = True
            self.open(number, TOPICS[number])
            self.client.inbox = []
            self.box.pause()
        identifier = self.producers[number]
        sequence = sum(producer == identifier for producer, _ in self.sent)
        self.sent[identifier, sequence] = Sent(number + 1)
        self.client.send(sequence, producer_id=identifier, producer_name=f"p{identifier}")
        self.read()

    def take(self) -> Batch | None:
        """Take the next batch, and note which messages it has."""
        self.box.time += 1
        for each in self.sent.values():
            if not each.position and each.receipt is None and not each.error:
                each.position = self.box.broker.commits.open.batch.position
        return self.box.broker.take_batch(self.box.now)

    def read(self) -> None:
        """Check the answers that the client got."""
        for command in self.client.commands():
            if command.HasField("send_receipt"):
                self.received(command.send_receipt)
            elif command.HasField("send_error"):
                each = self.sent[command.send_error.producer_id, command.send_error.sequence_id]
                assert each.receipt is None and not each.error
                each.error = True
                self.closed.add(command.send_error.producer_id)

    def received(self, receipt: object) -> None:
        """Check a receipt."""
        producer, sequence = receipt.producer_id, receipt.sequence_id  # type: ignore[attr-defined]
        each, message_id = self.sent[producer, sequence], receipt.message_id  # type: ignore[attr-defined]
        assert producer not in self.closed
        assert self.last.get(producer, -1) == sequence - 1, "receipts are in order"
        assert self.copies.get(each.position, 0) >= each.quorum, "no receipt before its quorum"
        assert each.receipt is None and not each.error
        each.receipt = message_id.ledgerId, message_id.entryId
        self.last[producer] = sequence

    def check_confirmed(self) -> None:
        """No entry is readable before its own quorum."""
        for number, topic in enumerate(TOPICS):
            found = self.box.broker.topics.persistent(topic, self.box.now)
            assert found is not None
            pending = [each for each in self.sent.values() if each.quorum == number + 1 and self.waits(each)]
            assert found.ledger.total_messages - found.ledger.confirmed_messages >= len(pending)

    def waits(self, each: Sent) -> bool:
        """Whether a message waits for copies, or for a batch."""
        return each.receipt is None and not each.error and self.copies.get(each.position, 0) < each.quorum

    def report(self, batch: Batch, copies: int) -> None:
        """Report copies of the batch in flight."""
        self.copies[batch.position] = copies
        self.box.copied(batch, copies)
        self.read()
        self.check_confirmed()

    def end(self, batch: Batch, outcome: str, reported: int) -> None:
        """Complete the commit: with all copies, too few, or none."""
        least, most = max(reported, batch.ack_quorum_min), batch.ack_quorum
        if outcome == "short" and least < most:
            self.copies[batch.position] = least
            self.box.fell_short(batch, least)
        elif outcome == "failed" and not reported:
            self.box.failed(batch)
            for each in self.sent.values():
                if each.position == batch.position and each.receipt is None:
                    each.position = 0
        else:
            self.copies[batch.position] = DIRECTORIES
            self.box.landed(batch)
        self.read()
        self.check_confirmed()

    def settle(self) -> None:
        """Complete everything."""
        while (batch := self.take()) is not None:
            self.end(batch, "landed", 0)


STEPS = st.lists(
    st.tuples(st.just("send"), st.sampled_from(range(DIRECTORIES)), st.just(0))
    | st.tuples(st.sampled_from(["landed", "short", "failed"]), st.integers(0, 2), st.integers(0, 3)),
    max_size=40,
)


@given(STEPS)
@settings(max_examples=examples(60))
def test_every_message_gets_one_answer_and_acknowledged_ones_survive(steps: list[tuple[str, int, int]]) -> None:
    history = History()
    for action, first, sends in steps:
        if action == "send":
            history.send(first)
            continue
        batch = history.take()
        if batch is None:
            continue
        for number in range(sends):
            history.send(number)  # while the batch is in flight
        reported = 0
        for copies in range(batch.ack_quorum_min, min(first, batch.ack_quorum - 1) + 1):
            history.report(batch, copies)
            reported = copies
        if history.box.broker.committing:
            history.end(batch, action, reported)
    history.settle()
    assert all((each.receipt is not None) != each.error for each in history.sent.values())
    survivors = [at for topic in TOPICS for at in stored(history.box, topic)]
    acknowledged = [each.receipt for each in history.sent.values() if each.receipt is not None]
    assert len(set(acknowledged)) == len(acknowledged)
    assert set(acknowledged) <= set(survivors)


def stored(box: EnsembleBox, topic: str) -> list[At]:
    """The positions of a topic's messages after a restart, as consumers receive them."""
    again = box.restart()
    consumer = again.client()
    consumer.subscribe(topic=topic)
    consumer.flow(1000)
    return consumer.received()
