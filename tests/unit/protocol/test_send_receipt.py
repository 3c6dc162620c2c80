"""``pulsarbox.protocol.send_receipt``."""

from __future__ import annotations

from hypothesis import given
from hypothesis import strategies as st

from pulsarbox.protocol.commands import encode_frame
from pulsarbox.protocol.PulsarApi_pb2 import BaseCommand, CommandSendReceipt, MessageIdData
from pulsarbox.protocol.send_receipt import ReceiptEncoder
from tests.unit.protocol.strategies import uint64

positions = st.tuples(uint64, uint64, uint64, uint64)


@given(uint64, st.lists(positions, min_size=1, max_size=4))
def test_the_bytes_are_those_of_protobuf(producer_id: int, positions: list[tuple[int, int, int, int]]) -> None:
    encoder = ReceiptEncoder(producer_id)
    for sequence_id, highest, ledger_id, entry_id in positions:
        receipt = CommandSendReceipt(
            producer_id=producer_id,
            sequence_id=sequence_id,
            message_id=MessageIdData(ledgerId=ledger_id, entryId=entry_id),
            highest_sequence_id=highest or None,
        )
        expected = encode_frame(BaseCommand(type=BaseCommand.SEND_RECEIPT, send_receipt=receipt))
        assert encoder.encode(sequence_id, highest, ledger_id, entry_id) == expected


def test_the_largest_numbers_of_all_fields() -> None:
    top = 2**64 - 1
    frame = ReceiptEncoder(top).encode(top, top, top, top)
    receipt = BaseCommand.FromString(frame[8:]).send_receipt
    assert (receipt.producer_id, receipt.sequence_id, receipt.highest_sequence_id) == (top, top, top)
    assert (receipt.message_id.ledgerId, receipt.message_id.entryId) == (top, top)
