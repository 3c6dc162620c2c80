"""The virtual clock: deadlines due at an advance, conversion of client times, and restarts."""

import copy
from typing import Any

import pytest

from pulsarbox.broker.topic.topic import PersistentTopic
from pulsarbox.clock import WALL_MAX, Now
from pulsarbox.errors import BadRequest, Conflict, PersistenceError
from pulsarbox.names import parse_topic
from pulsarbox.storage.record import Entry, Position
from tests.unit.broker.playbook import TOPIC, Box

DAY = 86_400_000


def virtual(**settings: Any) -> Box:
    return Box(brokerClock="virtual", **settings)


def move(box: Box, by: int) -> None:
    box.broker.advance_clock(by, box.now)
    box.turn()


def entry_of(box: Box, position: tuple[int, int]) -> Entry:
    """Convert to the time that a reader receives."""
    topic = box.broker.topics.find(parse_topic(TOPIC), box.now)
    assert isinstance(topic, PersistentTopic)
    found: list[Entry] = []

    def failed(error: Exception, when: Now) -> None:
        raise error

    topic.reader.read_entry(Position(*position), lambda entry, _: found.append(entry), failed, box.now)
    box.turn()
    return found[0]


def test_the_real_clock_cannot_be_moved() -> None:
    box = Box()
    with pytest.raises(Conflict, match="--clock virtual"):
        box.broker.advance_clock(DAY, box.now)
    assert box.now.offset == 0


@pytest.mark.parametrize(("by", "why"), [(-1, "only forward"), (WALL_MAX, "year 9999")])
def test_it_goes_forward_and_stays_in_the_calendar(by: int, why: str) -> None:
    box = virtual()
    with pytest.raises(BadRequest, match=why):
        box.broker.advance_clock(by, box.now)
    assert box.now.offset == 0


def test_the_connections_do_not_notice() -> None:
    box = virtual()
    client = box.client()
    move(box, 365 * DAY)
    box.advance(1)
    assert not client.closed and client.inbox == []


def test_what_falls_due_is_done_before_the_advance_is_over() -> None:
    box = virtual(managedLedgerMaxEntriesPerLedger=5, defaultRetentionTimeInMinutes=60, defaultRetentionSizeInMB=-1)
    client = box.client()
    client.publish(12)
    keys = box.broker.catalog.keys
    assert len(list(keys("ledger/"))) == 3
    box.broker.advance_clock(DAY // 12, box.now)
    assert len(list(keys("ledger/"))) == 1
    box.turn()


def test_ten_days_do_not_age_what_is_published_afterwards() -> None:
    box = virtual()
    client = box.client()
    client.producer()
    move(box, 10 * DAY)
    client.send(0, publish_time=box.wall, deliver_at_time=box.wall + DAY)  # relative to the client's own clock
    client.send(1, publish_time=box.wall)
    receipts = [client.take("send_receipt").message_id for _ in range(2)]
    first, second = (entry_of(box, (each.ledgerId, each.entryId)) for each in receipts)
    assert (first.publish_time, first.append_time) == (box.now.wall, box.now.wall)
    assert (first.deliver_at, second.deliver_at) == (box.now.wall + DAY, 0)


def test_the_farthest_time_a_client_can_name_is_stored() -> None:
    box = virtual()
    client = box.client()
    client.producer()
    move(box, DAY)
    client.send(0, publish_time=2**64 - 1, deliver_at_time=2**63 - 1)
    receipt = client.take("send_receipt").message_id
    assert entry_of(box, (receipt.ledgerId, receipt.entryId)).publish_time == 2**63 - 1


def test_a_seek_by_time_counts_back_from_now() -> None:
    box = virtual()
    client = box.client()
    client.subscribe()
    before = client.publish(1)
    move(box, 10 * DAY)
    box.advance(5)
    after = client.publish(1)
    for back, expected in ((11 * DAY, before + after), (DAY, after)):
        assert client.request("seek", consumer_id=1, message_publish_time=box.wall - back) is not None
        client.inbox.clear()  # the seek closes the consumer
        client.subscribe()
        client.flow(10)
        assert client.received() == expected


def test_the_offset_is_kept_with_the_data() -> None:
    box = virtual()
    move(box, 3 * DAY)
    move(box, 1)
    again = box.restart()
    assert again.now.offset == 3 * DAY + 1
    assert again.broker.started == box.wall + 3 * DAY + 1
    move(again, DAY)
    assert again.restart().now.offset == 4 * DAY + 1


def test_an_advance_that_is_not_durable_is_as_if_it_had_not_been() -> None:
    box = Box(auto=False, brokerClock="virtual")
    box.commit()
    box.broker.advance_clock(DAY, box.now)
    box.commit(PersistenceError("no"))
    assert Box(copy.deepcopy(box.disk), brokerClock="virtual").now.offset == 0
    box.time += 1
    box.commit()
    assert box.restart().now.offset == DAY


def test_data_that_is_ahead_is_not_opened_with_the_real_clock() -> None:
    box = virtual()
    move(box, 10 * DAY)
    with pytest.raises(PersistenceError, match="10d ahead of the real time"):
        Box(box.disk)
    untouched = virtual()
    Box(untouched.disk)
