"""Jobs in the Admin API: start, status, stop, permissions; and dead letters grouped by cause."""

from collections.abc import Callable
from typing import Any

import pytest

from tests.unit.broker.playbook import TOPIC
from tests.unit.broker.replay.playbook import DLQ, SUB, pairs, told
from tests.unit.server.http.clients import Client
from tests.unit.server.http.harness import Got, HttpBox

JOBS = "/pulsarbox/v1/jobs"
GROUPS = "/pulsarbox/v1/dlq/public/default/t-s-DLQ/groups"


def fill(box: HttpBox, *bodies: bytes, **properties: str) -> Callable[..., None]:
    """Fill a dead letter topic, and return a function that publishes more messages."""
    client = Client(box)
    client.producer(TOPIC)
    client.ask("close_consumer", consumer_id=client.subscribe(DLQ, SUB), request_id=99)
    producer = client.producer(DLQ)

    def send(number: int, body: bytes, **more: str) -> None:
        client.send(producer, number, body, properties=pairs(told(**more)))
        box.shell.kick()

    for i, body in enumerate(bodies):
        send(i, body, **properties)
    return send


async def begin(box: HttpBox, **asked: Any) -> Got:
    return await box.ask("POST", JOBS, {"kind": "dlq-replay", "topic": DLQ} | asked)


async def test_a_job_is_begun_and_told_of(box: HttpBox) -> None:
    fill(box, b"0", b"1")
    got = await begin(box, rate=0)
    assert got.status == 200
    number = got.value["id"]
    box.shell.kick()
    job = (await box.ask("GET", f"{JOBS}/{number}")).value
    assert (job["state"], job["done"], job["total"], job["targets"]) == ("done", 2, 2, {TOPIC: 2})
    assert [each["id"] for each in (await box.ask("GET", JOBS)).value] == [number]


async def test_a_job_is_paused_resumed_and_cancelled(box: HttpBox) -> None:
    fill(box, *[b"%d" % i for i in range(10)])
    number = (await begin(box, rate=1)).value["id"]
    states = []
    for action in ("pause", "resume", "cancel"):
        got = await box.ask("POST", f"{JOBS}/{number}/{action}")
        states.append(got.value["state"])
    assert states == ["paused", "running", "cancelled"]
    got = await box.ask("POST", f"{JOBS}/{number}/pause")
    assert (got.status, got.reason) == (409, f"Job {number} is not running: it is cancelled")
    assert (await box.ask("GET", f"{JOBS}/4711")).status == 404


@pytest.mark.parametrize(
    ("asked", "status", "says"),
    [
        ({"topic": "nowhere"}, 404, "not found"),
        ({"topic": "no/such/topic"}, 404, "Namespace not found"),
        ({"kind": "x"}, 422, "kind must be one of"),
        ({"filter": "key =="}, 422, "filter"),
        ({"target": DLQ}, 422, "the source topic"),
        ({"topic": "a//b"}, 422, "topic"),
    ],
)
async def test_what_cannot_be_asked_for_says_why(box: HttpBox, asked: dict[str, Any], status: int, says: str) -> None:
    fill(box, b"0")
    got = await begin(box, **asked)
    assert (got.status, says in got.reason) == (status, True), got


async def test_dead_letters_in_groups(box: HttpBox) -> None:
    send = fill(box, b'{"n": 1}', b'{"n": 22}', exception="Timeout after 30 ms for order 17")
    send(5, b'{"n": 3}', exception="Timeout after 9 ms for order 4711")
    send(6, b"\xff\xfe", exception="no such customer 'bob'")
    found = (await box.ask("GET", GROUPS)).value
    assert (found["entries"], found["of"], found["bounded"]) == (4, 4, False)
    first, second = found["groups"]
    assert (first["count"], first["reason"], first["shape"]) == (3, "Timeout after # ms for order #", "{n: number}")
    assert (second["count"], second["reason"], second["shape"]) == (1, "no such customer #", "binary")
    assert (first["origin"], first["sampleTopic"]) == (TOPIC, DLQ)
    got = (await box.ask("GET", f"{GROUPS}?filter=fingerprint%20%3D%3D%20%22{second['fingerprint']}%22")).value
    assert [each["fingerprint"] for each in got["groups"]] == [second["fingerprint"]]
    await begin(box, filter=f'fingerprint == "{first["fingerprint"]}"', rate=0)
    box.shell.kick()
    left = (await box.ask("GET", f"{GROUPS}?subscription={SUB}")).value["groups"]
    assert [each["count"] for each in left] == [1]


async def test_of_many_the_newest_are_looked_at(box: HttpBox) -> None:
    fill(box, *[b"%d" % i for i in range(30)])
    found = (await box.ask("GET", f"{GROUPS}?limit=10")).value
    assert (found["entries"], found["of"], found["bounded"], found["groups"][0]["count"]) == (10, 30, True, 10)
    for wrong in ("0", "x", "99999999"):
        assert (await box.ask("GET", f"{GROUPS}?limit={wrong}")).status == 400
