"""A screen whose rows come all at once, because there are few of them: filter and order are done here."""

from collections.abc import Callable, Mapping
from typing import Any

from pulsarbox.tui.feed import Feed, Query, Row, Snapshot, Trouble
from pulsarbox.tui.screens.view import ViewScreen


class ListScreen(ViewScreen):
    """One question, whose answer has all rows."""

    def path(self) -> str:
        """What is asked."""
        raise NotImplementedError

    def rows_in(self, told: Any) -> list[Mapping[str, Any]]:
        """The rows of the answer. Raises Trouble."""
        if not isinstance(told, list):
            raise Trouble("the answer is no list: is this the Admin API of a box?", 502)
        return told

    def load(self) -> Callable[[], Any]:
        """All rows, then those that pass."""
        query, path, passes = self.query_now(), self.path(), self.passes()

        def ask() -> Snapshot:
            return chosen(query, self.rows_in(told_by(self.top.feed, path)), passes)

        return ask


def told_by(feed: Feed, path: str) -> Any:
    """The answer to a GET."""
    return feed.ask("GET", path)


def chosen(query: Query, told: list[Mapping[str, Any]], passes: Callable[[Any], bool]) -> Snapshot:
    """As a view of the box would answer."""
    rows = [Row(each) for each in told]
    passing = [row for row in rows if passes(row)]
    key = query.sort
    if key is not None:
        passing.sort(key=lambda row: _order(row.get(key)), reverse=query.descending)
    part = passing[query.offset : query.offset + query.limit]
    return Snapshot(query, total=len(rows), matching=len(passing), offset=query.offset, rows=part)


def _order(value: Any) -> tuple[int, float, str]:
    """Nothing, then numbers, then texts."""
    if value is None:
        return 0, 0.0, ""
    if isinstance(value, bool | int | float):
        return 1, float(value), ""
    return 2, 0.0, str(value)
