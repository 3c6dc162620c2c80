"""``pulsarbox.protocol.checksum``."""

from __future__ import annotations

from hypothesis import given
from hypothesis import strategies as st

from pulsarbox.protocol import checksum


def test_the_c_implementation_is_in_use() -> None:
    assert checksum.ACCELERATED


def test_the_check_value_of_the_polynomial() -> None:
    assert checksum.crc32c(b"123456789") == 0xE3069283
    assert checksum.crc32c(b"") == 0


@given(st.binary(max_size=300), st.binary(max_size=300))
def test_parts_and_fallback_agree_with_the_whole(head: bytes, tail: bytes) -> None:
    whole = checksum.crc32c(head + tail)
    assert checksum.extend(checksum.crc32c(head), tail) == whole
    assert checksum.crc32c(memoryview(bytearray(head + tail))) == whole
    assert checksum.extend(checksum.crc32c(bytearray(head)), memoryview(tail)) == whole
    assert checksum.extend_in_python(checksum.extend_in_python(0, head), tail) == whole
