"""Bulk decoding of entries equals splitting and parsing each frame; unusual frames are left to the frame parser."""

from collections.abc import Callable
from itertools import pairwise
from struct import pack
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from pulsarbox.protocol.commands import encode_frame
from pulsarbox.protocol.frames import FrameDecoder
from pulsarbox.protocol.message_frame import DeliveryEncoder
from pulsarbox.protocol.message_stream_decoder import Deliveries
from pulsarbox.protocol.metadata import encode_entry, parse_entry
from pulsarbox.protocol.PulsarApi_pb2 import BaseCommand, CommandMessage, CommandPong, MessageIdData, MessageMetadata
from tests.tools.campaigns import examples

Row = tuple[int, int, bytes, bytes]
"""Ledger, entry, metadata, body."""
PONG = encode_frame(BaseCommand(type=BaseCommand.PONG, pong=CommandPong()))


class Expecting:
    """A reader that records its input."""

    def __init__(self, ledger: int, first: int, last: int) -> None:
        self.number, self.ledger, self.next, self.last = 100 + ledger, ledger, first, last
        self.messages = 0

    def took(self, end: int, messages: int) -> None:
        self.next = end
        self.messages += messages


def entry(body: bytes = b"body", **fields: Any) -> bytes:
    fields = {"producer_name": "p", "sequence_id": 4, "publish_time": 7, **fields}
    return encode_entry(MessageMetadata(**fields), body)


def frame(payload: bytes, at: int, *, consumer: int = 1, ledger: int = 9, partition: int = -1, **more: Any) -> bytes:
    return DeliveryEncoder(consumer, partition).header(ledger, at, len(payload), **more) + payload


def rows_of(deliveries: Deliveries) -> list[Row]:
    found = deliveries.drain()
    if found is None:
        return []
    ends = iter(found.bodies)
    columns = zip(found.numbers, found.entries, found.metadata, ends, ends, strict=True)
    return [(number - 100, at, metadata, found.data[begin:end]) for number, at, metadata, begin, end in columns]


def row_of(payload: bytes, at: int, ledger: int = 9) -> Row:
    parsed = parse_entry(payload)
    return ledger, at, payload[parsed.metadata_start : parsed.body_offset], payload[parsed.body_offset :]


def test_what_comes_in_any_pieces_is_taken_and_the_rest_goes_the_usual_way() -> None:
    @given(
        first=st.sampled_from([0, 126, 16382, 2**21 - 2]),
        bodies=st.lists(st.binary(max_size=50), max_size=12),
        partition=st.sampled_from([-1, 0, 300]),
        cuts=st.lists(st.integers(0, 2000), max_size=6),
        pongs=st.sets(st.integers(0, 12)),
        consumer=st.sampled_from([1, 127, 128, 70000]),
        ledger=st.sampled_from([0, 5, 0x10, 0x1010, 2**40]),
    )
    @settings(max_examples=examples(200))
    def check(
        first: int, bodies: list[bytes], partition: int, cuts: list[int], pongs: set[int], consumer: int, ledger: int
    ) -> None:
        payloads = [entry(body, num_messages_in_batch=len(body)) if len(body) > 20 else entry(body) for body in bodies]
        stream, others = b"", 0
        for number, payload in enumerate(payloads):
            if number in pongs:
                stream, others = stream + PONG, others + 1
            stream += frame(payload, first + number, consumer=consumer, ledger=ledger, partition=partition)
        deliveries, decoder, seen = Deliveries(), FrameDecoder(1 << 20), []
        reader = deliveries.readers[consumer] = Expecting(ledger, first, first + len(payloads))

        def taker(data: bytes) -> int:
            at = 0
            while (end := deliveries.decode(data, at)) > at or data[at : at + len(PONG)] == PONG:
                if end == at:
                    end += len(PONG)
                    seen.append(PONG)
                at = end
            return at

        places = sorted({min(each, len(stream)) for each in cuts} | {0, len(stream)})
        for begin, end in pairwise(places):
            if begin < end:
                decoder.get_buffer()[: end - begin] = stream[begin:end]
                decoder.give(end - begin, taker)
        assert decoder.error is None
        assert decoder.pending == 0
        assert rows_of(deliveries) == [
            row_of(payload, first + number, ledger) for number, payload in enumerate(payloads)
        ]
        assert (reader.next, len(seen)) == (first + len(payloads), others)
        assert reader.messages == sum(max(1, len(body)) if len(body) > 20 else 1 for body in bodies)

    check()


def test_readers_take_turns() -> None:
    deliveries = Deliveries()
    one = deliveries.readers[1] = Expecting(9, 0, 99)
    other = deliveries.readers[2] = Expecting(8, 5, 6)
    data = b"".join([
        frame(entry(b"a"), 0), frame(entry(b"b"), 5, consumer=2, ledger=8), frame(entry(b"c"), 1),
        frame(entry(b"d"), 6, consumer=2, ledger=8), frame(entry(b"e"), 7, consumer=2, ledger=8),
    ])  # fmt: skip
    stopped = deliveries.decode(data, 0)
    assert data[stopped:] == frame(entry(b"e"), 7, consumer=2, ledger=8), "it is behind the last one"
    assert [(ledger, at, body) for ledger, at, _, body in rows_of(deliveries)] == [
        (9, 0, b"a"), (8, 5, b"b"), (9, 1, b"c"), (8, 6, b"d")
    ]  # fmt: skip
    assert (one.next, other.next) == (2, 7)
    assert deliveries.size == 0
    assert deliveries.decode(data, stopped) == stopped


def _other(**fields: Any) -> bytes:
    """A frame of the first entry, encoded by protobuf, with optional fields that other brokers may set."""
    message = CommandMessage(consumer_id=1, message_id=MessageIdData(ledgerId=9, entryId=0), **fields)
    command = BaseCommand(type=BaseCommand.MESSAGE, message=message).SerializeToString()
    rest = command + entry()
    return pack(">II", 4 + len(rest), len(command)) + rest


def _damaged(payload: bytes) -> bytes:
    return payload[:-1] + bytes((payload[-1] ^ 1,))


@pytest.mark.parametrize(
    "made",
    [
        lambda: frame(entry(), 1),
        lambda: frame(entry(), 0, consumer=2),
        lambda: frame(entry(), 0, ledger=10),
        lambda: frame(entry(), 0, redelivery_count=1),
        lambda: frame(entry(), 0, ack_set=(1,)),
        lambda: frame(entry(), 0, consumer_epoch=3),
        lambda: frame(_damaged(entry()), 0),
        lambda: frame(entry()[6:], 0),
        lambda: frame(b"\x0e\x02" + bytes(4) + entry(), 0),
        lambda: frame(entry()[:6] + b"\0\0\xff\0" + entry()[10:], 0),
        lambda: frame(b"", 0),
        lambda: frame(entry(num_messages_in_batch=0), 0),
        lambda: PONG,
        lambda: frame(entry(), 0)[:-1],
        lambda: frame(entry(), 0)[:7],
        lambda: bytes(40),
        lambda: b"\xff" * 40,
    ],
)
def test_what_is_unusual_stays_where_it_is(made: Callable[[], bytes]) -> None:
    deliveries = Deliveries()
    deliveries.readers[1] = Expecting(9, 0, 99)
    data = made()
    assert deliveries.decode(data, 0) == 0
    assert deliveries.decode(data + frame(entry(), 0), len(data)) == len(data) + len(frame(entry(), 0))
    assert [row[1] for row in rows_of(deliveries)] == [0]


def test_what_protobuf_has_written_is_taken_too() -> None:
    deliveries = Deliveries()
    deliveries.readers[1] = Expecting(9, 0, 99)
    assert deliveries.decode(_other(), 0) == len(_other())
    deliveries.readers[1] = Expecting(9, 0, 99)
    assert deliveries.decode(_other(redelivery_count=2), 0) == 0


@given(st.data())
@settings(max_examples=examples(200))
def test_mutated_frames_are_left_or_what_protobuf_makes_of_them(data: st.DataObject) -> None:
    payloads = [entry(b"%d" % at) for at in range(3)]
    stream = bytearray(b"".join(frame(payload, at, partition=3) for at, payload in enumerate(payloads)))
    for _ in range(data.draw(st.integers(1, 3))):
        stream[data.draw(st.integers(0, len(stream) - 1))] = data.draw(st.integers(0, 255))
    deliveries = Deliveries()
    deliveries.readers[1] = Expecting(9, 0, 99)
    end = deliveries.decode(bytes(stream), 0)
    rows = rows_of(deliveries)
    expected = []
    for command, rest in FrameDecoder(1 << 20).feed(bytes(stream[:end])):
        parsed = BaseCommand.FromString(command).message
        assert parsed.consumer_id == 1
        expected.append(row_of(rest, parsed.message_id.entryId, parsed.message_id.ledgerId))
    assert rows == expected
