"""Lifecycle of jobs: concurrent consumers, concurrent jobs, and restarts."""

import pytest

from pulsarbox.errors import EntryDamaged, PulsarBoxError
from pulsarbox.names import parse_topic
from tests.unit.broker.playbook import Box
from tests.unit.broker.replay.playbook import (
    DLQ,
    SUB,
    backlog,
    bodies,
    counted,
    create,
    dead_letter_topic,
    job_in,
    left,
    run,
    topic_of,
)

# Concurrent consumers and jobs


def test_consumers_and_a_job_do_not_share_a_subscription() -> None:
    box = Box()
    dead_letter_topic(box, b"0", b"1")
    reader = box.client()
    reader.subscribe(SUB, topic=DLQ, subType=1)
    with pytest.raises(PulsarBoxError, match="has 1 consumers"):
        create(box)
    reader.cnx.closed(box.now)
    job = create(box, rate=1)
    box.turn()
    late = box.client()
    assert late.subscribe(SUB, topic=DLQ, subType=1).error == 5
    with pytest.raises(PulsarBoxError, match="already"):
        create(box)
    box.broker.jobs.pause(job, box.now)
    box.turn()
    assert not hasattr(late.subscribe(SUB, topic=DLQ, subType=1), "error")
    with pytest.raises(PulsarBoxError, match="consumers"):
        box.broker.jobs.resume(job, box.now)


def test_jobs_are_paused_resumed_and_cancelled() -> None:
    box = Box()
    dead_letter_topic(box, *[b"%d" % i for i in range(10)])
    jobs = box.broker.jobs
    job = create(box, rate=1)
    box.advance(2.5)
    jobs.pause(job, box.now)
    box.turn()
    done = job.progress.counts.done
    box.advance(10)
    assert (job.state, job.progress.counts.done) == ("paused", done)
    box = box.restart()
    box.advance(10)
    jobs = box.broker.jobs
    job = job_in(box, job.number)
    assert (job.state, job.progress.counts.done) == ("paused", done)
    jobs.resume(job, box.now)
    box.advance(2)
    assert job.progress.counts.done > done
    jobs.cancel(job, box.now)
    box.turn()
    assert bodies(box) == [b"%d" % i for i in range(job.progress.counts.done)]
    for act in (jobs.pause, jobs.resume, jobs.cancel):
        with pytest.raises(PulsarBoxError, match="cancelled"):
            act(job, box.now)


def test_another_job_waits_for_what_a_cancelled_one_has_on_its_way() -> None:
    box = Box()
    dead_letter_topic(box, b"0", b"1")
    first = create(box, rate=0)
    box.turn()
    box.auto = False
    while not box.broker.commits.open.moves:
        box.read()
        box.broker.on_timer(box.now)
    box.broker.jobs.cancel(first, box.now)
    second = create(box)
    for _ in range(3):
        box.broker.on_timer(box.now)
        box.read()
    box.auto = True
    box.advance(5)
    assert (first.state, counted(first)) == ("cancelled", (2, 2, 0, 0))
    assert (second.state, counted(second)) == ("done", (0, 0, 0, 0))
    assert bodies(box) == [b"0", b"1"]


def test_a_running_job_goes_on_after_a_restart_by_itself() -> None:
    box = Box()
    dead_letter_topic(box, *[b"%d" % i for i in range(10)])
    number = create(box, rate=2).number
    box.advance(2)
    box = box.restart()
    assert job_in(box, number).state == "running"
    assert box.client().subscribe(SUB, topic=DLQ, subType=1).error == 5
    box.advance(10)
    job = job_in(box, number)
    assert (job.state, counted(job)) == ("done", (10, 10, 0, 0))
    assert bodies(box) == [b"%d" % i for i in range(10)]


def test_a_box_that_stops_does_not_wait_for_its_jobs() -> None:
    box = Box()
    dead_letter_topic(box, *[b"%d" % i for i in range(10)])
    job = create(box, rate=2)
    box.advance(1)
    box.broker.drain(box.now)
    box.turn()
    done = job.progress.counts.done
    box.advance(10)
    assert (job.state, job.progress.counts.done, box.broker.commits.idle) == ("running", done, True)
    box = box.restart()
    box.advance(10)
    assert bodies(box) == [b"%d" % i for i in range(10)]


def test_a_deleted_subscription_fails_the_job() -> None:
    box = Box()
    dead_letter_topic(box, b"0", b"1", b"2")
    job = create(box, rate=1)
    box.turn()
    topic = topic_of(box)
    topic.remove_subscription(topic.subscriptions[SUB], box.now)
    box.advance(5)
    assert (job.state, "was deleted" in job.error) == ("failed", True)


def test_a_reset_cursor_makes_nothing_go_twice() -> None:
    box = Box(defaultRetentionTimeInMinutes=-1, defaultRetentionSizeInMB=-1)
    dead_letter_topic(box, *[b"%d" % i for i in range(6)])
    job = create(box, rate=2)
    box.advance(1.2)
    topic = topic_of(box)
    topic.subscriptions[SUB].seek(topic.ledger.first_position(), [], lambda now: None, lambda error: None, box.now)
    box.advance(10)
    assert (job.state, counted(job)) == ("done", (6, 6, 0, 0))
    assert bodies(box) == [b"%d" % i for i in range(6)]
    assert 0 < backlog(box) < 6  # those replayed before the consumer joined


def test_a_job_goes_on_when_its_topic_leaves_memory() -> None:
    box = Box(brokerUnloadIdleTopicsAfterSeconds=1)
    dead_letter_topic(box, b"0", b"1", b"2").cnx.closed(box.now)
    job = create(box, rate=0.2)
    box.advance(4)
    assert box.broker.topics.loaded(parse_topic(DLQ)) is None
    box.broker.topics.unload(topic_of(box), lambda now: None, box.now)
    box.advance(20)
    assert (job.state, counted(job)) == ("done", (3, 3, 0, 0))
    assert left(box) == []


def test_what_expires_meanwhile_is_not_put_back() -> None:
    box = Box()
    dead_letter_topic(box, *[b"%d" % i for i in range(5)])
    job = create(box, rate=1)
    box.advance(1.5)
    topic_of(box).subscriptions[SUB].clearing.clear(lambda now: None, box.now)
    box.advance(10)
    assert (job.state, job.progress.counts.done, len(bodies(box))) == ("done", 2, 2)


def test_a_damaged_entry_is_passed_by_and_said() -> None:
    box = Box(auto=False)
    box.auto = True
    dead_letter_topic(box, b"0", b"1", b"2")
    job = create(box)
    box.auto = False
    while not box.broker.reads._waiting:
        box.commit()
        box._set_time(box.time + 0.01)
        box.broker.on_timer(box.now)
    (info,) = topic_of(box).ledger.ledgers.values()
    box.read(EntryDamaged(info.ledger_id, 0, 0, "its bytes do not match", b"", (1, 1, 1, 1)))
    box.auto = True
    box.advance(5)
    assert (job.state, counted(job)) == ("done", (3, 2, 0, 1))
    assert bodies(box) == [b"1", b"2"]


def test_of_ended_jobs_the_newest_are_kept(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("pulsarbox.broker.replay.job_registry.KEPT_MAX", 2)
    box = Box()
    dead_letter_topic(box, b"0")
    numbers = [run(box, dryRun=True).number for _ in range(4)]
    box = box.restart()
    assert [job.number for job in box.broker.jobs.all()] == [numbers[3], numbers[2]]
