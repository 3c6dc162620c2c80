"""Topic compaction in the core: what readers see after restarts, crashes at any step, cancellation and trimming."""

from typing import Any

import pytest

from pulsarbox.broker.compaction import compaction_run as of_run
from pulsarbox.broker.compaction.latest_by_key import LatestByKey
from pulsarbox.broker.compaction.scan_pass import Seen
from pulsarbox.errors import Conflict, EntryDamaged, PersistenceError, StoreFull
from pulsarbox.names import COMPACTION_SUBSCRIPTION, parse_topic
from pulsarbox.protocol.commands import encode_payload_frame
from pulsarbox.protocol.metadata import parse_entry
from pulsarbox.protocol.PulsarApi_pb2 import BaseCommand, CommandSend, CommandSubscribe, MessageIdData
from pulsarbox.storage.catalog import COMPACTING, compacted_key
from pulsarbox.storage.engine import ReadRequest
from pulsarbox.storage.record import Entry
from tests.unit.broker.compaction.compacting import (
    Sender,
    Taker,
    box_of,
    compact,
    compaction_of,
    reader,
    settle,
    subscribe_again,
    trimmed_box,
)
from tests.unit.broker.compaction.entries import batch, single
from tests.unit.broker.delays_playbook import killed, topic_of
from tests.unit.broker.playbook import TOPIC, Box, Client


def compacted_ledgers(box: Box) -> list[str]:
    catalog = box.broker.catalog
    prefix = compacted_key(topic_of(box).stored.topic_id).rpartition("/")[0].rpartition("/")[0]
    return [*catalog.keys(f"{prefix}/"), *catalog.keys(COMPACTING)]


def test_a_reader_gets_the_latest_of_every_key_under_its_id_and_then_the_log() -> None:
    box = box_of()
    sender = Sender(box)
    sender.rounds(5)
    last = [sender.send(f"k{i}", b"last") for i in range(3)]
    compact(box)
    behind = [sender.send("k0", b"new"), sender.send("k1", None)]
    taker = reader(box)
    assert taker.take() == last + behind
    assert taker.known == sender.known == {"k2": b"last", "k0": b"new"}
    plain = reader(box, name="plain", read_compacted=False)
    assert len(plain.take()) == 20
    assert reader(box, last[1], name="from").take() == [*last[1:], *behind]


def test_a_subscription_reads_it_and_its_mark_passes_what_is_not_in_it() -> None:
    box = box_of()
    sender = Sender(box)
    sender.rounds(5)
    compact(box)
    taker = Taker(box)
    came = taker.take()
    assert len(came) == 3
    cursor = topic_of(box).subscriptions["s"].cursor
    taker.ack(came[1])
    assert cursor.backlog_entries == 14
    taker.ack(came[0])
    assert cursor.mark_delete == came[1]
    taker.ack(came[2])
    assert (cursor.backlog_entries, cursor.backlog_messages, cursor.backlog_bytes) == (0, 0, 0)
    box = killed(box)
    assert Taker(box).take() == []


def test_acknowledged_out_of_order_it_stays_so_over_a_restart() -> None:
    box = box_of()
    Sender(box).rounds(5)
    compact(box)
    taker = Taker(box)
    came = taker.take()
    taker.ack(came[1])
    box = killed(box)
    again = Taker(box)
    assert again.take() == [came[0], came[2]]
    again.ack(came[2], cumulative=True)
    assert topic_of(box).subscriptions["s"].cursor.backlog_entries == 0


def test_the_log_goes_and_the_view_stays() -> None:
    box = box_of(trims=True)
    sender = Sender(box)
    sender.rounds(6)
    compact(box)
    sender.send("k0", b"behind")
    assert topic_of(box).ledger.first_position().ledger_id > 2, "nothing was trimmed"
    for taker in (reader(box), Taker(box)):
        taker.take()
        assert taker.known == sender.known
    taker = Taker(box, "t")
    came = taker.take()
    taker.ack(came[0])
    box = killed(box)
    assert reader(box).take() == came
    again = Taker(box, "t")
    assert again.take() == came[1:]
    again.ack(came[2])
    again.ack(*came[1:])
    cursor = topic_of(box).subscriptions["t"].cursor
    assert cursor.backlog_entries == 0
    assert Taker(killed(box), "t").take() == []


def test_what_is_not_compacted_yet_is_not_trimmed() -> None:
    box = box_of(trims=True)
    sender = Sender(box)
    sender.rounds(2)
    compact(box)
    sender.rounds(8)
    taker = reader(box)
    taker.take()
    assert taker.known == sender.known
    compact(killed(box))


def test_another_compaction_begins_with_the_view() -> None:
    box = box_of()
    sender = Sender(box)
    for number in range(4):
        sender.rounds(3)
        sender.send(f"once{number}", b"x")
        sender.send("k1", None if number % 2 else b"y")
        compact(box)
        assert len(compacted_ledgers(box)) == 1
        taker = reader(box, name=f"r{number}")
        taker.take()
        assert taker.known == sender.known
    assert compaction_of(box).view is not None
    compact(box)  # no new messages


def test_a_reader_in_the_middle_goes_on_with_its_view_and_then_with_the_log() -> None:
    box = box_of()
    sender = Sender(box)
    for i in range(9):
        sender.send(f"k{i}", b"old")
    compact(box)
    taker = reader(box, permits=2)
    assert len(taker.take()) == 2
    sender.send("k0", None)
    compact(box)
    assert len(compacted_ledgers(box)) == 2
    taker.client.flow(100)
    taker.take()
    assert taker.known == sender.known, "the deletion was missed"
    box.advance(0.01)
    assert len(compacted_ledgers(box)) == 1


def test_a_reader_whose_log_is_trimmed_goes_on_in_the_next_view() -> None:
    box = box_of(trims=True)
    sender = Sender(box)
    sender.rounds(5)
    compact(box)
    taker = reader(box, permits=3)
    assert len(taker.take()) == 3
    sender.rounds(5)
    compact(box)
    sender.send("k9", b"end")
    assert len(taker.take()) == 0
    taker.client.flow(100)
    came = taker.take()
    assert len(came) == 4 and taker.known == sender.known


def test_crashes_at_every_step_leave_one_view_or_the_other(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(of_run, "STEP_ENTRIES", 3)
    steps = 0
    while True:
        box = box_of(trims=True)
        sender = Sender(box)
        sender.rounds(2)
        compact(box)
        sender.rounds(2)
        sender.send("k1", None)
        compaction_of(box).start(box.now)
        box.auto = False
        if not crashed_after(box, steps):
            break
        box = killed(box)
        box.auto = True
        box.turn()
        assert len(compacted_ledgers(box)) == 1, steps
        taker = reader(box)
        taker.take()
        assert taker.known == sender.known, steps
        compact(box)
        taker = reader(box, name="again")
        assert len(taker.take()) == 2
        steps += 1
    assert steps > 8


def crashed_after(box: Box, steps: int) -> bool:
    """Run up to ``steps`` commits, reads and deadlines of a compaction. Return whether it was still running."""
    for _ in range(steps):
        if compaction_of(box).run is None:
            return False
        if not (box.commit() or box.read()):
            box.advance(0.001)
    return True


def test_nothing_is_left_of_one_that_is_cancelled(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(of_run, "STEP_ENTRIES", 2)
    box = box_of()
    sender = Sender(box)
    sender.rounds(6)
    compaction = compaction_of(box)
    with pytest.raises(Conflict, match="not running"):
        compaction.cancel(box.now)
    compaction.start(box.now)
    box.advance(0.002)
    with pytest.raises(Conflict, match="already in progress"):
        compaction.start(box.now)
    compaction.cancel(box.now)
    box.turn()
    box.advance(3)
    assert compaction.view is None and compacted_ledgers(box) == []
    assert box.broker.compactions.record(TOPIC).error == "cancelled on request"
    assert len(reader(box).take()) == 18


@pytest.mark.parametrize("error", [PersistenceError("no"), StoreFull("no room")])
def test_a_failed_commit_fails_it_and_the_view_is_what_it_was(error: Exception) -> None:
    box = box_of()
    sender = Sender(box)
    sender.rounds(3)
    compact(box)
    sender.rounds(3)
    box.auto = False
    compaction_of(box).start(box.now)
    for _ in range(50):
        if box.broker.commits.open.copied:
            break
        if not (box.commit() or box.read()):
            box.advance(0.001)
    assert box.commit(error)
    box.auto = True
    settle(box)
    record = box.broker.compactions.record(TOPIC)
    assert str(error) in record.error and record.failed == 1
    box.advance(5)
    assert len(compacted_ledgers(box)) == 1
    taker = reader(box)
    taker.take()
    assert taker.known == sender.known
    compact(box)
    assert record.succeeded == 2


def test_a_turn_looks_at_few_entries_and_writes_few(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(of_run, "TURN_ENTRIES", 4)
    looked: list[int] = []
    wrote: list[int] = []
    box = box_of(managedLedgerMaxEntriesPerLedger=1000)
    sender = Sender(box)
    sender.rounds(2, keys=30)
    see, copy = LatestByKey.process, box.broker.commits.copy

    def looking(self: LatestByKey, seen: list[Seen]) -> None:
        looked.append(len(seen))
        see(self, seen)

    def writing(entries: list[Entry], *answers: Any) -> None:
        wrote.append(len(entries))
        copy(entries, *answers)

    monkeypatch.setattr(LatestByKey, "process", looking)
    monkeypatch.setattr(box.broker.commits, "copy", writing)
    compact(box)
    assert (sum(looked), max(looked)) == (60, 4)
    assert (sum(wrote), max(wrote)) == (30, 4)
    taker = reader(box)
    taker.take()
    assert taker.known == sender.known


def test_deleting_its_subscription_or_the_topic_deletes_the_view() -> None:
    box = box_of()
    sender = Sender(box)
    sender.rounds(3)
    compact(box)
    topic = topic_of(box)
    subscription = topic.subscriptions[COMPACTION_SUBSCRIPTION]
    subscription.close(box.now)
    topic.remove_subscription(subscription, box.now)
    box.turn()
    assert compacted_ledgers(box) == [] and topic.compaction.view is None
    sender.rounds(2)
    compact(box)
    assert len(compacted_ledgers(box)) == 1
    sender.client.request("close_producer", producer_id=1)
    box.broker.topics.delete(parse_topic(TOPIC), box.now, force=True)
    box.turn()
    catalog = box.broker.catalog
    assert not [*catalog.keys("compacted/"), *catalog.keys(COMPACTING)]


def test_a_topic_that_is_unloaded_is_compacted_no_more_and_comes_back_with_its_view() -> None:
    box = box_of(brokerUnloadIdleTopicsAfterSeconds=1)
    sender = Sender(box)
    sender.rounds(3)
    compact(box)
    sender.client.request("close_producer", producer_id=1)
    box.advance(5)
    assert box.broker.topics.loaded(parse_topic(TOPIC)) is None
    assert len(reader(box).take()) == 3


def test_the_last_message_is_the_views_where_that_is_all_there_is() -> None:
    box = box_of(trims=True)
    sender = Sender(box)
    sender.rounds(3)
    sender.send("k9", None)
    compact(box)
    taker = reader(box)
    came = taker.take()
    last = taker.client.request("getLastMessageId", consumer_id=1).last_message_id
    assert (last.ledgerId, last.entryId) == came[-1]
    for key in range(3):
        sender.send(f"k{key}", None)
    compact(box)
    taker.take()
    last = taker.client.request("getLastMessageId", consumer_id=1).last_message_id
    assert last.ledgerId == 2**64 - 1, "there is none"


def test_a_batch_of_which_only_some_stay_is_acknowledged_by_these() -> None:
    box = box_of()
    client = box.client()
    client.producer(1)

    for number, entry in enumerate((batch(0, [("a", b"1"), ("b", b"2"), ("c", b"3")]), single(1, "b", b"4"))):
        send_entry(client, number, entry.body)
    compact(box)
    taker = Taker(box)
    came = taker.take()
    assert taker.known == {"a": b"1", "c": b"3", "b": b"4"}

    cursor = topic_of(box).subscriptions["s"].cursor
    for left in (0b110, 0b010):
        taker.client.ack(MessageIdData(ledgerId=came[0][0], entryId=came[0][1], ack_set=[left]))
    assert cursor.mark_delete == came[0]


def send_entry(client: Client, number: int, payload: bytes) -> None:

    count = parse_entry(payload).metadata.num_messages_in_batch or 1
    send = CommandSend(producer_id=1, sequence_id=number, num_messages=count)
    client.raw(encode_payload_frame(BaseCommand(type=BaseCommand.SEND, send=send), payload))


def test_a_threshold_compacts_by_itself_and_not_too_often() -> None:
    box = box_of(brokerServiceCompactionThresholdInBytes=500, brokerServiceCompactionMonitorIntervalInSeconds=60)
    sender = Sender(box)
    box.advance(1)
    assert COMPACTION_SUBSCRIPTION in topic_of(box).subscriptions
    sender.rounds(20)
    box.advance(1)
    record = box.broker.compactions.record(TOPIC)
    assert record.succeeded == 1
    sender.rounds(20)
    box.advance(1)
    assert record.succeeded == 1
    box.advance(60)
    assert record.succeeded == 2
    taker = reader(box)
    taker.take()
    assert taker.known == sender.known


def test_it_alone_acknowledges_on_its_subscription() -> None:
    box = box_of()
    Sender(box).rounds(3)
    taker = Taker(box, COMPACTION_SUBSCRIPTION, read_compacted=False)
    came = taker.take()
    assert taker.client.ack(came[0]).error == 22


@pytest.mark.parametrize("durable", [True, False])
def test_seeks_go_to_where_the_log_is_trimmed(durable: bool) -> None:
    box, _, came = trimmed_box()
    taker = Taker(box) if durable else reader(box)
    taker.take()
    if durable:
        taker.ack(came[-1], cumulative=True)
    for place, wanted in (((2**64 - 1, 2**64 - 1), came), (came[1], came[1:]), ((2**63 - 1, 2**63 - 1), [])):
        at = MessageIdData(ledgerId=place[0], entryId=place[1])
        assert not hasattr(taker.client.request("seek", consumer_id=1, message_id=at), "error")
        taker.client.names()
        subscribe_again(taker, durable)
        taker.client.flow(100)
        assert taker.take() == wanted
        if durable:
            box = killed(box)
            taker = Taker(box)
            assert taker.take() == wanted
        taker.client.request("close_consumer", consumer_id=1)
        subscribe_again(taker, durable)


def test_what_is_asked_for_again_comes_from_the_view() -> None:
    box, _, came = trimmed_box()
    taker = Taker(box)
    assert taker.take() == came
    taker.ack(came[1])
    taker.client.ask("redeliverUnacknowledgedMessages", consumer_id=1)
    assert taker.take() == [came[0], *came[2:]]


def test_the_next_consumer_of_a_failover_subscription_goes_on_in_the_view() -> None:
    box, _, came = trimmed_box()
    takers = [Taker(box, permits=0, subType=CommandSubscribe.Failover, consumer_name=name) for name in "ab"]
    box.advance(2)
    active = topic_of(box).subscriptions["s"].active_consumer
    one, two = sorted(takers, key=lambda taker: taker.client.cnx.consumers[1] is not active)
    for taker in (one, two):
        taker.client.names()
    one.client.flow(2)
    assert one.take() == came[:2]
    one.ack(came[0])
    one.client.request("close_consumer", consumer_id=1)
    box.advance(2)
    two.client.names()
    two.client.flow(100)
    assert two.take() == came[1:]


def test_who_does_not_ask_for_the_view_gets_the_log() -> None:
    box = box_of()
    sender = Sender(box)
    sender.rounds(3)
    compact(box)
    taker = Taker(box)
    assert len(taker.take()) == 3
    taker.client.request("close_consumer", consumer_id=1)
    plain = Taker(box, read_compacted=False)
    assert len(plain.take()) == 9


def test_damaged_entries_are_kept_aside_and_passed() -> None:
    box = box_of()
    sender = Sender(box)
    first = sender.send("k0", b"whole")
    sender.send("k1", b"to be damaged")
    sender.send("k2", b"whole")
    original = box.engine.read

    def read(request: ReadRequest) -> list[Entry]:
        if request.ledger_id == first[0] and request.first <= 1 <= request.last:
            if request.first == 1:
                raise EntryDamaged(first[0], 1, 1, "a flipped bit")
            request = request._replace(last=0)
        return original(request)

    box.engine.read = read  # type: ignore[method-assign]
    compact(box)
    assert list(box.broker.catalog.keys("quarantine/"))
    assert reader(box).take() == [first, (first[0], 2)]


def test_a_topic_that_is_deleted_while_it_is_compacted_leaves_nothing() -> None:
    for steps in range(0, 24, 2):
        box = box_of()
        Sender(box).rounds(2)
        compact(box)
        Sender(box).rounds(2)
        compaction_of(box).start(box.now)
        box.auto = False
        crashed_after(box, steps)
        box.broker.topics.delete(parse_topic(TOPIC), box.now, force=True)
        box.auto = True
        box.turn()
        box.advance(3)
        assert TOPIC not in box.broker.compactions.records
        for each in (box, killed(box)):
            catalog = each.broker.catalog
            assert not [*catalog.keys("compacted/"), *catalog.keys(COMPACTING)], steps
