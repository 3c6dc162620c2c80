"""Segments read over the network from a simulated broker: requests, and possible responses."""

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Any

import pytest

from pulsarbox.client.errors import NoAnswer
from pulsarbox.protocol import replies
from pulsarbox.protocol.commands import encode_frame
from pulsarbox.protocol.message_frame import DeliveryEncoder
from pulsarbox.protocol.metadata import encode_entry
from pulsarbox.protocol.PulsarApi_pb2 import (
    BaseCommand,
    CommandGetLastMessageIdResponse,
    CommandLookupTopicResponse,
    CommandPing,
    MessageIdData,
    MessageMetadata,
)
from pulsarbox.spark.access import wire_reader
from pulsarbox.spark.access.volume_blocks import Block
from pulsarbox.spark.topic_segments import Lost, Reach, ReadPosition, TopicSegment
from tests.unit.client.scripted import Peer, connected, peer

PING = encode_frame(BaseCommand(type=BaseCommand.PING, ping=CommandPing()))
Frames = list[bytes] | None


def topic(number: int) -> str:
    return f"persistent://public/default/t{number}"


def entry(body: bytes, **fields: Any) -> bytes:
    return encode_entry(MessageMetadata(producer_name="p", sequence_id=1, publish_time=1, **fields), body)


class Broker:
    """Broker with topics of one ledger each, keyed by number, that dispatches entries on request."""

    def __init__(self, **topics: list[bytes]) -> None:
        self.entries = {int(name[1:]): entries for name, entries in topics.items()}
        self.elsewhere = ""
        """Service URL of the broker that serves the topics, if different."""
        self.asked: dict[int, int] = {}
        """Permits, by ledger."""
        self.between: Callable[[int, int], Frames] = lambda ledger, entry: []
        """Returns the frames to send before an entry, or None to close the connection."""
        self._at: dict[int, tuple[int, int]] = {}
        """Next ledger and entry, by consumer."""

    def __call__(self, command: BaseCommand, rest: bytes) -> Frames:
        if command.type == BaseCommand.CONNECT:
            return [connected()]
        if command.type == BaseCommand.LOOKUP:
            kind = CommandLookupTopicResponse.Redirect if self.elsewhere else CommandLookupTopicResponse.Connect
            found = CommandLookupTopicResponse(
                request_id=command.lookupTopic.request_id, response=kind, authoritative=True,
                brokerServiceUrl=self.elsewhere or self.url,
            )  # fmt: skip
            return [encode_frame(BaseCommand(type=BaseCommand.LOOKUP_RESPONSE, lookupTopicResponse=found))]
        if command.type == BaseCommand.SUBSCRIBE:
            asked = command.subscribe
            ledger = int(asked.topic.rpartition("/t")[2].partition("-")[0])
            self._at[asked.consumer_id] = ledger, asked.start_message_id.entryId
            return [replies.success(asked.request_id)]
        if command.type == BaseCommand.FLOW:
            return self._send(command.flow.consumer_id, command.flow.messagePermits)
        if command.type == BaseCommand.GET_LAST_MESSAGE_ID:
            ledger, _ = self._at[command.getLastMessageId.consumer_id]
            last = MessageIdData(ledgerId=ledger, entryId=len(self.entries[ledger]) - 1)
            told = CommandGetLastMessageIdResponse(last_message_id=last, request_id=command.getLastMessageId.request_id)
            answer = BaseCommand(type=BaseCommand.GET_LAST_MESSAGE_ID_RESPONSE, getLastMessageIdResponse=told)
            return [encode_frame(answer)]
        return []

    def _send(self, consumer: int, permits: int) -> Frames:
        ledger, at = self._at[consumer]
        self.asked[ledger] = self.asked.get(ledger, 0) + permits
        found: list[bytes] = []
        header = DeliveryEncoder(consumer).header
        for payload in self.entries[ledger][at : at + permits]:
            more = self.between(ledger, at)
            if more is None:
                return None
            found += more
            if payload:  # else the entry is hidden
                found += (header(ledger, at, len(payload)), payload)
            at += 1
        self._at[consumer] = ledger, at
        return found

    @contextmanager
    def serving(self) -> Iterator[Peer]:
        with peer(self) as found:
            self.url = found.url
            yield found


def segment(number: int, entries: int, **more: Any) -> TopicSegment:
    found = TopicSegment(topic(number), number, 0, entries - 1, entries, 100 * entries, instance="box")
    return found._replace(**more)


def read(
    found: Peer, *segments: TopicSegment, lost: list[Lost] | None = None, seconds: float = 20.0
) -> dict[int, list[tuple[int, bytes]]]:
    """Entries and their bodies, by segment. Entries received in a block are also listed under ``-1``."""
    rows: dict[int, list[tuple[int, bytes]]] = {}
    reach = Reach(found.url, access="wire", seconds=seconds)
    for piece in wire_reader.pieces(dict(enumerate(segments)), reach, ([] if lost is None else lost).append):
        if isinstance(piece, Block):
            rows.setdefault(-1, []).extend((at, b"") for at in piece.entries)
        for number, some in piece.each().items() if isinstance(piece, Block) else [piece]:
            rows.setdefault(number, []).extend((at, stored[-3:]) for _, at, stored in some)
    return rows


def numbered(count: int) -> list[bytes]:
    return [entry(b"%03d" % at) for at in range(count)]


def expected(count: int, *without: int) -> list[tuple[int, bytes]]:
    return [(at, b"%03d" % at) for at in range(count) if at not in without]


def test_many_segments_by_one_connection_and_no_message_too_many() -> None:
    topics = {f"t{number}": numbered(150 + number) for number in range(12)}
    broker = Broker(**topics)
    with broker.serving() as found:
        rows = read(found, *(segment(number, 140 + number) for number in range(12)))
    assert len([each for each in found.seen if each.type == BaseCommand.CONNECT]) == 1
    assert {number: rows[number] for number in range(12)} == {number: expected(140 + number) for number in range(12)}
    assert broker.asked == {number: 140 + number for number in range(12)}
    assert len(rows[-1]) == sum(140 + number for number in range(12)), "all of them came many at a time"


def test_parts_of_one_ledger_at_once() -> None:
    broker = Broker(t0=numbered(90))
    with broker.serving() as found:
        whole = segment(0, 90)
        rows = read(found, *(whole._replace(first=at, last=at + 29, messages=30) for at in (0, 30, 60)))
    assert [rows[number] for number in range(3)] == [expected(90)[at : at + 30] for at in (0, 30, 60)]
    assert len(rows[-1]) == 90


def test_what_is_between_messages_and_the_end_of_connections() -> None:
    broker, ends = Broker(t0=numbered(200), t1=numbered(90)), [(0, 150), (1, 40), (0, 20)]

    def between(ledger: int, at: int) -> Frames:
        if (ledger, at) in ends:
            ends.remove((ledger, at))
            return None
        return [PING] if at % 7 == 3 else []

    broker.between = between
    with broker.serving() as found:
        rows = read(found, segment(0, 200), segment(1, 90))
    assert (rows[0], rows[1], ends) == (expected(200), expected(90), [])
    assert any(each.type == BaseCommand.PONG for each in found.seen)


def test_a_broker_that_is_elsewhere() -> None:
    first, owner = Broker(), Broker(t3=numbered(20))
    with owner.serving() as behind, first.serving() as found:
        first.elsewhere = behind.url
        assert read(found, segment(3, 20))[0] == expected(20)
        assert not [each for each in found.seen if each.type == BaseCommand.SUBSCRIBE]


def test_unusual_entries_stay_in_their_order() -> None:
    entries = numbered(60)
    entries[0] = entry(b"000")[6:]  # without a checksum
    entries[30] = b"\x0e\x02" + bytes(4) + entries[30]
    entries[31] = entries[31][6:]
    entries[59] = entries[59][6:]
    broker = Broker(t0=entries, t1=numbered(60))
    broker.between = lambda ledger, at: [PING] if at == 30 else []
    with broker.serving() as found:
        rows = read(found, segment(0, 60), segment(1, 60))
    assert (rows[0], rows[1]) == (expected(60), expected(60))
    assert len(rows[-1]) == 116


def test_batches_are_asked_for_as_they_turn_out() -> None:
    entries = [entry(b"%03d" % at, num_messages_in_batch=10) for at in range(30)]
    broker = Broker(t0=entries)
    with broker.serving() as found:
        assert read(found, segment(0, 30, messages=2))[0] == expected(30)


def test_ends_of_batches_are_not_taken_with_others() -> None:
    broker = Broker(t0=numbered(30))
    with broker.serving() as found:
        rows = read(found, segment(0, 30, from_batch=1, to_batch=2))
    assert rows[0] == expected(30)
    assert [at for at, _ in rows[-1]] == list(range(1, 29))


def test_what_is_hidden_is_passed_by_and_what_is_missing_told() -> None:
    entries = numbered(50)
    for at in (*range(10, 15), 20, *range(40, 50)):
        entries[at] = b""
    damaged = bytearray(entries[30])
    damaged[-1] ^= 1
    entries[30] = bytes(damaged)
    lost: list[Lost] = []
    broker = Broker(t7=entries)
    with broker.serving() as found:
        rows = read(found, segment(7, 41, hidden=((10, 14), (40, 40))), lost=lost)
    assert rows[0] == expected(40, *range(10, 15), 20, 30)
    assert [(each.start, each.end) for each in lost] == [
        (ReadPosition(7, 20), ReadPosition(7, 21)),
        (ReadPosition(7, 30), ReadPosition(7, 31)),
    ]


@pytest.mark.usefixtures("_looks_at_once")
def test_of_apache_pulsar_gaps_are_no_loss_and_the_end_is_asked_for() -> None:
    entries = numbered(40)
    entries[12] = b""
    lost: list[Lost] = []
    broker = Broker(t0=entries, t1=numbered(5))
    with broker.serving() as found:
        rows = read(found, segment(0, 40, instance=""), segment(1, 9, instance=""), lost=lost)
    assert (rows[0], rows[1], lost) == (expected(40, 12), expected(5), [])


@pytest.mark.usefixtures("_looks_at_once")
def test_a_broker_that_sends_nothing() -> None:
    broker = Broker(t0=[*numbered(3), b"", b""])
    with broker.serving() as found, pytest.raises(NoAnswer, match=r"/t0: nothing received from 0:3 on for 2 s"):
        read(found, segment(0, 5), seconds=2.0)


@pytest.fixture
def _looks_at_once(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(wire_reader, "_LOOK_SECONDS", 0.05)
