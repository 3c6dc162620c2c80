"""An unacknowledged message retains only its own ledger; later ledgers are trimmed without side effects."""

from typing import Any

import pytest

from pulsarbox.broker.topic.maintenance import ledger_lifecycle
from pulsarbox.broker.topic.topic import PersistentTopic
from pulsarbox.names import parse_topic
from pulsarbox.protocol.PulsarApi_pb2 import CommandAck, MessageIdData
from pulsarbox.storage.record import Position
from tests.unit.broker.delays_playbook import SHARED, Sender, box_of, consumer, killed
from tests.unit.broker.playbook import TOPIC, Box, Client

NAME = parse_topic(TOPIC)
At = tuple[int, int]


def topic_of(box: Box) -> PersistentTopic:
    topic = box.broker.topics.find(NAME, box.now)
    assert isinstance(topic, PersistentTopic)
    return topic


def ledgers_of(box: Box) -> list[int]:
    return [int(key.rpartition("/")[2], 16) for key in box.broker.catalog.keys("ledger/")]


def blocked_of(topic: PersistentTopic) -> object:
    return topic.backlog.blocked


def backlog(box: Box, name: str = "s") -> tuple[int, int, int]:
    cursor = topic_of(box).subscriptions[name].cursor
    return cursor.backlog_messages, cursor.backlog_entries, cursor.backlog_bytes


@pytest.fixture
def holed() -> tuple[Box, Client, list[At]]:
    """Build a box with five entries per ledger. Of 21 entries, only the second and the last are unacknowledged."""
    box = box_of(managedLedgerMaxEntriesPerLedger=5)
    client = box.client()
    client.subscribe("s", subType=SHARED)
    client.flow(1000)
    sent = box.client().publish(21)
    client.received()
    client.ack(*[each for each in sent if each not in (sent[1], sent[20])])
    return box, client, sent


def test_only_the_ledger_that_holds_it_stays(holed: tuple[Box, Client, list[At]]) -> None:
    box, _client, sent = holed
    size = topic_of(box).ledger.size
    assert ledgers_of(box) == [sent[0][0], sent[20][0]]
    assert backlog(box)[:2] == (2, 2)
    box = killed(box)
    assert ledgers_of(box) == [sent[0][0], sent[20][0]]
    assert backlog(box)[:2] == (2, 2)
    again = consumer(box)
    assert again.received() == [sent[1], sent[20]]
    again.ack(sent[1])
    assert ledgers_of(box) == [sent[20][0]]
    assert backlog(killed(box))[:2] == (1, 1)
    assert topic_of(box).ledger.size < size


def test_the_ledger_goes_with_the_last_of_its_entries_whoever_acknowledges_it(
    holed: tuple[Box, Client, list[At]],
) -> None:
    box, client, sent = holed
    other = box.client()
    other.subscribe("other")
    other.flow(1000)
    more = box.client().publish(15)
    client.inbox.clear()
    client.ack(sent[20], *more)
    held = ledgers_of(box)
    assert len(held) == 5
    other.inbox.clear()
    other.ack(more[8], ack_type=CommandAck.Cumulative)
    assert ledgers_of(box) == [held[0], *held[3:]]
    assert backlog(box)[:2] == (1, 1)
    assert backlog(box, "other")[:2] == (6, 6)


def test_a_new_subscription_and_a_reader_step_over_what_is_missing(holed: tuple[Box, Client, list[At]]) -> None:
    box, _client, sent = holed
    for durable, name in ((True, "new"), (False, "reader")):
        other = box.client()
        other.subscribe(name, durable=durable)
        assert backlog(box, name)[:2] == (6, 6)
        other.flow(1000)
        assert other.received() == [*sent[:5], sent[20]]
    assert backlog(killed(box), "new")[:2] == (6, 6)


def test_a_reader_that_is_in_the_middle_of_it_goes_on_behind(holed: tuple[Box, Client, list[At]]) -> None:
    box, client, _ = holed
    reader = box.client()
    more = box.client().publish(20)
    client.received()
    reader.subscribe("reader", durable=False, start_message_id=MessageIdData(ledgerId=more[3][0], entryId=more[3][1]))
    reader.flow(2)
    assert reader.received() == more[3:5]
    client.ack(*more[:19])
    reader.ack(more[4])
    reader.flow(100)
    assert reader.received()[-1] == more[-1]
    left = [each for each in more[3:] if each[0] in ledgers_of(box)]
    assert backlog(box, "reader")[1] == len(left) < 5


@pytest.mark.parametrize("place", [7, 14])
def test_a_seek_into_it_goes_to_what_comes_next(holed: tuple[Box, Client, list[At]], place: int) -> None:
    box, client, sent = holed
    ledger_id, entry_id = sent[place]
    client.request("seek", consumer_id=1, message_id=MessageIdData(ledgerId=ledger_id, entryId=entry_id))
    assert backlog(box)[:2] == (1, 1)
    assert consumer(box).received() == [sent[20]]
    assert backlog(killed(box))[:2] == (1, 1)
    assert ledgers_of(box) == [sent[20][0]], "and the first is behind everybody"


def test_a_cumulative_acknowledgement_in_it_still_covers_what_is_before() -> None:
    box = box_of(managedLedgerMaxEntriesPerLedger=5)
    client = box.client()
    client.subscribe("s")
    client.flow(1000)
    sent = box.client().publish(12)
    client.inbox.clear()
    client.ack(*sent[5:10])
    assert len(ledgers_of(box)) == 2
    client.ack(sent[7], ack_type=CommandAck.Cumulative)
    assert backlog(box)[:2] == (2, 2)
    assert backlog(killed(box))[:2] == (2, 2)


def test_expiring_up_to_a_place_in_it_covers_what_is_before(holed: tuple[Box, Client, list[At]]) -> None:
    box, _, sent = holed
    done: list[Any] = []
    clearing = topic_of(box).subscriptions["s"].clearing
    clearing.expire_through(Position(*sent[7]), [], done.append, done.append, box.now)
    box.turn()
    assert len(done) == 1
    assert backlog(box)[:2] == (1, 1)


@pytest.mark.parametrize("latest", [0, 1])
def test_a_reader_that_comes_back_goes_on_behind_what_was_the_last(latest: int) -> None:
    box = box_of(managedLedgerMaxEntriesPerLedger=5)
    client = box.client()
    client.subscribe("s", subType=SHARED)
    client.flow(1000)
    sent = box.client().publish(10)
    client.inbox.clear()
    client.ack(*sent[1:])
    box.advance(11 * 60)
    assert len(ledgers_of(box)) == 2
    start = MessageIdData(ledgerId=sent[9][0], entryId=sent[9][1])
    reader = box.client()
    reader.subscribe("reader", durable=False, start_message_id=start, initialPosition=latest)
    reader.flow(10)
    assert reader.received() == []
    new = box.client().publish(1)
    assert reader.received() == new


def test_a_seek_to_the_beginning_brings_what_is_left(holed: tuple[Box, Client, list[At]]) -> None:
    box, client, sent = holed
    client.request("seek", consumer_id=1, message_publish_time=1)
    assert backlog(box)[:2] == (6, 6)
    assert consumer(box).received() == [*sent[:5], sent[20]]


@pytest.mark.parametrize("restart", [False, True])
def test_the_last_message_is_the_last_that_is_left(restart: bool) -> None:
    box = box_of(managedLedgerMaxEntriesPerLedger=5)
    client = box.client()
    client.subscribe("s", subType=SHARED)
    client.flow(1000)
    sent = box.client().publish(8)
    client.inbox.clear()
    client.ack(*sent[1:])
    box.advance(11 * 60)  # the open ledger is closed, because no subscription needs its entries
    box.advance(1)
    box = killed(box) if restart else box
    assert len(ledgers_of(box)) == 2
    assert topic_of(box).ledger.last_confirmed == Position(sent[4][0], 4)
    assert backlog(box)[:2] == (1, 1)
    latest = box.client()
    latest.subscribe("latest", initialPosition=0)
    assert backlog(box, "latest") == (0, 0, 0)
    last = latest.request("getLastMessageId", consumer_id=1)
    assert (last.last_message_id.ledgerId, last.last_message_id.entryId) == sent[4]
    new = box.client().publish(1)
    latest.flow(10)
    assert latest.received() == new
    assert backlog(box)[:2] == (2, 2)


def test_a_topic_that_nobody_uses_gives_it_back_too() -> None:
    box = box_of(managedLedgerMaxEntriesPerLedger=5, brokerUnloadIdleTopicsAfterSeconds=1)
    client, sender = consumer(box), Sender(box)
    sender.send(10 * 86_400_000)
    for _ in range(12):
        sender.send()
    assert len(client.inbox) == 12
    while client.inbox:
        client.ack(client.take("message").message_id)
    for each in (client, sender.client):
        each.cnx.closed(box.now)
    box.turn()
    box.advance(11 * 60)
    assert not list(box.broker.topics)
    assert len(ledgers_of(box)) == 2, "the one with the message, and an empty one"
    box.advance(10 * 86_400)
    assert len(consumer(box).received()) == 1
    assert backlog(box)[:2] == (1, 1)


def test_a_ledger_with_a_delayed_message_is_closed_while_it_is_small(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(ledger_lifecycle, "DELAYED_BYTES", 1000)
    box = box_of()
    consumer(box)
    sender = Sender(box)
    for _ in range(100):
        sender.send()
    assert len(ledgers_of(box)) == 1
    sender.send(10 * 86_400_000)
    for _ in range(10):
        sender.send()
    assert len(ledgers_of(box)) == 2


def test_a_quota_does_not_count_what_is_missing() -> None:
    box = box_of(managedLedgerMaxEntriesPerLedger=5, backlogQuotaDefaultLimitBytes=1000)
    client = consumer(box)
    sender = Sender(box)
    sender.send(10 * 86_400_000)
    for _ in range(100):
        sender.send()
        client.ack(client.take("message").message_id)
    topic = topic_of(box)
    assert topic.ledger.confirmed_bytes > 2000
    assert topic.backlog.used < 500
    assert blocked_of(topic) is None
    waits = box.client()
    waits.subscribe("waits", subType=SHARED)
    while topic.backlog.used < 1000:
        sender.send()
    assert blocked_of(topic) is not None
    waits.flow(1000)
    while waits.inbox:
        waits.ack(waits.take("message").message_id)
    while client.inbox:
        client.ack(client.take("message").message_id)
    assert blocked_of(topic) is None, "the disk is given back, though mark-delete has not moved"


def test_an_eviction_lets_go_as_much_as_it_has_to() -> None:
    box = box_of(
        managedLedgerMaxEntriesPerLedger=5,
        backlogQuotaDefaultLimitBytes=1000,
        backlogQuotaDefaultRetentionPolicy="consumer_backlog_eviction",
    )
    client, sender = consumer(box), Sender(box)
    sender.send(10 * 86_400_000)
    for _ in range(50):
        sender.send()
        client.ack(client.take("message").message_id)
    assert backlog(box)[1] == 1
    topic = topic_of(box)
    while not topic.backlog.evictions:
        sender.send()
    assert 500 < topic.backlog.used <= 1000


def test_what_is_skipped_and_cleared_is_counted_without_it(holed: tuple[Box, Client, list[At]]) -> None:
    box, _client, sent = holed
    done: list[Any] = []
    subscription = topic_of(box).subscriptions["s"]
    subscription.clearing.skip(1, done.append, done.append, box.now)
    box.turn()
    assert (backlog(box)[:2], subscription.cursor.mark_delete) == ((1, 1), sent[4])
    subscription.clearing.clear(done.append, box.now)
    box.turn()
    assert backlog(box) == (0, 0, 0)
    assert ledgers_of(box) == [sent[20][0]]
