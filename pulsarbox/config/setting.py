"""One setting as data: what it may be, how its text is read, how it is declared."""

from collections.abc import Iterable
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Final, TypeVar

from pulsarbox.errors import PreconditionFailed

Value = bool | int | float | str
DeclaredT = TypeVar("DeclaredT", bool, int, float, str)

METADATA_KEY: Final = "setting"
MASK: Final = "..."
"""Stands for what is not shown."""

OFF: Final = -1
"""A port that is not listened on. In files and variables it is the empty text, as in Pulsar's."""


class ConfigError(PreconditionFailed):
    """A configuration cannot be used. Says where (file and line, variable or option), which key and what is wrong."""

    def __init__(self, where: str, key: str, problem: str) -> None:
        super().__init__(": ".join(part for part in (where, key, problem) if part))
        self.where = where
        self.key = key
        self.problem = problem


@dataclass(frozen=True, slots=True)
class Facts:
    """What a declaration says about a setting beyond its name, type and default."""

    meaning: str
    table: str
    unit: str
    minimum: float | None
    maximum: float | None
    choices: tuple[str, ...]
    dynamic: bool
    secret: bool = False
    """What it holds may be a secret itself: it is not shown."""
    empty: int | None = None
    """What a number is where the text is empty; None where it must be a number."""


@dataclass(frozen=True, slots=True)
class Setting:
    """A row of the settings table. ``dynamic`` means that a running broker takes a new value."""

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
    def dynamic(self) -> bool:
        return self.facts.dynamic

    def shown(self, value: Value) -> Value:
        """The value as it may be shown: of a secret only the place where it is, if it names one."""
        if not self.facts.secret or not isinstance(value, str) or not value or _is_a_place(value):
            return value
        return MASK

    def expected(self) -> str:
        """The values it takes, in words."""
        if self.facts.choices:
            return "one of " + ", ".join(f'"{choice}"' for choice in self.facts.choices)
        if self.type is bool:
            return "true or false"
        if self.type is str:
            return "text that is not empty" if self.facts.minimum else "text"
        kind = "a whole number" if self.type is int else "a number"
        words = " ".join(part for part in (kind, _range_in_words(self.facts)) if part)
        return words if self.facts.empty is None else f'{words}, or "" for none'

    def check(self, value: object) -> Value:
        """The value in the setting's own type. Raises ``ValueError``, in words, if the setting does not take it."""
        if self.type is float and type(value) is int:
            value = float(value)
        if self.facts.empty is not None and value in ("", self.facts.empty):
            return self.facts.empty
        # `type() is`, because True is an int to isinstance.
        if type(value) is self.type and self._takes(value):
            return value
        raise ValueError(f"expected {self.expected()}, not {_shown(value)}")

    def parse(self, text: str) -> Value:
        """The value that a text of a properties file or an environment variable stands for; ``ValueError`` as above."""
        return self.check(self._read(text.strip()))

    def written(self, value: Value) -> Value:
        """The value as a file has it."""
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
            return {"true": True, "false": False}.get(text.lower(), text)
        if self.type is str:
            return text
        try:
            return self.type(text)
        except ValueError:
            return text  # `check` says what was expected instead


@dataclass(frozen=True, slots=True)
class Given:
    """A value that some place gave to a setting; ``origin`` names the place."""

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
    choices: tuple[str, ...] = (),
    dynamic: bool = False,
) -> DeclaredT:
    """Declares a field of ``Settings``. ``minimum`` and ``maximum`` bound a number, or the length of a text."""
    facts = Facts(meaning, table, unit, minimum, maximum, choices, dynamic)
    # dataclasses.field is typed as its default, which is the trick that gives `settings.name` its type.
    return field(default=default, metadata={METADATA_KEY: facts})


def secret_setting(meaning: str, *, table: str) -> str:
    """Declares a field of ``Settings`` whose text may be a secret, or names the place where it is."""
    facts = Facts(meaning, table, "", None, None, (), dynamic=False, secret=True)
    declared: str = field(default="", metadata={METADATA_KEY: facts})
    return declared


def port_setting(default: int, meaning: str, table: str) -> int:
    """Declares a field that is a port: an empty text stands for OFF."""
    facts = Facts(meaning, table, "", 0, 65535, (), dynamic=False, empty=OFF)
    return field(default=default, metadata={METADATA_KEY: facts})


def did_you_mean(name: str, known: Iterable[str], cutoff: float = 0.6) -> str:
    """``; did you mean x?`` for the known name nearest to ``name``, or nothing if none is near. Case does not count.

    ``cutoff`` is how alike they must be, from 0 to 1.
    """
    import difflib  # not there before a word is unknown

    by_folded = {candidate.lower(): candidate for candidate in known}
    nearest = difflib.get_close_matches(name.lower(), by_folded, n=1, cutoff=cutoff)
    return f"; did you mean {by_folded[nearest[0]]}?" if nearest else ""


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
