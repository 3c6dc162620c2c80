"""Snapshots without a dashboard: ``pulsarbox top --once``."""

import asyncio
import json
import re
import textwrap
from collections.abc import Mapping, Sequence
from typing import Any, Final

from rich.cells import cell_len

from pulsarbox.cleaning import cleaned
from pulsarbox.tui.actions.backlogs_behind import BacklogsBehind, backlogs_behind
from pulsarbox.tui.actions.box_queries import PANELS, Panel
from pulsarbox.tui.actions.diagnosis import MARKS, BoxFinding, OverviewFacts, diagnosed
from pulsarbox.tui.app import Top
from pulsarbox.tui.feed import Feed, FeedError, RowQuery, ShownRow
from pulsarbox.tui.position_input import now_ms
from pulsarbox.tui.views import VIEWS
from pulsarbox.tui.widgets import numbers
from pulsarbox.tui.widgets.columns import BARS, KINDS, TO_THE_RIGHT, Column, shortened
from pulsarbox.tui.widgets.local_rows import chosen, language_of

SECONDS_MAX = 20.0
_TREND = 12
_GAP: Final = "  "


def asked(
    feed: Feed, view: str, sort: str | None = None, limit: int = 50, passing: str = "", at: int | None = None
) -> dict[str, Any]:
    """Return the raw response of the box; for the overview, with its tables. Raises Trouble."""
    query = _query(view, sort, limit, passing, at)
    if view in _LISTS:
        return _listed(feed, query)
    if view == _STORAGE:
        return _stored(feed, query)
    if view == OVERVIEW:
        return _overview(feed, query)
    return _answer(feed, query)


def _query(view: str, sort: str | None, limit: int, passing: str, at: int | None) -> RowQuery:
    known = VIEWS.get(view)
    by, descending = (sort.removeprefix("-"), not sort.startswith("-")) if sort else (None, True)
    if by is None and known is not None:
        by, descending = known.sort, known.descending
    return RowQuery(view, by, descending, 0, limit, passing, at)


def _answer(feed: Feed, query: RowQuery) -> dict[str, Any]:
    told = feed.ask("GET", query.target)
    if not isinstance(told, dict):
        raise FeedError("the response is not a view: is this the Admin API of a box?", 502)
    return told


def _overview(feed: Feed, query: RowQuery) -> dict[str, Any]:
    """Return the totals and tables of the overview: backlogs as its rows, quotas and dead letters as members.

    Filter and order apply to the backlogs. A table refused by the box contains the error.
    """
    document = _answer(feed, RowQuery(OVERVIEW, limit=1, at=query.at))
    backlogs, *others = PANELS
    whole = {panel.view.name: _whole(feed, panel, query) for panel in others}
    if query.filter or query.sort not in (None, backlogs.sort) or not query.descending:
        rows = query._replace(
            view=backlogs.view.name, sort=query.sort or backlogs.sort, filter=query.filter or backlogs.filter
        )
        document |= _table_of(_answer(feed, rows), query.limit)
        whole[backlogs.view.name] = _whole(feed, backlogs, query)
    else:
        whole[backlogs.view.name] = told = _answer(feed, _panel_query(backlogs, query))
        document |= _table_of(told, query.limit)
    document |= {panel.view.name: _table_of(whole[panel.view.name], query.limit) for panel in others}
    largest = whole[backlogs.view.name]
    count = min(len(largest.get("rows") or ()), backlogs.limit)
    behind = backlogs_behind(feed, count, largest.get("matching") or 0, query.at)
    return {"diagnosis": [each.as_json() for each in _diagnosis(whole, document, behind)]} | document


def _panel_query(panel: Panel, query: RowQuery) -> RowQuery:
    """Return the query of a panel for both its table and the diagnosis, which ignores the limit of the tables."""
    limit = max(query.limit, panel.limit)
    return RowQuery(panel.view.name, panel.sort, True, 0, limit, panel.filter, query.at)


def _whole(feed: Feed, panel: Panel, query: RowQuery) -> dict[str, Any]:
    """Return the response for a panel; an empty table with the error if the box refuses it. Raises FeedError."""
    try:
        return _answer(feed, _panel_query(panel, query))
    except FeedError as trouble:
        if trouble.is_gone:
            raise
        return {"total": 0, "matching": 0, "rows": [], "error": str(trouble)}


def _table_of(told: Mapping[str, Any], limit: int) -> dict[str, Any]:
    """Return the members of a response that hold its table, with up to ``limit`` rows."""
    found = {name: value for name, value in told.items() if name in _TABLE}
    return found | {"rows": (told.get("rows") or [])[:limit]}


def _diagnosis(
    whole: Mapping[str, Mapping[str, Any]], document: Mapping[str, Any], behind: BacklogsBehind
) -> list[BoxFinding]:
    """Return the findings about the whole box, whatever filter, order and limit apply to the tables."""
    rows = {
        panel.view.name: [ShownRow(row) for row in (whole[panel.view.name].get("rows") or ())[: panel.limit]]
        for panel in PANELS
    }
    totals = cleaned(document.get("totals") or {})
    now = document.get("now") or 0
    return diagnosed(OverviewFacts(totals, rows["subscriptions"], rows["quotas"], rows["deadletters"], now, *behind))


OVERVIEW: Final = "overview"
_TABLE: Final = ("total", "matching", "rows", "error")
"""Members of a response that hold its rows."""


def _listed(feed: Feed, query: RowQuery) -> dict[str, Any]:
    """Return a view built from a list endpoint of the box."""
    path, member = _LISTS[query.view]
    told = feed.ask("GET", path)
    rows = told.get(member) if isinstance(told, dict) else told
    if not isinstance(rows, list):
        raise FeedError("the response is not a list: is this the Admin API of a box?", 502)
    return {"view": query.view, **_chosen(query, rows)}


def _stored(feed: Feed, query: RowQuery) -> dict[str, Any]:
    """Return the volumes, of which a running box returns all, whatever filter, order and limit. Raises FeedError."""
    if query.at is not None:
        raise FeedError("The view 'storage' is not recorded", 404)
    told = _answer(feed, query)
    rows = told.get("rows") or []
    return told | _chosen(query, rows) if len(rows) == told.get("total") else told


def _chosen(query: RowQuery, rows: Sequence[Mapping[str, Any]]) -> dict[str, Any]:
    """Return the members of a response that hold the rows that pass the filter. Raises FeedError if it is invalid."""
    view = VIEWS[query.view]
    try:
        passes = language_of(view).parse(query.filter, now_ms()) if query.filter else lambda row: True
    except ValueError as error:
        raise FeedError(str(error), 400) from None
    found = chosen(query, rows, passes)
    return {"total": found.total, "matching": found.matching, "rows": [dict(row) for row in found.rows]}


_STORAGE: Final = "storage"
_LISTS = {"events": ("/pulsarbox/v1/events?limit=5000", "events")}
"""Path, and the member with the rows."""


def as_json(document: Mapping[str, Any]) -> str:
    """Return ASCII JSON, free of terminal control characters."""
    return json.dumps(document, indent=2, ensure_ascii=True)


def as_text(view: str, document: Mapping[str, Any], width: int | None = None) -> list[str]:
    """Return a text table; for the overview, its totals, one per line, and its tables with titles.

    ``width`` is that of the terminal in cells: tables fit into it. None for output to a file or another program.
    """
    shown = cleaned(dict(document))
    if view == OVERVIEW:
        return _overview_text(shown, width)
    known, total = VIEWS[view], shown.get("total")
    empty = f"None of {numbers.count(total)} rows match the filter." if total else known.empty
    return _table(known.columns, shown, empty, "--limit, --filter", width)


def _overview_text(shown: Mapping[str, Any], width: int | None) -> list[str]:
    lines = [f"{MARKS[found['severity']]} {found['text']}" for found in shown.get("diagnosis") or ()]
    lines += _totals_text(shown.get("totals") or {})
    for number, panel in enumerate(PANELS):
        part = shown if number == 0 else shown.get(panel.view.name) or {}
        columns = (*map(_ranked, panel.columns), _WHY) if number == 0 else panel.columns
        more = f"pulsarbox top {panel.view.name} --once"
        lines += ["", panel.title, *_table(columns, part, part.get("error") or panel.empty, more, width)]
    return lines


def _totals_text(totals: Mapping[str, Any]) -> list[str]:
    """Return the totals with their titles, in order, without unknown ones and what has not happened."""
    ordered = [name for name in dict.fromkeys((*_TITLES, *totals)) if _is_shown(name, totals.get(name))]
    texts = {_TITLES.get(name, name): _total(name, totals[name]) for name in ordered}
    indent = max(map(len, texts), default=0)
    return [f"{title:<{indent}}  {text}" for title, text in texts.items()]


def _is_shown(name: str, value: Any) -> bool:
    return value is not None and not isinstance(value, dict | list) and (bool(value) or name not in _EXCEPTIONS)


def _ranked(column: Column) -> Column:
    """Return a column of the backlogs with the cause before the change: no other line of a snapshot shows it."""
    return column._replace(rank=_CAUSE_RANK) if column.key == "cause" else column


_CAUSE_RANK: Final = 2
_WHY: Final = Column("causeText", "WHY", 20, "line", 3)
"""Column with the text of the cause, which the dashboard shows in its last line."""


def _table(
    columns: Sequence[Column], part: Mapping[str, Any], empty: str, more: str, width: int | None = None
) -> list[str]:
    """Return the lines of a table. ``more`` is the hint for showing rows beyond the limit."""
    rows = part.get("rows") or ()
    table = [[column.title, *(_cell(column, row) for row in rows)] for column in columns]
    widths = [max(map(cell_len, texts)) for texts in table]
    shown = list(range(len(columns))) if width is None else _fitting(columns, widths, width)
    for at in shown:
        if columns[at].kind in BARS:  # a bar is drawn for its width, or only its percentage, and not cut
            table[at] = [columns[at].title, *(_cell(columns[at], row, widths[at]) for row in rows)]
    lines = [_GAP.join(_padded(table[at][line], widths[at], columns[at]) for at in shown).rstrip()
             for line in range(len(rows) + 1)]  # fmt: skip
    if not rows:
        lines.append(empty)
    elif part.get("matching", 0) > len(rows):
        lines.append(f"... {len(rows)} of {numbers.count(part['matching'])}: {more}")
    if rows and len(shown) < len(columns):
        hidden = ", ".join(column.title for at, column in enumerate(columns) if at not in shown)
        lines += textwrap.wrap(f"without room: {hidden} (-o json has all)", max(width or 0, 20))
    return lines


def _fitting(columns: Sequence[Column], widths: list[int], width: int) -> list[int]:
    """Return the columns that fit into a width, without the least important others. Shortens texts in ``widths``."""
    shown = list(range(len(columns)))
    least = [
        total if column.kind in TO_THE_RIGHT else min(total, max(column.width, len(column.title)))
        for column, total in zip(columns, widths, strict=True)
    ]

    def missing(cells: Sequence[int]) -> int:
        return sum(cells[at] + len(_GAP) for at in shown) - len(_GAP) - width

    removed: list[int] = []
    while len(shown) > 1 and missing(least) > 0:
        removed.append(max(shown, key=lambda at: (columns[at].rank, at)))
        shown.remove(removed[-1])
    for at in reversed(removed):  # those that fit after all because wider ones are hidden
        if missing(widths) + widths[at] + len(_GAP) <= 0:
            shown = sorted([*shown, at])
    while missing(widths) > 0 and (texts := [at for at in shown if widths[at] > least[at]]):
        widths[max(texts, key=lambda at: widths[at])] -= 1
    return shown


def _padded(text: str, width: int, column: Column) -> str:
    """Return a text in exactly so many cells; wide characters take two."""
    text = shortened(text, width)
    blank = " " * (width - cell_len(text))
    return blank + text if column.kind in TO_THE_RIGHT else text + blank


def _cell(column: Column, row: dict[str, Any], bar: int = 14) -> str:
    width = _TREND if column.kind == "trend" else bar if column.kind in BARS else 10_000
    text = KINDS[column.kind](row.get(column.key), row, width)[0]
    return text.rstrip() if column.kind in BARS else text.strip()


_TITLES: Final = {
    "publishRate": "messages in",
    "deliverRate": "messages out",
    "publishBytes": "bytes in",
    "deliverBytes": "bytes out",
    "backlog": "backlog",
    "unacked": "unacknowledged",
    "size": "stored",
    "offloadedSize": "offloaded",
    "topics": "topics",
    "subscriptions": "subscriptions",
    "producers": "producers",
    "consumers": "consumers",
    "connections": "connections",
    "p50": "receipts p50",
    "p99": "receipts p99",
    "memory": "memory",
    "diskUsed": "disk used",
    "diskFree": "disk free",
    "started": "started",
    "uptime": "uptime",
    "version": "version",
    "clusterName": "cluster",
    "throttled": "rate limits in effect",
    "unread": "connections not read",
    "suspended": "producers suspended",
    "deadLetters": "dead letters",
    "lostDirectories": "data directories lost",
    "lackingCopies": "entries that lack a copy",
}
"""Titles of the totals, in the order of the text."""
_EXCEPTIONS: Final = frozenset(
    ("offloadedSize", "throttled", "unread", "suspended", "deadLetters", "lostDirectories", "lackingCopies")
)
"""Totals that are left out of the text at 0."""


def _total(name: str, value: Any) -> str:
    if name in ("p50", "p99"):
        return numbers.milliseconds(value)
    if name == "uptime":
        return numbers.seconds(value / 1000)
    if name == "started":
        return numbers.instant(value)
    if name.endswith("Rate"):
        return f"{numbers.rate(value)}/s"
    if name.endswith("Bytes"):
        return f"{numbers.size(value)}/s"
    if name in ("memory", "size", "offloadedSize", "diskUsed", "diskFree"):
        return numbers.size(value)
    return numbers.count(value) if isinstance(value, int | float) and not isinstance(value, bool) else str(value)


def self_contained(svg: str) -> str:
    """Remove web fonts from an SVG, so that opening it makes no network requests, and show its last line whole."""
    svg = re.sub(r"@font-face\s*\{[^}]*\}", "", svg).replace("Fira Code", "DejaVu Sans Mono, Fira Code")
    return _CLIP.sub(lambda found: f"{found[1]}{float(found[2]) + _DESCENDERS:g}", svg, count=1)


_CLIP: Final = re.compile(r'(clip-terminal">\s*<rect[^>]*height=")([\d.]+)')
"""The clip of the whole screen, which ends above the descenders of the last line."""
_DESCENDERS: Final = 5
"""Units of an SVG below the baseline of a line, as far as its frame has room."""


def picture(app: Top, width: int, height: int) -> str:
    """Render the screen as SVG once the box has responded. Raises Trouble."""

    async def drawn() -> str:
        async with app.run_test(size=(width, height)) as pilot:
            loop = asyncio.get_running_loop()
            end = loop.time() + SECONDS_MAX
            screen: Any = app.screen
            while not (getattr(screen, "answered", True) or getattr(screen, "trouble", None)):
                if loop.time() > end:
                    raise FeedError("no response in time")
                await pilot.pause(0.05)
                screen = app.screen
            trouble = getattr(screen, "trouble", None)
            if isinstance(trouble, FeedError):
                raise trouble
            await pilot.pause()
            return self_contained(app.export_screenshot(title="pulsarbox top"))

    return asyncio.run(drawn())
