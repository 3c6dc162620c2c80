"""Jobs on dead letters published in transactions: open and aborted ones are not replayed."""

from typing import Any

import pytest

from pulsarbox.broker.replay.grouping import Grouping
from pulsarbox.broker.replay.job import Job
from pulsarbox.broker.stats.topic_samples import letters_of
from pulsarbox.protocol.PulsarApi_pb2 import CommandSubscribe
from tests.unit.broker.playbook import Box, Client
from tests.unit.broker.replay.playbook import (
    DLQ,
    SUB,
    backlog,
    batch_of,
    bodies,
    counted,
    create,
    dead_letter_topic,
    pairs,
    run,
    told,
    topic_of,
)
from tests.unit.broker.transactions_playbook import MINUTE, Txn, some_of

LONG: dict[str, Any] = {"keepAliveIntervalSeconds": 1_000_000}


def staged(box: Box, subscription: str = SUB) -> tuple[Client, Txn]:
    """Publish b"0", two messages of an aborted transaction, b"3", one of an open transaction, and b"5".

    Return the producer and the open transaction. The body of a message in a transaction is "t" and its sequence ID.
    """
    client = dead_letter_topic(box, b"0", subscription=subscription)
    gone = Txn(client)
    for sequence_id in (1, 2):
        gone.send(sequence_id, properties=pairs(told()))
    gone.abort()
    client.send(3, b"3", properties=pairs(told()))
    client.names()
    txn = Txn(client, 20 * MINUTE)
    txn.send(4, properties=pairs(told()))
    client.send(5, b"5", properties=pairs(told()))
    client.names()
    return client, txn


def grouped(box: Box, subscription: str = "") -> int:
    """Return the total number of messages in all groups."""
    found: list[Grouping] = []
    jobs = box.broker.jobs
    grouping = jobs.group([topic_of(box)], subscription, 1000, None, lambda each, now: found.append(each))
    grouping.begin(box.now)
    box.turn()
    return sum(each.count for each in found[0].groups.values())


def test_a_replay_stops_at_an_open_transaction() -> None:
    box = Box(**LONG)
    _, txn = staged(box)
    job = run(box)
    assert (job.state, bodies(box)) == ("done", [b"0", b"3"])
    assert backlog(box) == 2, "they are still to be had"
    txn.commit()
    again = run(box)
    assert (again.state, counted(again)[:2]) == ("done", (2, 2))
    assert bodies(box) == [b"0", b"3", b"t4", b"5"]


def test_a_topic_for_dead_letters_holds_what_can_be_seen_of_it() -> None:
    box = Box(**LONG)
    _, txn = staged(box)
    assert letters_of(topic_of(box).stored).messages == 2
    restarted = box.restart()
    assert letters_of(topic_of(restarted).stored).messages == 2
    txn.of(restarted.client()).commit()
    assert letters_of(topic_of(restarted).stored).messages == 4


def test_after_an_abort_a_replay_goes_on_with_what_is_behind_it() -> None:
    box = Box(**LONG)
    _, txn = staged(box)
    txn.abort()
    assert run(box).state == "done"
    assert bodies(box) == [b"0", b"3", b"5"]
    assert backlog(box) == 0


@pytest.mark.parametrize("subscription", [SUB, ""])
def test_a_dry_run_counts_what_can_be_seen(subscription: str) -> None:
    box = Box(**LONG, defaultRetentionTimeInMinutes=-1, defaultRetentionSizeInMB=-1)
    _, txn = staged(box, subscription)

    def seen() -> int:
        job = run(box, dryRun=True)
        assert job.state == "done"
        return counted(job)[0]

    assert seen() == 2
    assert grouped(box, subscription) == 2
    txn.commit()
    assert seen() == 4
    assert grouped(box, subscription) == 4


def test_a_batch_is_read_again_when_a_transaction_acknowledges_a_part_of_it() -> None:
    box = Box(**LONG, acknowledgmentAtBatchIndexLevelEnabled=True)
    client = dead_letter_topic(box, b"first")
    client.send(1, batch_of((b"0", {}), (b"1", {}), (b"2", {})), batch=3, highest=3)
    client.names()
    reader = box.client()
    reader.subscribe(SUB, topic=DLQ, subType=CommandSubscribe.Shared)
    reader.flow(10)
    _, batch = reader.received()
    txn = Txn(reader, 20 * MINUTE)
    txn.ack(some_of(batch, 3, 1))
    reader.cnx.closed(box.now)
    job = create(box, rate=1)
    box.advance(0.5)
    assert counted(job) == (1, 1, 0, 0), "the rate delays the batch, which the job has read"
    txn.of(client).commit()
    box.advance(10)
    assert (job.state, bodies(box)) == ("done", [b"first", b"0", b"2"])


def coming_back(box: Box) -> tuple[Job, Client]:
    """Return a job and the producer of its dead letters."""
    client = dead_letter_topic(box, *[b"%d" % i for i in range(100)])
    job = create(box, rate=10, maxReturned=5, maxReturnedShare=0)
    box.advance(1.05)
    assert job.state == "running"
    return job, client


@pytest.mark.parametrize("commits", [False, True])
def test_what_comes_back_in_a_transaction_counts_with_its_commit(*, commits: bool) -> None:
    box = Box(**LONG)
    job, client = coming_back(box)
    txn = Txn(client, 20 * MINUTE)
    mark = told(REPLAY_JOB=str(job.number))
    for i in range(6):
        txn.send(1000 + i, properties=pairs(mark))
    box.advance(2)
    assert (job.state, job.progress.counts.returned) == ("running", 0)
    if commits:
        txn.commit()
    else:
        txn.abort()
        for i in range(3):
            client.send(2000 + i, b"x", properties=pairs(mark))
    box.advance(2)
    assert (job.state, job.progress.counts.returned) == (("tripped", 6) if commits else ("running", 3))
