"""Queries of the screens. Imports no drawing code, so that the first queries run while that loads."""

from collections.abc import Sequence
from typing import Any, Final, NamedTuple

from pulsarbox.tui import views
from pulsarbox.tui.feed import RowQuery
from pulsarbox.tui.preferences import Preferences
from pulsarbox.tui.views import TableView
from pulsarbox.tui.widgets.columns import Column, laid_out
from pulsarbox.tui.widgets.numbers import MOVING

AROUND: Final = 10
"""Rows to request above and below the visible ones, so that scrolling a step shows no gap."""
_EDGES: Final = 6
"""Minimum number of screen lines without rows."""
_FRAME: Final = 4
"""Columns of the screen beside a row: edges, scroll bar and a space."""
VITALS: Final = ("clusterName", "publishRate", "deliverRate", "backlog", "p99", "memory", "uptime", "lostDirectories")
"""Values shown in the top line."""
_OVERVIEW: Final = (
    *VITALS,
    *("topics", "subscriptions", "producers", "consumers", "connections"),
    *("throttled", "deadLetters", "diskUsed", "diskFree", "lackingCopies", "series"),
    *("unread", "suspended", "publishBytes", "unacked", "size"),
)
WIDE: Final = 170
"""Columns of a terminal from which the overview has panels at its side."""


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
    more: tuple[str, ...] = ()
    """Values that the diagnosis needs beside the columns."""


def _only(view: TableView, **widths: int) -> list[Column]:
    """Return columns of a view with these widths, ranked by their order for narrow screens."""
    known = {column.key: column for column in view.columns}
    useful_from = sum(known[key].rank < known[key].useful_from for key in widths)
    return [
        known[key]._replace(width=width, rank=rank, useful_from=useful_from)
        for rank, (key, width) in enumerate(widths.items())
    ]


_BACKLOGS: Final = _only(
    views.SUBSCRIPTIONS,
    topic=14, subscription=12, backlog=9, change=8, cause=14, drain=9, trend=10, outRate=6, inRate=6, consumers=9,
    unacked=8, type=10,
)  # fmt: skip
PANELS: Final = (
    Panel(
        "Backlogs",
        views.SUBSCRIPTIONS,
        _BACKLOGS,
        sort="backlog",
        limit=30,
        filter="backlog > 0",
        empty="No subscription has a backlog. Watch the traffic: pulsarbox top topics",
        more=("inRate", "outRate", "unacked", "consumers", "delayed", "trend", "causeSince"),
    ),
    Panel(
        "Quotas",
        views.QUOTAS,
        _only(views.QUOTAS, subject=10, policy=16, share=10, held=9, used=10, limit=10),
        sort="share",
        limit=30,
        filter="share >= 0.01 or held > 0",
        empty="Nothing is near its limit. Limit a backlog: pulsarbox quota set orders --size 2G --then hold",
        more=("topic", "used", "limit", "unit", "holding", "then", "evictions"),
    ),
    Panel(
        "Dead letters",
        views.DEAD_LETTERS,
        _only(views.DEAD_LETTERS, topic=16, left=8, rate=6, lost=6, last=11),
        sort="last",
        limit=12,
        filter="left > 0",
        empty=views.DEAD_LETTERS.empty,
        more=("rate",),
    ),
)
BUSIEST: Final = Panel(
    "Busiest topics",
    views.TOPICS,
    _only(views.TOPICS, topic=12, publishRate=7, deliverRate=7, trend=10, size=9),
    sort="publishRate",
    limit=30,
    filter="",
    empty=views.TOPICS.empty,
)
"""Panel at the side of a wide overview."""


def panels(width: int) -> tuple[Panel, ...]:
    """Return the panels of an overview of this width in columns."""
    return (*PANELS, BUSIEST) if width >= WIDE else PANELS


def of_numbers(at: int | None = None) -> RowQuery:
    """Return the query for the numbers and graphs of the overview."""
    return RowQuery("overview", limit=1, at=at, columns=_OVERVIEW)


def of_vitals(at: int | None = None) -> RowQuery:
    """Return the query for the numbers of the top line."""
    return RowQuery("overview", limit=1, at=at, columns=VITALS)


def of_panel(panel: Panel, at: int | None = None) -> RowQuery:
    """Return the query for a panel of the overview. Omits how to change a limit, which the panel does not show."""
    asked = panel.view.asked(panel.columns)
    is_left_out = "change" if panel.view is views.QUOTAS else ""
    columns = dict.fromkeys(name for name in (*asked, *panel.more) if name != is_left_out) if asked else ()
    return RowQuery(panel.view.name, panel.sort, True, 0, panel.limit, panel.filter, at, tuple(columns))


_GROWING_MAX: Final = 20
"""Growing backlogs to request beside the largest ones."""
_GROWING: Final = (
    *("topic", "subscription", "backlog", "change", "inRate", "outRate", "unacked", "consumers", "delayed", "trend"),
    *("cause", "causeSince"),
)
"""Values of a growing backlog that the diagnosis needs."""


def of_growing(at: int | None = None) -> RowQuery:
    """Return the query for the backlogs that grow the fastest, which may be smaller than those of the panel."""
    passing = f"backlog > 0 and change >= {MOVING}"
    return RowQuery("subscriptions", "change", True, 0, _GROWING_MAX, passing, at, _GROWING)


def of_unused(at: int | None = None) -> RowQuery:
    """Return the query whose number of matching rows is that of backlogs without consumers."""
    return RowQuery("subscriptions", None, True, 0, 1, "backlog > 0 and consumers == 0", at, ("consumers",))


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
        return [of_numbers(at), *(of_panel(panel, at) for panel in panels(size[0]))]
    view = views.VIEWS.get(place)
    if view is None or view.name not in _ASKED:
        return []
    order = chosen_order(view, kept)
    shown = [column for column, _, _ in laid_out(chosen_columns(view, kept), size[0] - _FRAME, order[0])]
    rows = of_view(view, shown, order, size[1], passing=passing, at=at)
    return [rows, of_vitals(at)]


_ASKED: Final = frozenset(
    {"topics", "subscriptions", "quotas", "deadletters", "clients", "plugins", "storage", "pipelines"}
)
"""Screens that query only the visible rows of one view."""
