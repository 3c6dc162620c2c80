"""Requests to a live view: parsed from query parameters, with readable errors."""

from collections.abc import Callable, Iterable, Mapping
from typing import Any, Final, NamedTuple

from pulsarbox.clock import Now
from pulsarbox.config.setting import did_you_mean
from pulsarbox.errors import BadRequest
from pulsarbox.expressions import Language, inside
from pulsarbox.server.filter_patterns import compiled
from pulsarbox.server.live.choosing import Order
from pulsarbox.server.live.view import LiveView, ViewColumn, ViewScope

LIMIT: Final = 60
"""Default number of rows."""
LIMIT_MAX: Final = 1000
FILTER_MAX: Final = 2000
"""Maximum characters of a filter."""
OFFSET_MAX: Final = 10_000_000


class ViewRequest(NamedTuple):
    """A parsed request to a view."""

    view: LiveView
    scope: ViewScope
    sort: str
    descending: bool
    offset: int
    limit: int
    filter: str
    columns: tuple[str, ...]

    @property
    def order(self) -> tuple[Any, ...]:
        """The fields that determine which rows are in view."""
        return (self.view.name, *self[1:7])


def asked(view: LiveView, query: Mapping[str, str]) -> ViewRequest:
    """Parse the parameters of a request. Raises BadRequest."""
    sort = query.get("sort") or view.sort
    check(sort, "sort", view.name, view.columns)
    order = query.get("order", "")
    if order not in ("", "asc", "desc"):
        raise BadRequest(f"order must be asc or desc, not {order!r}")
    columns = columns_of(query, view.name, view.columns)
    text = query.get("filter", "").strip()
    if len(text) > FILTER_MAX:
        raise BadRequest(f"filter has more than {FILTER_MAX} characters")
    return ViewRequest(
        view,
        scope_of(query),
        sort,
        order != "asc",
        _number(query, "offset", 0, OFFSET_MAX),
        _number(query, "limit", LIMIT, LIMIT_MAX),
        text,
        columns,
    )


def scope_of(query: Mapping[str, str]) -> ViewScope:
    """Return the requested scope: the box, a tenant, or a namespace. Raises BadRequest."""
    tenant, namespace = query.get("tenant", ""), query.get("namespace", "")
    if namespace:
        parts = namespace.split("/")
        if len(parts) != 2 or not all(parts) or (tenant and tenant != parts[0]):
            raise BadRequest(f"namespace must be tenant/namespace, not {namespace!r}")
        return ViewScope(f"{namespace}/")
    if "/" in tenant:
        raise BadRequest(f"tenant must be the name of one tenant, not {tenant!r}")
    return ViewScope(f"{tenant}/" if tenant else "")


def columns_of(query: Mapping[str, str], view: str, known: Iterable[str]) -> tuple[str, ...]:
    """Return the requested columns, empty for all. Raises BadRequest."""
    columns = tuple(name.strip() for name in query.get("columns", "").split(",") if name.strip())
    for name in columns:
        check(name, "columns", view, known)
    return columns


def check(name: str, parameter: str, view: str, known: Iterable[str]) -> None:
    """Raise BadRequest for an unknown column."""
    if name not in known:
        hint = did_you_mean(name, dict.fromkeys(known)) or f"; available: {', '.join(known)}"
        raise BadRequest(f"{parameter}: {view} has no column {name!r}{hint}")


def _number(query: Mapping[str, str], name: str, default: int, most: int) -> int:
    text = query.get(name, "")
    if not text:
        return default
    if not (text.isascii() and text.isdigit()) or len(text) > 9 or int(text) > most:
        raise BadRequest(f"{name} must be a whole number up to {most}, not {text[:40]!r}")
    return int(text)


def value_of(column: ViewColumn, now: Now) -> Callable[[Any], Any]:
    """Return a function for the value of a column, as last sampled if the column is sampled."""
    make = column.make
    return column.kept or (lambda thing: make(thing, now))


def order_of(question: ViewRequest, now: Now) -> tuple[Order, bool]:
    """Return the sort order, and whether its key must be computed for each item."""
    column = question.view.columns[question.sort]
    return Order(value_of(column, now), question.descending), column.kept is None


def wanted_of(question: ViewRequest, now: Now) -> tuple[Callable[[Any], bool] | None, bool]:
    """Return the filter, None for all items, and whether values must be computed for it. Raises BadRequest."""
    if not question.filter:
        return None, False
    view = question.view
    dear = False

    def named(name: str) -> Callable[[Any], Any] | None:
        nonlocal dear
        column = view.columns.get(name)
        if column is None:
            return None
        dear = dear or column.kept is None
        return value_of(column, now)

    def member(name: str, path: list[str]) -> Callable[[Any], Any] | None:
        value = named(name)
        return None if value is None else (lambda thing: inside(value(thing), path))

    language = Language(named, member, ", ".join(view.columns), searched=view.searched, compiled=compiled)
    try:
        return language.parse(question.filter, now.wall), dear
    except ValueError as error:
        raise BadRequest(f"filter: {error}") from None
