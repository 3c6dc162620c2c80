"""Points in time and lengths of time, as people write them."""

import re
from typing import Final

_UNITS: Final = {"ms": 1, "s": 1000, "m": 60_000, "h": 3_600_000, "d": 86_400_000, "w": 604_800_000}
_PART: Final = re.compile(r"(\d+(?:\.\d+)?)(ms|s|m|h|d|w)")
_DURATION: Final = re.compile(rf"(?:{_PART.pattern})+")

DURATION_FORMS: Final = "such as 500ms, 30s, 5m, 1h30m, 10d"
TIME_FORMS: Final = "such as 2026-11-21T10:00, 2026-11-21 10:00:00Z, -1h, +5m, or milliseconds since 1970"


def duration(text: str) -> int:
    """Milliseconds. Raises ValueError, in words."""
    if not _DURATION.fullmatch(text):
        raise ValueError(f"'{text}' is no length of time {DURATION_FORMS}")
    return round(sum(float(number) * _UNITS[unit] for number, unit in _PART.findall(text)))


def moment(text: str, now: int) -> int:
    """Milliseconds since 1970; ``now`` is what -1h and +5m count from. A time without a zone is local.

    Raises ValueError, in words.
    """
    if text[:1] in ("-", "+") and _DURATION.fullmatch(text[1:]):
        length = duration(text[1:])
        return now - length if text[0] == "-" else now + length
    if text.isascii() and text.isdigit() and len(text) >= 9:
        return int(text) if len(text) > 11 else 1000 * int(text)
    from datetime import datetime

    try:
        return round(datetime.fromisoformat(text).timestamp() * 1000)
    except (ValueError, OverflowError, OSError):
        raise ValueError(f"'{text}' is no time {TIME_FORMS}") from None
