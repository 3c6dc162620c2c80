"""Times and durations in user notation."""

from datetime import UTC, datetime

import pytest

from pulsarbox.clock import WALL_MAX
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
        ("0s", 0),
        (f"{WALL_MAX}ms", WALL_MAX),
    ],
)
def test_lengths_of_time(text: str, millis: int) -> None:
    assert duration(text) == millis


@pytest.mark.parametrize("text", ["", "5", "s", "1y", "-1s", "1h 30m", "1e3s", "1d!", "ten days", "\u0663d", "x" * 90])
def test_what_is_no_length_of_time(text: str) -> None:
    with pytest.raises(ValueError, match="invalid duration"):
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


@pytest.mark.parametrize("text", ["", "now", "-", "25:00", "2023-13-01", "x" * 90])
def test_what_is_no_moment(text: str) -> None:
    with pytest.raises(ValueError, match="invalid time") as raised:
        moment(text, NOW)
    assert len(str(raised.value)) < 300


@pytest.mark.parametrize("digits", ["99999999999", "9" * 400, "9" * 5000, "9" * 400 + ".5"])
@pytest.mark.parametrize("unit", ["d", "w", "h1ms"])
def test_lengths_of_time_have_an_end(digits: str, unit: str) -> None:
    with pytest.raises(ValueError, match="is too long: the maximum is 2932896d") as raised:
        duration(digits + unit)
    assert len(str(raised.value)) < 300
    for sign in "-+":
        with pytest.raises(ValueError, match="is too long"):
            moment(sign + digits + unit, NOW)


@pytest.mark.parametrize(
    "text",
    [
        "-30000d",
        "+2932896d",
        "9" * 15,
        "1" * 400,
        "9" * 5000,
        "1969-12-31T23:59:59Z",
        "0001-01-01T00:00:00+14:00",
        "9999-12-31T23:59:59-12:00",
    ],
)
def test_moments_lie_in_what_calendars_have(text: str) -> None:
    with pytest.raises(ValueError, match=r"out of range: expected a year from 1970 to 9999|invalid time"):
        moment(text, NOW)


def test_the_ends_are_among_them() -> None:
    assert moment("1970-01-01T00:00:00Z", NOW) == 0
    assert moment(str(WALL_MAX), NOW) == WALL_MAX
    assert moment(f"-{NOW}ms", NOW) == 0
