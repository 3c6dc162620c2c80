"""``pulsarbox.protocol.batch``."""

from __future__ import annotations

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from pulsarbox.protocol.batch import encode_batch, iterate_batch
from pulsarbox.protocol.frames import FrameDecoder
from pulsarbox.protocol.metadata import parse_entry
from pulsarbox.protocol.PulsarApi_pb2 import SingleMessageMetadata
from pulsarbox.protocol.violations import MalformedMetadata
from tests.unit.protocol.strategies import captured, messages

batches = st.lists(st.tuples(messages(SingleMessageMetadata), st.binary(max_size=20)), max_size=5)


@given(batches)
def test_a_batch_comes_back(batch: list[tuple[SingleMessageMetadata, bytes]]) -> None:
    body = encode_batch(batch)
    assert list(iterate_batch(body, len(batch))) == batch
    assert [metadata.payload_size for metadata, _ in batch] == [len(payload) for _, payload in batch]


def test_a_real_batch() -> None:
    found = []
    for row in captured():
        ((_, payload),) = FrameDecoder(100_000).feed(row.frame)
        if row.type == "SEND" and (entry := parse_entry(payload)).metadata.producer_name == "capture-batch":
            found += list(iterate_batch(payload[entry.body_offset :], entry.metadata.num_messages_in_batch))
    assert [(metadata.partition_key, payload) for metadata, payload in found] == [
        ("k0", b"batched 0"),
        ("k1", b"batched 1"),
        ("k2", b"batched 2"),
    ]


@pytest.mark.parametrize(
    ("body", "says"),
    [
        (b"", "message 0: the batch ends at byte 0"),
        (b"\x00\x00\x00\x09\x18\x00", "message 0: metadata of 9 bytes, but only 2 bytes follow"),
        (b"\x00\x00\x00\x01\xff", "message 0: malformed metadata of 1 bytes"),
        (b"\x00\x00\x00\x00", "message 0: metadata without the required field payload_size"),
        (b"\x00\x00\x00\x02\x18\x03ab", "message 0 of 2: payload of 3 bytes, but only 2 follow"),
        (
            b"\x00\x00\x00\x0b\x18\xff\xff\xff\xff\xff\xff\xff\xff\xff\x01",
            "message 0 of 2: payload of -1 bytes, but only 0",
        ),
        (b"\x00\x00\x00\x02\x18\x01a\x00", "message 1: the batch ends at byte 8"),
    ],
)
def test_what_is_wrong_is_said(body: bytes, says: str) -> None:
    with pytest.raises(MalformedMetadata) as caught:
        list(iterate_batch(body, 2))
    assert says in str(caught.value)


@given(st.binary(max_size=40), st.integers(-1, 4))
@settings(max_examples=200)
def test_any_bytes_are_read_or_refused(body: bytes, count: int) -> None:
    try:
        messages = list(iterate_batch(body, count))
    except MalformedMetadata:
        return
    assert len(messages) == max(0, count)
