"""Frames: what is encoded is decoded, in any pieces; malformed and hostile bytes end in an error, in bounded memory."""

import json
import tracemalloc
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from pulsarbox.protocol.checksum import crc32c
from pulsarbox.storage.ensemble.remote.frames import FRAME_MAX, HEAD, FrameError, WireDecoder, WireFrame, encode

FRAMES = st.builds(
    WireFrame,
    st.integers(0, 255),
    st.integers(0, (1 << 32) - 1),
    st.dictionaries(st.text(max_size=5), st.integers() | st.text(max_size=5), max_size=3),
    st.binary(max_size=100),
)


def framed(rest: bytes) -> bytes:
    """Return any content as a frame with a correct size and checksum."""
    return HEAD.pack(len(rest), crc32c(rest)) + rest


@given(st.lists(FRAMES, max_size=5), st.data())
def test_frames_are_decoded_from_any_pieces(frames: list[WireFrame], data: st.DataObject) -> None:
    wire = b"".join([part for frame in frames for part in encode(frame)])
    decoder = WireDecoder(FRAME_MAX)
    found: list[WireFrame] = []
    while wire:
        size = data.draw(st.integers(1, len(wire)))
        found += decoder.feed(wire[:size])
        wire = wire[size:]
    assert found == frames
    assert decoder.is_between


@given(FRAMES, st.data())
def test_a_flipped_bit_is_noticed_or_awaits_more_bytes(frame: WireFrame, data: st.DataObject) -> None:
    wire = bytearray(b"".join(encode(frame)))
    bit = data.draw(st.integers(0, 8 * len(wire) - 1))
    wire[bit // 8] ^= 1 << bit % 8
    try:
        found = WireDecoder(4096).feed(bytes(wire))
    except FrameError:
        return
    assert found == []  # a larger size was announced


@given(st.binary(max_size=300))
def test_any_bytes_are_a_frame_an_error_or_incomplete(data: bytes) -> None:
    for each in (data, framed(data)):
        try:
            found = WireDecoder(4096).feed(each)
        except FrameError:
            continue
        assert all(isinstance(frame, WireFrame) for frame in found)


@pytest.mark.parametrize(
    ("rest", "problem"),
    [
        (b"", "expected 12 to 4096"),
        (bytes(12 - 1), "expected 12 to 4096"),
        (bytes(8) + b"\0\0\0\1", "the fields of a frame have 1 bytes"),
        (bytes(8) + b"\xff\xff\xff\xff", "the fields of a frame have"),
        (bytes(8) + b"\0\0\0\2{}"[:5] + b"{", "not JSON"),
        (bytes(8) + b"\0\0\0\2[]", "not a JSON object"),
        (bytes(8) + b"\0\0\0\2\xff\xff", "not JSON"),
        (bytes(8) + (3000).to_bytes(4, "big") + b"[" * 3000, "not JSON"),
    ],
)
def test_a_malformed_frame_is_an_error(rest: bytes, problem: str) -> None:
    with pytest.raises(FrameError, match=problem):
        WireDecoder(4096).feed(framed(rest))


def test_a_frame_above_the_limit_is_refused_before_it_is_received() -> None:
    with pytest.raises(FrameError, match="a frame of 4097 bytes"):
        WireDecoder(4096).feed(HEAD.pack(4097, 0))
    with pytest.raises(FrameError, match="exceeds the limit of 50"):
        encode(WireFrame(1, 1, {}, bytes(50)), 50)


def test_an_announced_size_takes_no_memory() -> None:
    decoder = WireDecoder(FRAME_MAX)
    tracemalloc.start()
    try:
        assert decoder.feed(HEAD.pack(FRAME_MAX, 0) + bytes(100)) == []
        assert tracemalloc.get_traced_memory()[1] < 1 << 20
    finally:
        tracemalloc.stop()


def test_the_layout_of_a_frame_is_stable() -> None:
    fields: dict[str, Any] = {"do": "commit"}
    rest = b"\x10\0\0\0" + (7).to_bytes(4, "big") + (15).to_bytes(4, "big") + json.dumps(fields).encode()[:-1] + b"}"
    rest = rest.replace(b": ", b":") + b"body"
    assert b"".join(encode(WireFrame(16, 7, fields, b"body"))) == framed(rest)
