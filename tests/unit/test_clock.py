"""Formatted times, and client times that run ahead with a virtual clock."""

from hypothesis import given
from hypothesis import strategies as st

from pulsarbox.clock import Now, in_words
from pulsarbox.times import duration

DAY = 86_400_000


@given(st.integers(0, 400 * DAY))
def test_durations_are_told_as_they_are_read(length: int) -> None:
    assert duration(in_words(length)) == length


def test_a_duration_that_goes_back_says_so() -> None:
    assert in_words(-90_000) == "-1m30s"


def test_times_of_clients_are_shifted_by_the_offset_and_stay_what_a_record_can_hold() -> None:
    assert Now(0.0, 5).of_client(2**64 - 1) == 2**64 - 1
    assert Now(0.0, 5, 7).of_client(100) == 107
    assert Now(0.0, 5, 7).of_client(2**64 - 1) == 2**63 - 1
