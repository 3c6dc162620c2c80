"""Events of jobs: one per state."""

from pulsarbox.names import short_topic
from tests.unit.broker.playbook import Box
from tests.unit.broker.replay.playbook import DLQ, create, dead_letter_topic, pairs, run, told

OTHER = "persistent://public/default/other"


def test_each_state_of_a_job_is_an_event() -> None:
    box = Box()
    dead_letter_topic(box, *[b"%d" % i for i in range(10)])
    job = create(box, rate=1)
    jobs = box.broker.jobs
    jobs.pause(job, box.now)
    jobs.resume(job, box.now)
    jobs.cancel(job, box.now)
    events = [each for each in box.broker.events.after(0, 1000) if each.kind.startswith("job-")]
    assert [each.kind for each in events] == ["job-running", "job-paused", "job-cancelled"]
    assert {(each.subject, each.severity) for each in events} == {(f"{DLQ} job {job.number}", "info")}
    assert events[0].text == f"job {job.number}: replay of {short_topic(DLQ)} starts, 10 messages"


def test_a_job_that_a_topic_refuses_is_a_warning() -> None:
    box = Box()
    dead_letter_topic(box).send(7, b"0", properties=pairs(told(OTHER)))
    job = run(box)
    (paused,) = [each for each in box.broker.events.after(0, 1000) if each.kind == "job-paused"]
    assert (job.state, paused.severity) == ("paused", "warning")
    assert paused.fields == {"job": job.number, "topic": DLQ, "state": "paused"}
    assert paused.text.endswith(f"is paused: {job.error}")
