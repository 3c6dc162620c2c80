"""Times and durations on the command line."""

import time
from typing import Any, Final

import click

from pulsarbox import times
from pulsarbox.times import duration


def wall_now() -> int:
    """Return the current time in milliseconds since 1970."""
    return time.time_ns() // 1_000_000


def moment(text: str, now: int | None = None) -> int:
    """Parse a time as ``times.moment`` does. A relative one counts from ``now``, by default the current time."""
    return times.moment(text, wall_now() if now is None else now)


class Words(click.ParamType[Any, Any]):
    """Click type that parses its value with a function, which raises ValueError for invalid text."""

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
