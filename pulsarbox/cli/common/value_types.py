"""Types of options with rates, durations and shares: numbers, or as people write them: ``100/s``, ``5s``, ``20%``.

Errors name the accepted values; each type completes common ones.
"""

import math
import re
from collections.abc import Sequence
from typing import Any, Final

import click
from click.shell_completion import CompletionItem

from pulsarbox.quantities import BYTES, MILLISECONDS, InvalidText, Quantity

_NUMBER: Final = re.compile(r"[0-9]{1,20}(?:\.[0-9]{1,20})?|\.[0-9]{1,20}")
_RATE: Final = re.compile(r"(.+?) */ *(s|sec|second|m|min|minute|h|hour)", re.IGNORECASE)
_SECONDS: Final = {"s": 1, "m": 60, "h": 3600}
_NONE: Final = ("off", "unlimited", "none")
"""Words for no limit."""


class ValueType(click.ParamType[Any, Any]):
    """Type of an option that also accepts plain numbers. Subclasses parse text."""

    examples: Sequence[str] = ()

    def convert(self, value: Any, param: click.Parameter | None, ctx: click.Context | None) -> Any:
        """See click.ParamType."""
        try:
            return self.parse(value) if isinstance(value, str) else value
        except ValueError as error:
            self.fail(str(error), param, ctx)

    def parse(self, text: str) -> Any:
        """Return the number of a text. Raises ValueError with a readable message."""
        raise NotImplementedError

    def shell_complete(self, ctx: click.Context, param: click.Parameter, incomplete: str) -> list[CompletionItem]:
        """See click.ParamType."""
        return [CompletionItem(each) for each in self.examples if each.startswith(incomplete)]


class BoundedInteger(click.IntRange):
    """A whole number within bounds, which its errors name."""

    def convert(self, value: Any, param: click.Parameter | None, ctx: click.Context | None) -> Any:
        """See click.ParamType."""
        try:
            return super().convert(value, param, ctx)
        except click.BadParameter:
            self.fail(str(InvalidText(self.expected, str(value))), param, ctx)

    @property
    def expected(self) -> str:
        """The accepted values, for messages."""
        if self.max is None:
            return f"a whole number of at least {self.min}"
        return f"a whole number from {self.min} to {self.max}"


class Seconds(ValueType):
    """A duration in seconds, as a float: ``5``, ``0.5``, ``500ms``, ``1m30s``."""

    name = "duration"

    def __init__(self, minimum: float = 0, maximum: float = math.inf, *, above: bool = False) -> None:
        """``above``: the duration must be greater than the minimum."""
        self.examples = [
            each for each in ("500ms", "1s", "2s", "5s", "30s", "1m") if self._within(each, minimum, maximum)
        ]
        self._minimum = minimum
        self._maximum = maximum
        self._above = above

    @property
    def expected(self) -> str:
        """The accepted values, for messages."""
        bounds = [f"more than {_said(self._minimum)}" if self._above else f"at least {_said(self._minimum)}"]
        if self._minimum == 0 and not self._above:
            bounds = []
        if self._maximum != math.inf:
            bounds.append(f"at most {_said(self._maximum)}")
        of = f" of {' and '.join(bounds)}" if bounds else ""
        return f"a duration{of} such as {self.examples[0]} or {self.examples[-1]}, or a number of seconds"

    def parse(self, text: str) -> float:
        """See ValueType.parse."""
        found = _duration(text)
        if found is None or not self._minimum <= found <= self._maximum or (self._above and found == self._minimum):
            raise InvalidText(self.expected, text)
        return found

    @staticmethod
    def _within(text: str, minimum: float, maximum: float) -> bool:
        return minimum <= MILLISECONDS.parse(text) / 1000 <= maximum


def _said(seconds: float) -> str:
    return MILLISECONDS.text(round(seconds * 1000)) if seconds else "0"


def _duration(text: str) -> float | None:
    text = text.strip()
    if _NUMBER.fullmatch(text):
        return float(text)
    try:
        return MILLISECONDS.parse(text) / 1000 if MILLISECONDS.has_suffix(text) else None
    except ValueError:
        return None


class MessageRate(ValueType):
    """Messages per second, as a float: ``100``, ``100/s``, ``600/m``; ``off`` is 0 or, by ``off``, another value."""

    name = "rate"
    examples = ("10/s", "100/s", "1000/s", "off")

    def __init__(self, off: float | None = 0) -> None:
        self._off = off

    def parse(self, text: str) -> float | None:
        """See ValueType.parse."""
        text = text.strip()
        if text.lower() in _NONE:
            return self._off
        rate = _RATE.fullmatch(text)
        number = rate[1] if rate is not None else text
        if not _NUMBER.fullmatch(number) or (not float(number) and (rate is not None or self._off is None)):
            raise InvalidText("a rate of messages such as 100/s, a number per second, or off", text)
        return float(number) / (1 if rate is None else _SECONDS[rate[2][0].lower()])


class ByteRate(ValueType):
    """Bytes per second: ``20M``, ``5 MB/s``, a number; ``off`` is 0."""

    name = "rate"
    examples = ("1MB/s", "10MB/s", "100MB/s", "off")

    def parse(self, text: str) -> int:
        """See ValueType.parse."""
        if text.strip().lower() in _NONE:
            return 0
        rate = _RATE.fullmatch(text.strip())
        size, period = (rate[1], _SECONDS[rate[2][0].lower()]) if rate is not None else (text.strip(), 1)
        number = _amount(BYTES, size)
        if number is None:
            raise InvalidText("a rate such as 20M or 5MB/s, a number of bytes per second, or off", text)
        return max(number // period, min(number, 1))


def _amount(quantity: Quantity, text: str) -> int | None:
    try:
        found = quantity.parse(text)
    except ValueError:
        return None
    return found if found >= 0 else None


class Share(ValueType):
    """A share from 0 to 1, as a float: ``0.2``, ``20%``; ``off`` is 0."""

    name = "share"
    examples = ("1%", "10%", "20%", "50%")

    def __init__(self, *, off: bool = False) -> None:
        """``off``: whether off stands for 0."""
        self._off = off

    def parse(self, text: str) -> float:
        """See ValueType.parse."""
        text = text.strip()
        if self._off and text.lower() in _NONE:
            return 0.0
        number, scale = (text[:-1].strip(), 100) if text.endswith("%") else (text, 1)
        found = float(number) / scale if _NUMBER.fullmatch(number) else -1
        if not 0 <= found <= 1:
            raise InvalidText(f"a share such as 20%, or a number from 0 to 1{', or off' if self._off else ''}", text)
        return found
