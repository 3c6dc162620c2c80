"""Stages of epochs: authorized writers and committers, and the outcome of stages that can no longer be committed."""

from typing import Any

import pytest

from pulsarbox.broker.transactions.sink_writers import FORMER_MAX, SinkWriter, admitted
from pulsarbox.broker.transactions.transaction import OpenTransaction
from pulsarbox.errors import Conflict, InvalidTxnStatus
from pulsarbox.storage.transactions import TxnId
from tests.unit.broker.playbook import Box, Client
from tests.unit.broker.transactions.test_epoch_commit import Nobody, counts
from tests.unit.broker.transactions_playbook import Txn

QUERY, AGAIN = SinkWriter("query", "run-1"), SinkWriter("query", "run-2")
OTHER_QUERY = SinkWriter("other", "run-9")


class Driver:
    """A driver with one task that publishes one message per attempt."""

    def __init__(self, box: Box, writer: SinkWriter = QUERY, sink: str = "s") -> None:
        self.box, self.writer, self.sink = box, writer, sink
        self.task = box.client()
        self.task.producer(1)
        self.sent = 0
        self.told: list[bool] = []

    def stage(self, epoch: int, timeout: int = 0) -> TxnId | None:
        """Run an attempt of the task. Return None if the box reports the epoch as already committed."""
        epochs, box = self.box.broker.epochs, self.box
        begun = epochs.stage(self.sink, epoch, self.writer, timeout, Nobody(), box.now)
        box.turn()
        if begun is None:
            return None
        self.sent += 1
        publish(self.task, begun, self.sent)
        return begun.id

    def commit(self, epoch: int, *staged: TxnId | None) -> bool:
        """Commit an epoch. Return whether this commit published it."""
        epochs, box = self.box.broker.epochs, self.box
        named = [each for each in staged if each is not None]
        epochs.commit(self.sink, epoch, named, Nobody(), lambda done, now: self.told.append(done), box.now, self.writer)
        box.turn()
        return self.told[-1]


def publish(client: Client, begun: OpenTransaction, number: int) -> None:
    txn = Txn.__new__(Txn)
    txn.client = client
    txn.bits = {"txnid_most_bits": begun.id.most, "txnid_least_bits": begun.id.least}
    txn.send(number)


def seen(box: Box) -> int:
    return counts(box)[0]


def open_ones(box: Box) -> int:
    return len(box.broker.transactions.open)


def box_with_other() -> Box:
    box = Box()
    box.client().producer(1, "persistent://public/default/other")
    return box


def test_an_attempt_after_the_commit_of_its_epoch_need_not_stage() -> None:
    box = box_with_other()
    driver = Driver(box)
    assert driver.commit(3, driver.stage(3))
    assert driver.stage(3) is None
    assert not driver.commit(3)
    assert (seen(box), open_ones(box)) == (1, 0)


def test_what_other_attempts_have_left_ends_with_the_commit() -> None:
    """Transactions of speculative attempts and of killed workers are aborted without waiting for their timeout."""
    box = box_with_other()
    driver = Driver(box)
    lost, won = driver.stage(0), driver.stage(0)
    assert lost is not None
    assert driver.commit(0, won)
    assert (seen(box), open_ones(box)) == (1, 0)
    with pytest.raises(InvalidTxnStatus):
        box.broker.transactions.find(lost, Nobody())


def test_what_stands_after_a_part_that_is_left_is_seen_once_the_next_run_has_come() -> None:
    box = box_with_other()
    driver = Driver(box)
    driver.stage(0)
    publisher = box.client()
    publisher.producer(2)
    publisher.send(0, producer_id=2)
    assert seen(box) == 0
    Driver(box, AGAIN).stage(0)
    assert seen(box) == 1


def test_a_driver_that_was_replaced_is_refused_at_once() -> None:
    box = box_with_other()
    zombie, driver = Driver(box), Driver(box, AGAIN)
    staged = zombie.stage(4)
    again = driver.stage(4)
    with pytest.raises(Conflict, match="Run run-1 of sink s has ended: run run-2 has begun since"):
        zombie.commit(4, staged)
    with pytest.raises(Conflict, match="has ended"):
        zombie.stage(5)
    assert driver.commit(4, again)
    assert (seen(box), open_ones(box)) == (1, 0)


def test_a_replaced_driver_stays_refused_over_a_restart() -> None:
    box = box_with_other()
    Driver(box).stage(0)
    Driver(box, AGAIN).stage(0)
    box = box.restart()
    with pytest.raises(Conflict, match="has ended"):
        Driver(box).stage(0)


def test_a_commit_that_came_before_the_next_run_counts_for_it() -> None:
    box = box_with_other()
    before, driver = Driver(box), Driver(box, AGAIN)
    assert before.commit(4, before.stage(4))
    assert driver.stage(4) is None
    assert not driver.commit(4)
    assert driver.commit(5, driver.stage(5))
    assert seen(box) == 2


def test_parts_outlive_a_restart_of_the_box() -> None:
    box = box_with_other()
    driver = Driver(box)
    left, staged = driver.stage(0), driver.stage(0)
    assert left is not None
    box = box.restart()
    assert open_ones(box) == 2
    assert Driver(box).commit(0, staged)
    assert (seen(box), open_ones(box)) == (1, 0)


def test_nothing_is_published_where_a_part_has_timed_out() -> None:
    box = box_with_other()
    driver = Driver(box)
    slow, quick = driver.stage(0, timeout=60_000), driver.stage(0, timeout=600_000)
    for _ in range(4):
        box.advance(20)
    with pytest.raises(InvalidTxnStatus, match="ABORTED"):
        driver.commit(0, slow, quick)
    assert seen(box) == 0
    later = Driver(box)  # its connection was closed meanwhile
    assert later.commit(0, later.stage(0))
    assert (seen(box), open_ones(box)) == (1, 0)


def test_another_writer_is_refused_until_it_takes_over() -> None:
    """Two queries on one sink could confuse their epochs. The same holds for a query that lost its checkpoint."""
    box = box_with_other()
    first, second = Driver(box), Driver(box, OTHER_QUERY)
    assert first.commit(7, first.stage(7))
    for epoch in (0, 7, 8):
        with pytest.raises(Conflict, match="belongs to writer query, at epoch 7: other is another"):
            second.stage(epoch)
        with pytest.raises(Conflict, match="is another"):
            second.commit(epoch)
    second.writer = second.writer._replace(takes_over=True)
    assert second.commit(0, second.stage(0))
    with pytest.raises(Conflict, match="was taken over by other"):
        first.stage(8)
    first.writer = SinkWriter("query", "run-3", takes_over=True)
    with pytest.raises(Conflict, match="was taken over by other"):
        first.stage(8)
    assert second.stage(0) is None, "a replay is one, whoever took over"
    assert seen(box) == 2


def test_an_older_checkpoint_goes_on_only_where_that_is_said() -> None:
    box = box_with_other()
    driver = Driver(box)
    assert driver.commit(7, driver.stage(7))
    with pytest.raises(Conflict, match="behind its last epoch, 7"):
        Driver(box, AGAIN).stage(5)
    back = Driver(box, SinkWriter("query", "run-3", takes_over=True))
    assert back.commit(5, back.stage(5))
    assert back.commit(6, back.stage(6))
    with pytest.raises(Conflict, match="behind"):
        back.stage(5)


def test_a_part_of_one_epoch_is_not_committed_with_another() -> None:
    box = box_with_other()
    driver, neighbour = Driver(box), Driver(box, sink="t")
    staged, foreign = driver.stage(0), neighbour.stage(1)
    for sink, epoch, which in (("s", 1, staged), ("s", 1, foreign)):
        with pytest.raises(Conflict, match="belongs to epoch"):
            Driver(box, sink=sink).commit(epoch, which)
    assert seen(box) == 0
    assert driver.commit(0, staged)
    assert open_ones(box) == 1, "another sink's part stays"


def test_a_takeover_while_an_epoch_is_being_committed_counts_anew() -> None:
    box = box_with_other()
    first, second = Driver(box), Driver(box, OTHER_QUERY._replace(takes_over=True))
    staged = first.stage(9)
    box.auto = False
    epochs = box.broker.epochs
    on_its_way = epochs.stage("s", 9, QUERY, 0, Nobody(), box.now)
    assert on_its_way is not None
    publish_without_receipt(first.task, on_its_way)
    assert staged is not None
    epochs.commit("s", 9, [staged, on_its_way.id], Nobody(), lambda done, now: first.told.append(done), box.now, QUERY)
    epochs.stage("s", 0, second.writer, 0, Nobody(), box.now)
    box.auto = True
    box.turn()
    assert first.told == [True]
    row = epochs.last("s")
    assert row is not None
    assert (row["epoch"], row["writer"]) == (-1, "other")


def publish_without_receipt(client: Client, begun: OpenTransaction) -> None:
    txn = Txn.__new__(Txn)
    txn.client = client
    txn.bits = {"txnid_most_bits": begun.id.most, "txnid_least_bits": begun.id.least}
    txn.post(77)


def test_a_sink_that_said_nothing_about_its_writer_goes_on_with_one() -> None:
    box = box_with_other()
    driver = Driver(box, SinkWriter())
    assert driver.commit(2, driver.stage(2))
    named = Driver(box)
    assert named.stage(2) is None
    assert named.commit(3, named.stage(3))
    assert driver.commit(4, driver.stage(4)), "who commits by hand says nothing"
    row = box.broker.epochs.last("s")
    assert row is not None
    assert row["epoch"] == 4


def test_only_so_many_who_were_replaced_are_remembered() -> None:
    row: dict[str, Any] | None = None
    for number in range(FORMER_MAX + 10):
        row = admitted("s", row, SinkWriter("query", f"run-{number}"), 0, None)
    assert row is not None
    assert len(row["former"]) == FORMER_MAX
    assert row["former"][-1] == f"run-{FORMER_MAX + 8}"
    assert admitted("s", row, SinkWriter("query", f"run-{FORMER_MAX + 9}"), 0, None) is row
