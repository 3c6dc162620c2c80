"""``pulsarbox.protocol.varint``."""

from __future__ import annotations

from hypothesis import example, given

from pulsarbox.protocol.PulsarApi_pb2 import BrokerEntryMetadata, MessageMetadata
from pulsarbox.protocol.varint import signed, varint
from tests.unit.protocol.strategies import int64, uint64


@given(uint64)
@example(0x3FFF)
@example(0x4000)
@example(0xFFFFFFF)
@example(0x10000000)
def test_the_bytes_are_those_of_protobuf(n: int) -> None:
    assert b"\x10" + varint(n) == BrokerEntryMetadata(index=n).SerializeToString()


@given(int64)
def test_signed(n: int) -> None:
    assert b"\x98\x01" + signed(n) == MessageMetadata(deliver_at_time=n).SerializePartialToString()
