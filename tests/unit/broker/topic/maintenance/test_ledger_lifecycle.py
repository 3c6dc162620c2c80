"""Lifecycle of ledgers and topics: rollover, trimming, deadlines, unloading, damage, and remaining files."""

from __future__ import annotations

import json

import pytest
from hypothesis import given
from hypothesis import strategies as st

from pulsarbox.broker.policies.kinds.retention import Retention
from pulsarbox.broker.topic.maintenance.ledger_lifecycle import trimmable
from pulsarbox.broker.topic.topic import PersistentTopic
from pulsarbox.errors import EntryDamaged, StoreFull
from pulsarbox.names import parse_topic
from pulsarbox.protocol.commands import parse_command
from pulsarbox.protocol.PulsarApi_pb2 import BaseCommand, CommandAck, MessageIdData
from pulsarbox.storage.cursor import ManagedCursor
from pulsarbox.storage.engine import Checkpoint, ReadRequest
from pulsarbox.storage.ledger import ManagedLedger
from pulsarbox.storage.record import Entry, Position
from tests.unit.broker.playbook import AS_PULSAR, TOPIC, Box, Client

NAME = parse_topic(TOPIC)
MINUTE = 60


def ledgers_of(box: Box) -> list[int]:
    """Return the ledgers in the catalog, oldest first."""
    return [int(key.rpartition("/")[2], 16) for key in box.broker.catalog.keys("ledger/")]


def ack_all(client: Client, until: tuple[int, int]) -> None:
    """Acknowledge cumulatively up to a position."""
    client.inbox.clear()
    assert client.ack(until, ack_type=CommandAck.Cumulative) is not None


def received(client: Client) -> list[tuple[int, int]]:
    """Consume the received messages and return their positions."""
    client.inbox = [each for each in client.inbox if parse_command(each[0]).type != BaseCommand.ACTIVE_CONSUMER_CHANGE]
    return client.received()


def leave(client: Client) -> None:
    """Close the connection."""
    client.cnx.closed(client.box.now)
    client.box.turn()


def publish(box: Box, count: int) -> list[tuple[int, int]]:
    """Publish through a client that disconnects, and return the positions."""
    client = box.client()
    sent = client.publish(count)
    leave(client)
    return sent


def topic_of(box: Box) -> PersistentTopic:
    topic = box.broker.topics.find(NAME, box.now)
    assert isinstance(topic, PersistentTopic)
    return topic


def test_whole_closed_ledgers_go_once_everybody_has_acknowledged_them() -> None:
    box = Box(managedLedgerMaxEntriesPerLedger=10)
    client, other = box.client(), box.client()
    client.subscribe("a")
    other.subscribe("b")
    sent = publish(box, 35)
    client.flow(100)
    other.flow(100)
    assert len(ledgers_of(box)) == 4
    ack_all(client, sent[24])
    assert len(ledgers_of(box)) == 4  # retained for b
    ack_all(other, sent[9])
    assert len(ledgers_of(box)) == 3
    ack_all(other, sent[34])
    assert len(ledgers_of(box)) == 2  # the cursor of a is in the third ledger
    ack_all(client, sent[34])
    assert len(ledgers_of(box)) == 1  # the open ledger is never trimmed
    again = box.restart()
    assert ledgers_of(again) == ledgers_of(box)
    assert topic_of(again).subscriptions["a"].cursor.backlog_messages == 0
    assert publish(again, 1)[0] > sent[-1]


def test_an_unsubscribe_frees_what_it_held() -> None:
    box = Box(managedLedgerMaxEntriesPerLedger=10)
    client = box.client()
    client.subscribe("a")
    publish(box, 25)
    assert len(ledgers_of(box)) == 3
    assert client.request("unsubscribe", consumer_id=1) is not None
    assert len(ledgers_of(box)) == 1


def test_without_a_subscription_closed_ledgers_go_as_in_pulsar() -> None:
    box = Box(managedLedgerMaxEntriesPerLedger=10, **AS_PULSAR)
    sent = publish(box, 25)
    assert ledgers_of(box) == [sent[-1][0]]


def test_a_ledger_that_is_closed_while_an_earlier_commit_is_under_way_goes_with_its_own() -> None:
    box = Box(managedLedgerMaxEntriesPerLedger=5, **AS_PULSAR)
    client = box.client()
    client.producer()
    box.auto = False
    for number in range(6):  # the sixth entry closes the first ledger
        client.send(number)
    batch = box.broker.take_batch(box.now)
    assert batch is not None
    for number in range(6, 11):  # the eleventh entry closes the second ledger
        client.send(number)
    box.engine.commit(batch)
    box.broker.committed(batch, box.now, None)
    box.auto = True
    box.turn()
    assert len(ledgers_of(box)) == 1


def test_a_reader_goes_on_behind_what_was_trimmed() -> None:
    box = Box(managedLedgerMaxEntriesPerLedger=5, managedLedgerCacheSizeMB=1, **AS_PULSAR)
    reader = box.client()
    sent = publish(box, 4)
    reader.subscribe("r", durable=False, initialPosition=1)
    reader.flow(2)
    assert reader.received() == sent[:2]
    sent += publish(box, 9)
    first = ledgers_of(box)[0]
    assert first > sent[0][0]
    reader.flow(100)
    rest = reader.received()
    assert rest[-1] == sent[-1]
    assert [each for each in sent if each[0] >= first] == [each for each in rest if each[0] >= first]


def test_the_disk_of_ledgers_that_went_shortly_before_a_restart_comes_back_with_it() -> None:
    box = Box(managedLedgerMaxEntriesPerLedger=10)
    client = box.client()
    client.subscribe("a")
    sent = publish(box, 25)
    client.flow(100)
    ack_all(client, sent[-1])
    assert len(ledgers_of(box)) == 1
    assert list(box.disk.index.positions(sent[0][0])), "only a checkpoint gives it back"
    again = box.restart()
    assert not list(again.disk.index.positions(sent[0][0]))
    assert not list(again.disk.index.positions(sent[10][0]))


@pytest.mark.parametrize("given_back", [False, True])
def test_a_ledger_that_is_trimmed_while_it_is_read_keeps_nobody_waiting(*, given_back: bool) -> None:
    box = Box(managedLedgerMaxEntriesPerLedger=5)
    client = box.client()
    client.subscribe("a")
    sent = publish(box, 12)
    box = box.restart()
    client, first, second = box.client(), box.client(), box.client()
    client.subscribe("a")
    client.flow(100)
    second.subscribe("r", durable=False, initialPosition=1, subType=1)
    if given_back:
        first.subscribe("r", durable=False, subType=1)
        first.flow(100)
        assert received(first) == sent
    box.auto = False
    second.flow(100)
    if given_back:
        leave(first)
    ids = [MessageIdData(ledgerId=sent[9][0], entryId=sent[9][1])]
    client.ask("ack", consumer_id=1, ack_type=CommandAck.Cumulative, message_id=ids, request_id=1)
    box.broker.commits.ask_checkpoint()
    while box.commit() or box.chore():
        pass
    assert len(ledgers_of(box)) == 1
    box.auto = True
    box.turn()
    assert received(second)[-2:] == sent[10:]


def test_acknowledged_ledgers_are_kept_for_the_time_of_the_retention() -> None:
    box = Box(managedLedgerMaxEntriesPerLedger=10, defaultRetentionTimeInMinutes=30, defaultRetentionSizeInMB=-1)
    client = box.client()
    client.subscribe("a")
    sent = publish(box, 15)
    client.flow(100)
    ack_all(client, sent[-1])
    assert len(ledgers_of(box)) == 2
    leave(client)
    box.advance(2 * MINUTE)
    assert box.broker.topics.loaded(NAME) is None
    box.advance(27 * MINUTE)
    assert ledgers_of(box)[:2] == sorted({ledger for ledger, _ in sent})
    box.advance(2 * MINUTE)
    assert len(ledgers_of(box)) == 1
    assert box.broker.topics.loaded(NAME) is None, "it was trimmed without being loaded"


def test_an_acknowledgement_of_what_is_trimmed_while_it_is_looked_up_is_no_error() -> None:
    box = Box(managedLedgerMaxEntriesPerLedger=5)
    client = box.client()
    client.subscribe("a", subType=1)
    sent = publish(box, 12)
    box = box.restart()
    one, two = box.client(), box.client()
    two.subscribe("a", subType=1)
    one.subscribe("a", subType=1)
    box.auto = False
    ids = [MessageIdData(ledgerId=at[0], entryId=at[1]) for at in sent[:10]]
    two.ask("ack", consumer_id=1, ack_type=CommandAck.Individual, message_id=ids[:1], request_id=1)
    one.ask("unsubscribe", consumer_id=1, force=True, request_id=1)
    box.broker.commits.ask_checkpoint()
    while box.commit() or box.chore():
        pass
    assert len(ledgers_of(box)) == 1
    box.auto = True
    box.turn()
    assert two.take("close_consumer").consumer_id == 1
    assert not two.take("ackResponse").HasField("error")


def test_an_old_ledger_of_an_unloaded_topic_is_closed_and_trimmed() -> None:
    box = Box(managedLedgerMaxLedgerRolloverTimeMinutes=10)
    client = box.client()
    client.subscribe("a")
    sent = publish(box, 3)
    client.flow(100)
    ack_all(client, sent[-1])
    leave(client)
    box = box.restart()
    assert ledgers_of(box) == [sent[0][0]]
    box.advance(11 * MINUTE)
    (left,) = ledgers_of(box)
    assert left > sent[0][0]
    assert box.broker.topics.loaded(NAME) is None
    assert not list(box.broker.catalog.keys("deadline/")), "an empty ledger has nothing to wait for"
    assert box.broker.next_timer().wall is None


def test_a_topic_that_nobody_uses_is_unloaded_and_comes_back_as_it_was() -> None:
    box = Box(brokerUnloadIdleTopicsAfterSeconds=60, keepAliveIntervalSeconds=1000)
    client = box.client()
    client.subscribe("a", subType=1)
    sent = publish(box, 10)
    client.flow(100)
    client.inbox.clear()
    assert client.ack(*sent[1::2]) is not None
    ids = [MessageIdData(ledgerId=sent[0][0], entryId=sent[0][1])]
    client.ask("redeliverUnacknowledgedMessages", consumer_id=1, message_ids=ids)
    assert box.broker.topics.loaded(NAME) is not None
    box.advance(200)
    assert box.broker.topics.loaded(NAME) is not None, "somebody is connected"
    leave(client)
    box.advance(61)
    assert box.broker.topics.loaded(NAME) is None
    assert not box.broker.store.topics
    again = box.client()
    again.subscribe("a", subType=1)
    again.flow(100)
    assert again.received() == sent[::2]
    assert topic_of(box).subscriptions["a"].cursor.redeliveries[Position(*sent[0])] == 2, "asked for, and lost"


def test_nothing_ticks_once_all_topics_are_unloaded() -> None:
    box = Box()
    client = box.client()
    publish(box, 1)
    leave(client)
    box.advance(300)
    assert box.broker.next_timer().monotonic is None


def test_a_hundred_topics_take_no_memory_when_nobody_uses_them() -> None:
    box = Box()
    for number in range(100):
        box.broker.topics.create(parse_topic(f"t-{number}"), box.now)
        box.turn()
    box.advance(120)
    assert not list(box.broker.topics)
    assert not box.broker.store.topics
    assert len(box.broker.topics.names("public/default")) == 100
    again = box.restart()
    assert not list(again.broker.topics)
    assert len(again.broker.topics.names("public/default")) == 100
    again.broker.topics.delete(parse_topic("t-7"), again.now, force=False)
    again.turn()
    assert len(again.broker.topics.names("public/default")) == 99


def test_a_deleted_topic_leaves_no_row() -> None:
    box = Box(managedLedgerMaxEntriesPerLedger=2, defaultRetentionTimeInMinutes=-1, defaultRetentionSizeInMB=-1)
    client = box.client()
    before = set(box.broker.catalog.keys(""))
    client.subscribe("a", subType=1)
    sent = publish(box, 5)
    client.flow(100)
    client.inbox.clear()
    assert client.ack(sent[2]) is not None
    leave(client)
    box.broker.commits.ask_checkpoint()
    box.turn()
    box.broker.topics.delete(NAME, box.now, force=True)
    box.turn()
    assert set(box.broker.catalog.keys("")) == before


def test_a_topic_deleted_while_its_messages_wait_leaves_no_row() -> None:
    box = Box()
    client = box.client()
    before = set(box.broker.catalog.keys(""))
    client.producer()
    box.auto = False
    client.send(0)
    box.broker.topics.delete(NAME, box.now, force=True)
    box.broker.commits.ask_checkpoint()
    box.auto = True
    box.turn()
    assert set(box.broker.catalog.keys("")) == before


def test_each_checkpoint_has_what_was_published_since_the_one_before() -> None:
    box = Box()
    client = box.client()
    client.producer()
    for number in range(3):
        client.send(number)
        box.broker.commits.ask_checkpoint()
        box.turn()
        [(_, row)] = box.engine.recover().rows.items(b"ledger/")
        assert json.loads(row)["entries"] == number + 1


class Damaged:
    """Makes the engine of a box report entries as damaged."""

    def __init__(self, box: Box, *damage: EntryDamaged) -> None:
        self.damage = damage
        self._read = box.engine.read
        box.engine.read = self.read  # type: ignore[method-assign]

    def read(self, request: object) -> list[Entry]:
        """See Engine.read."""
        entries = self._read(request)  # type: ignore[arg-type]
        for number, entry in enumerate(entries):
            for each in self.damage:
                if each.ledger_id == entry.ledger_id and each.first <= entry.entry_id <= each.last:
                    if number:
                        return entries[:number]
                    raise EntryDamaged(each.ledger_id, entry.entry_id, each.last, each.reason, each.body, each.counts)
        return entries


@pytest.mark.parametrize("sub_type", [0, 1, 2])
@pytest.mark.parametrize("known", [True, False])
def test_a_damaged_entry_is_kept_aside_and_the_rest_goes_on(sub_type: int, *, known: bool) -> None:
    box = Box()
    client = box.client()
    client.subscribe("a", subType=sub_type)
    sent = publish(box, 10)
    leave(client)
    box = box.restart()
    topic = topic_of(box)
    ledger_id = sent[0][0]
    (entry,) = box.engine.read(_request(ledger_id, 4, 4))
    counts = (1, len(entry.body), entry.total_messages, entry.total_bytes) if known else None
    Damaged(box, EntryDamaged(ledger_id, 4, 4, "a bit is wrong", b"what is left", counts))
    client = box.client()
    client.subscribe("a", subType=sub_type)
    client.flow(100)
    box.advance(5)
    assert received(client) == sent[:4] + sent[5:]
    row = box.broker.catalog.get(f"quarantine/{ledger_id:016x}/{4:016x}")
    assert row is not None
    assert (row["topic"], row["reason"], row["body"]) == (TOPIC, "a bit is wrong", "d2hhdCBpcyBsZWZ0")
    backlog = topic.subscriptions["a"].cursor.backlog_messages
    assert backlog == (9 if known else 10)
    leave(client)
    client = box.client()
    client.subscribe("a", subType=sub_type)
    client.flow(100)
    box.advance(5)
    assert received(client) == sent[:4] + sent[5:]


@pytest.mark.parametrize("sub_type", [0, 1, 3])
def test_a_damaged_entry_that_was_the_last_of_its_ledger_lets_it_go(sub_type: int) -> None:
    box = Box(managedLedgerMaxEntriesPerLedger=4)
    client = box.client()
    client.subscribe("a", subType=sub_type)
    sent = publish(box, 9)
    client.flow(100)
    assert received(client) == sent
    client.ack(*(at for at in sent if at != sent[2]))
    leave(client)
    box = box.restart()
    topic_of(box)
    assert ledgers_of(box) == [sent[0][0], sent[-1][0]]
    (entry,) = box.engine.read(_request(*sent[2], sent[2][1]))
    counts = (1, len(entry.body), entry.total_messages, entry.total_bytes)
    Damaged(box, EntryDamaged(*sent[2], sent[2][1], "a bit is wrong", b"what is left", counts))
    client = box.client()
    client.subscribe("a", subType=sub_type)
    client.flow(100)
    box.advance(1)
    assert received(client) == []
    assert ledgers_of(box) == [sent[-1][0]]


def test_who_acknowledged_all_but_a_damaged_entry_hears_of_the_end() -> None:
    box = Box()
    client = box.client()
    client.subscribe("a")
    sent = publish(box, 3)
    client.flow(100)
    client.ack(*sent[:2])
    leave(client)
    topic_of(box).termination.begin(lambda at, now: None, lambda error: None, box.now)
    box.turn()
    box = box.restart()
    topic_of(box)
    (entry,) = box.engine.read(_request(*sent[2], sent[2][1]))
    counts = (1, len(entry.body), entry.total_messages, entry.total_bytes)
    Damaged(box, EntryDamaged(*sent[2], sent[2][1], "a bit is wrong", b"what is left", counts))
    client = box.client()
    client.cnx.client_version = "Pulsar-Java-v4.2.4"
    client.subscribe("a")
    assert "reachedEndOfTopic" not in client.names()
    client.flow(100)
    box.advance(1)
    assert client.names() == ["reachedEndOfTopic"]


def _request(ledger_id: int, first: int, last: int) -> ReadRequest:
    return ReadRequest(1, ledger_id, first, last, 1 << 20)


def test_a_store_without_room_refuses_messages_and_takes_acknowledgements() -> None:
    box = Box()
    client, publisher = box.client(), box.client()
    client.subscribe("a")
    sent = publish(box, 3)
    client.flow(10)
    publisher.producer()
    box.auto = False
    publisher.send(7)
    assert box.commit(StoreFull("the disk is full"))
    box.auto = True
    box.turn()
    assert "disk is full" in publisher.take("send_error").message
    ack_all(client, sent[-1])
    box.advance(2)
    assert publish(box, 1)
    assert topic_of(box.restart()).subscriptions["a"].cursor.backlog_messages == 1


def test_a_checkpoint_that_fails_comes_again_with_all_its_rows() -> None:
    box = Box()
    publish(box, 3)
    box.auto = False
    box.broker.commits.ask_checkpoint()
    assert box.commit()
    chore = box.broker.take_chore(box.now)
    while chore is not None and not isinstance(chore, Checkpoint):
        box.broker.chore_done(chore, box.now)
        chore = box.broker.take_chore(box.now)
    assert isinstance(chore, Checkpoint)
    box.broker.chore_done(chore, box.now, StoreFull("full"))
    assert box.broker.take_chore(box.now) is None, "not at once"
    box.auto = True
    box.advance(2)
    assert dict(box.engine.recover().rows.items(b"topic/"))
    assert topic_of(box.restart()).ledger.confirmed_entries == 3


def test_the_log_cannot_outgrow_its_checkpoint_for_ever() -> None:
    box = Box(journalCheckpointMbytes=1)
    client = box.client()
    client.producer()
    box.auto = False
    housekeeping = box.broker.commits.housekeeping
    for number in range(20):
        client.send(number, b"x" * 400_000)
        while box.commit():
            pass
        chore = box.broker.take_chore(box.now)
        if chore is not None:
            box.broker.chore_done(chore, box.now, StoreFull("no room for a checkpoint"))
        box.time += 2
    assert "no checkpoint can be written" in (housekeeping.refusal or "")


retentions = st.builds(Retention, st.sampled_from([-1, 0, 10, 1000]), st.sampled_from([-1, 0, 30, 10_000]))


@given(
    st.lists(st.integers(0, 4), min_size=1, max_size=6),
    st.lists(st.sets(st.integers(0, 24)), max_size=2),
    retentions,
    st.integers(0, 2000),
)
def test_what_is_trimmable(sizes: list[int], unacked: list[set[int]], retention: Retention, age: int) -> None:
    """Trim only closed and fully acknowledged ledgers, oldest first, exactly as far as retention allows."""
    ledger = ManagedLedger(1)
    order = []
    cursors = [ManagedCursor(number, str(number), ledger) for number in range(len(unacked))]
    for number, count in enumerate(sizes):
        info = ledger.open_ledger(number, 0)
        for entry_id in range(count):
            body = b"x" * 10
            total = ledger.total_messages + 1
            entry = Entry(number, entry_id, 0, 1, total, total * 10, 0, 0, 0, 0, 0, body)
            ledger.append(entry)
            ledger.confirm([entry], keep=False)
            order.append(Position(number, entry_id))
        assert info.entries == count
    for cursor, left in zip(cursors, unacked, strict=True):
        for i, (number, entry_id) in enumerate(order):
            if i not in left:
                cursor.acknowledge(number, entry_id, 1, 10, i + 1, 10 * i + 10)
    going, _ = trimmable(ledger, cursors, retention, age)
    needed = {order[i].ledger_id for left in unacked for i in left if i < len(order)}
    unneeded = [number for number in range(len(sizes) - 1) if number not in needed]
    assert list(going) == unneeded[: len(going)]
    kept = sum(size for number, size in enumerate(sizes) if number not in going) * 10
    if going and retention.time_ms != 0 and not 0 <= retention.time_ms <= age:
        assert retention.size != -1
        assert kept >= retention.size
    if 0 <= retention.time_ms <= age or retention.size == 0:
        assert list(going) == unneeded


def test_a_topic_whose_changes_wait_is_not_unloaded() -> None:
    box = Box(keepAliveIntervalSeconds=1000)
    client = box.client()
    client.subscribe("a", subType=1)
    sent = publish(box, 3)
    client.flow(10)
    box.auto = False
    client.ask("ack", consumer_id=1, ack_type=0, message_id=[MessageIdData(ledgerId=sent[1][0], entryId=sent[1][1])])
    client.cnx.closed(box.now)
    topic = topic_of(box)
    assert not topic.can_unload(), "an acknowledgement is not in any batch yet"
    box.auto = True
    box.advance(1)
    assert topic.can_unload()
    box.advance(120)
    assert box.broker.topics.loaded(NAME) is None
    assert topic_of(box).subscriptions["a"].cursor.is_acked(*sent[1])
    assert topic_of(box.restart()).subscriptions["a"].cursor.is_acked(*sent[1])


def test_redelivery_counts_survive_disconnects_and_restarts() -> None:
    box = Box(redeliveryCountOnConnectionLoss=False)
    client = box.client()
    client.subscribe("a", subType=1)
    sent = publish(box, 2)
    for life in range(3):
        client.flow(10)
        client.inbox.clear()
        ids = [MessageIdData(ledgerId=sent[0][0], entryId=sent[0][1])]
        client.ask("redeliverUnacknowledgedMessages", consumer_id=1, message_ids=ids)
        box.advance(1)
        leave(client)
        if life:
            box = box.restart()
        client = box.client()
        client.subscribe("a", subType=1)
    client.flow(10)
    counts = {}
    while client.inbox:
        message = client.take("message")
        counts[message.message_id.entryId] = message.redelivery_count
    assert counts == {0: 3, 1: 0}
    client.ack(*sent)
    assert not topic_of(box.restart()).subscriptions["a"].cursor.redeliveries
