"""Backlog quotas by age with delayed messages excluded: their age counts from their delivery time."""

from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from pulsarbox.broker.backlog.oldest_undelayed import NEVER_DUE
from pulsarbox.broker.policies.kinds.backlog_quota import Follows
from pulsarbox.protocol.PulsarApi_pb2 import CommandAck, CommandSubscribe
from pulsarbox.storage.record import Position
from tests.tools.campaigns import examples
from tests.unit.broker.delays_playbook import small_chunks
from tests.unit.broker.playbook import Box, Client
from tests.unit.broker.policies.kept import backlog, frames, leave, set_policy, subscribed, topic_of, unload

HOLD, EVICTION = str(Follows.HOLD), str(Follows.EVICTION)
LASTING: dict[str, Any] = {"keepAliveIntervalSeconds": 1_000_000}
HOUR = 3600
HELD_ERROR = 7


@pytest.fixture(autouse=True)
def _small_chunks(monkeypatch: pytest.MonkeyPatch) -> None:
    small_chunks(monkeypatch)


def by_age(seconds: int, follows: str) -> dict[str, Any]:
    return {"message_age": {"limitSize": -1, "limitTime": seconds, "policy": follows, "excludeDelayed": True}}


def producing(box: Box) -> Client:
    client = box.client()
    assert client.producer(1, producer_name="p").DESCRIPTOR.name == "CommandProducerSuccess"
    return client


def publish(box: Box, *delays: int) -> list[Position]:
    """Publish messages with a delay in seconds."""
    client = producing(box)
    for number, delay in enumerate(delays):
        due = {"deliver_at_time": box.wall + delay * 1000} if delay else {}
        client.send(number, b"x" * 20, **due)
    sent = [body.message_id for name, body in frames(client) if name == "send_receipt"]
    leave(client)
    return [Position(each.ledgerId, each.entryId) for each in sent]


def acknowledge(box: Box, *positions: Position, subscription: str = "s") -> None:
    client = box.client()
    client.subscribe(subscription, subType=CommandSubscribe.Shared)
    ids = [{"ledgerId": each.ledger_id, "entryId": each.entry_id} for each in positions]
    client.ask("ack", consumer_id=1, ack_type=CommandAck.Individual, message_id=ids)
    box.advance(0.01)
    leave(client)


def is_blocked(box: Box) -> bool:
    """Return whether the broker rejects a new producer."""
    client = box.client()
    reply = client.producer(1)
    leave(client)
    return bool(reply.DESCRIPTOR.name == "CommandError" and reply.error == HELD_ERROR)


def test_what_is_not_due_does_not_make_a_backlog_old_and_gets_old_from_when_it_is() -> None:
    box = Box(**LASTING)
    subscribed(box, "s")
    set_policy(box, backlog_quota_map=by_age(60, HOLD))
    late = publish(box, HOUR)
    box.advance(HOUR / 2)
    assert not is_blocked(box)
    plain = publish(box, 0)
    box.advance(59.9)
    assert not is_blocked(box)
    box.advance(0.2)
    assert is_blocked(box), "one that is not delayed"
    acknowledge(box, *plain)
    assert not is_blocked(box), "at the moment it is acknowledged"
    box.advance(HOUR / 2 - 1)
    assert not is_blocked(box)
    box.advance(60)
    assert is_blocked(box), "a minute after the delayed one has fallen due"
    acknowledge(box, *late)
    assert not is_blocked(box)


@pytest.mark.parametrize("unloaded", [False, True])
def test_a_quota_that_leaves_out_delays_from_now_on_lets_producers_go_on(*, unloaded: bool) -> None:
    box = Box(**LASTING)
    subscribed(box, "s")
    quota = by_age(60, HOLD)
    quota["message_age"]["excludeDelayed"] = False
    set_policy(box, backlog_quota_map=quota)
    publish(box, HOUR)
    client = producing(box)
    box.advance(61)
    assert is_blocked(box)
    assert not client.producer(1, producer_name="p", epoch=1).producer_ready
    client.inbox.clear()
    if unloaded:
        leave(client)
        unload(box)
    set_policy(box, backlog_quota_map=by_age(60, HOLD))
    if unloaded:
        producing(box)
    else:
        assert [body.producer_ready for _, body in frames(client)] == [True]
    assert not is_blocked(box)


@pytest.mark.parametrize("unloaded", [False, True])
def test_an_eviction_spares_what_is_not_due(*, unloaded: bool) -> None:
    box = Box(**LASTING)
    subscribed(box, "s", "t")
    set_policy(box, backlog_quota_map=by_age(100, EVICTION))
    publish(box, *(HOUR if number % 3 == 1 else 0 for number in range(60)), *[2 * HOUR] * 40)
    if unloaded:
        unload(box)
    box.advance(99)
    assert unloaded or (backlog(box), backlog(box, "t")) == (100, 100)
    box.advance(2)
    assert (backlog(box), backlog(box, "t")) == (60, 60)
    box.advance(HOUR - 4)
    assert backlog(box) == 60
    box.advance(4)
    assert backlog(box) == 40, "they have been due for 100 seconds"
    box.advance(HOUR)
    assert (backlog(box), backlog(box, "t")) == (0, 0)


def test_messages_expire_delayed_or_not_beside_a_quota_that_spares_them() -> None:
    box = Box(**LASTING)
    subscribed(box, "s")
    set_policy(box, backlog_quota_map=by_age(60, EVICTION), message_ttl_in_seconds=600)
    publish(box, HOUR, 0, HOUR)
    box.advance(61)
    assert backlog(box) == 2
    publish(box, HOUR)
    box.advance(540)
    assert backlog(box) == 1
    box.advance(60)
    assert backlog(box) == 0


def test_what_consumers_hold_when_it_is_evicted_they_hold_no_more() -> None:
    box = Box(**LASTING)
    subscribed(box, "s")
    set_policy(box, backlog_quota_map=by_age(60, EVICTION))
    publish(box, HOUR, 0, 0)
    client = box.client()
    client.subscribe("s", subType=CommandSubscribe.Shared)
    client.flow(10)
    (consumer,) = topic_of(box).subscriptions["s"].consumers
    assert len(consumer.held) == 2
    box.advance(61)
    assert (dict(consumer.held), backlog(box)) == ({}, 1)
    box.advance(HOUR - 61)
    assert len(consumer.held) == 1


Steps = st.lists(
    st.one_of(
        st.tuples(st.just("publish"), st.lists(st.sampled_from([0, 0, 5, 30, 30, 1000]), min_size=1, max_size=12)),
        st.tuples(st.just("ack"), st.lists(st.integers(0, 99), max_size=8)),
        st.tuples(st.just("advance"), st.sampled_from([1, 7, 40, 1200])),
        st.tuples(st.just("seek"), st.integers(0, 99)),
        st.tuples(st.just("subscribe"), st.just(0)),
        st.tuples(st.just("unload"), st.just(0)),
    ),
    max_size=12,
)


@settings(max_examples=examples(25), deadline=None)
@given(Steps)
def test_the_oldest_is_what_a_look_at_all_messages_finds(steps: list[tuple[str, Any]]) -> None:
    with pytest.MonkeyPatch.context() as patch:
        small_chunks(patch)
        box = Box(**LASTING)
        subscribed(box, "s")
        set_policy(box, backlog_quota_map=by_age(10_000_000, HOLD))
        published: dict[Position, int] = {}
        for kind, what in steps:
            at = sorted(published)
            if kind == "publish":
                for position, delay in zip(publish(box, *what), what, strict=True):
                    published[position] = box.wall + delay * 1000
            elif kind == "ack" and at:
                acknowledge(box, *(at[each % len(at)] for each in what))
            elif kind == "seek" and at:
                position = at[what % len(at)]
                client = box.client()
                client.subscribe("s", subType=CommandSubscribe.Shared)
                message_id = {"ledgerId": position.ledger_id, "entryId": position.entry_id}
                client.ask("seek", consumer_id=1, request_id=9, message_id=message_id)
                leave(client)
            elif kind == "subscribe":
                client = box.client()
                client.subscribe("t", initialPosition=CommandSubscribe.Earliest, subType=CommandSubscribe.Shared)
                leave(client)
            elif kind == "unload":
                unload(box)
            elif kind == "advance":
                box.advance(what)
            check(box, published)


def check(box: Box, published: dict[Position, int]) -> None:
    """Check that cached results of earlier searches do not affect the outcome."""
    topic = topic_of(box)
    ripe = topic.expiry._ripe
    assert ripe is not None
    found: list[int] = []
    ripe.find(lambda begins, now: found.append(begins), lambda position: 0, box.now)
    box.advance(0)
    cursors = topic.stored.cursors.values()
    left = [
        begins for position, begins in published.items() if any(not cursor.is_acked(*position) for cursor in cursors)
    ]
    assert found == [min(left, default=NEVER_DUE)]
