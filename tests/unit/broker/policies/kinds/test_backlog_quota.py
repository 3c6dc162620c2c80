"""Backlog quotas by size and age in virtual time, with each of the three actions at the limit."""

from typing import Any

import pytest

from pulsarbox.broker.policies.kinds.backlog_quota import BACKLOG_AGE, BACKLOG_SIZE, Follows, Quota
from pulsarbox.broker.policies.precedence import Level
from pulsarbox.protocol.PulsarApi_pb2 import CommandAck
from tests.unit.broker.playbook import TOPIC, Box, Client
from tests.unit.broker.policies.kept import (
    DAY,
    backlog,
    frames,
    leave,
    publish,
    set_policy,
    set_topic_policy,
    subscribed,
    topic_of,
    unload,
)

HOLD, EXCEPTION, EVICTION = (str(each) for each in Follows)
LASTING: dict[str, Any] = {"keepAliveIntervalSeconds": 1_000_000}
HELD_ERROR, EXCEPTION_ERROR = 7, 8
NOT_ALLOWED, BUSY = 22, 16


def by_size(limit: int, follows: str, **more: Any) -> dict[str, Any]:
    return {"destination_storage": {"limitSize": limit, "limitTime": -1, "policy": follows, **more}}


def by_age(seconds: int, follows: str) -> dict[str, Any]:
    return {"message_age": {"limitSize": -1, "limitTime": seconds, "policy": follows}}


def producing(box: Box, **fields: Any) -> Client:
    client = box.client()
    assert client.producer(1, producer_name="p", **fields).DESCRIPTOR.name == "CommandProducerSuccess"
    return client


def used(box: Box, name: str = TOPIC) -> int:
    return topic_of(box, name).backlog.used


def consume(box: Box, sent: list[tuple[int, int]], subscription: str = "s") -> None:
    """Acknowledge up to the last of these positions with a separate consumer, and disconnect."""
    client = box.client()
    client.subscribe(subscription)
    client.ask("ack", consumer_id=1, ack_type=CommandAck.Cumulative,
               message_id=[{"ledgerId": sent[-1][0], "entryId": sent[-1][1]}])  # fmt: skip
    box.advance(0.1)
    leave(client)


def test_each_kind_has_its_own_level_and_the_old_name_of_the_limit_is_read() -> None:
    box = Box(backlogQuotaDefaultLimitGB=0.5, backlogQuotaDefaultLimitSecond=0)
    policies = topic_of_new(box).policies
    assert policies.found(BACKLOG_SIZE) == (Quota(1 << 29, Follows.HOLD), Level.BROKER)
    assert policies.found(BACKLOG_AGE) == (Quota(-1, Follows.HOLD), Level.BROKER)
    set_policy(box, backlog_quota_map={"destination_storage": {"limit": 7, "policy": EXCEPTION}} | by_age(9, EVICTION))
    set_topic_policy(box, "backLogQuotaMap", by_age(5, HOLD))
    assert policies.found(BACKLOG_SIZE) == (Quota(7, Follows.EXCEPTION), Level.NAMESPACE)
    assert policies.found(BACKLOG_AGE) == (Quota(5000, Follows.HOLD), Level.TOPIC)
    set_topic_policy(box, "backLogQuotaMap", by_age(0, HOLD))
    assert policies.get(BACKLOG_AGE).limit == -1, "0 seconds are no limit"


def topic_of_new(box: Box) -> Any:
    subscribed(box, "s")
    return topic_of(box)


def test_a_producer_is_held_and_goes_on_at_the_moment_the_backlog_falls() -> None:
    box = Box(**LASTING)
    subscribed(box, "s")
    set_policy(box, backlog_quota_map=by_size(1000, HOLD))
    client = producing(box)
    sent = []
    for number in range(20):
        client.send(number, b"x" * 100)
        names = [name for name, _ in frames(client)]
        if "close_producer" in names:
            break
        sent.append(number)
    assert 1000 <= used(box) < 1000 + 200, "the entry that reaches the limit is the last"
    size = used(box)
    client.send(99, b"x" * 100)
    assert (client.inbox, used(box)) == ([], size), "what comes behind is not stored, and not answered"
    newcomer = box.client()
    refused = newcomer.producer(1)
    assert (refused.error, "has" in refused.message) == (HELD_ERROR, True)
    (waiting,) = topic_of(box).backlog.waiting_producers(box.now)
    assert (waiting.producer_id, waiting.topic) == (1, TOPIC)
    reply = client.producer(1, producer_name="p", epoch=1)
    assert not reply.producer_ready, "who comes back waits"
    box.advance(DAY)
    assert client.inbox == []
    position = topic_of(box).ledger.last_confirmed
    consume(box, [(position.ledger_id, 0)])
    (ready,) = (body for name, body in frames(client) if name == "producer_success")
    assert ready.producer_ready
    assert topic_of(box).backlog.waiting_producers(box.now) == []
    client.send(100, b"x")
    assert client.take("send_receipt").sequence_id == 100


@pytest.mark.parametrize("follows", [HOLD, EXCEPTION])
def test_a_backlog_of_exactly_the_limit_is_full_and_one_byte_less_is_not(follows: str) -> None:
    box = Box(**LASTING)
    subscribed(box, "s")
    publish(box, 3, 100)
    size = used(box)
    set_policy(box, backlog_quota_map=by_size(size + 1, follows))
    assert topic_of(box).backlog.blocked is None
    leave(producing(box))
    set_policy(box, backlog_quota_map=by_size(size, follows))
    assert topic_of(box).backlog.blocked is not None
    assert box.client().producer(1).error == (HELD_ERROR if follows == HOLD else EXCEPTION_ERROR)


def test_the_entry_that_reaches_exactly_the_limit_is_stored_and_closes_its_producer() -> None:
    box = Box(**LASTING)
    subscribed(box, "s")
    publish(box, 3, 100)
    set_policy(box, backlog_quota_map=by_size(used(box) // 3 * 4, HOLD))
    client = producing(box)
    client.send(0, b"x" * 100)
    assert [name for name, _ in frames(client)] == ["send_receipt", "close_producer"]


def test_a_producer_is_refused_when_entries_that_are_not_durable_yet_reach_exactly_the_limit() -> None:
    box = Box(**LASTING)
    subscribed(box, "s")
    publish(box, 3, 100)
    set_policy(box, backlog_quota_map=by_size(used(box) // 3 * 4, HOLD))
    client = producing(box)
    box.auto = False
    client.send(0, b"x" * 100)
    newcomer = box.client()
    newcomer.ask("producer", topic=TOPIC, producer_id=1, request_id=5)
    box.auto = True
    box.turn()
    assert newcomer.take("error").error == HELD_ERROR


def test_messages_on_their_way_have_their_receipts_before_the_producer_is_closed() -> None:
    box = Box(**LASTING)
    subscribed(box, "s")
    set_policy(box, backlog_quota_map=by_size(500, HOLD))
    client = producing(box)
    box.auto = False
    for number in range(10):
        client.send(number, b"x" * 100)
    box.auto = True
    box.turn()
    answers = [(name, getattr(body, "sequence_id", None)) for name, body in frames(client)]
    stored = topic_of(box).ledger.confirmed_messages
    assert answers == [("send_receipt", number) for number in range(stored)] + [("close_producer", None)]
    assert 3 <= stored <= 5


def test_a_producer_is_refused_with_an_error_where_the_policy_says_so() -> None:
    box = Box(**LASTING)
    subscribed(box, "s")
    set_policy(box, backlog_quota_map=by_size(200, EXCEPTION))
    client = producing(box)
    client.send(0, b"x" * 300)
    assert [name for name, _ in frames(client)] == ["send_receipt", "close_producer"]
    for again in (0, 1):
        assert client.producer(1, producer_name="p", epoch=again).error == EXCEPTION_ERROR
    consume(box, [topic_of(box).ledger.last_confirmed])
    producing(box)


@pytest.mark.parametrize("freed_by", ["unsubscribe", "clear", "policy", "ttl", "delete"])
def test_held_producers_go_on_whatever_it_is_that_makes_the_backlog_smaller(freed_by: str) -> None:
    box = Box(**LASTING)
    subscribed(box, "s")
    set_policy(box, backlog_quota_map=by_size(200, HOLD))
    client = producing(box)
    client.send(0, b"x" * 300)
    client.inbox.clear()
    assert not client.producer(1, producer_name="p", epoch=1).producer_ready
    subscription = topic_of(box).subscriptions["s"]
    if freed_by == "unsubscribe":
        subscription.close(box.now)
        topic_of(box).remove_subscription(subscription, box.now)
    elif freed_by == "clear":
        subscription.clearing.clear(lambda now: None, box.now)
    elif freed_by == "policy":
        set_policy(box, backlog_quota_map=None)
    elif freed_by == "ttl":
        set_policy(box, message_ttl_in_seconds=5)
        assert client.inbox == []
        box.advance(5.1)
    else:
        box.broker.topics.delete(topic_of(box).name, box.now, force=True)
    box.turn()
    (answer,) = (body for name, body in frames(client))
    assert answer.DESCRIPTOR.name == ("CommandError" if freed_by == "delete" else "CommandProducerSuccess")


def test_a_change_from_hold_to_exception_refuses_those_that_wait() -> None:
    box = Box(**LASTING)
    subscribed(box, "s")
    set_policy(box, backlog_quota_map=by_size(200, HOLD))
    client = producing(box)
    client.send(0, b"x" * 300)
    client.inbox.clear()
    assert not client.producer(1, producer_name="p", epoch=1).producer_ready
    set_policy(box, backlog_quota_map=by_size(200, EXCEPTION))
    assert [body.error for name, body in frames(client)] == [EXCEPTION_ERROR]


@pytest.mark.parametrize("encrypts", [True, False])
def test_producers_that_waited_come_in_as_far_as_other_policies_let_them(*, encrypts: bool) -> None:
    box = Box(**LASTING)
    subscribed(box, "s")
    set_policy(box, backlog_quota_map=by_size(200, HOLD))
    producing(box).send(0, b"x" * 300)
    waiting = [box.client(), box.client()]
    for number, each in enumerate(waiting):
        assert not each.producer(1, producer_name=f"p{number}", epoch=1, encrypted=encrypts).producer_ready
    set_policy(box, max_producers_per_topic=1, encryption_required=True)
    consume(box, [topic_of(box).ledger.last_confirmed])
    first, second = ([(name, body) for name, body in frames(each)] for each in waiting)
    if encrypts:
        assert [(name, body.producer_ready) for name, body in first] == [("producer_success", True)]
        assert [(name, body.error) for name, body in second] == [("error", BUSY)]
    else:
        assert [(name, body.error) for name, body in (*first, *second)] == [("error", NOT_ALLOWED)] * 2
    assert topic_of(box).backlog.waiting == 0
    for each in waiting:
        leave(each)
    producing(box, encrypted=True)


def test_a_held_producer_that_goes_is_forgotten() -> None:
    box = Box(**LASTING)
    subscribed(box, "s")
    set_policy(box, backlog_quota_map=by_size(200, HOLD))
    client, closing = producing(box), box.client()
    client.send(0, b"x" * 300)
    for each in (client, closing):
        each.inbox.clear()
        assert not each.producer(1, producer_name="p" + str(id(each)), epoch=1).producer_ready
    assert topic_of(box).backlog.waiting == 2
    leave(client)
    assert closing.request("close_producer", producer_id=1) is not None
    assert closing.take("error").message == "The producer was closed before it was open"
    assert topic_of(box).backlog.waiting == 0
    consume(box, [topic_of(box).ledger.last_confirmed])
    assert len(topic_of(box).producers) == 0


def test_the_oldest_are_let_go_down_to_nine_tenths_for_those_who_have_them() -> None:
    box = Box(**LASTING)
    subscribed(box, "slow", "slower", "fast")
    first = publish(box, 3, 100)
    consume(box, first[:2], "slow")
    consume(box, first, "fast")
    entry = used(box) // 3
    set_policy(box, backlog_quota_map=by_size(entry * 10, EVICTION))
    client = producing(box)
    for number in range(6):
        client.send(number, b"x" * 100)
    assert backlog(box, "slower") == 9
    client.send(6, b"x" * 100)
    assert (backlog(box, "slower"), backlog(box, "slow"), backlog(box, "fast")) == (9, 8, 7)
    assert used(box) <= entry * 9
    assert "close_producer" not in client.names()
    for number in range(7, 100):
        client.send(number, b"x" * 100)
        assert used(box) < entry * 10
    assert topic_of(box).subscriptions["slower"].clearing.expired == 0, "that is no expiry"
    assert topic_of(box).backlog.evictions > 10
    assert (topic_of(box).backlog.evicting, box.broker.removals.running) == (False, 0)


def test_a_message_larger_than_the_limit_is_evicted_itself() -> None:
    box = Box(**LASTING)
    subscribed(box, "s")
    set_policy(box, backlog_quota_map=by_size(50, EVICTION))
    publish(box, 1, 100)
    assert (backlog(box), used(box)) == (0, 0)
    assert topic_of(box).backlog.evictions == 1


@pytest.mark.parametrize(("kind", "quota"), [("size", by_size(200, HOLD)), ("age", by_age(30, EXCEPTION))])
def test_a_quota_that_is_reached_and_one_that_is_released_are_events(kind: str, quota: dict[str, Any]) -> None:
    box = Box(**LASTING)
    subscribed(box, "s")
    set_policy(box, backlog_quota_map=quota)
    sent = publish(box, 1, 300)
    size = used(box)
    box.advance(30)
    consume(box, sent)
    told = [each for each in box.broker.events.after(0, 100) if each.kind.startswith("quota-")]
    assert [(each.kind, each.subject) for each in told] == [("quota-hit", TOPIC), ("quota-released", TOPIC)]
    limit = 200 if kind == "size" else 30_000
    assert dict(told[0].fields) == {"policy": kind, "limit": limit, "used": size}
    assert dict(told[1].fields) == {"used": 0}
    assert told[0].text.partition(": '")[0] == (
        f"has used {size} B of its backlog quota of 200 B: producers wait"
        if kind == "size"
        else "has messages older than its backlog quota of 30s: producers are rejected"
    )


@pytest.mark.parametrize("follows", [HOLD, EXCEPTION])
@pytest.mark.parametrize("unloaded", [False, True])
def test_producers_are_kept_away_when_the_oldest_message_has_reached_its_age(follows: str, *, unloaded: bool) -> None:
    box = Box(**LASTING)
    subscribed(box, "s")
    set_policy(box, backlog_quota_map=by_age(60, follows))
    client = producing(box)
    client.send(0)
    box.advance(30)
    client.send(1)
    sent = [(each.message_id.ledgerId, each.message_id.entryId) for _, each in frames(client)]
    box.advance(29.9)
    assert client.inbox == []
    if unloaded:
        leave(client)
        unload(box)
        client = box.client()
        box.advance(100)
    else:
        box.advance(0.2)
        assert [name for name, _ in frames(client)] == ["close_producer"]
    reply = client.producer(1, producer_name="p", epoch=1)
    if follows == EXCEPTION:
        assert reply.error == EXCEPTION_ERROR
    else:
        assert not reply.producer_ready
    consume(box, sent[:1])
    if unloaded:
        assert client.inbox == [], "the other one is too old as well"
        consume(box, sent)
    if follows == HOLD:
        assert [body.producer_ready for _, body in frames(client)] == [True]
    else:
        producing(box)


def test_a_message_of_exactly_the_age_is_too_old() -> None:
    box = Box(**LASTING)
    subscribed(box, "s")
    set_policy(box, backlog_quota_map=by_age(30, HOLD))
    publish(box, 1)
    backlog = topic_of(box).backlog
    box.advance(29.5)
    assert backlog.blocked is None
    box.advance(0.5)
    assert backlog.blocked == backlog.age


def test_messages_older_than_nine_tenths_of_the_age_are_let_go_in_memory_or_not() -> None:
    box = Box(**LASTING)
    subscribed(box, "s")
    set_policy(box, backlog_quota_map=by_age(100, EVICTION))
    publish(box, 1)
    box.advance(5)
    publish(box, 1)
    box.advance(20)
    publish(box, 1)
    unload(box)
    box.advance(73.9)
    assert not list(box.broker.topics)
    box.advance(0.2)
    assert backlog(box) == 1
    assert topic_of(box).subscriptions["s"].clearing.expired in (0, 2)


def test_both_kinds_hold_at_once() -> None:
    box = Box(**LASTING)
    subscribed(box, "s")
    set_policy(box, backlog_quota_map=by_size(200, HOLD) | by_age(60, HOLD))
    client = producing(box)
    client.send(0, b"x" * 10)
    box.advance(50)
    client.send(1, b"x" * 300)
    sent = [(body.message_id.ledgerId, body.message_id.entryId) for name, body in frames(client) if "receipt" in name]
    assert not client.producer(1, producer_name="p", epoch=1).producer_ready
    box.advance(11)
    set_policy(box, backlog_quota_map=by_size(10_000, HOLD) | by_age(60, HOLD))
    assert client.inbox == [], "one limit is far away now, the other is reached"
    consume(box, sent[:1])
    assert [body.producer_ready for _, body in frames(client)] == [True]


def test_without_a_durable_subscription_there_is_no_backlog() -> None:
    box = Box(**LASTING)
    set_policy(box, backlog_quota_map=by_size(1, HOLD) | by_age(1, HOLD))
    reader = box.client()
    reader.subscribe("r", durable=False, initialPosition=1)
    publish(box, 20, 100)
    box.advance(100)
    publish(box, 20, 100)
    subscribed(box, "s")
    assert box.client().producer(1).error == HELD_ERROR


def test_quotas_that_are_not_enforced() -> None:
    box = Box(backlogQuotaCheckEnabled=False, backlogQuotaDefaultLimitBytes=0, **LASTING)
    subscribed(box, "s")
    publish(box, 20, 100)
    box.broker.configuration.update("backlogQuotaCheckEnabled", "true", box.now)
    assert box.client().producer(1).error == HELD_ERROR


@pytest.mark.parametrize("unloaded", [False, True])
def test_what_is_not_due_does_not_count_where_the_quota_says_so_until_it_is(*, unloaded: bool) -> None:
    box = Box(**LASTING)
    subscribed(box, "s")
    quota = by_size(1000, HOLD, excludeDelayed=True)
    if not unloaded:
        set_policy(box, backlog_quota_map=quota)
    client = producing(box)
    for number in range(10):
        client.send(number, b"x" * 200, deliver_at_time=box.wall + 3_600_000)
    assert [name for name, _ in frames(client)] == ["send_receipt"] * 10
    if unloaded:
        leave(client)
        unload(box)
        set_policy(box, backlog_quota_map=by_size(1000, HOLD))
        assert box.client().producer(1).error == HELD_ERROR, "all of it counts"
        unload(box)
        set_policy(box, backlog_quota_map=quota)
        client = producing(box)
    client.send(10, b"x" * 200)
    assert used(box) < 300
    client.inbox.clear()
    box.advance(3590)
    assert topic_of(box).backlog.blocked is None
    box.advance(11)
    assert topic_of(box).backlog.blocked is not None, "now they are due"
    assert used(box) > 1000
    assert "close_producer" in client.names()
    set_policy(box, backlog_quota_map=by_size(10_000, HOLD))
    assert topic_of(box).backlog.blocked is None


@pytest.mark.parametrize("later", [0, 9])
@pytest.mark.parametrize("limited_before", [False, True])
def test_delayed_messages_that_make_exactly_the_limit_fill_the_quota_when_the_last_is_due(
    later: int, *, limited_before: bool
) -> None:
    box = Box(**LASTING)
    subscribed(box, "s")
    set_policy(box, backlog_quota_map=by_size(10_000, HOLD, excludeDelayed=True))
    client = producing(box)
    backlog = topic_of(box).backlog
    client.send(0, b"x" * 200, deliver_at_time=box.wall + 10_000)
    entry = backlog.not_due
    if not limited_before:
        client.send(1, b"x" * 200, deliver_at_time=box.wall + 10_000 + later * 1000)
    set_policy(box, backlog_quota_map=by_size(2 * entry, HOLD, excludeDelayed=True))
    if limited_before:
        client.send(1, b"x" * 200, deliver_at_time=box.wall + 10_000 + later * 1000)
    assert (backlog.used, backlog.not_due) == (0, 2 * entry)
    box.advance(9.5 + later)
    assert backlog.blocked is None
    box.advance(1)
    assert topic_of(box).backlog is backlog
    assert (backlog.used, backlog.not_due) == (2 * entry, 0)
    assert topic_of(box).backlog.blocked is backlog.size


def test_a_refused_producer_is_remembered_until_it_is_admitted() -> None:
    box = Box(**LASTING)
    subscribed(box, "s")
    set_policy(box, backlog_quota_map=by_size(200, HOLD))
    sent = publish(box, 1, 300)
    client = box.client()
    assert client.producer(7, producer_name="late").error == HELD_ERROR
    box.advance(5)
    assert client.producer(7, producer_name="late").error == HELD_ERROR
    (waiting,) = topic_of(box).backlog.waiting_producers(box.now)
    assert (waiting.name, waiting.last - waiting.since) == ("late", 5000)
    last = [each for each in box.broker.events.after(0, 100) if each.kind == "quota-hit"]
    assert "late" in last[-1].text or len(last) == 1  # events of one topic are limited
    consume(box, sent)
    assert client.producer(7, producer_name="late").DESCRIPTOR.name == "CommandProducerSuccess"
    assert topic_of(box).backlog.waiting_producers(box.now) == []
