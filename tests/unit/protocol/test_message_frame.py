"""``pulsarbox.protocol.message_frame``."""

from __future__ import annotations

from struct import unpack

from hypothesis import given
from hypothesis import strategies as st

from pulsarbox.protocol.commands import encode_payload_frame
from pulsarbox.protocol.frames import FrameDecoder
from pulsarbox.protocol.message_frame import DeliveryEncoder
from pulsarbox.protocol.PulsarApi_pb2 import BaseCommand, CommandMessage, MessageIdData
from tests.unit.protocol.strategies import captured, int64, uint64

deliveries = st.tuples(
    uint64,
    uint64,
    st.binary(max_size=20),
    st.just(0) | st.integers(0, 2**32 - 1),
    st.just(()) | st.lists(int64, max_size=40),
    st.sampled_from([None, -1]) | uint64,
)


@given(uint64, st.integers(-1, 2**31 - 1), st.lists(deliveries, min_size=1, max_size=4))
def test_the_bytes_are_those_of_protobuf(consumer_id: int, partition: int, deliveries: list[tuple]) -> None:  # type: ignore[type-arg]
    encoder = DeliveryEncoder(consumer_id, partition)
    for ledger_id, entry_id, entry, redeliveries, ack_set, epoch in deliveries:
        message = CommandMessage(
            consumer_id=consumer_id,
            message_id=MessageIdData(
                ledgerId=ledger_id, entryId=entry_id, partition=None if partition == -1 else partition
            ),
            redelivery_count=redeliveries or None,
            ack_set=ack_set,
            consumer_epoch=None if epoch == -1 else epoch,
        )
        expected = encode_payload_frame(BaseCommand(type=BaseCommand.MESSAGE, message=message), entry)
        assert encoder.header(ledger_id, entry_id, len(entry), redeliveries, ack_set, epoch) + entry == expected


def test_headers_of_real_deliveries_say_the_same() -> None:
    """The Java broker also encodes the default partition -1: the same message with 11 more bytes."""
    rows = [row for row in captured() if row.type == "MESSAGE"]
    assert rows
    for row in rows:
        ((data, entry),) = FrameDecoder(100_000).feed(row.frame)
        message = BaseCommand.FromString(data).message
        position = message.message_id
        header = DeliveryEncoder(message.consumer_id, position.partition).header(
            position.ledgerId, position.entryId, len(entry), message.redelivery_count, message.ack_set
        )
        total, size = unpack(">II", header[:8])
        assert (total, size) == (4 + size + len(entry), len(header) - 8)
        position.ClearField("partition")
        assert BaseCommand.FromString(header[8:]).message == message
