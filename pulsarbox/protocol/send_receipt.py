"""SEND_RECEIPT, written without protobuf: one for every message a producer sends.

0.23 us a frame; setting the fields of a BaseCommand and serialising it takes 1.0 us (benchmarks/protocol_codec.py).
The frame is put together from what is prepared, for all or for one producer, and the numbers::

    [u32 4+c][u32 c] 08 07 3a n 08 producer 10 sequence 1a m 08 ledger 10 entry [20 highest]
"""

from __future__ import annotations

from struct import Struct

from pulsarbox.protocol.varint import varint

_frame_header = Struct(">II").pack


_BODY_MAX = 56
"""Bytes of a CommandSendReceipt behind its first tag: 11 of producer, 10 of sequence id, 24 of message id, 11 of
highest sequence id."""
_heads = [
    b"".join((_frame_header(9 + size, 5 + size), b"\x08\x07\x3a", varint(1 + size), b"\x08"))
    for size in range(_BODY_MAX + 1)
]
"""Everything up to the producer id, by the bytes that follow."""
_id_heads = [b"\x1a" + varint(size) for size in range(23)]


class ReceiptEncoder:
    """Receipts for one producer of one connection. It keeps little: there are as many as there are producers."""

    __slots__ = ("_ledger", "_ledger_id", "_producer")

    def __init__(self, producer_id: int) -> None:
        """``producer_id``: the client's number for it, 0 to 2**64-1."""
        self._producer = varint(producer_id) + b"\x10"
        self._ledger_id = -1
        self._ledger = b""

    def encode(self, sequence_id: int, highest_sequence_id: int, ledger_id: int, entry_id: int) -> bytes:
        """The frame that says ``sequence_id`` is stored at (``ledger_id``, ``entry_id``).

        ``highest_sequence_id`` is that of the SEND, 0 when it had none: then the field is left out. All numbers are
        0 to 2**64-1; a position of -1 is sent as 2**64-1.
        """
        if ledger_id != self._ledger_id:
            self._ledger = b"".join((b"\x08", varint(ledger_id), b"\x10"))
            self._ledger_id = ledger_id
        ledger = self._ledger
        entry = varint(entry_id)
        body = self._producer + varint(sequence_id) + _id_heads[len(ledger) + len(entry)] + ledger + entry
        if highest_sequence_id:
            body += b"\x20" + varint(highest_sequence_id)
        return _heads[len(body)] + body
