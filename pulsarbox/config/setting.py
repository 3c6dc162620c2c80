"""A row of the settings table: declaration, validation and parsing of a setting."""

import re
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from types import MappingProxyType
from typing import Any, Final, TypeVar

from pulsarbox.errors import PreconditionFailed
from pulsarbox.quantities import QUANTITIES, Quantity

Value = bool | int | float | str
DeclaredT = TypeVar("DeclaredT", bool, int, float, str)

_NO_LIMIT: Final = re.compile(r"(?<![0-9-])(-1|0)(?: or -1)?: (?:no limit|never|unlimited|forever)")
"""The number for no limit in a description."""
_A_SECOND: Final = re.compile(r"(?:messages|bytes) a second")
_RATE: Final = re.compile(r" *(.+?) */ *(?:s|sec|second) *", re.IGNORECASE)
_NO_WORDS: Final[Mapping[str, str]] = MappingProxyType({})
_WORD: Final = re.compile(r"[A-Z]?[a-z]+")
_CLOSE: Final = 0.8
"""Similarity of a misspelt name to the one that was meant."""
_LETTERS_MIN: Final = 4
"""Letters of a word that may be misspelt."""

METADATA_KEY: Final = "setting"
MASK: Final = "..."
"""Placeholder for a hidden value."""

OFF: Final = -1
"""Value of a disabled port; the empty string in files and variables, as in Pulsar."""


class ConfigError(PreconditionFailed):
    """A configuration is invalid. Names the place (file and line, variable or option), the key and the problem."""

    def __init__(self, where: str, key: str, problem: str) -> None:
        super().__init__(": ".join(part for part in (where, key, problem) if part))
        self.where = where
        self.key = key
        self.problem = problem


@dataclass(frozen=True, slots=True)
class Facts:
    """Metadata of a setting beyond its name, type and default."""

    meaning: str
    table: str
    unit: str
    minimum: float | None
    maximum: float | None
    choices: tuple[str, ...]
    dynamic: bool
    secret: bool = False
    """Whether the value may be a secret, which is never shown."""
    empty: int | None = None
    """Number that stands for an empty value; None if a number is required."""
    words: Mapping[str, str] = field(default_factory=dict)
    """Choices by a shorter word."""


@dataclass(frozen=True, slots=True)
class Setting:
    """A row of the settings table. ``dynamic``: a running broker accepts a new value."""

    name: str
    type: type[Value]
    default: Value
    facts: Facts

    @property
    def table(self) -> str:
        return self.facts.table

    @property
    def meaning(self) -> str:
        return self.facts.meaning

    @property
    def unit(self) -> str:
        return self.facts.unit

    @property
    def quantity(self) -> Quantity | None:
        """What the number counts, if it may be written with a suffix, as in ``7d``."""
        return QUANTITIES.get(self.unit) if self.type in (int, float) else None

    @property
    def none(self) -> int | None:
        """The number for no limit, as the description names it; None if there is none."""
        found = _NO_LIMIT.search(self.meaning) if self.type is int else None
        return int(found[1]) if found is not None else None

    @property
    def _none_words(self) -> tuple[str, ...]:
        # A retention that is off keeps nothing, which is 0.
        return ("unlimited",) if "Retention" in self.name else ("off", "unlimited")

    @property
    def is_rate(self) -> bool:
        """Whether the number counts something a second, so that it may be written as ``100/s``."""
        return self.type is int and (_A_SECOND.search(self.meaning) is not None or self.unit.endswith(" a second"))

    @property
    def dynamic(self) -> bool:
        return self.facts.dynamic

    def shown(self, value: Value) -> Value:
        """Return the value for display: of a secret, only the file or variable that holds it, otherwise ``MASK``."""
        if not self.facts.secret or not isinstance(value, str) or not value or _is_a_place(value):
            return value
        return MASK

    def expected(self) -> str:
        """Return a description of the accepted values."""
        if self.facts.choices:
            return "one of " + ", ".join(f'"{choice}"' for choice in (*self.facts.words, *self.facts.choices))
        if self.type is bool:
            return "true or false, on or off"
        if self.type is str:
            return "non-empty text" if self.facts.minimum else "text"
        kind = "a whole number" if self.type is int else "a number"
        words = " ".join(part for part in (kind, _range_in_words(self.facts)) if part)
        words += "" if self.none is None else "".join(f', or "{word}"' for word in self._none_words)
        words += ', or a rate such as "100/s"' if self.is_rate and self.quantity is None else ""
        words += ', or a rate such as "5 MB/s"' if self.is_rate and self.quantity is not None else ""
        return words if self.facts.empty is None else f'{words}, or "" to disable'

    def check(self, value: object) -> Value:
        """Return the value converted to the setting's type. Raises ``ValueError`` with a readable message."""
        if self.type is float and type(value) is int:
            value = float(value)
        if self.facts.empty is not None and value in ("", self.facts.empty):
            return self.facts.empty
        # `type() is`, because True is an instance of int.
        if type(value) is self.type and self._takes(value):
            return value
        raise ValueError(f"expected {self.expected()}, not {_shown(value)}")

    def read(self, value: object) -> Value:
        """Return a value from a configuration, which may be as people write it. Raises ``ValueError``.

        ``7d``, ``100/s``, ``5 MB/s``, ``on``, ``off``, ``unlimited``, ``hold``.
        """
        if isinstance(value, str):
            value = self._by_word(value)
        if self.quantity is None or not isinstance(value, str):
            return self.check(value)
        if self.quantity.has_suffix(value):
            return self.check(self.quantity.parse(value))
        raise ValueError(f"expected {self.expected()}, or {self.quantity.examples}, not {_shown(value)}")

    def _by_word(self, text: str) -> Value:
        """Return the value of a word or the amount of a rate; other text as it is."""
        word = text.strip().lower()
        if self.type is bool:
            return {"true": True, "on": True, "false": False, "off": False}.get(word, text)
        if word in self.facts.words:
            return self.facts.words[word]
        if self.none is not None and word in self._none_words:
            return self.none
        rate = _RATE.fullmatch(text) if self.is_rate else None
        if rate is None:
            return text
        return int(rate[1]) if re.fullmatch(r"[0-9]{1,20}", rate[1]) else rate[1]

    def parse(self, text: str) -> Value:
        """Parse text from a properties file or an environment variable. Raises ``ValueError`` as ``read`` does."""
        return self.read(self._read(text.strip()))

    def written(self, value: Value) -> Value:
        """Return the value as written to a file."""
        return "" if self.facts.empty is not None and value == self.facts.empty else value

    def _takes(self, value: Value) -> bool:
        if self.facts.choices:
            return value in self.facts.choices
        size = len(value) if isinstance(value, str) else value
        at_least = self.facts.minimum is None or size >= self.facts.minimum
        at_most = self.facts.maximum is None or size <= self.facts.maximum
        return at_least and at_most

    def _read(self, text: str) -> Value:
        if self.type is bool:
            return text
        if self.type is str:
            return text
        try:
            return self.type(text)
        except ValueError:
            return text  # `check` reports what was expected


@dataclass(frozen=True, slots=True)
class GivenValue:
    """A configured value; ``origin`` names its source."""

    name: str
    value: Value
    origin: str


def setting(
    default: DeclaredT,
    meaning: str,
    *,
    table: str,
    unit: str = "",
    minimum: float | None = None,
    maximum: float | None = None,
    choices: tuple[str, ...] | Mapping[str, str] = (),
    dynamic: bool = False,
) -> DeclaredT:
    """Declare a field of ``Settings``. ``minimum`` and ``maximum`` bound a number, or the length of a text.

    A mapping of ``choices`` has shorter words for them.
    """
    words = choices if isinstance(choices, Mapping) else _NO_WORDS
    known = tuple(words.values()) if isinstance(choices, Mapping) else choices
    facts = Facts(meaning, table, unit, minimum, maximum, known, dynamic, words=words)
    # dataclasses.field is typed as its default, which is the trick that gives `settings.name` its type.
    return field(default=default, metadata={METADATA_KEY: facts})


def secret_setting(meaning: str, *, table: str) -> str:
    """Declare a field of ``Settings`` that holds a secret or names its source."""
    facts = Facts(meaning, table, "", None, None, (), dynamic=False, secret=True)
    declared: str = field(default="", metadata={METADATA_KEY: facts})
    return declared


def port_setting(default: int, meaning: str, table: str) -> int:
    """Declare a field of ``Settings`` that is a port; an empty value means OFF."""
    facts = Facts(meaning, table, "", 0, 65535, (), dynamic=False, empty=OFF)
    return field(default=default, metadata={METADATA_KEY: facts})


def did_you_mean(name: str, known: Iterable[str], cutoff: float = 0.6) -> str:
    """Return ``; did you mean x?`` for the known name closest to ``name``, or an empty string. Case-insensitive.

    ``cutoff`` is the required similarity, from 0 to 1.
    """
    import difflib  # deferred until a name is unknown

    by_folded = {candidate.lower(): candidate for candidate in known}
    nearest = difflib.get_close_matches(name.lower(), by_folded, n=1, cutoff=cutoff)
    return f"; did you mean {by_folded[nearest[0]]}?" if nearest else ""


def setting_hint(name: str, known: Iterable[str]) -> str:
    """Return ``did_you_mean`` for a setting, otherwise the settings with a similar word (``retentoin``)."""
    import difflib  # deferred until a name is unknown

    names = list(known)
    hint = did_you_mean(name, names, cutoff=_CLOSE)
    if hint:
        return hint
    by_word: dict[str, list[str]] = {}
    for each in names:
        for word in _WORD.findall(each):
            if len(word) >= _LETTERS_MIN:
                by_word.setdefault(word.lower(), []).append(each)
    nearest = difflib.get_close_matches(name.lower(), by_word, n=1, cutoff=0.75)
    if not nearest:
        return did_you_mean(name, names)
    return f"; did you mean {' or '.join(sorted(by_word[nearest[0]], key=len)[:3])}?"


def _is_a_place(value: str) -> bool:
    try:
        return value.startswith(("file:", "env:")) or Path(value).exists()
    except (OSError, ValueError):  # too long for a path
        return False


def _range_in_words(facts: Facts) -> str:
    if facts.minimum is not None and facts.maximum is not None:
        return f"from {facts.minimum} to {facts.maximum}"
    if facts.minimum is not None:
        return f"of at least {facts.minimum}"
    return f"of at most {facts.maximum}" if facts.maximum is not None else ""


def _shown(value: Any) -> str:
    if isinstance(value, bool):
        return str(value).lower()
    return f'"{value}"' if isinstance(value, str) else str(value)
