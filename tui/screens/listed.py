"""Screens that load all of their few rows at once, and filter and sort them locally."""

from collections.abc import Callable, Mapping
from typing import Any

from pulsarbox.tui.feed import Feed, FeedError, ViewSnapshot
from pulsarbox.tui.screens.view import ViewScreen
from pulsarbox.tui.widgets.local_rows import chosen


class ListScreen(ViewScreen):
    """Screen with one request for all rows."""

    def path(self) -> str:
        """Return the request path."""
        raise NotImplementedError

    def rows_in(self, told: Any) -> list[Mapping[str, Any]]:
        """Return the rows of the response. Raises Trouble."""
        if not isinstance(told, list):
            raise FeedError("the response is not a list: is this the Admin API of a box?", 502)
        return told

    def load(self) -> Callable[[], Any]:
        """Return a function that queries all rows and applies filter and order."""
        query, path, passes = self.query_now(), self.path(), self.passes()

        def ask() -> ViewSnapshot:
            return chosen(query, self.rows_in(fetch(self.top.feed, path)), passes)

        return ask


def fetch(feed: Feed, path: str) -> Any:
    """Return the response to a GET request. Raises Trouble."""
    return feed.ask("GET", path)
