"""A producer far beyond its publish rate is suspended without affecting others on its connection."""

from typing import Any

import pytest

from pulsarbox.broker.stats.blocked_reason_text import unread_reason
from pulsarbox.protocol.commands import COMMANDS, parse_command
from pulsarbox.protocol.PulsarApi_pb2 import ProducerAccessMode
from tests.unit.broker.limits.publishing import NON_PERSISTENT, OTHER, TEN, flood, opened, producer_of, receipts
from tests.unit.broker.limits.rates import publish_rate, set_topic, topic_of
from tests.unit.broker.playbook import TOPIC, Box, Client

ROOM: dict[str, Any] = {"maxThrottledPublishMbytesPerConnection": 1}
LARGE = b"x" * 100_000
FITS = 16
"""Number of large messages from one producer at a rate of ten: ten get receipts, and six fill half of the buffer."""


def commands(client: Client) -> list[tuple[str, int]]:
    """Return the names of the received commands, with the sequence IDs of receipts."""
    taken, client.inbox = client.inbox, []
    found = [parse_command(data) for data, _ in taken]
    names = [COMMANDS[each.type].field for each in found]
    pairs = zip(names, found, strict=True)
    return [(name, getattr(each, name).sequence_id if "send" in name else 0) for name, each in pairs]


def others_of(box: Box, client: Client, count: int) -> None:
    """Open producers 2, 3, ... on the same connection, each with its own topic."""
    for number in range(2, count + 2):
        opened(box, f"{OTHER}-{number}", number, client)


@pytest.mark.parametrize("topic", [TOPIC, NON_PERSISTENT])
def test_neighbours_of_a_suspended_producer_publish_on(topic: str) -> None:
    box = Box(**ROOM)
    client = opened(box, topic)
    set_topic(box, "publishRate", publish_rate(10), topic)
    others_of(box, client, 7)
    flood(client, 50, body=LARGE)
    assert receipts(client) == [(1, i) for i in range(10)]
    assert producer_of(client).suspended
    assert not client.cnx.overdrawn
    for number in range(2, 9):
        flood(client, 20, number, body=LARGE)
        assert receipts(client) == [(number, i) for i in range(20)]


def test_its_client_sends_the_rest_again_and_all_is_stored_once() -> None:
    box = Box(**ROOM, **TEN)
    client = opened(box)
    found: list[tuple[str, int]] = []
    sent, count = 0, 60
    for _ in range(20):
        flood(client, count - sent, first=sent, body=LARGE)
        while ("close_producer", 0) not in found and ("send_receipt", count - 1) not in found:
            found += commands(client)
            box.advance(1)
        if ("send_receipt", count - 1) in found:
            break
        names = [name for name, _ in found]
        assert names.index("close_producer") == len(names) - 1, "all receipts come first"
        found.pop()
        sent = len(found)
        assert client.producer(1, producer_name="p", epoch=1).producer_ready
    assert [sequence_id for name, sequence_id in found if name == "send_receipt"] == list(range(count))
    assert topic_of(box).ledger.confirmed_messages == count


def test_what_it_sends_meanwhile_is_not_stored() -> None:
    box = Box(**ROOM, **TEN)
    client = opened(box)
    flood(client, 100, body=LARGE)
    assert topic_of(box).ledger.confirmed_messages == FITS
    box.advance(1)
    assert commands(client)[-1] == ("close_producer", 0)
    flood(client, 5, first=100)
    assert not client.closed, "they were on their way when the producer was closed"


def test_eight_that_flood_share_the_room_and_the_connection_is_read() -> None:
    box = Box(**ROOM, **TEN)
    client = box.client()
    for number in range(1, 9):
        opened(box, f"{TOPIC}-{number}", number, client)
    opened(box, OTHER, 9, client)
    for _ in range(40):
        for number in range(1, 9):
            flood(client, 5, number, body=b"x" * 4000)
    assert all(producer_of(client, number).suspended for number in range(1, 9))
    assert client.cnx.held_bytes <= 1 << 20
    assert not client.cnx.overdrawn
    receipts(client)
    flood(client, 10, 9)
    assert receipts(client) == [(9, i) for i in range(10)]


def test_a_producer_below_its_share_is_not_suspended_beside_one_above() -> None:
    box = Box(**ROOM, **TEN)
    client = opened(box)
    opened(box, OTHER, 2, client)
    flood(client, 50, body=LARGE)
    flood(client, 30, 2, body=b"x" * 1000)
    box.advance(3)
    assert [each for each in receipts(client) if each[0] == 2] == [(2, i) for i in range(30)]


def test_a_limit_that_is_lifted_ends_it() -> None:
    box = Box(**ROOM)
    client = opened(box)
    set_topic(box, "publishRate", publish_rate(10))
    flood(client, 50, body=LARGE)
    commands(client)
    set_topic(box, "publishRate", None)
    box.turn()
    assert commands(client) == [*(("send_receipt", i) for i in range(10, FITS)), ("close_producer", 0)]
    assert client.cnx.held_bytes == 0


@pytest.mark.parametrize("how", ["close", "unload", "lost"])
def test_one_that_goes_has_all_its_receipts(how: str) -> None:
    box = Box(**ROOM, **TEN)
    client = opened(box)
    flood(client, 50, body=LARGE)
    commands(client)
    if how == "close":
        client.ask("close_producer", producer_id=1, request_id=7)
        assert commands(client) == [*(("send_receipt", i) for i in range(10, FITS)), ("success", 0)]
    elif how == "unload":
        box.broker.topics.unload(topic_of(box), lambda now: None, box.now)
        box.advance(1)
        assert commands(client) == [*(("send_receipt", i) for i in range(10, FITS)), ("close_producer", 0)]
    else:
        client.cnx.closed(box.now)
        box.turn()
    assert client.cnx.held_bytes == 0


def test_an_exclusive_producer_keeps_its_topic_and_its_connection_is_not_read() -> None:
    box = Box(**ROOM, **TEN)
    client = box.client()
    client.producer(1, producer_access_mode=ProducerAccessMode.Exclusive)
    flood(client, 40, body=LARGE)
    assert not producer_of(client).suspended
    overdrawn = [client.cnx.overdrawn]
    flood(client, 12, first=40, body=LARGE)
    assert [*overdrawn, client.cnx.overdrawn] == [False, True]
    client.cnx.reading_stops(box.now)
    assert unread_reason(client.cnx) == (
        "unread", box.wall, f"the connection is not read: {client.cnx.held_bytes:,} bytes wait for publish rates", 0
    )  # fmt: skip
    found = []
    while client.cnx.overdrawn:
        box.advance(1)
        found += receipts(client)
    assert client.cnx.held_bytes < 4 * (1 << 20) - (1 << 18), "once, not after each receipt"
    client.cnx.reading_resumes()
    assert unread_reason(client.cnx) is None


def test_a_connection_that_is_not_read_outlives_the_keep_alive() -> None:
    box = Box(keepAliveIntervalSeconds=5, **ROOM, **TEN)
    client = box.client()
    client.producer(1, producer_access_mode=ProducerAccessMode.Exclusive)
    flood(client, 52, body=LARGE)
    client.cnx.reading_stops(box.now)
    taken = box.client().producer(1, producer_name=producer_of(client).name)
    box.advance(3)
    assert taken is None or taken.error
    box.advance(60)
    assert not client.closed, "its PONG could not be read"
    client.cnx.reading_resumes()
    box.advance(60)
    assert client.closed


def test_events_of_what_is_held_back() -> None:
    box = Box(**ROOM, **TEN)
    client = opened(box)
    flood(client, 50, body=LARGE)
    exclusive = box.client()
    exclusive.producer(1, f"{TOPIC}-2", producer_access_mode=ProducerAccessMode.Exclusive)
    flood(exclusive, 52, body=LARGE)
    exclusive.cnx.reading_stops(box.now)
    events = box.broker.events
    told = {(each.kind, each.subject): each.text for each in events.after(0, 100)}
    rate = "receipts wait for the publish rate: 10 messages per second for the topic, set at broker level"
    assert told["publish-held", TOPIC] == rate
    assert told["producer-suspended", TOPIC].startswith("producer ")
    assert "bytes wait for publish rates" in told["connection-unread", exclusive.cnx.address]
    box.advance(2)
    flood(exclusive, 20, first=60)
    assert sum(each.kind == "publish-held" for each in events.after(0, 100)) == 2, "once while it goes on"
