"""Value types of pulsar-admin: durations, sizes, names, lists and maps, by the kinds of the tables."""

import json
from collections.abc import Callable
from typing import Any, Final

import click
from click.shell_completion import CompletionItem

from pulsarbox import quantities
from pulsarbox.cli.common.terminal_text import clean
from pulsarbox.cli.pulsar_admin.package_url import PackageUrl
from pulsarbox.clock import WALL_MAX
from pulsarbox.errors import PulsarBoxError
from pulsarbox.names import TopicName, parse_namespace, parse_topic

SECONDS: Final = {"s": 1, "m": 60, "h": 3600, "d": 86400, "w": 7 * 86400, "y": 365 * 86400}
BYTES: Final = {"k": 1 << 10, "m": 1 << 20, "g": 1 << 30, "t": 1 << 40}
UNITS: Final[dict[str, Callable[[int], int]]] = {
    "millis": lambda seconds: seconds * 1000,
    "bool": bool,
}
"""Unit conversions of body values, as in ``$name/millis``."""
NO_LIMIT: Final = -1
"""Value for no limit of rates, sizes and times, as in pulsar-admin."""


def seconds(text: str) -> int:
    """Parse ``90``, ``90s``, ``15m``, ``1h30m``, ``1d``, ``2w``, ``1y`` or ``-1`` into seconds, the default unit."""
    return _scaled(text, SECONDS, quantities.SECONDS, "expected a duration such as 90, 90s, 15m, 3h, 1d or 2w")


def end_of(text: str, now: float) -> int:
    """Return the end of a duration from ``now``, in seconds since 1970. Raises ValueError beyond the year 9999."""
    found = int(now) + seconds(text)
    if found > WALL_MAX // 1000:
        raise ValueError(f"'{clean(text[:40])}' from now is after the year 9999")
    return found


def size(text: str) -> int:
    """Parse ``4096``, ``100K``, ``10MB``, ``1.5G``, ``2T`` or ``-1`` into bytes, the default unit."""
    return _scaled(text, BYTES, quantities.BYTES, "expected a size such as 4096, 100K, 10M, 16G or 2T")


def _scaled(text: str, units: dict[str, int], quantity: quantities.Quantity, looks: str) -> int:
    factor = units.get(text[-1:].lower(), 0)
    number = text[:-1] if factor else text
    digits = number.removeprefix("-")
    if digits.isascii() and digits.isdigit():
        return _long(number, factor or 1)
    if not quantity.has_suffix(text):
        raise ValueError(f"'{clean(text)}': {looks}")
    try:
        return _long(str(quantity.parse(text)))
    except ValueError as error:
        raise ValueError(clean(str(error))) from None


def _long(digits: str, factor: int = 1) -> int:
    """Return a signed 64-bit number, as Java's long. Raises ValueError out of range."""
    found = int(digits) * factor if len(digits) < 100 else 2**63  # avoids int()'s own error for thousands of digits
    if not -(2**63) <= found < 2**63:
        raise ValueError(f"'{digits[:40]}' is out of range: expected a signed 64-bit integer")
    return found


def whole(text: str) -> int:
    """Parse an integer."""
    digits = text.removeprefix("-").removeprefix("+")
    if not (digits.isascii() and digits.isdigit()):
        raise ValueError(f"'{clean(text)}' is not an integer")
    return _long(text)


def fraction(text: str) -> float:
    """Parse a float."""
    try:
        return float(text)
    except ValueError:
        raise ValueError(f"'{clean(text)}' is not a number") from None


# Meaningful values. Brokers also accept others, which look like limits but have no effect.


def rate(text: str) -> int:
    """Parse a rate: ``1`` or more, or ``-1``."""
    found = whole(text)
    if found < 1 and found != NO_LIMIT:
        raise ValueError(f"expected a rate of 1 or more, or -1 for no limit; {clean(text)} has no effect")
    return found


def fractional_rate(text: str) -> float:
    """Parse a fractional rate: ``0`` or more, or ``-1``."""
    found = fraction(text)
    if not found >= 0 and found != NO_LIMIT:
        raise ValueError(f"expected a rate of 0 or more, or -1 for no limit, not {clean(text)}")
    return found


def period(text: str) -> int:
    """Parse a period in seconds: ``1`` or more."""
    found = whole(text)
    if found < 1:
        raise ValueError(f"expected a period of 1 second or more, not {clean(text)}")
    return found


def some_seconds(text: str) -> int:
    """Parse a duration of at least one second."""
    found = seconds(text)
    if found < 1:
        raise ValueError(f"expected a duration of 1 second or more, not {clean(text)}")
    return found


def some_millis(text: str) -> int:
    """Parse a duration of at least one second into milliseconds."""
    return some_seconds(text) * 1000


def not_negative_millis(text: str) -> int:
    """Parse a duration into milliseconds; 0 means no limit."""
    found = seconds(text)
    if found < 0:
        raise ValueError(f"expected a duration of 0 or more (0 means no limit), not {clean(text)}")
    return found * 1000


def minutes(text: str) -> int:
    """Parse ``90``, ``90m`` or ``2h`` into minutes, the default unit."""
    if text.isascii() and text.isdigit():
        return int(text)
    return _whole_minutes(text, "expected whole minutes")


def retention_time(text: str) -> int:
    """Parse ``3h`` or ``-1`` into minutes. The default unit is seconds, as in pulsar-admin."""
    if text == "-1":
        return NO_LIMIT
    hint = f"; without a unit, durations are in seconds: {text}m means {text} minutes" if text.isdigit() else ""
    return _whole_minutes(text, f"retention times are in whole minutes{hint}")


def _whole_minutes(text: str, why: str) -> int:
    found = seconds(text)
    if found < 0:
        raise ValueError(f"expected a duration of 0 or more, or -1 without a unit for no limit, not {clean(text)}")
    if found % SECONDS["m"]:
        raise ValueError(f"{clean(text)} is {found / SECONDS['m']:.4g} minutes: {why}")
    return found // SECONDS["m"]


def retention_size(text: str) -> int:
    """Parse ``10G`` or ``-1`` into mebibytes. The default unit is bytes."""
    if text == "-1":
        return NO_LIMIT
    found = size(text)
    if found < 0:
        raise ValueError(f"expected a size of 0 or more, or -1 without a unit for no limit, not {clean(text)}")
    if found % BYTES["m"]:
        hint = f"; without a unit, sizes are in bytes: {text}M means {text} MiB" if text.isdigit() else ""
        raise ValueError(f"{clean(text)} is {found / BYTES['m']:.4g} MiB: retention sizes are in whole MiB{hint}")
    return found // BYTES["m"]


def quota_size(text: str) -> int:
    """Parse a size into bytes; ``-1`` means no limit."""
    found = size(text)
    if found < 0 and text != "-1":
        raise ValueError(f"expected a quota of 0 bytes or more, or -1 for no limit, not {clean(text)}")
    return found


def quota_time(text: str) -> int:
    """Parse a duration into seconds; ``-1`` means no limit."""
    found = seconds(text)
    if found < 1 and text != "-1":
        raise ValueError(f"expected a quota of 1 second or more, or -1 for no limit; {clean(text)} has no effect")
    return found


def names(text: str) -> list[str]:
    """Parse a comma-separated list."""
    return text.split(",")


def pair(text: str) -> tuple[str, str]:
    """Parse ``key=value``."""
    key, mark, value = text.partition("=")
    if not mark or not key:
        raise ValueError(f"expected key=value, not '{clean(text)}'")
    return key, value


def json_object(text: str) -> dict[str, Any]:
    """Parse a JSON object; null is an empty one."""
    try:
        found = json.loads(text)
    except ValueError as error:
        raise ValueError(f"invalid JSON: {error}") from None
    if found is not None and not isinstance(found, dict):
        raise ValueError(f'expected a JSON object such as {{"key": "value"}}, not {clean(text[:40])}')
    return found or {}


def pairs(text: str) -> list[tuple[str, str]]:
    """Parse ``key=value,key=value``."""
    return [pair(part) for part in text.split(",")]


def topic(text: str) -> TopicName:
    """Parse a full or short topic name."""
    try:
        return parse_topic(text)
    except PulsarBoxError as error:
        raise ValueError(str(error)) from None


def namespace(text: str) -> str:
    """Validate ``tenant/namespace``."""
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
    "object": ("JSON", json_object),
    "package": ("PACKAGE", PackageUrl.parsed),
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
"""Metavar and parser of each converted kind. click handles ``bool``, ``choice``, ``flag`` and ``switch``."""

REPEATED: Final = frozenset({"ints", "list", "many", "map", "maps"})
"""Kinds whose option is repeatable."""


class Value(click.ParamType[Any]):
    """Click type of a kind."""

    def __init__(self, kind: str, allowed: tuple[str, ...] = ()) -> None:
        """``allowed`` restricts the elements of a list; empty for any."""
        self.name, self._convert = KINDS[kind]
        self._allowed = allowed

    def convert(self, value: Any, param: click.Parameter | None, ctx: click.Context | None) -> Any:
        """Convert the text. Fails with the error of the parser."""
        if not isinstance(value, str):
            return value
        try:
            made = self._convert(value)
        except ValueError as error:
            self.fail(str(error), param, ctx)
        wrong = [one for one in made if one not in self._allowed] if self._allowed else []
        if wrong:
            self.fail(f"unknown value '{clean(wrong[0])}'; expected one of {', '.join(self._allowed)}", param, ctx)
        return made

    def shell_complete(self, ctx: click.Context, param: click.Parameter, incomplete: str) -> list[CompletionItem]:
        """Complete the next element of a list."""
        start, comma, _ = incomplete.rpartition(",")
        return [
            CompletionItem(start + comma + one) for one in self._allowed if (start + comma + one).startswith(incomplete)
        ]


def collected(kind: str, given: Any, default: str | None = None) -> Any:
    """Merge the values of a repeatable option. Without any, return None or, with an empty default, an empty value."""
    if not given and default is None:
        return None
    if kind == "map":
        return dict(given)
    if kind == "maps":
        return dict(one for part in given for one in part)
    if kind == "list":
        return [name for part in given for name in part]
    return list(given)
