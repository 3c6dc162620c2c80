"""What pulsar-admin takes as a value: durations, sizes, names, lists and maps, by the kinds of the tables."""

from collections.abc import Callable
from typing import Any, Final

import click
from click.shell_completion import CompletionItem

from pulsarbox.cli.text import clean
from pulsarbox.clock import WALL_MAX
from pulsarbox.errors import PulsarBoxError
from pulsarbox.names import TopicName, parse_namespace, parse_topic

SECONDS: Final = {"s": 1, "m": 60, "h": 3600, "d": 86400, "w": 7 * 86400, "y": 365 * 86400}
BYTES: Final = {"k": 1 << 10, "m": 1 << 20, "g": 1 << 30, "t": 1 << 40}
UNITS: Final[dict[str, Callable[[int], int]]] = {
    "minutes": lambda seconds: seconds if seconds == -1 else int(seconds / 60),
    "millis": lambda seconds: seconds * 1000,
    "mebibytes": lambda size: size if size == -1 else int(size / (1 << 20)),
    "bool": bool,
}
"""What a value of a body may be turned into: ``$name/minutes``. -1 is no limit and stays."""


def seconds(text: str) -> int:
    """``90``, ``90s``, ``15m``, ``3h``, ``1d``, ``2w``, ``1y``, ``-1``; without a unit, seconds."""
    return _scaled(text, SECONDS, "a duration looks like 90, 90s, 15m, 3h, 1d, 2w")


def end_of(text: str, now: float) -> int:
    """The end of a duration that begins ``now``, both in seconds since 1970. Raises ValueError beyond the year 9999."""
    found = int(now) + seconds(text)
    if found > WALL_MAX // 1000:
        raise ValueError(f"'{clean(text[:40])}' from now is beyond the year 9999")
    return found


def size(text: str) -> int:
    """``4096``, ``100K``, ``10M``, ``16G``, ``2T``, ``-1``; without a unit, bytes."""
    return _scaled(text, BYTES, "a size looks like 4096, 100K, 10M, 16G, 2T")


def _scaled(text: str, units: dict[str, int], looks: str) -> int:
    factor = units.get(text[-1:].lower(), 0)
    number = text[:-1] if factor else text
    digits = number.removeprefix("-")
    if not (digits.isascii() and digits.isdigit()):
        raise ValueError(f"'{clean(text)}': {looks}")
    return _long(number, factor or 1)


def _long(digits: str, factor: int = 1) -> int:
    """A number of 64 bits, as Java's long. Raises ValueError beyond these."""
    found = int(digits) * factor if len(digits) < 100 else 2**63  # int() refuses thousands of digits in its own words
    if not -(2**63) <= found < 2**63:
        raise ValueError(f"'{digits[:40]}' is out of range: it must fit 64 bits")
    return found


def whole(text: str) -> int:
    """A number without a fraction."""
    digits = text.removeprefix("-").removeprefix("+")
    if not (digits.isascii() and digits.isdigit()):
        raise ValueError(f"'{clean(text)}' is no whole number")
    return _long(text)


def fraction(text: str) -> float:
    """A number."""
    try:
        return float(text)
    except ValueError:
        raise ValueError(f"'{clean(text)}' is no number") from None


def names(text: str) -> list[str]:
    """A list with commas between."""
    return text.split(",")


def pair(text: str) -> tuple[str, str]:
    """``key=value``."""
    key, mark, value = text.partition("=")
    if not mark or not key:
        raise ValueError(f"'{clean(text)}' must be key=value")
    return key, value


def pairs(text: str) -> list[tuple[str, str]]:
    """``key=value,key=value``."""
    return [pair(part) for part in text.split(",")]


def topic(text: str) -> TopicName:
    """A topic by its full or its short name."""
    try:
        return parse_topic(text)
    except PulsarBoxError as error:
        raise ValueError(str(error)) from None


def namespace(text: str) -> str:
    """``tenant/namespace``."""
    try:
        parse_namespace(text)
    except PulsarBoxError as error:
        raise ValueError(str(error)) from None
    return text


KINDS: Final[dict[str, tuple[str, Callable[[str], Any]]]] = {
    "bytes": ("SIZE", size),
    "float": ("NUMBER", fraction),
    "int": ("NUMBER", whole),
    "ints": ("NUMBER", whole),
    "list": ("A,B", names),
    "many": ("TEXT", str),
    "map": ("KEY=VALUE", pair),
    "maps": ("KEY=VALUE,KEY=VALUE", pairs),
    "millis": ("TIME", lambda text: seconds(text) * 1000),
    "namespace": ("NAMESPACE", namespace),
    "seconds": ("TIME", seconds),
    "text": ("TEXT", str),
    "topic": ("TOPIC", topic),
}
"""Kinds of values that are converted: how the help calls them, and by what. ``flag`` and ``choice`` are click's."""

REPEATED: Final = frozenset({"ints", "list", "many", "map", "maps"})
"""Kinds whose option may come several times."""


class Value(click.ParamType[Any]):
    """A kind of value as click knows it."""

    def __init__(self, kind: str, allowed: tuple[str, ...] = ()) -> None:
        """``allowed``: the words that a list is made of, where not any will do."""
        self.name, self._convert = KINDS[kind]
        self._allowed = allowed

    def convert(self, value: Any, param: click.Parameter | None, ctx: click.Context | None) -> Any:
        """The value of the text; the text that says what is wrong ends the command."""
        if not isinstance(value, str):
            return value
        try:
            made = self._convert(value)
        except ValueError as error:
            self.fail(str(error), param, ctx)
        wrong = [one for one in made if one not in self._allowed] if self._allowed else []
        if wrong:
            self.fail(f"'{clean(wrong[0])}' is none of {', '.join(self._allowed)}", param, ctx)
        return made

    def shell_complete(self, ctx: click.Context, param: click.Parameter, incomplete: str) -> list[CompletionItem]:
        """The words of a list, behind those that stand already."""
        start, comma, _ = incomplete.rpartition(",")
        return [
            CompletionItem(start + comma + one) for one in self._allowed if (start + comma + one).startswith(incomplete)
        ]


def collected(kind: str, given: Any, default: str | None = None) -> Any:
    """The value of an option that may come several times; where it did not, None or, with an empty default, empty."""
    if not given and default is None:
        return None
    if kind == "map":
        return dict(given)
    if kind == "maps":
        return dict(one for part in given for one in part)
    if kind == "list":
        return [name for part in given for name in part]
    return list(given)
