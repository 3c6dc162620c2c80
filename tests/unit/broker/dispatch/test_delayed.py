"""Delayed delivery: ``broker.dispatch.delayed``, its entry source, topic and policies."""

from typing import Any

import pytest

from pulsarbox.broker.dispatch.blocked_reason import Reason
from pulsarbox.names import parse_topic
from pulsarbox.protocol.PulsarApi_pb2 import CommandSubscribe, MessageIdData, NotAllowedError
from pulsarbox.storage.delayed_index import ROW_BYTES
from tests.unit.broker.delays_playbook import (
    KEY_SHARED,
    SHARED,
    Sender,
    box_of,
    consumer,
    crowded_out,
    killed,
    numbers,
    small_chunks,
    sub_of,
    topic_of,
)
from tests.unit.broker.playbook import TOPIC

HOLDING_BACK = pytest.mark.parametrize("kind", [SHARED, KEY_SHARED], ids=["shared", "key-shared"])
DAY = 86_400_000


@pytest.fixture(autouse=True)
def _small_chunks(monkeypatch: pytest.MonkeyPatch) -> None:
    small_chunks(monkeypatch)


# Delivery times


@HOLDING_BACK
def test_a_message_comes_when_it_is_due_and_others_do_not_wait_for_it(kind: int) -> None:
    box = box_of()
    client, sender = consumer(box, kind), Sender(box)
    sender.send(10_000)
    sender.send()
    assert numbers(client) == [1]
    box.advance(9.999)
    assert numbers(client) == []
    box.advance(0.001)
    assert numbers(client) == [0]
    box.advance(100)
    assert numbers(client) == []


@pytest.mark.parametrize("after", [-DAY, 0, 1000])
def test_what_is_past_or_within_a_tick_comes_at_once(after: int) -> None:
    box = box_of()
    client = consumer(box)
    Sender(box).send(after)
    assert numbers(client) == [0]


def test_strictly_nothing_comes_early() -> None:
    box = box_of(isDelayedDeliveryDeliverAtTimeStrict=True)
    client, sender = consumer(box), Sender(box)
    for after in (500, 1, 0, 1500):
        sender.send(after)
    assert numbers(client) == [2]
    box.advance(0.010)
    assert numbers(client) == [1]
    box.advance(0.489)
    assert numbers(client) == []
    box.advance(0.011)
    assert numbers(client) == [0]
    box.advance(1.010)
    assert numbers(client) == [3]


def test_those_of_one_tick_come_together_and_never_more_than_a_tick_early() -> None:
    box = box_of(delayedDeliveryTickTimeMillis=200)
    client, sender = consumer(box), Sender(box)
    for after in (1000, 1200, 1201, 1400):
        sender.send(after)
    box.advance(0.999)
    assert numbers(client) == []
    box.advance(0.001)
    assert numbers(client) == [0, 1]
    box.advance(0.200)
    assert numbers(client) == []
    box.advance(0.001)
    assert numbers(client) == [2, 3]


@pytest.mark.parametrize("kind", [CommandSubscribe.Exclusive, CommandSubscribe.Failover])
def test_where_one_consumer_gets_everything_delays_do_not_count(kind: int) -> None:
    box = box_of(activeConsumerFailoverDelayTimeMillis=0)
    client, sender = consumer(box, kind), Sender(box)
    client.inbox.clear()
    sender.send(DAY)
    sender.send()
    assert numbers(client) == [0, 1]
    assert sub_of(box).delayed(box.now) == 0


def test_a_timer_is_all_that_waits() -> None:
    box = box_of()
    consumer(box)
    sender = Sender(box)
    for after in (60_000, 60_005, 30_000):
        sender.send(after)
    box.advance(10)
    wall = box.broker.next_timer().wall
    assert wall == box.wall - 10_000 + 30_000


def test_the_virtual_clock_makes_them_due() -> None:
    box = box_of(brokerClock="virtual")
    client, sender = consumer(box), Sender(box)
    sender.send(10 * DAY)
    box.broker.advance_clock(10 * DAY - 1001, box.now)
    box.turn()
    assert numbers(client) == []
    box.broker.advance_clock(1001, box.now)
    box.turn()
    assert numbers(client) == [0]
    sender.send(5000)  # relative to the client's own clock, which has no offset
    assert numbers(client) == []
    box.broker.advance_clock(5000, box.now)
    box.turn()
    assert numbers(client) == [1]


# Subscription types


def test_each_subscription_has_its_own_and_a_new_one_sees_what_is_not_due() -> None:
    box = box_of()
    first, sender = consumer(box, name="first"), Sender(box)
    for after in (None, 5000, None, 9000):
        sender.send(after)
    box.advance(6)
    assert numbers(first) == [0, 2, 1]
    late = consumer(box, name="late")
    assert numbers(late) == [0, 1, 2]
    box.advance(4)
    assert numbers(first) == numbers(late) == [3]


def test_without_permits_they_wait_and_come_in_order_of_time() -> None:
    box = box_of()
    client, sender = consumer(box, permits=0), Sender(box)
    client.flow(1)
    for after in (9000, 7000, 8000):
        sender.send(after)
    box.advance(20)
    assert numbers(client) == [1]
    client.flow(1)
    assert len(numbers(client)) == 1
    client.flow(5)
    assert len(numbers(client)) == 1


def test_what_is_due_and_given_back_comes_again_at_once() -> None:
    box = box_of()
    client, sender = consumer(box), Sender(box)
    sender.send(5000)
    box.advance(5)
    (data,) = client.inbox
    at = client.take("message").message_id
    client.ask("redeliverUnacknowledgedMessages", consumer_id=1, message_ids=[at])
    again = client.take("message")
    assert again.redelivery_count == 1
    assert data[0]


def test_what_a_lost_consumer_held_goes_to_the_next() -> None:
    box = box_of()
    client, sender = consumer(box), Sender(box)
    sender.send(5000)
    sender.send(9000)
    box.advance(5)
    assert numbers(client) == [0]
    client.cnx.closed(box.now)
    other = consumer(box)
    assert numbers(other) == [0]
    box.advance(5)
    assert numbers(other) == [1]


def test_acknowledged_ones_do_not_come() -> None:
    box = box_of()
    reader, client, sender = consumer(box, CommandSubscribe.Exclusive, "x"), consumer(box), Sender(box)
    for _ in range(4):
        sender.send(5000)
    at = [client_id.message_id for client_id in (reader.take("message") for _ in range(4))]
    client.ack(at[0], at[2])
    box.advance(5)
    assert numbers(client) == [1, 3]


def test_a_cleared_backlog_is_gone_with_its_delays() -> None:
    box = box_of()
    client, sender = consumer(box), Sender(box)
    for _ in range(20):
        sender.send(5000)
    assert sub_of(box).delayed(box.now) == 20
    sub_of(box).clearing.clear(lambda now: None, box.now)
    box.turn()
    assert sub_of(box).delayed(box.now) == 0
    sender.send(6000)
    box.advance(7)
    assert numbers(client) == [20]


def test_a_seek_starts_again_and_what_has_become_due_comes_at_once() -> None:
    box = box_of()
    client, sender = consumer(box), Sender(box)
    sender.send(5000)
    sender.send(50_000)
    box.advance(5)
    client.ack(client.take("message").message_id)
    client.request("seek", consumer_id=1, message_id=MessageIdData(ledgerId=0, entryId=0))
    client = consumer(box)
    assert numbers(client) == [0]
    box.advance(50)
    assert numbers(client) == [1]


def test_what_is_too_old_goes_delayed_or_not() -> None:
    box = box_of(ttlDurationDefaultInSeconds=10)
    client, sender = consumer(box), Sender(box)
    sender.send(60_000)
    sender.send(5000)
    box.advance(5)
    assert numbers(client) == [1]
    box.advance(10)
    assert (sub_of(box).delayed(box.now), sub_of(box).cursor.backlog_entries) == (0, 0)
    box.advance(60)
    assert numbers(client) == []


def test_a_truncated_topic_has_nothing_to_hold_back() -> None:
    box = box_of()
    client, sender = consumer(box), Sender(box)
    for _ in range(20):
        sender.send(5000)
    topic_of(box).truncate(lambda now: None, box.now)
    box.turn()
    assert (len(topic_of(box).stored.delays), sub_of(box).delayed(box.now)) == (0, 0)
    sender.send(6000)
    box.advance(10)
    assert numbers(client) == [20]


def test_many_at_one_instant_come_a_read_at_a_time() -> None:
    box = box_of(dispatcherMaxReadBatchSize=4)
    client, sender = consumer(box, permits=10), Sender(box)
    for _ in range(50):
        sender.send(5000)
    delayed = sub_of(box).source.delayed
    assert delayed is not None
    box.advance(5)
    assert numbers(client) == list(range(10))
    assert len(delayed._due) <= 4
    for _ in range(4):
        client.flow(10)
        box.advance(0)
    assert numbers(client) == list(range(10, 50))


# Storage


@HOLDING_BACK
@pytest.mark.parametrize("restart", [False, True], ids=["unload", "kill"])
def test_nothing_is_forgotten_when_the_topic_goes_and_comes(kind: int, restart: bool) -> None:
    box = box_of(brokerUnloadIdleTopicsAfterSeconds=1, managedLedgerMaxEntriesPerLedger=11)
    client, sender = consumer(box, kind), Sender(box)
    for after in (5000, None, 20_000, 9000, *[30_000] * 20, None, 8000):
        sender.send(after)
    assert numbers(client) == [1, 24]
    if restart:
        box = killed(box)
    else:
        client.cnx.closed(box.now)
        sender.client.cnx.closed(box.now)
        box.advance(3)
        assert not list(box.broker.topics)
    again = consumer(box, kind)
    assert sorted(numbers(again)) == [1, 24]
    assert sub_of(box).delayed(box.now) == 24
    box.advance(10)
    assert sorted(numbers(again)) == [0, 3, 25]
    box.advance(40)
    assert sorted(numbers(again)) == [2, *range(4, 24)]


def test_what_is_passed_by_is_not_read() -> None:
    box = box_of(managedLedgerMaxEntriesPerLedger=100)
    client, sender = consumer(box), Sender(box)
    for i in range(60):
        sender.send(DAY if i != 30 else None)
    sender.send()
    assert numbers(client) == [30, 60]
    client.cnx.closed(box.now)
    crowded_out(box)
    box.auto = False
    consumer(box)
    wanted: list[int] = []
    for _ in range(40):
        box.advance(0.001)
        for request in box.broker.take_reads():
            wanted.append(request.first)
            entries = box.engine.read(request)
            box.broker.read_done(request.token, entries, box.now)
    assert wanted[0] == 30
    assert set(wanted) <= {30, 31, 60}


def test_a_batch_that_is_not_stored_leaves_nothing() -> None:
    box = box_of()
    client, sender = consumer(box), Sender(box)
    sender.send(5000)
    box.auto = False
    sender.send(6000)
    box.commit(OSError("no"))
    box.advance(1)
    box.auto = True
    box.turn()
    assert sub_of(box).delayed(box.now) == 1
    sender = Sender(box, sent=7)
    sender.send()
    assert numbers(client) == [7]
    box.advance(10)
    assert numbers(client) == [0]


def test_rows_go_with_their_ledger_and_with_their_topic() -> None:
    box = box_of(managedLedgerMaxEntriesPerLedger=5)
    client, sender = consumer(box), Sender(box)
    for _ in range(7):
        sender.send(5000)
    box.broker.commits.ask_checkpoint()
    box.turn()

    def rows() -> list[bytes]:
        return [key for key in box.disk.rows if key.startswith((b"delays/", b"delayed/"))]

    assert len(rows()) == 4
    assert topic_of(box).stored.delays.size == 7 * ROW_BYTES
    box.advance(6)
    while client.inbox:
        client.ack(client.take("message").message_id)
    box.advance(10)
    assert len(rows()) == 2
    topic_of(box).delete(box.now)
    box.broker.commits.ask_checkpoint()
    box.turn()
    assert rows() == []


def test_entries_of_a_version_that_kept_no_table_are_held_back_too() -> None:
    box = box_of()
    sender = Sender(box)
    for after in (None, 5000, None, 9000):
        sender.send(after)
    box.broker.commits.ask_checkpoint()
    box.turn()
    for key in [key for key in box.disk.rows if key.startswith((b"delays/", b"delayed/"))]:
        del box.disk.rows[key]
    box = killed(box)
    assert len(topic_of(box).stored.delays) == 0
    client = consumer(box)
    assert numbers(client) == [0, 2]
    box.advance(10)
    assert numbers(client) == [1, 3]


@pytest.mark.parametrize("row", [None, b"", b"cut off", bytes(10)])
def test_a_damaged_table_is_made_again_from_the_entries(row: bytes | None) -> None:
    box = box_of()
    sender = Sender(box)
    for after in (None, 5000, None, 9000, *[9000] * 8):
        sender.send(after)
    box.broker.commits.ask_checkpoint()
    box.turn()
    for key in [key for key in box.disk.rows if key.startswith(b"delayed/")]:
        if row is None:
            del box.disk.rows[key]
        else:
            box.disk.rows[key] = row
    box = killed(box)
    client = consumer(box)
    assert numbers(client) == [0, 2]
    box.advance(5)
    assert numbers(client) == [1]
    box.advance(5)
    assert sorted(numbers(client)) == list(range(3, 12))


# Policies


def test_turned_off_they_come_at_once_and_turned_on_again_they_do_not() -> None:
    box = box_of()
    client, sender = consumer(box), Sender(box)
    for _ in range(30):
        sender.send(DAY)
    name = parse_topic(TOPIC)
    box.broker.policies.set_topic(name, "delayedDelivery", policy(active=False), box.now)
    box.advance(0.1)
    assert numbers(client) == list(range(30))
    sender.send(DAY)
    assert numbers(client) == [30]
    box.broker.policies.set_topic(name, "delayedDelivery", None, box.now)
    sender.send(2 * DAY)
    sender.send(5000)
    assert numbers(client) == []
    box.advance(5)
    assert numbers(client) == [32]


def policy(**changes: Any) -> dict[str, Any]:
    return {"active": True, "tickTime": 1000, "maxDeliveryDelayInMillis": 0} | changes


def test_another_tick_holds_at_once() -> None:
    box = box_of()
    client, sender = consumer(box), Sender(box)
    sender.send(9000)
    box.broker.policies.set_topic(parse_topic(TOPIC), "delayedDelivery", policy(tickTime=9000), box.now)
    box.advance(0)
    assert numbers(client) == [0]


def test_a_longer_delay_than_is_allowed_is_refused() -> None:
    box = box_of(delayedDeliveryMaxDelayInMillis=10_000)
    client, sender = consumer(box), Sender(box)
    assert sender.send(10_000) == 0
    sender.client.send(1, b"1", deliver_at_time=box.wall + 10_001)
    refusal = sender.client.take("send_error")
    assert (refusal.error, refusal.sequence_id) == (NotAllowedError, 1)
    assert refusal.message == "Exceeds max allowed delivery delay of 10000 milliseconds"
    sender.sent = 2
    sender.send(DAY, publish_time=box.wall + DAY)
    box.advance(10)
    assert numbers(client) == [0]
    box.advance(DAY / 1000)
    assert numbers(client) == [2]


# Statistics


def test_why_nothing_is_sent_says_when_it_goes_on() -> None:
    box = box_of()
    client, sender = consumer(box), Sender(box)
    sender.send(DAY)
    sender.send(5000)
    why = sub_of(box).blocked_reason()
    assert (why.reason, why.until) == (Reason.DELAYED, box.wall + 5000)
    assert "the next is due at 2023-11-14 22:13:25.000 UTC" in why.text
    box.advance(6)
    assert numbers(client) == [1]
    assert sub_of(box).blocked_reason().until == box.wall - 6000 + DAY


def test_the_count_is_of_what_is_not_due_with_or_without_a_consumer() -> None:
    box = box_of()
    client, sender = consumer(box), Sender(box)
    for after in (5000, None, 9000, 9000, None, 20_000):
        sender.send(after)
    assert sub_of(box).delayed(box.now) == 4
    client.cnx.closed(box.now)
    assert sub_of(box).delayed(box.now) == 4
    box.advance(6)
    assert sub_of(box).delayed(box.now) == 3
    consumer(box)
    assert sub_of(box).delayed(box.now) == 3
    box.advance(5)
    assert sub_of(box).delayed(box.now) == 1
