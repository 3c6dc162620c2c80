"""``pulsarbox.protocol.frames``."""

from __future__ import annotations

from itertools import pairwise
from struct import pack

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from pulsarbox.protocol.frames import LARGE_BUFFER, SMALL_BUFFER, Frame, FrameDecoder, max_frame_size
from pulsarbox.protocol.violations import FrameTooLarge, MalformedFrame, ProtocolError
from tests.tools.campaigns import examples
from tests.unit.protocol.strategies import captured, frames

LIMIT = max_frame_size(5 * 1024 * 1024)


def frame(command: bytes, rest: bytes = b"") -> bytes:
    return pack(">II", 4 + len(command) + len(rest), len(command)) + command + rest


def parts(data: bytes) -> Frame:
    size = int.from_bytes(data[4:8], "big")
    return data[8 : 8 + size], data[8 + size :]


def feed_in_pieces(decoder: FrameDecoder, stream: bytes, cuts: list[int]) -> list[Frame]:
    edges = [0, *sorted(cut % (len(stream) + 1) for cut in cuts), len(stream)]
    found = []
    for start, stop in pairwise(edges):
        found += decoder.feed(stream[start:stop])
    return found


def test_a_stream_byte_by_byte() -> None:
    decoder = FrameDecoder(LIMIT)
    stream = frame(b"one") + frame(b"two", b"payload") + frame(b"3")
    found = [item for byte in stream for item in decoder.feed(bytes((byte,)))]
    assert found == [(b"one", b""), (b"two", b"payload"), (b"3", b"")]
    assert (decoder.error, decoder.pending, decoder.allocated) == (None, 0, 0)


def test_the_captured_conversation_comes_out_frame_by_frame() -> None:
    for sender in "CB":
        sent = [row.frame for row in captured() if row.sender == sender]
        assert FrameDecoder(LIMIT).feed(b"".join(sent)) == [parts(data) for data in sent]


@given(st.lists(frames, max_size=6), st.lists(st.integers(0, 10_000), max_size=12))
@settings(max_examples=examples(60))
def test_any_split_gives_the_same_frames(stream: list[bytes], cuts: list[int]) -> None:
    decoder = FrameDecoder(LIMIT)
    assert feed_in_pieces(decoder, b"".join(stream), cuts) == [parts(data) for data in stream]
    assert (decoder.error, decoder.pending) == (None, 0)


SIZES = st.sampled_from([1, 100, SMALL_BUFFER - 9, SMALL_BUFFER - 8, SMALL_BUFFER, 200_000, LARGE_BUFFER, 700_000])


@given(st.lists(SIZES, max_size=5), st.lists(st.integers(0, 2_000_000), max_size=8))
@settings(max_examples=examples(60))
def test_any_split_of_large_frames_gives_the_same_frames(sizes: list[int], cuts: list[int]) -> None:
    stream = [frame(b"command", bytes((index,)) * size) for index, size in enumerate(sizes)]
    decoder = FrameDecoder(LIMIT)
    assert feed_in_pieces(decoder, b"".join(stream), cuts) == [parts(data) for data in stream]
    assert (decoder.error, decoder.pending, decoder.allocated) == (None, 0, 0)


@given(st.binary(max_size=200), st.lists(st.integers(0, 200), max_size=6), st.integers(0, 300))
def test_any_bytes_end_in_frames_or_an_error_wherever_they_are_split(
    stream: bytes, cuts: list[int], limit: int
) -> None:
    whole, split = FrameDecoder(limit), FrameDecoder(limit)
    assert whole.feed(stream) == feed_in_pieces(split, stream, cuts)
    assert repr(whole.error) == repr(split.error)
    assert whole.error is None or isinstance(whole.error, ProtocolError)
    assert max(whole.allocated, split.allocated) <= SMALL_BUFFER


@given(st.data())
@settings(max_examples=examples(200))
def test_mutated_real_frames_end_in_frames_or_an_error(data: st.DataObject) -> None:
    stream = bytearray(b"".join(data.draw(st.sampled_from(captured())).frame for _ in range(3)))
    for _ in range(data.draw(st.integers(1, 4))):
        stream[data.draw(st.integers(0, len(stream) - 1))] = data.draw(st.integers(0, 255))
    decoder = FrameDecoder(LIMIT)
    decoder.feed(bytes(stream))
    assert decoder.error is None or isinstance(decoder.error, ProtocolError)
    assert decoder.pending <= LIMIT + 4


@pytest.mark.parametrize(
    ("header", "error", "says"),
    [
        (pack(">I", 1001), FrameTooLarge, "frame of 1001 bytes exceeds the limit of 1000 bytes"),
        (pack(">I", 0xFFFFFFFF), FrameTooLarge, "frame of 4294967295 bytes exceeds"),
        (pack(">I", 4), MalformedFrame, "frame of 4 bytes is too small for a command"),
        (pack(">II", 20, 0), MalformedFrame, "command of 0 bytes in a frame of 20 bytes: expected 1 to 16"),
        (pack(">II", 20, 17), MalformedFrame, "command of 17 bytes in a frame of 20 bytes"),
        (b"GET / HTTP/1.1\r\n", FrameTooLarge, "frame of 1195725856 bytes"),
    ],
)
@pytest.mark.parametrize("before", [b"", frame(b"good")])
def test_a_wrong_header_ends_the_stream_after_the_good_frames(
    before: bytes, header: bytes, error: type[ProtocolError], says: str
) -> None:
    decoder = FrameDecoder(1000)
    assert decoder.feed(before + header) == ([(b"good", b"")] if before else [])
    assert type(decoder.error) is error
    assert says in str(decoder.error)
    assert decoder.feed(frame(b"too late") * 9) == []
    assert len(decoder.get_buffer(-1)) > 0
    assert decoder.pending == 0


def test_a_header_alone_does_not_allocate_its_frame() -> None:
    decoder = FrameDecoder(LIMIT)
    decoder.feed(pack(">II", LIMIT, 9))
    assert decoder.allocated == SMALL_BUFFER
    decoder.feed(b"x" * LARGE_BUFFER)
    assert decoder.allocated <= 2 * LARGE_BUFFER
    decoder.feed(b"x" * (LIMIT - 5 - LARGE_BUFFER))
    assert decoder.allocated == LIMIT + 4
    assert [len(rest) for _, rest in decoder.feed(b"x")] == [LIMIT - 4 - 9]
    assert decoder.allocated == 0


def test_the_largest_frame_is_accepted() -> None:
    assert FrameDecoder(20).feed(pack(">II", 20, 16) + b"x" * 16) == [(b"x" * 16, b"")]


def test_free_space_is_at_least_64_kib_at_first_and_ends_with_a_large_frame() -> None:
    decoder = FrameDecoder(LIMIT)
    assert len(decoder.get_buffer(-1)) >= 65536
    decoder.feed(pack(">II", 100_000, 9) + b"x" * SMALL_BUFFER)
    assert len(decoder.get_buffer(-1)) == 100_004 - SMALL_BUFFER - 8
