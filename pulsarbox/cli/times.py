"""Points in time and lengths of time, as they are written on a command line."""

import re
import time
from typing import Any, Final

import click

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


def moment(text: str, now: int | None = None) -> int:
    """Milliseconds since 1970; ``now`` is what -1h and +5m count from. A time without a zone is local.

    Raises ValueError, in words.
    """
    if text[:1] in ("-", "+") and _DURATION.fullmatch(text[1:]):
        base = time.time_ns() // 1_000_000 if now is None else now
        length = duration(text[1:])
        return base - length if text[0] == "-" else base + length
    if text.isascii() and text.isdigit() and len(text) >= 9:
        return int(text) if len(text) > 11 else 1000 * int(text)
    from datetime import datetime

    try:
        return round(datetime.fromisoformat(text).timestamp() * 1000)
    except (ValueError, OverflowError, OSError):
        raise ValueError(f"'{text}' is no time {TIME_FORMS}") from None


class Words(click.ParamType[Any, Any]):
    """An option whose value a function reads: it takes a text and raises ValueError, in words."""

    def __init__(self, name: str, parse: Any) -> None:
        self.name = name
        self._parse = parse

    def convert(self, value: Any, param: click.Parameter | None, ctx: click.Context | None) -> Any:
        if not isinstance(value, str):
            return value
        try:
            return self._parse(value)
        except ValueError as error:
            self.fail(str(error), param, ctx)


DURATION: Final = Words("duration", duration)
MOMENT: Final = Words("time", moment)
