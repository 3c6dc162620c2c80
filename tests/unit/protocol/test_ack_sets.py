"""``pulsarbox.protocol.ack_sets``."""

from hypothesis import given
from hypothesis import strategies as st

from pulsarbox.protocol.ack_sets import bits_of, first_of, indexes_of, words_of


@given(st.integers(0, 2**200))
def test_words_are_the_bits_64_at_a_time(bits: int) -> None:
    words = words_of(bits)
    assert sum((word & 2**64 - 1) << 64 * place for place, word in enumerate(words)) == bits
    assert bits_of(words) == bits


@given(st.sets(st.integers(0, 200)))
def test_indexes_are_those_of_the_bits(indexes: set[int]) -> None:
    bits = sum(1 << index for index in indexes)
    assert list(indexes_of(bits)) == sorted(indexes)
    assert first_of(bits) == min(indexes, default=-1)
