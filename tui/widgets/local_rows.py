"""Filter and order of complete local row lists, with the same results as a view of the box."""

from collections.abc import Callable, Mapping, Sequence
from typing import Any

from pulsarbox.expressions import Language
from pulsarbox.tui.feed import RowQuery, ShownRow, ViewSnapshot
from pulsarbox.tui.position_input import now_ms
from pulsarbox.tui.views import TableView


def language_of(view: TableView) -> Language:
    """Return the filter language of a view. Accepts any name, because the box may know more than the columns."""
    keys = {column.key for column in view.columns} | set(view.identity)
    return Language(
        lambda name: lambda row: row.get(name),
        lambda name, path: None,
        ", ".join(sorted(keys)),
        searched=lambda row: [str(row.get(key) or "") for key in view.texts],
    )


def passing_of(view: TableView, text: str) -> Callable[[Any], bool]:
    """Return the predicate of a filter. An invalid one, which is reported on input, accepts all rows."""
    if not text:
        return lambda row: True
    try:
        return language_of(view).parse(text, now_ms())
    except ValueError:
        return lambda row: True


def chosen(query: RowQuery, told: Sequence[Mapping[str, Any]], passes: Callable[[Any], bool]) -> ViewSnapshot:
    """Apply a query to rows as a view of the box would."""
    rows = [each if isinstance(each, ShownRow) else ShownRow(each) for each in told]
    passing = [row for row in rows if passes(row)]
    key = query.sort
    if key is not None:
        passing.sort(key=lambda row: _order(row.get(key)), reverse=query.descending)
    part = passing[query.offset : query.offset + query.limit]
    return ViewSnapshot(query, total=len(rows), matching=len(passing), offset=query.offset, rows=part)


def _order(value: Any) -> tuple[int, float, str]:
    """Sort key: None, then numbers, then texts."""
    if value is None:
        return 0, 0.0, ""
    if isinstance(value, bool | int | float):
        return 1, float(value), ""
    return 2, 0.0, str(value)
