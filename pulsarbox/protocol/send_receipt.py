"""SEND_RECEIPT, encoded without protobuf: one for each published message or batch.

Takes 0.23 us a frame; filling and serialising a BaseCommand takes 1.0 us (benchmarks/protocol_codec.py).
A frame is assembled from prepared parts, some of them per producer, and the numbers::

    [u32 4+c][u32 c] 08 07 3a n 08 producer 10 sequence 1a m 08 ledger 10 entry [20 highest]
"""

from __future__ import annotations

from struct import Struct

from pulsarbox.protocol.varint import varint

_frame_header = Struct(">II").pack


_BODY_MAX = 56
"""Bytes of a CommandSendReceipt after its first tag: 11 for the producer, 10 for the sequence ID, 24 for the message
ID, 11 for the highest sequence ID."""
_heads = [
    b"".join((_frame_header(9 + size, 5 + size), b"\x08\x07\x3a", varint(1 + size), b"\x08"))
    for size in range(_BODY_MAX + 1)
]
"""The bytes before the producer ID, by the number of bytes that follow."""
_id_heads = [b"\x1a" + varint(size) for size in range(23)]


class ReceiptEncoder:
    """Receipt encoder for one producer of one connection. It is small, because each producer has one."""

    __slots__ = ("_ledger", "_ledger_id", "_producer")

    def __init__(self, producer_id: int) -> None:
        """``producer_id``: the client's ID of the producer, 0 to 2**64-1."""
        self._producer = varint(producer_id) + b"\x10"
        self._ledger_id = -1
        self._ledger = b""

    def encode(self, sequence_id: int, highest_sequence_id: int, ledger_id: int, entry_id: int) -> bytes:
        """Return the receipt for ``sequence_id``, stored at (``ledger_id``, ``entry_id``).

        ``highest_sequence_id`` is that of the SEND; 0 omits the field. All numbers are 0 to 2**64-1; a position of -1
        is sent as 2**64-1.
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
