"""What pulsar-admin takes as a value: durations, sizes, names, lists and maps, by the kinds of the tables."""

from collections.abc import Callable
from typing import Any, Final

import click
from click.shell_completion import CompletionItem

from pulsarbox.cli.common.terminal_text import clean
from pulsarbox.clock import WALL_MAX
from pulsarbox.errors import PulsarBoxError
from pulsarbox.names import TopicName, parse_namespace, parse_topic

SECONDS: Final = {"s": 1, "m": 60, "h": 3600, "d": 86400, "w": 7 * 86400, "y": 365 * 86400}
BYTES: Final = {"k": 1 << 10, "m": 1 << 20, "g": 1 << 30, "t": 1 << 40}
UNITS: Final[dict[str, Callable[[int], int]]] = {
    "millis": lambda seconds: seconds * 1000,
    "bool": bool,
}
"""What a value of a body may be turned into: ``$name/millis``."""
NO_LIMIT: Final = -1
"""As in pulsar-admin, for rates, sizes and times."""


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


# Values that mean something. Brokers take others too, and apply no limit where one seems to be set.


def rate(text: str) -> int:
    """``1`` or more, or ``-1``."""
    found = whole(text)
    if found < 1 and found != NO_LIMIT:
        raise ValueError(f"a rate is 1 or more, or -1 for no limit; {clean(text)} would limit nothing")
    return found


def fractional_rate(text: str) -> float:
    """``0`` or more, or ``-1``."""
    found = fraction(text)
    if not found >= 0 and found != NO_LIMIT:
        raise ValueError(f"a rate is 0 or more, or -1 for no limit, not {clean(text)}")
    return found


def period(text: str) -> int:
    """Seconds, ``1`` or more."""
    found = whole(text)
    if found < 1:
        raise ValueError(f"a period is 1 second or longer, not {clean(text)}")
    return found


def some_seconds(text: str) -> int:
    """A duration of a second or longer."""
    found = seconds(text)
    if found < 1:
        raise ValueError(f"a time of 1 second or longer is needed, not {clean(text)}")
    return found


def some_millis(text: str) -> int:
    """The same, in milliseconds."""
    return some_seconds(text) * 1000


def not_negative_millis(text: str) -> int:
    """A duration, in milliseconds; 0 is no limit."""
    found = seconds(text)
    if found < 0:
        raise ValueError(f"a time is 0, for no limit, or longer, not {clean(text)}")
    return found * 1000


def minutes(text: str) -> int:
    """``90`` and ``90m`` are minutes, ``2h`` is 120 of them."""
    if text.isascii() and text.isdigit():
        return int(text)
    return _whole_minutes(text, "minutes are counted whole")


def retention_time(text: str) -> int:
    """``3h`` in minutes; ``-1``. Without a unit, seconds, as pulsar-admin takes it."""
    if text == "-1":
        return NO_LIMIT
    hint = f": without a unit a time is in seconds, and {text}m is {text} minutes" if text.isdigit() else ""
    return _whole_minutes(text, f"retention counts whole minutes{hint}")


def _whole_minutes(text: str, why: str) -> int:
    found = seconds(text)
    if found < 0:
        raise ValueError(f"a time is 0 or longer, or -1 without a unit for no limit; not {clean(text)}")
    if found % SECONDS["m"]:
        raise ValueError(f"{clean(text)} is {found / SECONDS['m']:.4g} minutes, and {why}")
    return found // SECONDS["m"]


def retention_size(text: str) -> int:
    """``10G`` in mebibytes; ``-1``. Without a unit, bytes."""
    if text == "-1":
        return NO_LIMIT
    found = size(text)
    if found < 0:
        raise ValueError(f"a size is 0 or more, or -1 without a unit for no limit; not {clean(text)}")
    if found % BYTES["m"]:
        hint = f": without a unit a size is in bytes, and {text}M is {text} MiB" if text.isdigit() else ""
        raise ValueError(f"{clean(text)} is {found / BYTES['m']:.4g} MiB, and retention counts whole MiB{hint}")
    return found // BYTES["m"]


def quota_size(text: str) -> int:
    """Bytes, ``-1`` for no limit."""
    found = size(text)
    if found < 0 and text != "-1":
        raise ValueError(f"a quota is 0 bytes or more, or -1 for no limit, not {clean(text)}")
    return found


def quota_time(text: str) -> int:
    """Seconds, ``-1`` for no limit."""
    found = seconds(text)
    if found < 1 and text != "-1":
        raise ValueError(f"a quota is 1 second or longer, or -1 for no limit; {clean(text)} would limit nothing")
    return found


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
    "fractional_rate": ("NUMBER", fractional_rate),
    "int": ("NUMBER", whole),
    "ints": ("NUMBER", whole),
    "list": ("A,B", names),
    "many": ("TEXT", str),
    "map": ("KEY=VALUE", pair),
    "maps": ("KEY=VALUE,KEY=VALUE", pairs),
    "millis": ("TIME", lambda text: seconds(text) * 1000),
    "minutes": ("TIME", minutes),
    "namespace": ("NAMESPACE", namespace),
    "not_negative_millis": ("TIME", not_negative_millis),
    "period": ("SECONDS", period),
    "quota_size": ("SIZE", quota_size),
    "quota_time": ("TIME", quota_time),
    "rate": ("NUMBER", rate),
    "retention_size": ("SIZE", retention_size),
    "retention_time": ("TIME", retention_time),
    "seconds": ("TIME", seconds),
    "some_millis": ("TIME", some_millis),
    "some_seconds": ("TIME", some_seconds),
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
