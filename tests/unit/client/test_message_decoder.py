"""Components of the client: hashes, codecs, received batches."""

import zlib
from types import SimpleNamespace
from typing import Any, cast

import pytest
import zstandard
from hypothesis import given
from hypothesis import strategies as st

from pulsarbox.client.compression import CODECS, UNCOMPRESSED_MAX, codec, compress, decompress
from pulsarbox.client.errors import Unusable
from pulsarbox.client.message_decoder import ReceivedEntry, unpack
from pulsarbox.protocol.ack_sets import words_of
from pulsarbox.protocol.message_encoder import Outgoing, in_batch
from pulsarbox.protocol.PulsarApi_pb2 import MessageMetadata
from pulsarbox.protocol.violations import MalformedMetadata

NUMBERS = [number for number in CODECS.values() if number]


@pytest.mark.parametrize("number", NUMBERS)
@given(data=st.binary(max_size=2000) | st.binary(max_size=20).map(lambda part: part * 500))
def test_what_is_compressed_comes_back(number: int, data: bytes) -> None:
    assert decompress(number, compress(number, data), len(data)) == data


@pytest.mark.parametrize("number", NUMBERS)
def test_nothing_longer_than_was_told_is_unpacked(number: int) -> None:
    bomb = compress(number, bytes(10_000_000))
    for told in (0, 1, 1000, 9_999_999, 10_000_001):
        with pytest.raises(Unusable):
            decompress(number, bomb, told)
    with pytest.raises(Unusable, match="exceeds the limit"):
        decompress(number, bomb, UNCOMPRESSED_MAX + 1)


@pytest.mark.parametrize("number", NUMBERS)
@given(data=st.binary(max_size=200))
def test_rubbish_is_refused_or_harmless(number: int, data: bytes) -> None:
    try:
        assert len(decompress(number, data, 100)) == 100
    except Unusable:
        pass


def test_frames_that_do_not_tell_their_size() -> None:
    chunked = zstandard.ZstdCompressor().compressobj()
    data = chunked.compress(b"abc") + chunked.flush()
    assert decompress(CODECS["zstd"], data, 3) == b"abc"
    assert decompress(CODECS["zlib"], zlib.compress(b"abc"), 3) == b"abc"


def test_a_codec_that_nobody_knows() -> None:
    with pytest.raises(Unusable, match="unknown compression type 9"):
        codec(9)


def entry(**metadata: Any) -> ReceivedEntry:
    consumer = cast(Any, SimpleNamespace(topic="t", partition=-1, generation=0))
    return ReceivedEntry(
        consumer, 1, 2, MessageMetadata(producer_name="p", sequence_id=5, publish_time=1, **metadata), 0
    )


def test_acknowledged_messages_of_a_batch_are_left_out() -> None:
    body = b"".join(part for number in range(70) for part in in_batch(Outgoing(b"%d" % number), number))
    one = entry(num_messages_in_batch=70)
    open_ones = {0, 3, 64, 69}
    words = list(words_of(sum(1 << number for number in open_ones)))
    assert [each.index for each in unpack(one, body, words)] == sorted(open_ones)
    assert list(words_of(one.unacked)) == words


@given(st.binary(max_size=100), st.integers(0, 5))
def test_a_batch_that_is_none_is_told(body: bytes, count: int) -> None:
    try:
        found = unpack(entry(num_messages_in_batch=count), body, [])
    except MalformedMetadata as refused:
        assert "1:2" in str(refused)  # noqa: PT017 # hypothesis also generates valid bodies
        return
    assert len(found) == count


def test_an_encrypted_entry_is_one_message_as_it_is() -> None:
    one = entry(num_messages_in_batch=3, compression="LZ4", uncompressed_size=9)
    one.metadata.encryption_keys.add(key="k", value=b"v")
    (message,) = unpack(one, b"secret", [])
    assert (message.payload, message.encrypted, message.index) == (b"secret", True, -1)
