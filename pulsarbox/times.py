"""Points in time and lengths of time, as people write them."""

import re
from typing import Final

from pulsarbox.clock import WALL_MAX

_UNITS: Final = {"ms": 1, "s": 1000, "m": 60_000, "h": 3_600_000, "d": 86_400_000, "w": 604_800_000}
_PART: Final = re.compile(r"([0-9]+(?:\.[0-9]+)?)(ms|s|m|h|d|w)")
_DURATION: Final = re.compile(rf"(?:{_PART.pattern})+")

_DIGITS_MAX: Final = 20
"""Digits that are read of a number: more than any time has, and few enough for int()."""
_SHOWN_MAX: Final = 60
"""Characters of a wrong value that a message repeats."""

DURATION_FORMS: Final = "such as 500ms, 30s, 5m, 1h30m, 10d"
TIME_FORMS: Final = "such as 2026-11-21T10:00, 2026-11-21 10:00:00Z, -1h, +5m, or milliseconds since 1970"


def duration(text: str) -> int:
    """A length of time in milliseconds, at most ``WALL_MAX``. Raises ValueError, in words."""
    if not _DURATION.fullmatch(text):
        raise ValueError(f"{_quoted(text)} is no length of time {DURATION_FORMS}")
    # A float holds whatever the digits say, infinity at worst, so the bound is checked before it becomes an integer.
    length = sum(float(number) * _UNITS[unit] for number, unit in _PART.findall(text))
    if length > WALL_MAX:
        raise ValueError(f"{_quoted(text)} is too long: lengths of time end at {WALL_MAX // _UNITS['d']}d")
    return round(length)


def moment(text: str, now: int) -> int:
    """A point in time in milliseconds since 1970, from 0 to ``WALL_MAX``; ``now`` is what -1h and +5m count from.

    A time without a zone is local. Raises ValueError, in words.
    """
    found = _moment(text, now)
    if not 0 <= found <= WALL_MAX:
        raise ValueError(f"{_quoted(text)} is out of range: times lie between the years 1970 and 9999")
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
        raise ValueError(f"{_quoted(text)} is no time {TIME_FORMS}") from None


def _quoted(text: str) -> str:
    return f"'{text if len(text) <= _SHOWN_MAX else text[:_SHOWN_MAX] + '...'}'"
