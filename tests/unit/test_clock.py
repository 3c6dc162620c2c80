"""Times in words, and times of clients on a clock that is ahead."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from pulsarbox.clock import Now, in_words, milliseconds

DAY = 86_400_000


@pytest.mark.parametrize(
    ("text", "expected"),
    [("10d", 10 * DAY), ("1h30m", 5_400_000), ("250ms", 250), ("1.5s", 1500), ("2w", 14 * DAY), ("0s", 0)],
)
def test_durations_are_read(text: str, expected: int) -> None:
    assert milliseconds(text) == expected


@pytest.mark.parametrize("text", ["", "10", "d", "10 d", "-1d", "1y", "1d!", "ten days"])
def test_what_is_no_duration_is_refused_and_shown_how(text: str) -> None:
    with pytest.raises(ValueError, match="it looks like 10d, 1h30m or 250ms"):
        milliseconds(text)


@given(st.integers(0, 400 * DAY))
def test_durations_are_told_as_they_are_read(duration: int) -> None:
    assert milliseconds(in_words(duration)) == duration


def test_a_duration_that_goes_back_says_so() -> None:
    assert in_words(-90_000) == "-1m30s"


def test_times_of_clients_are_shifted_by_the_offset_and_stay_what_a_record_can_hold() -> None:
    assert Now(0.0, 5).of_client(2**64 - 1) == 2**64 - 1
    assert Now(0.0, 5, 7).of_client(100) == 107
    assert Now(0.0, 5, 7).of_client(2**64 - 1) == 2**63 - 1
