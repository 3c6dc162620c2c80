"""Parsing of timestamps and durations as people write them."""

import re
from typing import Final

from pulsarbox.clock import WALL_MAX

_UNITS: Final = {"ms": 1, "s": 1000, "m": 60_000, "h": 3_600_000, "d": 86_400_000, "w": 604_800_000}
_PART: Final = re.compile(r"([0-9]+(?:\.[0-9]+)?)(ms|s|m|h|d|w)")
_DURATION: Final = re.compile(rf"(?:{_PART.pattern})+")

_DIGITS_MAX: Final = 20
"""Digits parsed of a number: more than any timestamp has, and few enough for int()."""
_SHOWN_MAX: Final = 60
"""Characters of an invalid value that an error message repeats."""

DURATION_FORMS: Final = "such as 500ms, 30s, 5m, 1h30m, 10d"
TIME_FORMS: Final = "such as 2026-11-21T10:00, 2026-11-21 10:00:00Z, -1h, +5m, or milliseconds since 1970"


def duration(text: str) -> int:
    """Parse a duration and return milliseconds, at most ``WALL_MAX``. Raises ValueError with a readable message."""
    if not _DURATION.fullmatch(text):
        raise ValueError(f"invalid duration {_quoted(text)}: expected a number and a unit, {DURATION_FORMS}")
    # A float holds any number of digits, as infinity at worst: check the bound before converting to an integer.
    length = sum(float(number) * _UNITS[unit] for number, unit in _PART.findall(text))
    if length > WALL_MAX:
        raise ValueError(f"duration {_quoted(text)} is too long: the maximum is {WALL_MAX // _UNITS['d']}d")
    return round(length)


def moment(text: str, now: int) -> int:
    """Parse a timestamp and return milliseconds since 1970, from 0 to ``WALL_MAX``.

    Relative times (-1h, +5m) count from ``now``. A time without a zone is local. Raises ValueError with a readable
    message.
    """
    found = _moment(text, now)
    if not 0 <= found <= WALL_MAX:
        raise ValueError(f"time {_quoted(text)} is out of range: expected a year from 1970 to 9999")
    return found


def _moment(text: str, now: int) -> int:
    if text[:1] in ("-", "+") and _DURATION.fullmatch(text[1:]):
        length = duration(text[1:])
        return now - length if text[0] == "-" else now + length
    if text.isascii() and text.isdigit() and len(text) >= 9:
        number = int(text[:_DIGITS_MAX])
        return number if len(text) > 11 else 1000 * number
    from datetime import datetime

    try:
        return round(datetime.fromisoformat(text).timestamp() * 1000)
    except (ValueError, OverflowError, OSError):
        raise ValueError(f"invalid time {_quoted(text)}: expected a form {TIME_FORMS}") from None


def _quoted(text: str) -> str:
    return f"'{text if len(text) <= _SHOWN_MAX else text[:_SHOWN_MAX] + '...'}'"
