"""Durations and sizes as people write them, in the whole units of a policy or a setting.

Sizes count in powers of 1024 whatever their suffix, as in Pulsar: ``10M``, ``10MB`` and ``10MiB`` are the same.
"""

import re
from collections.abc import Mapping
from dataclasses import dataclass
from fractions import Fraction
from typing import Final

_NUMBER: Final = re.compile(r"[+-]?[0-9]{1,20}")
_PART: Final = re.compile(r"([0-9]{1,20}(?:\.[0-9]{1,9})?) *([a-zA-Z]+)")
_SUFFIX: Final = re.compile(r"[a-zA-Z]+$")
_COMMA: Final = re.compile(r"[0-9]{1,20},[0-9]{1,9} *[a-zA-Z]+")
_SHOWN_MAX: Final = 60
"""Characters of an invalid value that an error message repeats."""
_TEXT_MAX: Final = 100
_DECIMALS: Final = 100
"""Sizes are shown with at most two decimals, and only if these are exact."""
_COUNT_MAX: Final = 10_000
"""Sizes of that many of a suffix are shown in a larger one, or in the unit of the quantity."""


class InvalidText(ValueError):
    """A text is none of the accepted values."""

    def __init__(self, expected: str, text: str, hint: str = "") -> None:
        hint = hint or _with_point(text)
        super().__init__(f"expected {expected}, not '{_cut(text)}'{hint}")
        self.expected = expected
        self.text = text
        self.hint = hint

    def or_also(self, more: str) -> "InvalidText":
        """Return the error for a place that accepts more."""
        return InvalidText(f"{self.expected}{more}", self.text, self.hint)


@dataclass(frozen=True, slots=True)
class Quantity:
    """A number of units, such as minutes, that people also write with a suffix: ``7d``."""

    unit: str
    """The unit of the number, in plural."""
    size: int
    """The unit in milliseconds or bytes."""
    suffixes: Mapping[str, int]
    """Milliseconds or bytes by suffix."""
    shown: tuple[tuple[str, int], ...]
    """The suffixes in which amounts are shown, in descending order."""
    noun: str
    """Noun for an amount with a suffix, with its article: ``a duration``."""
    samples: tuple[str, ...]
    """Common amounts."""
    adds_up: bool = False
    """Whether an amount may have several parts, such as ``1h30m``."""
    folds: bool = False
    """Whether suffixes may be in upper case. Those of durations may not: ``1M`` is a size."""

    def parse(self, text: str) -> int:
        """Return the number of units. A number without a suffix is in the unit, and may be -1.

        Raises ValueError with a readable message, also if the amount is not a whole number of units.
        """
        text = text.strip()
        if _NUMBER.fullmatch(text):
            return int(text)
        amount = self._amount(self._folded(text))
        if amount is None:
            raise InvalidText(self.expected, text)
        if amount % self.size:
            raise ValueError(f"'{_cut(text)}' is not a whole number of {self.unit}")
        return int(amount // self.size)

    def text(self, number: int) -> str:
        """Return a number of units with suffixes, so that ``parse`` returns the number again."""
        amount = number * self.size
        if amount <= 0:
            return str(number)
        return self._parts(amount) if self.adds_up else self._largest(amount)

    @property
    def examples(self) -> str:
        """Amounts with a suffix, for messages."""
        *others, last = self.samples
        return f"{self.noun} such as {', '.join(others)} or {last}"

    @property
    def expected(self) -> str:
        """The accepted values, for messages."""
        return f"a number of {self.unit}, or {self.examples}"

    def has_suffix(self, text: str) -> bool:
        """Return whether a text ends with one of the suffixes."""
        found = _SUFFIX.search(self._folded(text))
        return found is not None and found[0] in self.suffixes

    def _folded(self, text: str) -> str:
        return text.lower() if self.folds else text

    def _amount(self, text: str) -> Fraction | None:
        if len(text) > _TEXT_MAX:
            return None
        parts = _PART.findall(text)
        is_whole = re.sub(r" +", "", text) == "".join(map("".join, parts))
        if not parts or not is_whole or (len(parts) > 1 and not self.adds_up):
            return None
        if any(suffix not in self.suffixes for _, suffix in parts):
            return None
        return sum((Fraction(number) * self.suffixes[suffix] for number, suffix in parts), Fraction())

    def _parts(self, amount: int) -> str:
        said = ""
        for suffix, size in self.shown:
            count, amount = divmod(amount, size)
            said += f"{count}{suffix}" if count else ""
        return said

    def _largest(self, amount: int) -> str:
        for suffix, size in self.shown:
            if size <= amount < _COUNT_MAX * size and amount * _DECIMALS % size == 0:
                whole, rest = divmod(amount * _DECIMALS // size, _DECIMALS)
                return f"{whole}.{rest:02}".rstrip("0").rstrip(".") + suffix
        suffix, size = next(each for each in self.shown if each[1] == self.size)
        return f"{amount // size}{suffix}"


def _with_point(text: str) -> str:
    """Return the question whether a comma was meant as a decimal point."""
    return f"; did you mean {text.replace(',', '.')}?" if _COMMA.fullmatch(text) else ""


def _cut(text: str) -> str:
    return text if len(text) <= _SHOWN_MAX else text[:_SHOWN_MAX] + "..."


_MILLIS: Final = {"ms": 1, "s": 1000, "m": 60_000, "h": 3_600_000, "d": 86_400_000, "w": 604_800_000}
_MILLIS_BY_SUFFIX: Final = {**_MILLIS, "min": 60_000, "y": 365 * 86_400_000}
_SHOWN_MILLIS: Final = tuple((suffix, _MILLIS[suffix]) for suffix in ("d", "h", "m", "s", "ms"))

_POWERS: Final = ("", "k", "m", "g", "t", "p")
_BYTES_BY_SUFFIX: Final = {
    f"{power}{suffix}": 1 << (10 * place)
    for place, power in enumerate(_POWERS)
    for suffix in ("", "b", "ib")
    if power or suffix == "b"
}
_SHOWN_BYTES: Final = (
    ("PiB", 1 << 50),
    ("TiB", 1 << 40),
    ("GiB", 1 << 30),
    ("MiB", 1 << 20),
    ("KiB", 1 << 10),
    ("B", 1),
)


def _duration(unit: str, size: int, *samples: str) -> Quantity:
    return Quantity(unit, size, _MILLIS_BY_SUFFIX, _SHOWN_MILLIS, "a duration", samples, adds_up=True)


def _size(unit: str, size: int, *samples: str) -> Quantity:
    return Quantity(unit, size, _BYTES_BY_SUFFIX, _SHOWN_BYTES, "a size", samples, folds=True)


MILLISECONDS: Final = _duration("milliseconds", 1, "500ms", "30s", "1h")
SECONDS: Final = _duration("seconds", 1000, "90s", "15m", "1h30m", "7d")
MINUTES: Final = _duration("minutes", 60_000, "15m", "3h", "7d")
DAYS: Final = _duration("days", 86_400_000, "7d", "2w")
BYTES: Final = _size("bytes", 1, "500K", "100M", "1.5G")
MEBIBYTES: Final = _size("MiB", 1 << 20, "100M", "1.5G")
GIBIBYTES: Final = _size("GiB", 1 << 30, "10G", "2T")

QUANTITIES: Final[Mapping[str, Quantity]] = {
    each.unit: each for each in (MILLISECONDS, SECONDS, MINUTES, DAYS, BYTES, MEBIBYTES, GIBIBYTES)
}
"""Quantities by the name of their unit."""
