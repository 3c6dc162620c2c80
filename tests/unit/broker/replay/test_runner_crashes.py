"""Jobs with crashes between any two steps and failed commits and reads: exactly once, with correct counts."""

from typing import Any

import pytest
from hypothesis import HealthCheck, example, given, settings
from hypothesis import strategies as st

from pulsarbox.errors import PersistenceError, StoreFull
from tests.tools.campaigns import examples
from tests.unit.broker.playbook import TOPIC, Box
from tests.unit.broker.replay.playbook import (
    SUB,
    batch_of,
    bodies,
    create,
    dead_letter_topic,
    job_in,
    left,
    pairs,
    told,
)

OTHER = "persistent://public/default/other"
WANTED = 'props.x == "y"'

Sent = list[tuple[bytes, bool, str]]
"""Payload of each message, whether the job selects it, and its source topic."""

WHATS = ("commit", "stored, then killed", "killed", "failed", "full", "unread", "timer", "pause")
steps = st.lists(st.tuples(st.integers(0, 4), st.sampled_from(WHATS)), max_size=12)
"""Pairs of a number of job turns and an event. A pending commit ends the turns early."""
entries = st.lists(st.lists(st.tuples(st.booleans(), st.booleans()), min_size=1, max_size=4), min_size=1, max_size=8)


def fill(box: Box, shape: list[list[tuple[bool, bool]]]) -> Sent:
    """Publish dead letters, single and in batches. Return whether each is selected, and its source topic."""
    client = dead_letter_topic(box)
    client.producer(5, OTHER)
    sent: Sent = []
    for i, messages in enumerate(shape):
        parts = []
        for j, (wanted, elsewhere) in enumerate(messages):
            origin = OTHER if elsewhere else TOPIC
            body = b"%d-%d" % (i, j)
            sent.append((body, wanted, origin))
            parts.append((body, {"REAL_TOPIC": origin} | ({"x": "y"} if wanted else {})))
        if len(parts) == 1:
            ((body, more),) = parts
            client.send(10 * i, body, properties=pairs(told(**more)))
        else:
            client.send(10 * i, batch_of(*parts), batch=len(parts), highest=10 * i + len(parts) - 1)
    client.cnx.closed(box.now)
    box.turn()
    return sent


def work(box: Box, turns: int) -> None:
    """Run the job without committing."""
    for _ in range(turns):
        if box.broker.commits.open.moves:
            return
        if not box.read():
            ring(box)


def ring(box: Box) -> None:
    """Advance to the next deadline."""
    at = box._next_deadline()
    if at is not None:
        box._set_time(max(box.time, at))
        box.broker.on_timer(box.now)


def step(box: Box, turns: int, what: str, number: int) -> Box:
    """Run the job for some turns, then inject one event."""
    work(box, turns)
    jobs = box.broker.jobs
    if what == "stored, then killed":
        batch = box.broker.take_batch(box.now)
        if batch is not None:
            box.engine.commit(batch)
        return box.restart()
    if what == "killed":
        return box.restart()
    if what in ("commit", "failed", "full"):
        box.commit({"failed": PersistenceError("no"), "full": StoreFull("full")}.get(what))
    elif what == "unread":
        box.read(PersistenceError("no"))
    elif what == "timer":
        ring(box)
    elif jobs.get(number).state == "running":
        jobs.pause(jobs.get(number), box.now)
    elif jobs.get(number).state == "paused":
        jobs.resume(jobs.get(number), box.now)
    box.chore()
    return box


def manual(box: Box) -> Box:
    """Restart on the same store, with commits and reads only on request."""
    made = Box(box.disk, auto=False, **box.settings)
    made.commit()
    return made


def settle(box: Box, number: int) -> Box:
    """Stop injecting events and run the job to its end."""
    made = Box(box.disk, **box.settings)
    job = job_in(made, number)
    if job.state == "paused":
        made.broker.jobs.resume(job, made.now)
    made.advance(30)
    return made


@example(
    [[(True, False), (False, False)]], [(4, "failed"), (0, "timer"), (0, "commit"), (0, "killed")], 0, "dlq-replay"
)
@settings(max_examples=examples(40), deadline=None, suppress_health_check=[HealthCheck.too_slow])
@given(entries, steps, st.sampled_from([0, 3]), st.sampled_from(["dlq-replay", "dlq-drop"]))
def test_exactly_once_whatever_happens_when(
    shape: list[list[tuple[bool, bool]]], happens: list[tuple[int, str]], rate: int, kind: str
) -> None:
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr("pulsarbox.broker.replay.runner.READ_ENTRIES", 3)
        patch.setattr("pulsarbox.broker.replay.runner.TURN_ENTRIES", 2)
        kept: dict[str, Any] = {"defaultRetentionTimeInMinutes": -1, "defaultRetentionSizeInMB": -1}
        box = Box(acknowledgmentAtBatchIndexLevelEnabled=True, **kept)
        sent = fill(box, shape)
        box = manual(box)
        number = create(box, filter=WANTED, rate=rate, kind=kind).number
        box.commit()
        for turns, what in happens:
            box = step(box, turns, what, number)
            box.auto = False
        box = settle(box, number)
        job = job_in(box, number)
        wanted = [each for each in sent if each[1]]
        assert job.state == "done", job.error
        counts = job.progress.counts
        assert (counts.done, counts.skipped, counts.failed) == (len(wanted), len(sent) - len(wanted), 0)
        replayed = kind == "dlq-replay"
        for topic in (TOPIC, OTHER):
            assert bodies(box, topic) == [body for body, _, origin in wanted if origin == topic and replayed]
        assert left(box, SUB) == [body for body, want, _ in sent if not want]
