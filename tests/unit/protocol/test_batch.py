"""``pulsarbox.protocol.batch``."""

from __future__ import annotations

from collections.abc import Callable

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from pulsarbox.protocol.batch import encode_batch, iterate_batch, read_batch
from pulsarbox.protocol.frames import FrameDecoder
from pulsarbox.protocol.metadata import parse_entry
from pulsarbox.protocol.PulsarApi_pb2 import SingleMessageMetadata
from pulsarbox.protocol.violations import MalformedMetadata
from tests.tools.campaigns import examples
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
    for read in (read_batch, lambda body, count: list(iterate_batch(body, count))):
        with pytest.raises(MalformedMetadata) as caught:
            read(body, 2)
        assert says in str(caught.value)


def read_alike(body: bytes, count: int) -> None:
    """Check that both readers return the same messages, or reject the batch for the same reason."""
    said = refusal(read_batch, body, count)
    assert said == refusal(lambda *batch: list(iterate_batch(*batch)), body, count)
    if not said:
        found = list(iterate_batch(body, count))
        assert read_batch(body, count) == (
            [single for single, _ in found],
            [None if single.null_value else payload for single, payload in found],
        )
        assert len(found) == max(0, count)


def refusal(read: Callable[[bytes, int], object], body: bytes, count: int) -> str:
    """Return the reason for which a reader rejects a batch, or an empty string."""
    try:
        read(body, count)
    except MalformedMetadata as error:
        return str(error)
    return ""


@given(st.binary(max_size=40), st.integers(-1, 4))
@settings(max_examples=examples(200))
def test_any_bytes_are_read_or_refused(body: bytes, count: int) -> None:
    read_alike(body, count)


@given(batches, st.data())
def test_a_damaged_batch_is_refused_alike(
    batch: list[tuple[SingleMessageMetadata, bytes]], data: st.DataObject
) -> None:
    body = bytearray(encode_batch(batch))
    if body:
        body[data.draw(st.integers(0, len(body) - 1))] = data.draw(st.integers(0, 255))
    read_alike(bytes(body[: data.draw(st.integers(0, len(body)))]), len(batch))
