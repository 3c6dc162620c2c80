"""MESSAGE, encoded without protobuf: the part of its frame before the stored entry.

Takes 0.19 us a header, 0.67 us with options; filling and serialising a BaseCommand takes 1.0 us
(benchmarks/protocol_codec.py).
``header(...) + entry`` is the frame; a transport with gathering writes need not join the two::

    [u32 4+c+body][u32 c] 08 09 4a n 08 consumer 12 m 08 ledger 10 entry [18 partition]
                                     [18 redeliveries] [20 word]... [28 epoch]
"""

from __future__ import annotations

from collections.abc import Sequence
from struct import Struct

from pulsarbox.protocol.varint import signed, varint

_total_size = Struct(">I").pack


class DeliveryEncoder:
    """Encoder of frame headers for one consumer of one connection."""

    __slots__ = ("_before_entry", "_consumer_id", "_fixed", "_ledger", "_ledger_id", "_partition")

    def __init__(self, consumer_id: int, partition: int = -1) -> None:
        """``consumer_id`` is the client's. ``partition``: index of the topic's partition, -1 (omitted) for none."""
        self._consumer_id = varint(consumer_id)
        self._partition = b"" if partition == -1 else b"\x18" + signed(partition)
        self._ledger_id = -1
        self._ledger = b""
        self._before_entry: list[bytes] = []
        self._fixed: list[int] = []

    def header(
        self,
        ledger_id: int,
        entry_id: int,
        body_length: int,
        redelivery_count: int = 0,
        ack_set: Sequence[int] = (),
        consumer_epoch: int | None = None,
    ) -> bytes:
        """Return sizes and command of the frame that delivers an entry of ``body_length`` bytes.

        Omitted: a ``redelivery_count`` of 0, an empty ``ack_set`` (signed 64-bit words; a set bit is an unacknowledged
        message of the batch), and a ``consumer_epoch`` of None or -1.
        """
        if ledger_id != self._ledger_id:
            self._turn_to(ledger_id)
        entry = varint(entry_id)
        size = len(entry)
        if redelivery_count or ack_set or (consumer_epoch is not None and consumer_epoch >= 0):
            return self._long_header(entry, body_length, _options(redelivery_count, ack_set, consumer_epoch))
        return _total_size(self._fixed[size] + body_length) + self._before_entry[size] + entry + self._partition

    def _long_header(self, entry: bytes, body_length: int, options: bytes) -> bytes:
        before = self._command_up_to_entry(len(entry), len(options))
        command_size = len(before) - 4 + len(entry) + len(self._partition) + len(options)
        return b"".join((
            _total_size(4 + command_size + body_length), before, entry, self._partition, options,
        ))  # fmt: skip

    def _turn_to(self, ledger_id: int) -> None:
        """Prepare the bytes between totalSize and entry ID, for each possible length of an entry ID."""
        self._ledger = varint(ledger_id)
        before = [self._command_up_to_entry(size, 0) for size in range(11)]
        self._before_entry = before
        self._fixed = [len(before[size]) + size + len(self._partition) for size in range(11)]
        self._ledger_id = ledger_id

    def _command_up_to_entry(self, entry_size: int, options_size: int) -> bytes:
        """Return cmdSize and the command up to the tag of the entry ID, with sizes that count the bytes that follow."""
        ledger = self._ledger
        message_id_size = 2 + len(ledger) + entry_size + len(self._partition)
        part = b"".join((b"\x08", self._consumer_id, b"\x12", varint(message_id_size), b"\x08", ledger, b"\x10"))
        part_size = len(part) + entry_size + len(self._partition) + options_size
        command = b"".join((b"\x08\x09\x4a", varint(part_size), part))
        command_size = len(command) - len(part) + part_size
        return _total_size(command_size) + command


def _options(redelivery_count: int, ack_set: Sequence[int], consumer_epoch: int | None) -> bytes:
    """Return the fields of CommandMessage after its message ID."""
    options = b""
    if redelivery_count:
        options = b"\x18" + varint(redelivery_count)
    for word in ack_set:
        options += b"\x20" + signed(word)
    if consumer_epoch is not None and consumer_epoch >= 0:
        options += b"\x28" + varint(consumer_epoch)
    return options
