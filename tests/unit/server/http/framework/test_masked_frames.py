"""The check that clients mask their frames."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from pulsarbox.server.http.framework.masked_frames import FrameMasks, MaskedFrames


def frame(size: int, *, masked: bool = True) -> bytes:
    """A text frame with a payload of zeros."""
    bit = 0x80 if masked else 0
    if size < 126:
        head = bytes([0x81, bit | size])
    elif size < 1 << 16:
        head = bytes([0x81, bit | 126]) + size.to_bytes(2, "big")
    else:
        head = bytes([0x81, bit | 127]) + size.to_bytes(8, "big")
    return head + (b"\1\2\3\4" if masked else b"") + bytes(size)


SIZES = [0, 1, 125, 126, 127, 65535, 65536, 70000]


@given(st.lists(st.sampled_from(SIZES), max_size=4), st.lists(st.integers(1, 70000), min_size=1, max_size=20))
def test_masked_frames_pass_in_any_pieces(sizes: list[int], pieces: list[int]) -> None:
    data = b"".join(frame(size) for size in sizes)
    masks, at = FrameMasks(), 0
    for piece in pieces:
        assert masks.feed(data[at : at + piece])
        at += piece
    assert masks.feed(data[at:])
    assert not masks.feed(frame(3, masked=False))


@pytest.mark.parametrize("size", SIZES)
def test_byte_by_byte(size: int) -> None:
    masks = FrameMasks()
    assert all(masks.feed(bytes([byte])) for byte in frame(size))
    data = frame(size, masked=False)
    assert masks.feed(data[:1])
    assert not masks.feed(data[1:2])
    assert not masks.feed(frame(size))


class Parser:
    """Records its input."""

    def __init__(self) -> None:
        self.fed: list[bytes] = []

    def feed_data(self, data: bytes) -> tuple[bool, bytes]:
        self.fed.append(data)
        return False, b""

    def feed_eof(self) -> None:
        self.fed.append(b"eof")


def test_the_parser_sees_an_invalid_frame_instead() -> None:
    parser, reads = Parser(), []
    checked = MaskedFrames(parser, lambda: reads.append(1))
    checked.feed_data(frame(3))
    checked.feed_data(frame(4, masked=False))
    checked.feed_eof()
    assert parser.fed == [frame(3), b"\xf0\x80\0\0\0\0", b"eof"]
    assert len(reads) == 2
