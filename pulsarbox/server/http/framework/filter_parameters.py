"""Filters in request parameters: the common filter language, with patterns that match in linear time."""

from collections.abc import Callable, Collection
from typing import Any, Final

from pulsarbox.errors import BadRequest
from pulsarbox.expressions import Language, inside
from pulsarbox.server.filter_patterns import compiled
from pulsarbox.server.http.framework.request import HttpRequest
from pulsarbox.times import moment

Row = dict[str, Any]
Wanted = Callable[[Row], bool]

FILTER_MAX: Final = 2000
"""Maximum characters of a filter."""


def wanted_of(call: HttpRequest, names: Collection[str], searched: Collection[str] = ()) -> Wanted:
    """Compile the parameter ``filter`` for rows with these fields; ``/pattern`` searches ``searched``.

    Without the parameter, everything matches. Raises BadRequest.
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


def number_of(call: HttpRequest, name: str, default: int, least: int, most: int) -> int:
    """Parse an integer parameter. Raises BadRequest."""
    text = call.query.get(name, "")
    if not text:
        return default
    digits = text.removeprefix("-")
    if not (digits.isascii() and digits.isdigit() and len(digits) < 20 and least <= int(text) <= most):
        raise BadRequest(f"{name} must be a whole number from {least} to {most}, not {text[:40]!r}")
    return int(text)


def moment_of(call: HttpRequest, name: str) -> int:
    """Parse a time parameter, by the box's clock: ms since 1970; 0 without one. Raises BadRequest."""
    text = call.query.get(name, "")
    if text.isascii() and text.isdigit() and len(text) < 20:
        return int(text)
    try:
        return moment(text, call.now.wall) if text else 0
    except ValueError as error:
        raise BadRequest(f"{name}: {error}") from None
