"""Entries that exist only in the compacted view: lookup by time, and acknowledgement."""

import pytest

from pulsarbox.errors import EntryDamaged
from pulsarbox.names import parse_topic
from pulsarbox.storage.engine import ReadRequest
from pulsarbox.storage.record import Entry
from tests.unit.broker.compaction.compacting import (
    Sender,
    Taker,
    box_of,
    compact,
    compaction_of,
    reader,
    subscribe_again,
    trimmed_box,
)
from tests.unit.broker.delays_playbook import killed, topic_of
from tests.unit.broker.playbook import TOPIC


@pytest.mark.parametrize("durable", [True, False])
def test_a_seek_by_time_finds_what_the_log_has_no_more(durable: bool) -> None:
    box, sender, came = trimmed_box()
    taker = Taker(box) if durable else reader(box)
    *_, first, second, third, behind = sender.times
    for at, wanted in ((0, came), (first, came), (first + 1, came[1:]), (third, came[2:]), (behind + 1, [])):
        taker.client.request("seek", consumer_id=1, message_publish_time=at)
        taker.client.names()
        subscribe_again(taker, durable)
        taker.client.flow(100)
        assert taker.take() == wanted
    if durable:
        taker.client.request("seek", consumer_id=1, message_publish_time=second)
        box = killed(box)
        assert Taker(box).take() == came[1:]


def test_who_does_not_read_the_view_is_set_to_where_the_log_begins() -> None:
    box, sender, came = trimmed_box()
    taker = Taker(box, read_compacted=False)
    taker.client.request("seek", consumer_id=1, message_publish_time=sender.times[-3])
    taker.client.names()
    taker.client.subscribe("s")
    taker.client.flow(100)
    again = taker.take()
    assert again[-1] == came[-1] and again[0] > topic_of(box).ledger.first_position()


def test_one_that_nobody_uses_is_set_back_by_an_operator() -> None:
    box, sender, came = trimmed_box()
    taker = Taker(box)
    taker.ack(taker.take()[-1], cumulative=True)
    for restart in (False, True):
        box = killed(box) if restart else box
        if not restart:
            taker.client.request("close_consumer", consumer_id=1)
        done: list[object] = []
        topic_of(box).subscriptions["s"].seek_to_time(sender.times[-3], done.append, done.append, box.now)
        box.turn()
        assert done == [box.now]
        taker = Taker(killed(box))
        box = taker.client.box
        assert taker.take() == came[1:]
        taker.ack(came[-1], cumulative=True)


def test_a_consumer_with_a_rollback_begins_in_the_view() -> None:
    box, sender, came = trimmed_box()
    seconds = (box.wall - sender.times[-3] + 999) // 1000
    assert Taker(box, start_message_rollback_duration_sec=seconds).take() == came[1:]


def test_it_is_found_while_the_topic_is_compacted_again() -> None:
    box, sender, came = trimmed_box()
    before = compaction_of(box).view
    assert before is not None
    found: list[object] = []
    subscription = topic_of(box).subscribe("s", earliest=True, properties={}, now=box.now)
    box.turn()
    subscription.seek_to_time(sender.times[-3], found.append, found.append, box.now)
    (read,) = box.broker.take_reads()
    compact(box)
    assert compaction_of(box).view != before and not found
    box.broker.read_done(read.token, box.engine.read(read), box.now, None)
    box.turn()
    assert found == [box.now]
    assert Taker(box).take() == [came[1], came[2], came[3]]
    box.advance(1)
    assert before.ledger_id in box.disk.dropped


def test_a_damaged_entry_of_the_view_is_told_to_who_looks_for_it(monkeypatch: pytest.MonkeyPatch) -> None:
    box, sender, _ = trimmed_box()
    view = compaction_of(box).view
    assert view is not None
    read = box.engine.read

    def damaged(request: ReadRequest) -> list[Entry]:
        if request.ledger_id == view.ledger_id:
            raise EntryDamaged(request.ledger_id, request.first, request.first, "flipped")
        return read(request)

    monkeypatch.setattr(box.engine, "read", damaged)
    taker = Taker(box, permits=0)
    reply = taker.client.request("seek", consumer_id=1, message_publish_time=sender.times[-3])
    assert "flipped" in reply.message


@pytest.mark.parametrize("checkpoint", [False, True])
def test_acknowledged_out_of_order_it_stays_so_over_a_crash(checkpoint: bool) -> None:
    box, _, came = trimmed_box()
    taker = Taker(box)
    assert taker.take() == came
    taker.ack(came[1])
    if checkpoint:
        box.broker.commits.ask_checkpoint()
        box.turn()
    taker.ack(came[2])
    box = killed(box)
    taker = Taker(box)
    assert taker.take() == [came[0], came[3]]
    taker.ack(came[0])
    box = killed(box)
    assert Taker(box).take() == [came[3]]
    cursor = topic_of(box).subscriptions["s"].cursor
    assert not cursor.in_view, "nothing of it has to be known any more"


def test_it_stays_so_when_the_topic_is_compacted_again_and_unloaded() -> None:
    box, sender, came = trimmed_box()
    taker = Taker(box)
    taker.ack(taker.take()[1])
    again = sender.send("k2", b"newer")
    compact(box)
    for client in (taker.client, sender.client):
        client.cnx.closed(box.now)
    box.advance(120)
    assert box.broker.topics.loaded(parse_topic(TOPIC)) is None
    assert Taker(box).take() == [came[0], came[3], again]


def test_what_an_earlier_connection_got_is_acknowledged_before_it_comes_again() -> None:
    for cumulative in (False, True):
        box, _, came = trimmed_box()
        Taker(box).take()
        box = killed(box)
        taker = Taker(box, permits=0)
        taker.ack(came[1], cumulative=cumulative)
        box = killed(box)
        taker = Taker(box)
        assert taker.take() == (came[2:] if cumulative else [came[0], *came[2:]])
        taker = Taker(killed(box), permits=0)
        taker.ack(came[3], cumulative=cumulative)
        assert Taker(killed(taker.client.box)).take() == ([] if cumulative else [came[0], came[2]])


def test_a_seek_forgets_what_was_acknowledged_behind_it() -> None:
    box, sender, came = trimmed_box()
    taker = Taker(box)
    taker.ack(*taker.take()[1:3])
    taker.client.request("seek", consumer_id=1, message_publish_time=sender.times[-4])
    assert Taker(killed(box)).take() == came


def test_ledgers_that_went_from_the_middle_are_read_from_the_view() -> None:
    box = box_of(trims=True)
    sender = Sender(box)
    reading, plain = Taker(box), Taker(box, "plain", read_compacted=False)
    sender.rounds(4)
    sender.send("once", b"in the middle")
    sender.rounds(4)
    came, all_of_it = reading.take(), plain.take()
    middle = sender.positions["once"]
    for taker, positions in ((reading, came), (plain, all_of_it)):
        taker.ack(*positions[1:])
    compact(box)
    ledgers = topic_of(box).ledger.ledgers
    assert all_of_it[0][0] in ledgers and middle[0] not in ledgers, "no ledger went from the middle"
    for restart in (False, True):
        box = killed(box) if restart else box
        for new in (reader(box, name="new"), Taker(box, "other")):
            new.take()
            assert new.known == sender.known
            new.client.cnx.closed(box.now)
    assert Taker(box).take() == [], "all that the view has was acknowledged"
    other = Taker(box, "other")
    came = other.take()
    assert middle in came
    other.ack(*came[1:])
    box = killed(box)
    other = Taker(box, "other")
    assert other.take() == came[:1]
    other.ack(came[0])
    cursor = topic_of(box).subscriptions["other"].cursor
    assert (cursor.backlog_entries, cursor.backlog_messages, bool(cursor.in_view)) == (0, 0, False)
