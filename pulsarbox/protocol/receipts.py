"""SEND_RECEIPT, written without protobuf: one for every message a producer sends.

0.23 us a frame; setting the fields of a BaseCommand and serialising it takes 1.0 us (benchmarks/protocol_codec.py).
The frame is a template that is new only when the producer, the ledger or the length of a number changes::

    [u32 4+c][u32 c] 08 07 3a n 08 producer 10 sequence 1a m 08 ledger 10 entry [20 highest]
"""

from __future__ import annotations

from struct import Struct

from pulsarbox.protocol.varint import varint

_frame_header = Struct(">II").pack


def _head(body_size: int, producer_id: bytes) -> bytes:
    """Everything up to the sequence id of a frame whose CommandSendReceipt has ``body_size`` (< 128) bytes."""
    command_size = 4 + body_size
    return b"".join(
        (
            _frame_header(4 + command_size, command_size),
            b"\x08\x07\x3a",
            varint(body_size),
            b"\x08",
            producer_id,
            b"\x10",
        )
    )


class ReceiptEncoder:
    """Receipts for one producer of one connection."""

    __slots__ = ("_before_entry", "_heads", "_ledger_id")

    def __init__(self, producer_id: int) -> None:
        """``producer_id``: the client's number for it, 0 to 2**64-1."""
        producer = varint(producer_id)
        fixed = 2 + len(producer)
        # After the sequence id's tag a body has 1 to 10 bytes of it, 6 to 24 of message id and 0 to 11 of highest id.
        self._heads = [_head(fixed + size, producer) for size in range(46)]
        self._ledger_id = -1
        self._before_entry: list[bytes] = []

    def encode(self, sequence_id: int, highest_sequence_id: int, ledger_id: int, entry_id: int) -> bytes:
        """The frame that says ``sequence_id`` is stored at (``ledger_id``, ``entry_id``).

        ``highest_sequence_id`` is that of the SEND, 0 when it had none: then the field is left out. All numbers are
        0 to 2**64-1; a position of -1 is sent as 2**64-1.
        """
        if ledger_id != self._ledger_id:
            self._turn_to(ledger_id)
        sequence = varint(sequence_id)
        entry = varint(entry_id)
        tail = self._before_entry[len(entry)] + entry
        if highest_sequence_id:
            tail += b"\x20" + varint(highest_sequence_id)
        return self._heads[len(sequence) + len(tail)] + sequence + tail

    def _turn_to(self, ledger_id: int) -> None:
        """Prepare what stands between sequence id and entry id, for each length an entry id can have."""
        ledger = varint(ledger_id)
        before = [b"".join((b"\x1a", varint(2 + len(ledger) + size), b"\x08", ledger, b"\x10")) for size in range(11)]
        self._before_entry = before
        self._ledger_id = ledger_id
