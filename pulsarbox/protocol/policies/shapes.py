"""JSON shapes of policy values, and their validation.

Values are read as Pulsar reads them: fractions are truncated, missing members get their default, unknown members are
dropped. Pulsar treats an unknown word as no value, or answers 500; here every invalid value is rejected with the
reason.
"""

import json
from collections.abc import Mapping, Sequence, Sized
from dataclasses import dataclass, field
from typing import Any, Final, Protocol

from pulsarbox.errors import BadRequest
from pulsarbox.quantities import InvalidText, Quantity

INT_BITS: Final = 32
FRACTION_MAX: Final = 1e300
LONG_BITS: Final = 64
TEXT_MAX: Final = 8192
"""Maximum characters of a string."""
LIST_MAX: Final = 1000
"""Maximum elements of a list or a map."""


class ValueShape(Protocol):
    """The JSON shape of a policy value."""

    @property
    def zero(self) -> Any:
        """The value of ``null`` where Pulsar uses a primitive Java type; None elsewhere."""

    def read(self, value: Any, what: str) -> Any:
        """Validate and normalise a JSON value. ``what`` names it in errors. Raises BadRequest."""

    def parse(self, text: str) -> Any:
        """Parse a command line argument to JSON. Raises ValueError with a readable message."""

    def text(self, value: Any) -> str:
        """Return a JSON value as people write it, so that ``parse`` returns it again."""

    @property
    def expected(self) -> str:
        """The accepted values, for messages."""

    @property
    def examples(self) -> Sequence[str]:
        """Values to choose from, or common ones, as ``parse`` accepts them."""


class WholeForm(Protocol):
    """A short form of an object as a whole, such as ``7d,10G`` for a retention."""

    def parse(self, text: str) -> dict[str, Any]:
        """Parse the short form to JSON. Raises ValueError with a readable message."""

    def text(self, value: Mapping[str, Any]) -> str | None:
        """Return the short form of a JSON value; None if it has none."""

    @property
    def expected(self) -> str:
        """The accepted values, for messages."""

    @property
    def examples(self) -> Sequence[str]:
        """Common values."""


NO_LIMIT: Final = -1
_WHOLE: Final = "a whole number"


@dataclass(frozen=True, slots=True)
class WholeNumber:
    """An integer."""

    bits: int = INT_BITS
    zero: Any = None
    quantity: Quantity | None = None
    """What it counts, if people may write it with a suffix, as in ``7d``."""
    words: Mapping[str, int] = field(default_factory=dict)
    """Words for numbers with a special meaning, such as off for 0."""

    def read(self, value: Any, what: str) -> int:
        """See Shape.read."""
        if isinstance(value, str):
            try:
                value = int(value.strip())
            except ValueError:
                raise BadRequest(f'{what} must be {_WHOLE}, not "{value}"') from None
        if isinstance(value, bool) or not isinstance(value, int | float):
            raise BadRequest(f"{what} must be {_WHOLE}, not {_kind(value)}")
        if not -(1 << (self.bits - 1)) <= value < 1 << (self.bits - 1):
            raise BadRequest(f"{what} must be {_WHOLE} of at most {self.bits} bits, not {value}")
        return int(value)

    def parse(self, text: str) -> int:
        """See Shape.parse."""
        if text.lower() in self.words:
            return self.words[text.lower()]
        if self.quantity is not None:
            try:
                return self.quantity.parse(text)
            except InvalidText as error:
                raise error.or_also(self._or_words) from None
        try:
            return int(text)
        except ValueError:
            raise InvalidText(self.expected, text) from None

    def text(self, value: int) -> str:
        """See Shape.text."""
        named = next((word for word, number in self.words.items() if number == value), None)
        if named is not None:
            return named
        return self.quantity.text(value) if self.quantity is not None else str(value)

    @property
    def expected(self) -> str:
        """See Shape.expected."""
        number = _WHOLE if self.quantity is None else self.quantity.expected
        return number + self._or_words

    @property
    def _or_words(self) -> str:
        return f", or {' or '.join(self.words)}" if self.words else ""

    @property
    def examples(self) -> Sequence[str]:
        """See Shape.examples."""
        one_each = {number: word for word, number in reversed(tuple(self.words.items()))}
        return (*(() if self.quantity is None else self.quantity.samples), *one_each.values())


@dataclass(frozen=True, slots=True)
class Fraction:
    """A number."""

    zero: Any = 0.0

    def read(self, value: Any, what: str) -> float:
        """See Shape.read."""
        if isinstance(value, bool) or not isinstance(value, int | float):
            raise BadRequest(f"{what} must be a number, not {_kind(value)}")
        if not -FRACTION_MAX <= value <= FRACTION_MAX:
            raise BadRequest(f"{what} must be a number of at most {FRACTION_MAX:g}")
        return float(value)

    def parse(self, text: str) -> float:
        """See Shape.parse."""
        try:
            return float(text)
        except ValueError:
            raise InvalidText(self.expected, text) from None

    def text(self, value: float) -> str:
        """See Shape.text."""
        return json.dumps(value)

    @property
    def expected(self) -> str:
        """See Shape.expected."""
        return "a number"

    @property
    def examples(self) -> Sequence[str]:
        """See Shape.examples."""
        return ()


@dataclass(frozen=True, slots=True)
class Flag:
    """True or false."""

    zero: Any = None

    def read(self, value: Any, what: str) -> bool:
        """See Shape.read."""
        known = {"true": True, "false": False}
        if isinstance(value, str) and value.strip().lower() in known:
            return known[value.strip().lower()]
        if not isinstance(value, bool):
            raise BadRequest(f"{what} must be true or false, not {_kind(value)}")
        return value

    def parse(self, text: str) -> bool:
        """See Shape.parse."""
        known = {"true": True, "on": True, "yes": True, "false": False, "off": False, "no": False}
        if text.lower() not in known:
            raise InvalidText(self.expected, text)
        return known[text.lower()]

    def text(self, value: bool) -> str:
        """See Shape.text."""
        return "on" if value else "off"

    @property
    def expected(self) -> str:
        """See Shape.expected."""
        return "on or off"

    @property
    def examples(self) -> Sequence[str]:
        """See Shape.examples."""
        return ("on", "off")


@dataclass(frozen=True, slots=True)
class Word:
    """A word of an enumeration."""

    words: tuple[str, ...]
    zero: Any = None
    short: Mapping[str, str] = field(default_factory=dict)
    """Words that people may write instead."""

    def read(self, value: Any, what: str) -> str:
        """See Shape.read."""
        if not isinstance(value, str) or value not in self.words:
            shown = f'"{value}"' if isinstance(value, str) else _kind(value)
            raise BadRequest(f"{what} must be one of {', '.join(self.words)}, not {shown}")
        return value

    def parse(self, text: str) -> str:
        """See Shape.parse; case-insensitive."""
        by_folded = {**self.short, **{word.casefold(): word for word in self.words}}
        if text.casefold() not in by_folded:
            raise InvalidText(self.expected, text)
        return by_folded[text.casefold()]

    def text(self, value: str) -> str:
        """See Shape.text."""
        return value

    @property
    def expected(self) -> str:
        """See Shape.expected."""
        return f"one of {', '.join((*self.short, *self.words))}"

    @property
    def examples(self) -> Sequence[str]:
        """See Shape.examples."""
        return self.words


@dataclass(frozen=True, slots=True)
class Text:
    """Any text."""

    zero: Any = None

    def read(self, value: Any, what: str) -> str:
        """See Shape.read."""
        if not isinstance(value, str):
            raise BadRequest(f"{what} must be a string, not {_kind(value)}")
        if len(value) > TEXT_MAX:
            raise BadRequest(f"{what} must be a string of at most {TEXT_MAX} characters")
        return value

    def parse(self, text: str) -> str:
        """See Shape.parse."""
        return text

    def text(self, value: str) -> str:
        """See Shape.text."""
        return value

    @property
    def expected(self) -> str:
        """See Shape.expected."""
        return "a string"

    @property
    def examples(self) -> Sequence[str]:
        """See Shape.examples."""
        return ()


@dataclass(frozen=True, slots=True)
class Several:
    """A set of values, sorted and without duplicates."""

    of: Word | Text
    zero: Any = None

    def read(self, value: Any, what: str) -> list[str]:
        """See Shape.read."""
        if not isinstance(value, list):
            raise BadRequest(f"{what} must be a list, not {_kind(value)}")
        _check_length(value, what)
        return sorted({self.of.read(each, f"each of {what}") for each in value})

    def parse(self, text: str) -> list[str]:
        """See Shape.parse: comma-separated words."""
        return [self.of.parse(word.strip()) for word in text.split(",") if word.strip()]

    def text(self, value: Sequence[str]) -> str:
        """See Shape.text."""
        return json.dumps(value) if any("," in each for each in value) else ",".join(value)

    @property
    def expected(self) -> str:
        """See Shape.expected."""
        if isinstance(self.of, Text):
            return "a comma-separated list"
        return f"a comma-separated list of {', '.join(self.of.words)}"

    @property
    def examples(self) -> Sequence[str]:
        """See Shape.examples."""
        return self.of.examples


@dataclass(frozen=True, slots=True)
class TextMap:
    """A JSON object of strings; numbers and booleans are converted, as in Pulsar."""

    zero: Any = None

    def read(self, value: Any, what: str) -> dict[str, str]:
        """See Shape.read."""
        if not isinstance(value, dict):
            raise BadRequest(f"{what} must be an object with string values, not {_kind(value)}")
        _check_length(value, what)
        wrong = [name for name, each in value.items() if each is None or isinstance(each, dict | list)]
        if wrong:
            raise BadRequest(f"{wrong[0]} of {what} must be a string, not {_kind(value[wrong[0]])}")
        return {name: each if isinstance(each, str) else json.dumps(each) for name, each in value.items()}

    def parse(self, text: str) -> dict[str, str]:
        """See Shape.parse: semicolon-separated ``name=value``."""
        found = {}
        for pair in filter(str.strip, text.split(";")):
            name, equals, value = pair.partition("=")
            if not equals:
                raise InvalidText(self.expected, pair.strip())
            found[name.strip()] = value.strip()
        return found

    def text(self, value: Mapping[str, str]) -> str:
        """See Shape.text."""
        return ";".join(f"{name}={each}" for name, each in value.items())

    @property
    def expected(self) -> str:
        """See Shape.expected."""
        return "semicolon-separated name=value pairs"

    @property
    def examples(self) -> Sequence[str]:
        """See Shape.examples."""
        return ()


@dataclass(frozen=True, slots=True)
class ObjectShape:
    """A JSON object. Members have a shape and a default; a default of None omits a missing member."""

    members: Mapping[str, tuple[ValueShape, Any]]
    zero: Any = field(default=None)
    form: WholeForm | None = None

    def read(self, value: Any, what: str) -> dict[str, Any]:
        """See Shape.read."""
        if not isinstance(value, dict):
            raise BadRequest(f"{what} must be an object such as {{{', '.join(self.members)}}}, not {_kind(value)}")
        found = {}
        for name, (shape, default) in self.members.items():
            given = value.get(name)
            kept = default if given is None else shape.read(given, f"{name} of {what}")
            if kept is not None:
                found[name] = kept
        return found

    def parse(self, text: str) -> dict[str, Any]:
        """See Shape.parse: comma-separated ``name=value``, or the short form."""
        first, equals, _ = text.partition("=")
        if self.form is not None and first.strip() not in self.members:
            try:
                return self.form.parse(text)
            except InvalidText:
                if not equals or not first.strip().isidentifier():
                    raise
                raise InvalidText(self.expected, text, self._meant(first)) from None
        found: dict[str, Any] = {}
        for pair in text.split(","):
            name, equals, value = pair.partition("=")
            name = name.strip()
            if not equals or name not in self.members:
                raise InvalidText(self.pairs, pair.strip(), self._meant(name) if equals else "")
            if name in found:
                raise ValueError(f"{name} is specified twice")
            try:
                found[name] = self.members[name][0].parse(value.strip())
            except ValueError as error:
                raise ValueError(f"{name}: {error}") from None
        return found

    def text(self, value: Mapping[str, Any]) -> str:
        """See Shape.text: the short form if there is one, otherwise names and values, or JSON if these have commas."""
        short = self.form.text(value) if self.form is not None else None
        if short is not None:
            return short
        if any(map(_has_commas, value.values())):
            return json.dumps(value)
        return ",".join(
            f"{name}={self.members[name][0].text(each)}" for name, each in value.items() if each is not None
        )

    @property
    def expected(self) -> str:
        """See Shape.expected."""
        if self.form is not None:
            return f"{self.form.expected}; or {self.pairs}"
        return self.pairs

    def _meant(self, name: str) -> str:
        from pulsarbox.config.setting import did_you_mean

        return did_you_mean(name.strip(), self.members)

    @property
    def pairs(self) -> str:
        """The accepted names of ``name=value`` pairs, for messages."""
        return f"comma-separated name=value pairs with the names {', '.join(self.members)}"

    @property
    def examples(self) -> Sequence[str]:
        """See Shape.examples."""
        return () if self.form is None else self.form.examples


def _has_commas(value: Any) -> bool:
    return isinstance(value, dict | list) or (isinstance(value, str) and "," in value)


def _check_length(value: Sized, what: str) -> None:
    if len(value) > LIST_MAX:
        raise BadRequest(f"{what} must have at most {LIST_MAX} elements, not {len(value)}")


def _kind(value: object) -> str:
    kinds = {dict: "an object", list: "a list", str: "a string", bool: "a boolean", type(None): "null"}
    return kinds.get(type(value), "a number")
