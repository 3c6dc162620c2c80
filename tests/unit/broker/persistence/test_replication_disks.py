"""The broker on an ensemble of disks that fail: who gets a receipt, who an error, and what a restart finds."""

from typing import Any

import pytest

from pulsarbox.broker.host import Host
from pulsarbox.errors import PersistenceError, PulsarBoxError, StoreFull
from pulsarbox.names import parse_topic
from pulsarbox.protocol.PulsarApi_pb2 import BaseCommand, ServerError
from pulsarbox.storage.engine import Engine
from pulsarbox.storage.ensemble.engine import EnsembleEngine
from pulsarbox.storage.ensemble.memory_member import FaultOutcome, MemberDisk, MemoryMember
from tests.unit.broker.persistence.ensemble_box import KEYS
from tests.unit.broker.playbook import Box, Client

ONE = "persistent://public/default/one"
TWO = "persistent://public/default/two"
At = tuple[int, int]


class DisksBox(Box):
    """A broker on several disks, with topics that wait for one copy and for two."""

    def __init__(self, disks: list[MemberDisk], **settings: Any) -> None:
        self.disks = disks
        self.ensemble = EnsembleEngine([MemoryMember(disk) for disk in disks])
        super().__init__(host=Host(bookies=self.ensemble), **settings)
        self.ensemble.copied = lambda batch, copies: self.broker.copies_durable(batch, copies, self.now)
        self.more = settings
        for topic, quorum in ((ONE, 1), (TWO, 2)):
            value = dict(zip(KEYS, (len(disks), 2, quorum), strict=True)) | {"managedLedgerMaxMarkDeleteRate": 0.0}
            self.broker.policies.set_topic(parse_topic(topic), "persistence", value, self.now)
        self.turn()

    def open_engine(self) -> Engine:
        """Return the engine of all disks."""
        return self.ensemble

    def commit(self, error: Exception | None = None) -> bool:
        """Commit the pending batch, with the outcome that the disks decide."""
        batch = self.broker.take_batch(self.now)
        if batch is None:
            return False
        try:
            self.engine.commit(batch)
        except PulsarBoxError as raised:
            error = raised
        self.broker.committed(batch, self.now, error)
        self.flush()
        return True

    def restart(self) -> "DisksBox":
        """Start again on all disks after a power failure; those that failed work again."""
        for disk in self.disks:
            disk.faults = lambda operation, argument: FaultOutcome.DONE
            disk.power_failure()
        return DisksBox(self.disks, **self.more)

    def written(self) -> list[MemberDisk]:
        """The disks that batches are written to."""
        names = self.ensemble.status().segment.members
        return [disk for disk in self.disks if disk.name in names]


def disks_of(count: int) -> list[MemberDisk]:
    return [MemberDisk(f"/d{number}", number + 1) for number in range(count)]


def fail(disk: MemberDisk, error: Exception, *operations: str) -> None:
    """Have operations on a disk fail from now on."""

    def faults(operation: str, argument: Any) -> str:
        if not operations or operation in operations:
            raise error
        return FaultOutcome.DONE

    disk.faults = faults


def opened(box: DisksBox) -> Client:
    client = box.client()
    for producer_id, topic in enumerate((ONE, TWO), 1):
        client.producer(producer_id, topic, producer_name=f"p{producer_id}")
    return client


def send(client: Client, sequence_id: int, producer_id: int) -> At | int:
    """Publish a message; return its position, or the code of the error."""
    client.send(sequence_id, producer_id=producer_id)
    taken = client.commands()
    if taken[0].HasField("send_receipt"):
        assert len(taken) == 1
        at = taken[0].send_receipt.message_id
        return at.ledgerId, at.entryId
    assert [each.type for each in taken[1:]] == [taken[0].CLOSE_PRODUCER]
    return int(taken[0].send_error.error)


def stored(box: DisksBox, topic: str) -> list[At]:
    consumer = box.client()
    consumer.subscribe("all", topic=topic)
    consumer.flow(1000)
    return consumer.received()


def test_messages_survive_the_loss_of_as_many_disks_as_their_quorum_allows() -> None:
    box = DisksBox(disks_of(3))
    client = opened(box)
    before = [send(client, number, 2) for number in range(3)]
    fail(box.written()[0], PersistenceError("I/O error"))
    between = [send(client, number, 2) for number in range(3, 6)]
    assert box.ensemble.writable == 2
    fail(box.written()[0], PersistenceError("I/O error"))
    assert isinstance(send(client, 0, 1), tuple)
    refused = send(client, 6, 2)
    assert refused == ServerError.PersistenceError
    again = box.restart()
    assert set(stored(again, TWO)) >= {*before, *between}
    assert len(stored(again, ONE)) == 1


def test_a_batch_with_one_copy_releases_those_who_wait_for_one() -> None:
    box = DisksBox(disks_of(2))
    client = opened(box)
    first, second = send(client, 0, 1), send(client, 0, 2)
    box.auto = False
    client.send(1, producer_id=1)
    client.send(1, producer_id=2)
    fail(box.disks[0], PersistenceError("I/O error"))
    box.auto = True
    box.turn()
    answers = {each.type: each for each in client.commands()}
    receipt = answers[BaseCommand.SEND_RECEIPT].send_receipt
    assert receipt.producer_id == 1
    assert answers[BaseCommand.SEND_ERROR].send_error.producer_id == 2
    assert "too-few-copies" in [each.kind for each in box.broker.events.after(0, 1000)]
    again = box.restart()
    assert stored(again, ONE) == [first, (receipt.message_id.ledgerId, receipt.message_id.entryId)]
    assert stored(again, TWO)[0] == second  # the other may be delivered, or not


def test_acknowledgements_go_on_with_one_disk_of_three() -> None:
    two_copies = {
        "managedLedgerDefaultEnsembleSize": 3,
        "managedLedgerDefaultWriteQuorum": 2,
        "managedLedgerDefaultAckQuorum": 2,
    }
    box = DisksBox(disks_of(3), **two_copies)
    client = opened(box)
    consumer = box.client()
    consumer.subscribe(topic=TWO)
    consumer.flow(10)
    assert isinstance(send(client, 0, 2), tuple)
    at = consumer.received()[0]
    for disk in box.written():
        fail(disk, PersistenceError("I/O error"))
    answer = consumer.ack(at)
    box.advance(1)
    assert answer is not None or "ackResponse" in consumer.names()
    assert box.ensemble.writable == 1
    assert send(client, 1, 2) == ServerError.PersistenceError
    again = box.restart()
    topic = again.broker.topics.persistent(TWO, again.now)
    assert topic is not None and topic.subscriptions["s"].cursor.backlog_entries == 0


@pytest.mark.parametrize("failing", [1, 2])
def test_full_disks_refuse_messages_until_there_is_room(failing: int) -> None:
    box = DisksBox(disks_of(2))
    client = opened(box)
    for disk in box.disks[:failing]:
        fail(disk, StoreFull("no space left"), "commit", "check_room")
    assert send(client, 0, 2) == ServerError.PersistenceError
    for disk in box.disks:
        disk.faults = lambda operation, argument: FaultOutcome.DONE
    box.advance(5)
    client.producer(12, TWO, producer_name="again")
    at = send(client, 0, 12)
    assert isinstance(at, tuple)
    assert at in stored(box.restart(), TWO)
