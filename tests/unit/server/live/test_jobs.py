"""The live view of jobs."""

from tests.unit.broker.playbook import Box
from tests.unit.broker.replay.playbook import DLQ, create, dead_letter_topic, run
from tests.unit.server.live.views import rows


def test_all_that_there_are_and_how_far_they_are() -> None:
    box = Box()
    dead_letter_topic(box, b"0", b"1", b"2", b"3")
    first = run(box, filter='payload == "0"')
    second = create(box, rate=1)
    box.advance(0.5)
    later, earlier = rows(box, "jobs")
    assert (later["id"], later["state"], later["share"], later["done"]) == (second.number, "running", 1 / 3, 1)
    assert (earlier["id"], earlier["state"], earlier["share"], earlier["topic"]) == (first.number, "done", 1.0, DLQ)
    assert [row["id"] for row in rows(box, "jobs", filter='state == "running"')] == [second.number]
    assert rows(box, "jobs", tenant="other") == []
