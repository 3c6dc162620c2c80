"""Permissions to start, view and stop a job, and jobs whose owner loses its permission."""

from typing import Any

import pytest

from pulsarbox.broker.replay.job import read_spec
from pulsarbox.broker.security.principal import Principal
from pulsarbox.errors import PulsarBoxError
from pulsarbox.names import parse_topic
from pulsarbox.server.http.box.jobs import rows
from pulsarbox.server.http.framework.authorization import permit
from pulsarbox.server.http.framework.request import HttpRequest
from pulsarbox.server.http.framework.routes import Permission
from tests.unit.broker.playbook import Box
from tests.unit.broker.roles import client_of, guarded_box

ORDERS = "persistent://shop/eu/orders"
DLQ = "persistent://shop/eu/graves"


def call_of(box: Box, role: str | None, body: Any = None, **path: str) -> HttpRequest:
    import json

    principal = None if role is None else Principal(role, "token")
    return HttpRequest(box.broker, box.now, path, {}, json.dumps(body).encode(), "", principal=principal)


def may(box: Box, role: str | None, body: Any = None, **path: str) -> str:
    try:
        permit(call_of(box, role, body, **path), Permission.JOB)
    except PulsarBoxError as error:
        return str(error.http_status)
    return "yes"


def box_with_letters() -> Box:
    box = guarded_box()
    root = client_of(box, "root")
    root.subscribe("kept", topic=DLQ, consumer_id=1, subType=1)
    root.producer(1, ORDERS)
    root.producer(2, DLQ)
    from tests.unit.broker.replay.playbook import pairs, told

    for i in range(4):
        root.send(i, b"%d" % i, 2, properties=pairs(told(ORDERS)))
    root.cnx.closed(box.now)
    box.turn()
    return box


@pytest.mark.parametrize(
    ("role", "body", "answer"),
    [
        (None, {"topic": DLQ}, "401"),
        ("stranger", {"topic": DLQ}, "403"),
        ("producer", {"topic": DLQ}, "403"),
        ("consumer", {"topic": DLQ}, "yes"),
        ("consumer", {"topic": DLQ, "target": ORDERS}, "403"),
        ("admin", {"topic": DLQ, "target": ORDERS}, "yes"),
        ("admin", {"topic": DLQ, "target": "persistent://other/eu/orders"}, "403"),
        ("other-admin", {"topic": DLQ}, "403"),
        ("root", {"topic": DLQ, "target": "persistent://other/eu/orders"}, "yes"),
        ("consumer", None, "403"),
        ("consumer", {"topic": 5}, "403"),
        ("root", {"topic": 5}, "yes"),
    ],
)
def test_who_may_begin_one(role: str | None, body: Any, answer: str) -> None:
    assert may(box_with_letters(), role, body) == answer


def begin(box: Box, role: str) -> int:
    spec = read_spec({"kind": "dlq-replay", "topic": DLQ, "rate": 1}, Principal(role, "token"), box.now)
    return box.broker.jobs.create(spec, box.now).number


def test_who_may_see_and_stop_it() -> None:
    box = box_with_letters()
    number = str(begin(box, "admin"))
    assert {role: may(box, role, id=number) for role in ("consumer", "producer", "other-admin", "root")} == {
        "consumer": "yes",
        "producer": "403",
        "other-admin": "403",
        "root": "yes",
    }
    assert may(box, "producer", id="4711") == "403"
    assert len(rows(call_of(box, "consumer"))) == 1
    assert rows(call_of(box, "other-admin")) == []


def test_a_job_may_no_more_than_who_asked_for_it() -> None:
    box = box_with_letters()
    job = box.broker.jobs.get(begin(box, "consumer"))
    box.advance(10)
    assert (job.state, job.progress.counts.done) == ("paused", 0)
    assert job.error.endswith("admins of the tenant can grant it")
    assert "produce" in job.error
    topic = box.broker.topics.find(parse_topic(DLQ), box.now)
    assert topic is not None
    assert topic.subscriptions["kept"].cursor.backlog_messages == 4  # type: ignore[attr-defined]
