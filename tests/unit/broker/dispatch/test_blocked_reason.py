"""Start time and reason of a subscription's blocked dispatch."""

from typing import Any

import pytest

from pulsarbox.broker.dispatch.blocked_reason import BlockedSince, Reason
from pulsarbox.clock import Now
from pulsarbox.protocol.PulsarApi_pb2 import CommandSubscribe
from tests.unit.broker.limits.rates import subscription_of
from tests.unit.broker.playbook import TOPIC, Box, Client

TYPES = (
    CommandSubscribe.Exclusive,
    CommandSubscribe.Failover,
    CommandSubscribe.Shared,
    CommandSubscribe.Key_Shared,
)


def test_the_same_reason_again_does_not_move_the_time_unless_something_was_dispatched() -> None:
    standstill = BlockedSince()
    assert (standstill.reason, standstill.since) == (Reason.NO_CONSUMER, 0)
    standstill.stopped(Reason.NO_CONSUMER, Now(1.0, 100))
    assert standstill.since == 0
    standstill.stopped(Reason.NO_PERMITS, Now(2.0, 200))
    assert (standstill.reason, standstill.since) == (Reason.NO_PERMITS, 200)
    standstill.stopped(Reason.NO_PERMITS, Now(3.0, 300))
    assert standstill.since == 200
    standstill.stopped(Reason.NO_PERMITS, Now(4.0, 400), sent=True)
    assert standstill.since == 400


def joined(box: Box, kind: Any, permits: int, name: str = "a") -> Client:
    client = box.client()
    assert not hasattr(client.subscribe(subType=kind, consumer_name=name), "error")
    if permits:
        client.flow(permits)
    return client


def reason_of(box: Box) -> tuple[str, int]:
    why = subscription_of(box).blocked_reason()
    return why.reason, why.since


@pytest.mark.parametrize("kind", TYPES)
def test_without_a_consumer_the_time_is_that_of_the_last_ones_end(kind: Any) -> None:
    box = Box(activeConsumerFailoverDelayTimeMillis=0)
    publisher, client = box.client(), joined(box, kind, 0)
    publisher.publish(1)
    began = box.wall
    assert reason_of(box) == (Reason.NO_PERMITS, began)
    box.advance(10)
    client.ask("close_consumer", consumer_id=1, request_id=7)
    left = box.wall
    assert left > began
    assert reason_of(box) == (Reason.NO_CONSUMER, left)
    box.advance(10)
    publisher.send(9, b"x")
    box.turn()
    assert reason_of(box) == (Reason.NO_CONSUMER, left)


def test_a_takeover_begins_when_its_consumer_is_chosen_and_not_with_permits_or_messages() -> None:
    box = Box(activeConsumerFailoverDelayTimeMillis=20_000)
    publisher, client = box.client(), joined(box, CommandSubscribe.Failover, 0)
    began = box.wall
    assert reason_of(box) == (Reason.TAKING_OVER, began)
    box.advance(5)
    client.flow(10)
    publisher.publish(1, TOPIC)
    assert box.wall > began
    assert reason_of(box) == (Reason.TAKING_OVER, began)
    box.advance(20)
    assert client.take("active_consumer_change").is_active
    assert len(client.received()) == 1
    assert reason_of(box)[0] == Reason.END_OF_LOG
