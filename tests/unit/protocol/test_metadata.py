"""``pulsarbox.protocol.metadata``."""

from __future__ import annotations

from struct import pack

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from pulsarbox.errors import ChecksumError
from pulsarbox.protocol.checksum import crc32c
from pulsarbox.protocol.frames import FrameDecoder
from pulsarbox.protocol.metadata import (
    batch_fits,
    broker_entry_metadata,
    dispatch_key,
    encode_entry,
    parse_entry,
    sticky_key,
    strip_broker_entry_metadata,
    with_broker_entry_metadata,
)
from pulsarbox.protocol.PulsarApi_pb2 import BrokerEntryMetadata, CompressionType, MessageMetadata
from pulsarbox.protocol.violations import ChecksumMismatch, MalformedMetadata, ProtocolError
from tests.tools.campaigns import examples
from tests.unit.protocol.strategies import captured, messages

PLAIN = MessageMetadata(producer_name="p", sequence_id=0, publish_time=1_700_000_000_000)


@given(messages(MessageMetadata), st.binary(max_size=50), st.booleans(), st.booleans())
def test_an_entry_comes_back(metadata: MessageMetadata, body: bytes, checksum: bool, stamped: bool) -> None:
    sent = payload = encode_entry(metadata, body, checksum)
    if stamped:
        payload = with_broker_entry_metadata(sent, BrokerEntryMetadata(broker_timestamp=7, index=9))
        assert broker_entry_metadata(payload) == BrokerEntryMetadata(broker_timestamp=7, index=9)
    entry = parse_entry(payload)
    assert entry.metadata == metadata
    assert payload[entry.body_offset :] == body
    assert MessageMetadata.FromString(payload[entry.metadata_start : entry.body_offset]) == metadata
    assert payload[entry.start :] == strip_broker_entry_metadata(payload) == sent
    assert entry.checksum == (crc32c(sent[6:]) if checksum else None)


def test_real_payloads() -> None:
    keys = []
    for row in captured():
        ((_, payload),) = FrameDecoder(100_000).feed(row.frame)
        if payload:
            entry = parse_entry(payload)
            assert entry.checksum is not None
            assert entry.metadata.producer_name.startswith("capture-")
            keys.append(sticky_key(entry.metadata))
    assert b"order-1" in keys
    assert None in keys


def test_a_wrong_checksum_is_told_unless_it_is_not_to_be_verified() -> None:
    payload = encode_entry(PLAIN, b"body")[:-1] + b"Y"
    with pytest.raises(
        ChecksumMismatch, match=r"crc32c of \d+ bytes is 0x[0-9a-f]{8}, expected 0x[0-9a-f]{8}"
    ) as caught:
        parse_entry(payload)
    assert isinstance(caught.value, ChecksumError)
    assert caught.value.server_error == 9
    assert parse_entry(payload, verify=False).metadata == PLAIN


def covered(data: bytes) -> bytes:
    return b"\x0e\x01" + pack(">I", crc32c(data)) + data


@pytest.mark.parametrize(
    ("payload", "says"),
    [
        (b"", "payload of 0 bytes ends before the metadata"),
        (b"\x0e\x01\x00", "payload of 3 bytes ends before the metadata"),
        (covered(b"\x00"), "payload of 7 bytes ends before the metadata"),
        (b"\x00\x00\x00\x05abcd", "metadata of 5 bytes, but only 4 bytes follow"),
        (covered(b"\xff\xff\xff\xffabcd"), "metadata of 4294967295 bytes, but only 4 bytes follow"),
        (covered(b"\x00\x00\x00\x01\xff"), "malformed metadata of 1 bytes"),
        (covered(b"\x00\x00\x00\x00body"), "metadata without the required fields producer_name, sequence_id"),
        (b"\x0e\x02\x00", "payload of 3 bytes ends before the size of the broker entry metadata"),
        (b"\x0e\x02\x00\x00\x00\x09abc", "broker entry metadata of 9 bytes, but only 3 bytes follow"),
    ],
)
def test_what_is_wrong_is_said(payload: bytes, says: str) -> None:
    with pytest.raises(MalformedMetadata) as caught:
        parse_entry(payload)
    assert says in str(caught.value)


@given(st.data())
@settings(max_examples=examples(300))
def test_mutated_real_payloads_are_read_or_refused(data: st.DataObject) -> None:
    rows = [row for row in captured() if row.type in ("SEND", "MESSAGE")]
    payload = bytearray(FrameDecoder(100_000).feed(data.draw(st.sampled_from(rows)).frame)[0][1])
    for _ in range(data.draw(st.integers(0, 3))):
        payload[data.draw(st.integers(0, len(payload) - 1))] = data.draw(st.integers(0, 255))
    payload = payload[: data.draw(st.integers(0, len(payload)))]
    try:
        sticky_key(parse_entry(bytes(payload), verify=data.draw(st.booleans())).metadata)
    except ProtocolError:
        pass


def test_broker_entry_metadata_of_nothing() -> None:
    payload = encode_entry(PLAIN, b"body")
    assert strip_broker_entry_metadata(payload) is payload
    assert broker_entry_metadata(payload) is None
    with pytest.raises(MalformedMetadata, match="malformed broker entry metadata of 1 bytes"):
        broker_entry_metadata(b"\x0e\x02\x00\x00\x00\x01\xff")


@pytest.mark.parametrize(
    ("fields", "key"),
    [
        ({}, None),
        ({"partition_key": "k"}, b"k"),
        ({"partition_key": ""}, b""),
        ({"partition_key": "ключ"}, "ключ".encode()),
        ({"partition_key": "AAH/", "partition_key_b64_encoded": True}, b"\x00\x01\xff"),
        ({"partition_key": "not base64!", "partition_key_b64_encoded": True}, b"not base64!"),
        ({"partition_key": "k", "ordering_key": b"o"}, b"o"),
        ({"ordering_key": b""}, b""),
    ],
)
def test_sticky_key(fields: dict[str, str | bytes | bool], key: bytes | None) -> None:
    assert sticky_key(MessageMetadata(**fields)) == key  # type: ignore[arg-type]


def test_sticky_key_that_is_not_utf8() -> None:
    assert sticky_key(MessageMetadata.FromString(b"\x32\x02\xc3\x28")) == b"\xc3\x28"


@pytest.mark.parametrize(
    ("fields", "key"),
    [
        ({"partition_key": "k", "ordering_key": b"o"}, b"o"),
        ({"partition_key": "a2V5Mg==", "partition_key_b64_encoded": True}, b"key2"),
        ({"partition_key": ""}, b""),
        ({}, "p\u00fc-8".encode()),
    ],
)
def test_every_entry_has_a_dispatch_key(fields: dict[str, str | bytes | bool], key: bytes) -> None:
    """As observed with Pulsar 4.2.4: an empty partition key counts as a key."""
    metadata = MessageMetadata(producer_name="p\u00fc", sequence_id=8, **fields)  # type: ignore[arg-type]
    assert dispatch_key(metadata) == key


def test_dispatch_key_of_a_name_that_is_not_utf8() -> None:
    assert dispatch_key(MessageMetadata.FromString(b"\x0a\x02\xc3\x28\x10\x08")) == b"\xc3\x28-8"


@pytest.mark.parametrize(
    ("count", "size", "packed", "fits"),
    [
        (-1, 100, None, False),
        (0, 100, None, False),
        (1000, 1, None, True),
        (1001, 6005, None, False),
        (1001, 6006, None, True),
        (2**31 - 1, 5 << 20, None, False),
        (100_000, 1000, 600_000, True),
        (100_000, 1000, 599_999, False),
        (2**31 - 1, 1000, 2**32 - 1, False),
    ],
)
def test_a_batch_has_no_more_messages_than_can_be_in_it(count: int, size: int, packed: int | None, fits: bool) -> None:
    metadata = MessageMetadata(num_messages_in_batch=count)
    if packed is not None:
        metadata.compression, metadata.uncompressed_size = CompressionType.ZSTD, packed
    assert batch_fits(metadata, size) is fits
