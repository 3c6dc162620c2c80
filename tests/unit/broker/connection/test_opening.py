"""Producers and consumers that close or lose their connection while PRODUCER or SUBSCRIBE is pending."""

from collections.abc import Callable
from typing import Any, NamedTuple

import pytest

from pulsarbox.clock import Now
from pulsarbox.names import parse_topic
from pulsarbox.protocol.PulsarApi_pb2 import CommandAck, CommandSubscribe, MessageIdData, ProducerAccessMode
from pulsarbox.protocol.schema.steps import completed
from tests.unit.broker.playbook import TOPIC, Box, Client
from tests.unit.broker.policies.kept import frames, leave, set_policy, subscribed, topic_of, unload
from tests.unit.broker.policies.kinds.test_backlog_quota import HOLD, LASTING, by_age, by_size, producing
from tests.unit.broker.roles import client_of, guarded_box
from tests.unit.broker.test_plugins import HASHED, Beside, Hashed, by_number
from tests.unit.broker.topic.test_topic_schemas import NEW, OLD, with_old

SERVICE_NOT_READY = 6
ROLLBACK: dict[str, Any] = {"start_message_rollback_duration_sec": 60}


class Pending(NamedTuple):
    """A box with a command that stays pending until ``finish``."""

    box: Box
    command: str
    fields: dict[str, Any]
    finish: Callable[[], Any]
    proceed: Callable[[], Any] = lambda: None
    """Advances the pending command to the state under test."""

    def ask(self, client: Client, request_id: int) -> None:
        """Send the command."""
        names = {} if self.command == "producer" else {"subscription": "s", "subType": CommandSubscribe.Exclusive}
        key = "producer_id" if self.command == "producer" else "consumer_id"
        client.ask(self.command, **{"topic": TOPIC, key: 1, "request_id": request_id} | names | self.fields)

    def close(self, client: Client, request_id: int) -> None:
        """Close the producer or consumer."""
        what = "producer" if self.command == "producer" else "consumer"
        client.ask(f"close_{what}", **{f"{what}_id": 1, "request_id": request_id})

    def pending(self) -> Client:
        """Return a client whose command, request 9, has no final response yet."""
        client = self.box.client()
        self.ask(client, 9)
        self.proceed()
        assert not [name for name, body in finals(client) if body.request_id == 9]
        return client


def finals(client: Client) -> list[tuple[str, Any]]:
    """Consume all received frames and return the final responses to requests."""
    return [
        (name, body)
        for name, body in frames(client)
        if name in ("success", "error") or (name == "producer_success" and body.producer_ready)
    ]


def attached(box: Box) -> list[Any]:
    """Return the producers, queued producers, consumers and non-durable subscriptions of loaded topics."""
    found: list[Any] = []
    for topic in box.broker.topics:
        found += [*topic.producers, *(claim.producer for claim in topic.producers.claims)]
        backlog = getattr(topic, "backlog", None)
        found += ["held"] * (backlog.waiting if backlog is not None else 0)
        for subscription in topic.all_subscriptions():
            found += subscription.consumers
            found += [] if subscription.durable else [subscription.name]
    return found


def started(box: Box, command: str, /, **fields: Any) -> Pending:
    """Suspend commits and reads until ``finish``."""
    box.auto = False

    def finish() -> None:
        box.auto = True
        box.turn()

    return Pending(box, command, fields, finish)


def stored(count: int = 4) -> tuple[Box, list[tuple[int, int]]]:
    """Build a box whose messages must be read from its store."""
    box = Box(**LASTING)
    sent = box.client().publish(count)
    return box.restart(), sent


def with_topic(**settings: Any) -> Box:
    box = Box(**LASTING, **settings)
    leave_behind(box)
    return box


def leave_behind(box: Box) -> None:
    """Create the topic."""
    client = box.client()
    client.producer(1)
    leave(client)


# Causes of a pending PRODUCER


def commit_of_topic() -> Pending:
    return started(Box(**LASTING), "producer")


def commit_of_initial_subscription() -> Pending:
    return started(with_topic(), "producer", initial_subscription_name="s")


def commit_of_epoch() -> Pending:
    return started(with_topic(), "producer", producer_access_mode=ProducerAccessMode.Exclusive)


def commit_of_sequence_ids() -> Pending:
    box = with_topic(brokerDeduplicationEnabled=True)
    before = box.client()
    before.producer(1, producer_name="p")
    pending = started(box, "producer", producer_name="p")
    before.send(5, producer_name="p")
    leave(before)
    return pending


def producer_schema() -> Pending:
    box = with_old(**LASTING)
    return Pending(box, "producer", {"schema": NEW}, lambda: box.advance(20))


def turn(topic: str = TOPIC) -> Pending:
    box = Box(**LASTING)
    holder = box.client()
    holder.producer(7, topic, producer_access_mode=ProducerAccessMode.Exclusive)
    fields = {"producer_access_mode": ProducerAccessMode.WaitForExclusive, "topic": topic}
    return Pending(box, "producer", fields, lambda: leave(holder))


def turn_on_non_persistent() -> Pending:
    return turn(TOPIC.replace("persistent", "non-persistent"))


def producer_name() -> Pending:
    box = Box(**LASTING)
    box.client().producer(7, producer_name="n")  # the owner never responds again
    return Pending(box, "producer", {"producer_name": "n"}, lambda: box.advance(6))


def quota_by_size() -> Pending:
    box = Box(**LASTING)
    subscribed(box, "s")
    set_policy(box, backlog_quota_map=by_size(200, HOLD))
    full = producing(box)
    full.send(0, b"x" * 300)
    leave(full)
    return Pending(box, "producer", {"epoch": 1}, lambda: set_policy(box, backlog_quota_map=None))


def quota_by_age() -> Pending:
    box = Box(**LASTING)
    subscribed(box, "s")
    set_policy(box, backlog_quota_map=by_age(1000, HOLD))
    leaving = producing(box)
    leaving.send(0)
    leave(leaving)
    unload(box)
    return started(box, "producer", epoch=1)


# Causes of a pending SUBSCRIBE


def commit_of_subscription() -> Pending:
    return started(with_topic(), "subscribe")


def commit_of_topic_of_reader() -> Pending:
    return started(Box(**LASTING), "subscribe", durable=False)


def commit_of_failover() -> Pending:
    return started(with_topic(), "subscribe", subType=CommandSubscribe.Failover)


def consumer_schema() -> Pending:
    box = with_old(**LASTING)
    leave_behind(box)
    return Pending(box, "subscribe", {"schema": NEW}, lambda: box.advance(20))


def plugin() -> Pending:
    beside = Beside(**LASTING)
    return Pending(beside.box, "subscribe", HASHED, lambda: beside.bring(Hashed(by_number)))


def start_of_reader() -> Pending:
    box, sent = stored()
    start = MessageIdData(ledgerId=sent[2][0], entryId=sent[2][1])
    return started(box, "subscribe", durable=False, start_message_id=start)


def search_of_rollback(**fields: Any) -> Pending:
    box, _ = stored()
    return started(box, "subscribe", **ROLLBACK, **fields)


def search_of_rollback_of_reader() -> Pending:
    return search_of_rollback(durable=False)


def reset_of_rollback(**fields: Any) -> Pending:
    """Two messages are too old. The search is complete, and the position before the third message is being read."""
    box = Box(**LASTING)
    client = box.client()
    client.publish(2)
    box.advance(100)
    client.publish(2)
    box = Box(box.disk, wall=box.wall, **LASTING)

    def proceed() -> None:
        for _ in range(5):
            found = [each for topic in box.broker.topics for each in topic.all_subscriptions()]
            if any(getattr(each, "fenced", False) for each in found):
                return
            box.read()
        pytest.fail("the reset has not begun")

    return started(box, "subscribe", **ROLLBACK, **fields)._replace(proceed=proceed)


def reset_of_rollback_of_reader() -> Pending:
    return reset_of_rollback(durable=False)


def commit_of_rollback() -> Pending:
    pending = search_of_rollback()

    def proceed() -> None:
        while pending.box.read():
            pass

    return pending._replace(proceed=proceed)


REASONS: list[Callable[[], Pending]] = [
    commit_of_topic, commit_of_initial_subscription, commit_of_epoch, commit_of_sequence_ids, producer_schema, turn,
    turn_on_non_persistent, producer_name, quota_by_size, quota_by_age, commit_of_subscription,
    commit_of_topic_of_reader, commit_of_failover, consumer_schema, plugin, start_of_reader, search_of_rollback,
    search_of_rollback_of_reader, reset_of_rollback, reset_of_rollback_of_reader, commit_of_rollback,
]  # fmt: skip

every_reason = pytest.mark.parametrize("reason", REASONS, ids=lambda each: each.__name__)


@every_reason
def test_a_close_is_answered_after_what_it_closes_and_nothing_stays(reason: Callable[[], Pending]) -> None:
    pending = reason()
    before = attached(pending.box)
    client = pending.pending()
    pending.close(client, 10)
    (refused, error), (closed, success) = finals(client)
    assert (refused, error.request_id, error.error) == ("error", 9, SERVICE_NOT_READY)
    assert "was closed before it was open" in error.message
    assert (closed, success.request_id) == ("success", 10)
    assert attached(pending.box) == before, "at once"
    pending.finish()
    assert finals(client) == [], "nothing is answered twice"
    assert [each for each in attached(pending.box) if each not in before] == []
    assert not client.cnx.opening and not client.closed


@every_reason
def test_a_lost_connection_leaves_nothing(reason: Callable[[], Pending]) -> None:
    pending = reason()
    before = attached(pending.box)
    client = pending.pending()
    client.cnx.closed(pending.box.now)
    assert attached(pending.box) == before, "at once"
    pending.finish()
    assert [each for each in attached(pending.box) if each not in before] == []
    assert client.inbox == [] and not client.outbox.parts, "nothing is sent to a closed connection"


@every_reason
@pytest.mark.parametrize("elsewhere", [False, True], ids=["same connection", "another connection"])
def test_it_can_be_opened_again_at_once(reason: Callable[[], Pending], *, elsewhere: bool) -> None:
    pending = reason()
    first = pending.pending()
    pending.close(first, 10)
    second = pending.box.client() if elsewhere else first
    finals(first)
    pending.ask(second, 11)
    pending.finish()
    ((name, body),) = finals(second)
    assert (name, body.request_id) == ("producer_success" if pending.command == "producer" else "success", 11)
    on = second.cnx.producers if pending.command == "producer" else second.cnx.consumers
    assert (list(on), list(first.cnx.opening), list(second.cnx.opening)) == ([1], [], [])
    pending.close(second, 12)
    assert [(name, body.request_id) for name, body in finals(second)] == [("success", 12)]


def test_a_rollback_that_is_abandoned_leaves_the_cursor_and_later_consumers_alone() -> None:
    """No consumer disconnects, because the position search is incomplete."""
    box, sent = stored()
    acknowledging = box.client()
    acknowledging.subscribe("s")
    acknowledging.ack(*sent)
    leave(acknowledging)
    box = box.restart()
    pending = started(box, "subscribe", **ROLLBACK)
    first = pending.pending()
    pending.close(first, 10)
    later = box.client()
    later.ask("subscribe", topic=TOPIC, subscription="s", subType=CommandSubscribe.Exclusive, consumer_id=1,
              request_id=11)  # fmt: skip
    pending.finish()
    assert [name for name, _ in frames(later)] == ["success"], "no CLOSE_CONSUMER"
    later.flow(10)
    assert later.received() == [], "all are acknowledged"


def test_an_acknowledgement_during_a_reset_that_is_abandoned_counts() -> None:
    pending = reset_of_rollback()
    box = pending.box
    holder = box.client()
    box.auto = True
    holder.subscribe("s")
    holder.flow(10)
    first = holder.received()[0]
    holder.request("close_consumer", consumer_id=1)
    holder.subscribe("s")
    box.auto = False
    client = box.client()
    pending.ask(client, 9)
    box.read()
    # An entry dispatched to an earlier consumer is read before its acknowledgement, after the reset began.
    position = MessageIdData(ledgerId=first[0], entryId=first[1])
    holder.ask("ack", consumer_id=1, ack_type=CommandAck.Individual, request_id=2, message_id=[position])
    box.read()
    subscription = topic_of(box).subscriptions["s"]
    assert subscription.fenced
    pending.close(client, 10)
    pending.finish()
    (answer,) = (body for name, body in frames(holder) if name == "ackResponse")
    assert not answer.HasField("error") and subscription.cursor.is_acked(*first)


def test_a_subscription_that_is_deleted_while_its_rollback_is_searched_for_takes_no_consumer() -> None:
    pending = search_of_rollback()
    client = pending.pending()
    topic = topic_of(pending.box)
    topic.remove_subscription(topic.subscriptions["s"], pending.box.now)
    pending.finish()
    ((name, body),) = finals(client)
    assert (name, body.error) == ("error", SERVICE_NOT_READY)
    assert "was deleted" in body.message and attached(pending.box) == []


@pytest.mark.parametrize("deleted", [False, True])
def test_a_reader_whose_topic_goes_while_its_start_is_read_does_not_keep_it(*, deleted: bool) -> None:
    pending = start_of_reader()
    client = pending.pending()
    topics, name = pending.box.broker.topics, parse_topic(TOPIC)
    unloaded: list[Now] = []
    if deleted:
        topics.delete(name, pending.box.now, force=True)
    else:
        topics.unload(topic_of(pending.box), unloaded.append, pending.box.now)
    pending.finish()
    pending.box.advance(1)
    assert [name for name, _ in finals(client)] == ["error"]
    assert topics.loaded(name) is None and len(unloaded) == (not deleted)


def test_those_of_one_connection_do_not_take_each_others_place_when_it_is_lost() -> None:
    box = with_topic()
    waiting = started(box, "producer")
    client = box.client()
    for number in (1, 2, 3):
        mode = ProducerAccessMode.WaitForExclusive
        client.ask("producer", topic=TOPIC, producer_id=number, request_id=number, producer_access_mode=mode)
    client.cnx.closed(box.now)
    waiting.finish()
    assert topic_of(box).producers.epoch == 0, "given once"
    assert attached(box) == []


def test_a_consumer_whose_permission_goes_meanwhile_leaves_no_subscription_of_a_non_persistent_topic() -> None:
    box = guarded_box(schemaCompatibilityStrategy="BACKWARD")
    topic = "non-persistent://shop/eu/orders"
    completed(box.broker.schemas.putting(parse_topic(topic), OLD, 0))
    client_of(box, "producer").producer(1, topic)
    client = client_of(box, "consumer")
    client.ask("subscribe", topic=topic, schema=NEW, request_id=9, subscription="s", consumer_id=1, subType=0)
    box.broker.permissions.revoke("shop/eu", "consumer", box.now)
    box.advance(20)
    assert [name for name, _ in finals(client)] == ["error"]
    loaded = box.broker.topics.loaded(parse_topic(topic))
    assert loaded is not None and list(loaded.all_subscriptions()) == []


def test_a_producer_whose_permission_goes_while_a_quota_holds_it_is_refused() -> None:
    box = guarded_box(**LASTING)
    topic = "persistent://shop/eu/orders"
    client_of(box, "consumer").subscribe("s", topic=topic)
    box.broker.tenants.set_policy("shop/eu", "backlog_quota_map", by_size(200, HOLD), box.now)
    first, held = client_of(box, "producer"), client_of(box, "producer")
    first.producer(1, topic)
    first.send(0, b"x" * 300)
    assert not held.producer(1, topic, epoch=1).producer_ready
    box.broker.permissions.revoke("shop/eu", "producer", box.now)
    box.broker.tenants.set_policy("shop/eu", "backlog_quota_map", None, box.now)
    box.turn()
    assert [name for name, _ in finals(held)] == ["error"]
    assert not topic_of(box, topic).producers
