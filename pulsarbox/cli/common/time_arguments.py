"""Points in time and lengths of time, as they are written on a command line."""

import time
from typing import Any, Final

import click

from pulsarbox import times
from pulsarbox.times import duration


def wall_now() -> int:
    """This instant, in milliseconds since 1970."""
    return time.time_ns() // 1_000_000


def moment(text: str, now: int | None = None) -> int:
    """See times.moment; what is relative counts from this instant unless ``now`` says otherwise."""
    return times.moment(text, wall_now() if now is None else now)


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
