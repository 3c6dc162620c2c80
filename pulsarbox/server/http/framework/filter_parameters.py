"""The filters that requests bring: the one language, with patterns that match in linear time whatever is asked."""

from collections.abc import Callable, Collection
from typing import Any, Final

from pulsarbox.errors import BadRequest
from pulsarbox.expressions import Language, inside
from pulsarbox.server.filter_patterns import compiled
from pulsarbox.server.http.framework.request import Call
from pulsarbox.times import moment

Row = dict[str, Any]
Wanted = Callable[[Row], bool]

FILTER_MAX: Final = 2000
"""Characters."""


def wanted_of(call: Call, names: Collection[str], searched: Collection[str] = ()) -> Wanted:
    """What the parameter ``filter`` asks for, of rows that have these names; ``/pattern`` looks into ``searched``.

    Everything where there is no such parameter. Raises BadRequest.
    """
    text = call.query.get("filter", "")
    if not text.strip():
        return lambda row: True
    if len(text) > FILTER_MAX:
        raise BadRequest(f"The filter has more than {FILTER_MAX} characters")

    def named(name: str) -> Callable[[Row], Any] | None:
        return (lambda row: row.get(name)) if name in names else None

    def member(name: str, path: list[str]) -> Callable[[Row], Any] | None:
        return (lambda row: inside(row.get(name), path)) if name in names else None

    language = Language(
        named,
        member,
        ", ".join(names),
        searched=lambda row: [each for name in searched if isinstance(each := row.get(name), str)],
        compiled=compiled,
    )
    try:
        return language.parse(text, call.now.wall)
    except ValueError as error:
        raise BadRequest(f"The filter cannot be used: {error}") from None


def number_of(call: Call, name: str, default: int, least: int, most: int) -> int:
    """A parameter that is a whole number. Raises BadRequest."""
    text = call.query.get(name, "")
    if not text:
        return default
    digits = text.removeprefix("-")
    if not (digits.isascii() and digits.isdigit() and len(digits) < 20 and least <= int(text) <= most):
        raise BadRequest(f"{name} must be a whole number from {least} to {most}, not {text[:40]!r}")
    return int(text)


def moment_of(call: Call, name: str) -> int:
    """A parameter that is a time, by the clock of the box: ms since 1970; 0 where there is none. Raises BadRequest."""
    text = call.query.get(name, "")
    if text.isascii() and text.isdigit() and len(text) < 20:
        return int(text)
    try:
        return moment(text, call.now.wall) if text else 0
    except ValueError as error:
        raise BadRequest(f"{name}: {error}") from None
