"""Queries of the screens. Imports no drawing code, so that the first queries run while that loads."""

from collections.abc import Sequence
from typing import Any, Final, NamedTuple

from pulsarbox.tui import views
from pulsarbox.tui.feed import RowQuery
from pulsarbox.tui.preferences import Preferences
from pulsarbox.tui.views import TableView
from pulsarbox.tui.widgets.columns import Column, laid_out

AROUND: Final = 10
"""Rows to request above and below the visible ones, so that scrolling a step shows no gap."""
_EDGES: Final = 4
"""Minimum number of screen lines without rows."""
VITALS: Final = ("clusterName", "publishRate", "deliverRate", "backlog", "p99", "memory", "uptime", "lostDirectories")
"""Values shown in the top line."""
_OVERVIEW: Final = (
    *VITALS,
    *("topics", "subscriptions", "producers", "consumers", "connections"),
    *("throttled", "deadLetters", "diskUsed", "diskFree", "lackingCopies", "series"),
)


class Panel(NamedTuple):
    """One of the short tables of the overview."""

    title: str
    view: TableView
    columns: Sequence[Column]
    sort: str
    limit: int
    filter: str
    empty: str
    """Text shown if no row passes the filter."""


def _only(view: TableView, **widths: int) -> list[Column]:
    """Return columns of a view with these widths, ranked by their order for narrow screens."""
    known = {column.key: column for column in view.columns}
    return [
        known[key]._replace(width=width, rank=min(known[key].rank, rank))
        for rank, (key, width) in enumerate(widths.items())
    ]


_BACKLOGS: Final = _only(
    views.SUBSCRIPTIONS,
    topic=14, subscription=10, backlog=9, change=8, cause=14, drain=8, trend=12, outRate=6,
)  # fmt: skip
PANELS: Final = (
    Panel(
        "Backlogs",
        views.SUBSCRIPTIONS,
        _BACKLOGS,
        sort="backlog",
        limit=30,
        filter="backlog > 0",
        empty="No subscription has a backlog.",
    ),
    Panel(
        "Quotas",
        views.QUOTAS,
        _only(views.QUOTAS, subject=10, policy=9, share=10, held=8),
        sort="share",
        limit=12,
        filter="share >= 0.01 or held > 0",
        empty="Nothing is near its limit.",
    ),
    Panel(
        "Dead letters",
        views.DEAD_LETTERS,
        _only(views.DEAD_LETTERS, topic=12, left=8, last=11, lost=6),
        sort="last",
        limit=12,
        filter="left > 0",
        empty="None.",
    ),
)


def of_numbers(at: int | None = None) -> RowQuery:
    """Return the query for the numbers and graphs of the overview."""
    return RowQuery("overview", limit=1, at=at, columns=_OVERVIEW)


def of_vitals() -> RowQuery:
    """Return the query for the numbers of the top line."""
    return RowQuery("overview", limit=1, columns=VITALS)


def of_panel(panel: Panel, at: int | None = None) -> RowQuery:
    """Return the query for a panel of the overview. Omits how to change a limit, which the panel does not show."""
    is_left_out = "change" if panel.view is views.QUOTAS else ""
    columns = tuple(name for name in panel.view.asked(panel.columns) if name != is_left_out)
    return RowQuery(panel.view.name, panel.sort, True, 0, panel.limit, panel.filter, at, columns)


def chosen_columns(view: TableView, kept: Preferences) -> list[Column]:
    """Return the user's columns of a view, all by default."""
    known = {column.key: column for column in view.columns}

    def listed(value: Any) -> list[Column]:
        return [known[key] for key in value if isinstance(key, str) and key in known] if isinstance(value, list) else []

    chosen = kept.checked(f"columns.{view.name}", f"a list of columns of {view.name}", listed)
    return listed(chosen) or list(view.columns)


def chosen_order(view: TableView, kept: Preferences) -> tuple[str | None, bool]:
    """Return the user's sort column of a view and whether descending, or the defaults of the view."""
    known = {None, *(column.sorted_by for column in view.columns)}

    def is_order(value: Any) -> bool:
        match value:
            case [str() | None as key, bool()]:
                return key in known
        return False

    chosen = kept.checked(f"sort.{view.name}", f"a column of {view.name} and true or false (descending)", is_order)
    sort, descending = chosen or (view.sort, view.descending)
    return sort, descending


def of_view(
    view: TableView,
    shown: Sequence[Column],
    order: tuple[str | None, bool],
    lines: int,
    top: int = 0,
    passing: str = "",
    at: int | None = None,
) -> RowQuery:
    """Return the query for the rows visible from row ``top`` on a screen of ``lines`` lines, plus some around them."""
    offset = max(top - AROUND, 0)
    return RowQuery(view.name, *order, offset, max(lines - _EDGES, 1) + 2 * AROUND, passing, at, view.asked(shown))


def first(
    place: str, kept: Preferences, size: tuple[int, int], passing: str = "", at: int | None = None
) -> list[RowQuery]:
    """Return the queries of the first screen for a terminal size in columns and lines; empty if unknown."""
    if place == "overview":
        return [of_numbers(at), *(of_panel(panel, at) for panel in PANELS)]
    view = views.VIEWS.get(place)
    if view is None or view.name not in _ASKED:
        return []
    shown = [column for column, _ in laid_out(chosen_columns(view, kept), size[0] - 2)]
    rows = of_view(view, shown, chosen_order(view, kept), size[1], passing=passing, at=at)
    return [rows, of_vitals()] if at is None else [rows]


_ASKED: Final = frozenset(
    {"topics", "subscriptions", "quotas", "deadletters", "clients", "plugins", "storage", "pipelines"}
)
"""Screens that query only the visible rows of one view."""
