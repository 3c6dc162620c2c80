"""The circuit breaker of a job: repeated failures of replayed messages are counted in all topics and stop the job."""

import pytest

from pulsarbox.broker.policies.kinds.dead_letter import DeadLetterPolicy
from pulsarbox.broker.replay import circuit_breaker
from pulsarbox.broker.replay.job import Job, read_spec
from pulsarbox.broker.security.principal import Principal
from pulsarbox.names import parse_topic
from tests.unit.broker.dead_letters_playbook import give_back, join, letters
from tests.unit.broker.playbook import TOPIC, Box, Client
from tests.unit.broker.replay.playbook import (
    DLQ,
    create,
    dead_letter_topic,
    job_in,
    pairs,
    properties,
    told,
    topic_of,
)
from tests.unit.broker.roles import guarded_box

AUDIT = f"{TOPIC}-audit-DLQ"
"""Dead letter topic of another subscription."""


def come_back(box: Box, client: Client, count: int, producer_id: int = 1) -> None:
    """Simulate repeated failure: the client publishes dead letters with the properties of the replayed messages."""
    found = letters(box, TOPIC)[-count:]
    for i, (metadata, body) in enumerate(found):
        client.send(1000 + i, body, producer_id=producer_id, properties=pairs(properties(metadata) | told()))


def test_what_comes_straight_back_stops_the_job() -> None:
    box = Box()
    client = dead_letter_topic(box, *[b"%d" % i for i in range(50)])
    job = create(box, rate=10, maxReturned=5)
    box.advance(1.05)
    come_back(box, client, 8)
    box.advance(3)
    assert (job.state, job.progress.counts.returned) == ("tripped", 8)
    assert job.error.startswith("8 of ")
    assert DLQ in job.error
    done = job.progress.counts.done
    box = box.restart()
    box.advance(5)
    job = job_in(box, job.number)
    assert (job.state, job.progress.counts.done) == ("tripped", done)
    box.broker.jobs.resume(job, box.now)
    box.advance(10)
    assert (job.state, job.progress.counts.done, job.progress.counts.returned) == ("done", 50, 8)


def test_a_share_of_them_stops_it_too() -> None:
    box = Box()
    client = dead_letter_topic(box, *[b"%d" % i for i in range(100)])
    job = create(box, rate=10, maxReturned=0, maxReturnedShare=0.3)
    box.advance(2.05)
    come_back(box, client, 12)
    box.advance(1.1)
    assert job.state == "tripped"
    assert "above 30%" in job.error


def test_others_that_come_do_not_count() -> None:
    box = Box()
    client = dead_letter_topic(box, *[b"%d" % i for i in range(20)])
    job = create(box, rate=10, maxReturned=1)
    box.advance(0.5)
    client.send(900, b"new", properties=pairs(told(REPLAY_JOB="999999")))
    box.advance(10)
    assert (job.state, job.progress.counts.returned) == ("done", 0)


# In topics of other subscriptions


def fifty(box: Box, *, there: bool = True) -> Client:
    """Publish fifty dead letters of one subscription. Another subscription has its own topic, with one dead letter."""
    client = dead_letter_topic(box, *[b"%d" % i for i in range(50)])
    join(box, name="audit", permits=0)
    if there:
        client.producer(2, AUDIT)
        client.send(0, b"before", producer_id=2, properties=pairs(told()))
    return client


@pytest.mark.parametrize("there", [True, False])
def test_what_another_subscription_gives_up_stops_it(*, there: bool) -> None:
    """The other topic has a message already, or is created while the job runs."""
    box = Box()
    client = fifty(box, there=there)
    job = create(box, rate=10, maxReturned=5)
    box.advance(1.05)
    if not there:
        client.producer(2, AUDIT)
    come_back(box, client, 8, producer_id=2)
    box.advance(3)
    assert (job.state, job.progress.counts.returned) == ("tripped", 8)
    assert job.progress.counts.returned_in == {AUDIT: 8}
    assert AUDIT in job.error
    assert DLQ not in job.error


def test_what_the_box_moves_for_another_subscription_does_too() -> None:
    """Dead letters in a topic whose name is set by the other subscription's policy are counted too."""
    box = Box()
    client = dead_letter_topic(box, *[b"%d" % i for i in range(50)])
    strict = join(box, name="strict")
    policy = DeadLetterPolicy.read(
        {"maxRedeliverCount": 0, "deadLetterTopic": "persistent://public/default/rejected"},
        parse_topic(TOPIC),
        "strict",
    )
    box.broker.dead_letters.prepare(policy, box.now)
    topic_of(box, TOPIC).subscriptions["strict"].dead_letters.set_policy(policy, box.now)
    job = create(box, rate=10, maxReturned=5)
    box.advance(1.05)
    give_back(strict, *strict.received())
    box.advance(3)
    assert client.inbox == []
    assert job.state == "tripped"
    assert job.progress.counts.returned_in == {str(policy.topic): job.progress.counts.returned}


def test_over_a_restart_each_counts_once() -> None:
    box = Box()
    client = fifty(box)
    job = create(box, rate=10, maxReturned=9, maxReturnedShare=0)
    box.advance(1.05)
    come_back(box, client, 4)
    come_back(box, client, 4, producer_id=2)
    box.advance(1.5)
    assert (job.state, job.progress.counts.returned) == ("running", 8)
    box = box.restart()
    job = job_in(box, job.number)
    join(box, name="audit", permits=0)
    client = box.client()
    client.producer(2, AUDIT)
    box.advance(1.5)
    assert (job.state, job.progress.counts.returned) == ("running", 8)
    come_back(box, client, 2, producer_id=2)
    box.advance(3)
    assert (job.state, job.progress.counts.returned) == ("tripped", 10)
    assert job.progress.counts.returned_in == {DLQ: 4, AUDIT: 6}


def test_what_lay_there_before_has_not_come_back() -> None:
    """Earlier dead letters are not counted, even with the mark of the job."""
    box = Box()
    client = fifty(box)
    job = create(box, rate=0, maxReturned=1)
    box.broker.jobs.pause(job, box.now)
    client.send(50, b"early", producer_id=2, properties=pairs(told(REPLAY_JOB=str(job.number))))
    box.broker.jobs.resume(job, box.now)
    box.advance(5)
    assert (job.state, job.progress.counts.done, job.progress.counts.returned) == ("done", 50, 0)


def test_what_the_job_itself_puts_there_has_not_come_back() -> None:
    box = Box()
    client = fifty(box)
    for i in range(10):
        client.send(100 + i, b"home", properties=pairs(told(AUDIT)))
    job = create(box, rate=10, maxReturned=1)
    box.advance(10)
    assert (job.state, job.progress.counts.returned) == ("done", 0)
    assert job.progress.counts.targets == {TOPIC: 50, AUDIT: 10}


def test_nobody_is_told_of_topics_that_are_not_for_them() -> None:
    box = guarded_box()
    letters_of = parse_topic("persistent://shop/eu/orders-billing-DLQ")
    box.broker.permissions.grant_topic(letters_of, "worker", ["consume"], box.now)
    asked = read_spec({"kind": "dlq-replay", "topic": str(letters_of)}, Principal("worker", "token"), box.now)
    finder = circuit_breaker.CircuitBreaker(box.broker.jobs._services, Job(1, asked, [], 0), lambda name, now: None)
    assert finder.shown(str(letters_of)) == str(letters_of)
    assert finder.shown("persistent://shop/eu/orders-audit-DLQ") == circuit_breaker.ELSEWHERE


def test_of_very_many_topics_so_many_are_watched(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(circuit_breaker, "OTHERS_MAX", 3)
    box = Box()
    client = dead_letter_topic(box, b"0", b"1")
    for i in range(6):
        join(box, name=f"sub{i}", permits=0)
        client.producer(10 + i, f"{TOPIC}-sub{i}-DLQ")
    job = create(box, rate=0)
    box.advance(3)
    assert job.state == "done"
    assert len(job.watched) == 3
